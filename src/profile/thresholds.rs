//! `[thresholds]`, and whether the names in conditions are names of the profile.

use std::ops::Range;

use toml::de::DeValue;

use crate::plan::load::Phase;
use crate::plan::timeline::segments;
use crate::plan::{Operation, Overload, Plan};
use crate::thresholds::{ALL, Condition, Mistake, Thresholds};

use super::diagnostic::{Diagnostic, nearest};
use super::mistakes::unknown;
use super::reader::Table;

/// Segments that there are beside those that overloads name.
const AROUND: [&str; 3] = ["before", "between", "after"];

/// What conditions may be about.
pub struct Names<'a> {
    /// Of each client: its name, `all` where there is one only, and its operations.
    clients: Vec<(&'a str, Vec<&'a str>)>,
    /// `None` where mistakes in overloads leave it open what they are called.
    overloads: Option<Vec<&'a str>>,
}

/// Reads `[thresholds]`; without one there are none.
pub fn read(root: &mut Table<'_>, overloads: &[Overload]) -> Thresholds {
    let names = Names::written(root, overloads);
    let Some(mut table) = root.table("thresholds") else { return Thresholds::default() };
    let thresholds = Thresholds {
        fail_if: conditions(&mut table, "fail_if", &names),
        abort_when: conditions(&mut table, "abort_when", &names),
    };
    table.finish();
    thresholds
}

fn conditions(table: &mut Table<'_>, key: &'static str, names: &Names<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for text in table.texts(key).unwrap_or_default() {
        let written = text.get_ref();
        let condition = written.parse::<Condition>();
        match condition.and_then(|condition| names.check(&condition).map(|()| condition)) {
            Ok(condition) => conditions.push(condition),
            Err(mistake) => table.mistakes().add(diagnostic(text.span(), written, &mistake)),
        }
    }
    conditions
}

fn diagnostic(span: Range<usize>, written: &str, mistake: &Mistake) -> Diagnostic {
    let place = place(span, written, &mistake.part);
    let known: Vec<&str> = mistake.known.iter().map(String::as_str).collect();
    unknown(place, mistake.message.clone(), name(mistake), &known)
}

/// The place of a part of a text in quotes. Where the text was written with escapes only all of it can be pointed at.
fn place(span: Range<usize>, written: &str, part: &str) -> Range<usize> {
    match written.find(part) {
        Some(at) if !part.is_empty() && span.len() == written.len() + 2 => {
            let start = span.start + 1 + at;
            start..start + part.len()
        }
        _ => span,
    }
}

/// The name that a mistake is about, without what it belongs to.
fn name(mistake: &Mistake) -> &str {
    mistake.part.rsplit('.').next().unwrap_or_default()
}

/// Reads a condition from the command line.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|mistake| sentence(&mistake))
}

/// A mistake in one line, with what was probably meant.
pub fn sentence(mistake: &Mistake) -> String {
    let message = &mistake.message;
    match nearest(name(mistake), mistake.known.iter().map(String::as_str)) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None if mistake.known.is_empty() => message.clone(),
        None => format!("{message}; there are {}", mistake.known.join(", ")),
    }
}

impl<'a> Names<'a> {
    /// Those of a profile without mistakes.
    pub fn of(
        operations: &'a [Operation],
        clients: impl Iterator<Item = (&'a str, &'a [Operation])>,
        overloads: &'a [Overload],
    ) -> Self {
        let names = |all: &'a [Operation]| all.iter().map(|operation| operation.name.as_str()).collect();
        let clients: Vec<_> = clients.map(|(client, own)| (client, names(own))).collect();
        Self {
            clients: if clients.is_empty() { vec![(ALL, names(operations))] } else { clients },
            overloads: Some(overloads.iter().map(|overload| overload.name.as_str()).collect()),
        }
    }

    /// Those that were written, whatever mistakes there are in what they name.
    fn written<'t: 'a>(root: &Table<'t>, overloads: &'a [Overload]) -> Self {
        let written = |key: &str| root.entries().find(|(name, _)| **name.get_ref() == *key).map(|(_, v)| v);
        let names = |all: Option<&'t DeValue<'t>>| -> Vec<&'a str> {
            let all = all.and_then(DeValue::as_table);
            all.map_or_else(Vec::new, |all| all.keys().map(|name| &**name.get_ref()).collect())
        };
        let shared = || names(written("op").map(|value| value.get_ref()));
        let clients = match written("clients").and_then(|value| value.get_ref().as_table()) {
            Some(clients) if !clients.is_empty() => clients
                .iter()
                .map(|(name, client)| {
                    let own = client.get_ref().as_table().and_then(|client| client.get("op"));
                    (&**name.get_ref(), own.map_or_else(shared, |own| names(Some(own.get_ref()))))
                })
                .collect(),
            _ => vec![(ALL, shared())],
        };
        let count = match written("overload").map(|value| value.get_ref()) {
            Some(DeValue::Array(items)) => items.len(),
            _ => 0,
        };
        let known = overloads.len() == count;
        let overloads = known.then(|| overloads.iter().map(|overload| overload.name.as_str()).collect());
        Self { clients, overloads }
    }

    /// Whether there can be what a condition is about.
    ///
    /// # Errors
    /// When there can be no such operation, client or segment.
    pub fn check(&self, condition: &Condition) -> Result<(), Mistake> {
        let Condition { segment, client, op, .. } = condition;
        let names = || self.clients.iter().map(|(name, _)| *name);
        let known = self.clients.iter().find(|(name, _)| name == client);
        if client != ALL && known.is_none() {
            let message = format!("there is no client `{client}`");
            return Err(Mistake::unknown(
                &format!("client.{client}"),
                message,
                names().filter(|n| *n != ALL),
            ));
        }
        if let (None, true) = (known, op != ALL) {
            let message =
                format!("there are several clients, and `op.{op}` is of one: write client.NAME.op.{op}");
            return Err(Mistake::unknown(&format!("op.{op}"), message, names()));
        }
        if let Some((_, operations)) = known.filter(|(_, all)| op != ALL && !all.contains(&op.as_str())) {
            let message = format!("there is no operation `{op}`");
            return Err(Mistake::unknown(&format!("op.{op}"), message, operations.iter().copied()));
        }
        let Some(overloads) = &self.overloads else { return Ok(()) };
        // Overloads that are on together make a segment that is named by all of them.
        let is_overload = segment.split('+').all(|name| overloads.contains(&name));
        let is_around = AROUND.contains(&segment.as_str()) && !overloads.is_empty();
        if segment == ALL || is_overload || is_around {
            return Ok(());
        }
        let around = AROUND.iter().filter(|_| !overloads.is_empty());
        let known = [ALL].iter().chain(around).chain(overloads).copied();
        let message = format!("there is no segment `{segment}`");
        Err(Mistake::unknown(&format!("segment.{segment}"), message, known))
    }
}

/// Whether there can be what conditions on this plan are about; a sentence for each that there cannot.
pub fn impossible(conditions: &[Condition], plan: &Plan) -> Vec<String> {
    let clients =
        plan.clients.iter().map(|group| (group.name.as_str(), &plan.operations[group.operations.clone()]));
    let names = Names::of(&plan.operations, clients, &plan.overloads);
    let told = |condition: &Condition| {
        names.check(condition).err().map(|mistake| format!("'{condition}': {}", sentence(&mistake)))
    };
    conditions.iter().filter_map(told).collect()
}

/// Thresholds on what this plan will have nothing of; one sentence each.
pub fn doubts(plan: &Plan) -> Vec<String> {
    let measured = |segment: &str| {
        segment == ALL || segments(plan).iter().any(|s| s.phase == Phase::Measure && s.name == segment)
    };
    let idle = |client: &str, op: &str| {
        let own = plan.clients.iter().find(|group| group.name == client);
        let own = own.map_or(&plan.operations[..], |group| &plan.operations[group.operations.clone()]);
        own.iter().any(|o| o.name == op && o.weight == 0)
    };
    let doubt = |condition: &Condition| {
        let Condition { segment, client, op, .. } = condition;
        match (idle(client, op), measured(segment)) {
            (true, _) => Some(format!("the threshold {condition} will have no data: {op} has weight 0")),
            (_, false) => Some(format!(
                "the threshold {condition} will have no data: the measured time has no segment {segment}"
            )),
            _ => None,
        }
    };
    plan.thresholds.all().filter_map(doubt).collect()
}
