//! What is known of a load whose shards are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::NOTE;
use super::belonging::Stored;
use crate::plan::Plan;
use crate::results::{EndFacts, HostFacts, RunFacts, Summary, TrialFacts};
use crate::snapshot::{Event, Totals};

/// What was known at the start. The first shard is the one that looked at the servers and shed load.
pub(super) fn facts(shards: &[Stored], plan: Plan) -> TrialFacts {
    TrialFacts { plan, cores: cores(shards), ..shards[0].begin.facts.clone() }
}

/// Processors of all machines, each machine's once.
fn cores(shards: &[Stored]) -> usize {
    let machines: BTreeMap<&str, usize> =
        shards.iter().map(|shard| (shard.begin.machine.as_str(), shard.begin.host.cores)).collect();
    machines.values().sum()
}

/// Everything that happened, each with the shard that saw it, in the order of time.
pub(super) fn events(shards: &[Stored]) -> Vec<Event> {
    let of_shard = |shard: &Stored| {
        let who = format!("shard {}", shard.shard);
        let own = move |event: &Event| Event {
            detail: if event.detail.is_empty() { who.clone() } else { format!("{who}: {}", event.detail) },
            ..event.clone()
        };
        shard.events.iter().map(own).collect::<Vec<_>>()
    };
    let mut events: Vec<Event> = shards.iter().flat_map(of_shard).collect();
    events.sort_by_key(|event| event.at_ns);
    events
}

/// What everything must add up to.
pub(super) fn totals(shards: &[Stored]) -> Totals {
    let mut sum = Totals::default();
    for totals in shards.iter().map(|shard| &shard.end.totals) {
        sum.ended.resize(sum.ended.len().max(totals.ended.len()), 0);
        for (sum, more) in sum.ended.iter_mut().zip(&totals.ended) {
            *sum += more;
        }
        sum.attempts += totals.attempts;
        sum.cut |= totals.cut;
    }
    sum
}

/// How it ended: with its last shard. It was stopped when all were.
pub(super) fn end(shards: &[Stored]) -> EndFacts {
    let stopped: Option<Vec<u64>> = shards.iter().map(|shard| shard.end.facts.stopped_ns).collect();
    let mut notes = Vec::new();
    let cut: Vec<String> =
        shards.iter().filter(|shard| shard.end.totals.cut).map(|shard| shard.shard.to_string()).collect();
    if !cut.is_empty() && cut.len() < shards.len() {
        notes.push(format!(
            "shards {} were cut short and the others were not: from then on the load was a smaller one",
            cut.join(", ")
        ));
    }
    notes.extend(shared_notes(shards));
    EndFacts {
        ended: shards.iter().filter_map(|shard| shard.end.facts.ended).max(),
        early: None,
        stopped_ns: stopped.and_then(|stopped| stopped.into_iter().max()),
        notes,
    }
}

/// What shards were told to say: once where all of them do.
fn shared_notes(shards: &[Stored]) -> Vec<String> {
    let mut whose: Vec<(&str, Vec<String>)> = Vec::new();
    for shard in shards {
        for note in shard.end.facts.notes.iter().filter(|note| !note.starts_with(NOTE)) {
            let who = shard.shard.to_string();
            match whose.iter_mut().find(|(known, _)| known == note) {
                Some((_, of)) => of.push(who),
                None => whose.push((note, vec![who])),
            }
        }
    }
    let told = |(note, of): (&str, Vec<String>)| match of.len() == shards.len() {
        true => note.to_owned(),
        false => format!("shard {}: {note}", of.join(", ")),
    };
    whose.into_iter().map(told).collect()
}

/// What is known of the run as a whole.
pub(super) fn run_facts(shards: &[Stored], summary: &Summary) -> RunFacts {
    let versions: BTreeSet<&str> = shards.iter().map(|shard| shard.begin.tool_version.as_str()).collect();
    let mixed = (versions.len() > 1).then(|| {
        let versions: Vec<&str> = versions.into_iter().collect();
        format!("the shards were made by several versions of overdrive: {}", versions.join(", "))
    });
    RunFacts {
        started: summary.facts.go,
        ended: summary.ended,
        complete: true,
        host: host(shards),
        notes: mixed.into_iter().collect(),
        earlier: Vec::new(),
        search: None,
        shards: Some(shards.iter().map(told).collect()),
    }
}

/// All machines as one.
fn host(shards: &[Stored]) -> HostFacts {
    let each = |of: fn(&HostFacts) -> Option<&str>| {
        let all: BTreeSet<&str> = shards.iter().filter_map(|shard| of(&shard.begin.host)).collect();
        (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" + "))
    };
    HostFacts {
        cores: cores(shards),
        os: each(|host| Some(&host.os)).unwrap_or_default(),
        arch: each(|host| Some(&host.arch)).unwrap_or_default(),
        cpu_model: each(|host| host.cpu_model.as_deref()),
    }
}

fn told(shard: &Stored) -> Value {
    json!({
        "shard": shard.shard.index,
        "run_id": shard.begin.run_id,
        "tool_version": shard.begin.tool_version,
        "machine": shard.begin.machine,
        "host": shard.begin.host,
        "result": shard.told["result"],
        "totals": shard.told["totals"],
        "broken": shard.told["broken"],
        "notes": shard.told["notes"],
    })
}
