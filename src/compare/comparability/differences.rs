//! In what two trials differ, of all that must be the same.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Part;
use crate::compare::trial::Trial;

/// In what live trials differ by nature.
const OF_THE_MOMENT: [&str; 4] = [".duration is ", ".warmup is ", ".for is ", ".at is "];

/// How many differences of one kind are told.
const TOLD: usize = 3;

/// Something that two trials do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is a part of.
    pub part: Part,
    /// A sentence that names both.
    pub what: String,
}

/// What must be the same and is not.
pub fn differences(a: &Trial, b: &Trial) -> Vec<Difference> {
    let mut found = Vec::new();
    let simulated = [a, b].iter().all(|trial| trial.mechanism.starts_with("simulated"));
    let none = serde_json::Map::new();
    let (ours, theirs) = (a.plan.as_object().unwrap_or(&none), b.plan.as_object().unwrap_or(&none));
    let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        let part = match key.as_str() {
            "clients" => {
                found.extend(of_clients(ours.get(key), theirs.get(key)));
                continue;
            }
            // What is assumed is all that there is to a simulated server, and nothing to a real one.
            "model" => simulated.then_some(Part::Server),
            key => part_of_plan(key),
        };
        let Some(part) = part else { continue };
        // A key that an older version did not know is as good as one without a value.
        let (mine, other) = (ours.get(key).unwrap_or(&Value::Null), theirs.get(key).unwrap_or(&Value::Null));
        let mut leaves = Vec::new();
        match key.as_str() {
            // Which part of a load it is, and when that began, changes nothing; of how many, what else the servers had to do.
            "shard" => collect("shard.count", &mine["count"], &other["count"], &mut leaves),
            _ => collect(key, mine, other, &mut leaves),
        }
        if ours.get("driver") != theirs.get("driver") {
            // A worker has as many threads as it has, which bounds what none of its loads comes to.
            leaves.retain(|leaf| !leaf.contains(".max_in_flight is "));
        }
        if a.live == "true" && b.live == "true" {
            // How long each was, and how far into it an overload began, is when a hand turned a knob.
            leaves.retain(|leaf| !OF_THE_MOMENT.iter().any(|key| leaf.contains(key)));
        }
        let more = leaves.len().saturating_sub(TOLD);
        found.extend(leaves.into_iter().take(TOLD).map(|what| Difference { part, what }));
        if more > 0 {
            found.push(Difference { part, what: format!("{key}: and {more} more") });
        }
    }
    for (part, what, mine, other) in [
        (Part::Server, "the server", &a.server, &b.server),
        (Part::Overload, "what sheds load", &a.mechanism, &b.mechanism),
    ] {
        if mine != other {
            let shown = |text: &str| if text.is_empty() { "nothing".to_owned() } else { text.to_owned() };
            found.push(Difference { part, what: format!("{what} is {} and {}", shown(mine), shown(other)) });
        }
    }
    found
}

/// The same of several clients.
fn of_clients(ours: Option<&Value>, theirs: Option<&Value>) -> Vec<Difference> {
    let listed = |clients: Option<&Value>| clients.and_then(Value::as_array).cloned().unwrap_or_default();
    let (ours, theirs) = (listed(ours), listed(theirs));
    let names = |clients: &[Value]| clients.iter().map(|client| plain(&client["name"])).collect::<Vec<_>>();
    if names(&ours) != names(&theirs) {
        let shown = |clients: &[Value]| match names(clients).join(", ") {
            none if none.is_empty() => "one alone".to_owned(),
            names => names,
        };
        let what = format!("the clients are {} and {}", shown(&ours), shown(&theirs));
        return vec![Difference { part: Part::Load, what }];
    }
    let mut found = Vec::new();
    for (mine, other) in ours.iter().zip(&theirs) {
        let keys = mine.as_object().into_iter().chain(other.as_object()).flat_map(|client| client.keys());
        for key in keys.collect::<BTreeSet<_>>() {
            let part = match key.as_str() {
                "model" => Some(Part::Load),
                key => part_of_plan(key),
            };
            let Some(part) = part else { continue };
            let mut leaves = Vec::new();
            let path = format!("clients.{}.{key}", plain(&mine["name"]));
            collect(&path, &mine[key.as_str()], &other[key.as_str()], &mut leaves);
            found.extend(leaves.into_iter().take(TOLD).map(|what| Difference { part, what }));
        }
    }
    found
}

/// What a key of the plan belongs to; nothing for what may differ.
fn part_of_plan(key: &str) -> Option<Part> {
    match key {
        // What is asked of a run changes nothing of what it does.
        "profile" | "description" | "seed" | "client" | "driver" | "live" | "thresholds" => None,
        "data" => Some(Part::Data),
        "load" | "shard" => Some(Part::Load),
        "operations" => Some(Part::Operations),
        "overloads" => Some(Part::Overload),
        "attempts" | "staleness" => Some(Part::Measuring),
        _ => Some(Part::Application),
    }
}

/// What a parameter that was varied changes in the plan; nothing for an option of the connection string.
pub fn part_of_param(key: &str) -> Option<Part> {
    // What is said for one of several clients is of the same part as what is said for all.
    let of_client = key.strip_prefix("clients.").and_then(|rest| rest.split_once('.'));
    let key = of_client.map_or(key, |(_, own)| own);
    match key.split('.').next().unwrap_or(key) {
        "rate" | "workers" | "duration" | "warmup" | "load" => Some(Part::Load),
        "data" => Some(Part::Data),
        "op" => Some(Part::Operations),
        "overload" => Some(Part::Overload),
        "timeout" | "backoff" | "flow" => Some(Part::Application),
        "model" => Some(Part::Server),
        "attempts" | "staleness" => Some(Part::Measuring),
        _ => None,
    }
}

/// The places in which two documents differ.
fn collect(path: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let (mine, other) = (&a[key.as_str()], &b[key.as_str()]);
                collect(&format!("{path}.{key}"), mine, other, found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (i, (mine, other)) in ours.iter().zip(theirs).enumerate() {
                // What has a name is known by it.
                let name = mine["name"].as_str().map_or_else(|| i.to_string(), str::to_owned);
                collect(&format!("{path}.{name}"), mine, other, found);
            }
        }
        _ if a != b => found.push(format!("{path} is {} and {}", plain(a), plain(b))),
        _ => {}
    }
}

/// A value in few words.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if !values.is_empty() => format!("a list of {}", values.len()),
        Value::Object(_) => "something else".to_owned(),
        other => other.to_string(),
    }
}
