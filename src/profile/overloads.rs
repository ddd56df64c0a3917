//! `[[overload]]`: what happens to the servers meanwhile.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::plan::{Fault, Members, Operation, Overload};
use crate::units::Offset;

use super::diagnostic::{Diagnostic, either};
use super::load::above_zero;
use super::mistakes::{Mistakes, unknown};
use super::operations::plain_name;
use super::reader::{Table, Value, whole};
use super::{action, fault};

/// Names of segments, which overloads name too.
const RESERVED: [&str; 8] =
    ["before", "between", "after", "measure", "warmup", "transition", "cooldown", "all"];

/// The words for members.
pub const MEMBERS: [(&str, Members); 3] =
    [("all", Members::All), ("primary", Members::Primary), ("secondaries", Members::Secondaries)];

/// Reads all overloads; the operations are for telling which commands are never sent.
pub fn read(root: &mut Table<'_>, operations: &[Operation]) -> Vec<Overload> {
    let mistakes = root.mistakes();
    let Some(items) = root.array("overload") else { return Vec::new() };
    let mut overloads: Vec<Overload> = Vec::new();
    for item in items {
        if let Some(overload) = read_one(mistakes, item, &overloads, operations) {
            overloads.push(overload);
        }
    }
    overloads
}

/// Whether an overload may have this name.
///
/// # Errors
/// Why it may not.
pub fn overload_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("an overload cannot be called `{name}`: a part of every run is called that"));
    }
    plain_name(name, "an overload")
}

fn read_one(
    mistakes: &Mistakes,
    item: &Value<'_>,
    earlier: &[Overload],
    operations: &[Operation],
) -> Option<Overload> {
    let mut table = Table::of(mistakes, item, "overload".to_owned())?;
    let name = table.text("name");
    let at = table.quantity::<Offset>("at").map(|at| at.into_inner());
    let length = above_zero(&mut table, "for");
    for key in ["at", "for"] {
        if table.key_span(key).is_none() {
            table.missing(key);
        }
    }
    let members = table.take("members");
    let fault = fault::read(&mut table, &sent_by(operations));
    let members = read_members(mistakes, members, fault.as_ref());
    let place = table.span.clone();
    table.finish();
    let name = checked_name(mistakes, name, place, fault.as_ref(), earlier);
    Some(Overload { name: name?, at: at?, length: length?, members: members?, fault: fault? })
}

/// The name that was given, or the fault's kind, numbered if it is taken.
fn checked_name(
    mistakes: &Mistakes,
    given: Option<Spanned<String>>,
    place: Range<usize>,
    fault: Option<&Fault>,
    earlier: &[Overload],
) -> Option<String> {
    let taken = |name: &str| earlier.iter().any(|overload| overload.name == name);
    let Some(given) = given else {
        let kind = fault?.kind();
        let numbered = (2..).map(|number| format!("{kind}_{number}"));
        return std::iter::once(kind.to_owned()).chain(numbered).find(|name| !taken(name));
    };
    let checked = overload_name(given.get_ref()).and_then(|()| match taken(given.get_ref()) {
        true => Err(format!("two overloads are called `{}`", given.get_ref())),
        false => Ok(()),
    });
    if let Err(message) = checked {
        let place = if given.span().is_empty() { place } else { given.span() };
        mistakes.add(Diagnostic::error(place, message));
        return None;
    }
    Some(given.into_inner())
}

/// Whom it hits: all, when nobody says, or the primary, where nothing else can be meant.
fn read_members(mistakes: &Mistakes, given: Option<&Value<'_>>, fault: Option<&Fault>) -> Option<Members> {
    match fault.filter(|fault| fault.is_of_the_primary()) {
        Some(fault) => {
            if let Some(value) = given {
                let message = format!("`{}` is of the primary: leave `members` out", fault.kind());
                mistakes.add(Diagnostic::error(value.span(), message));
            }
            Some(Members::Primary)
        }
        None => given.map_or(Some(Members::All), |value| chosen_members(mistakes, value)),
    }
}

fn chosen_members(mistakes: &Mistakes, value: &Value<'_>) -> Option<Members> {
    let words = MEMBERS.map(|(word, _)| word);
    match value.get_ref() {
        DeValue::String(word) => {
            let found = MEMBERS.iter().find(|(name, _)| name == word);
            if found.is_none() {
                let message = format!("`overload.members` cannot be '{word}'");
                mistakes.add(unknown(value.span(), message, word, &words));
            }
            found.map(|(_, members)| members.clone())
        }
        DeValue::Array(items) if !items.is_empty() => {
            let number = |item: &Value<'_>| match item.get_ref() {
                DeValue::Integer(number) => usize::try_from(whole(number)?).ok(),
                _ => None,
            };
            let numbers: Option<Vec<usize>> = items.iter().map(number).collect();
            if numbers.is_none() {
                let message = "members are numbered from 0 in the sorted list of hosts";
                mistakes.add(Diagnostic::error(value.span(), message));
            }
            numbers.map(|mut numbers| {
                // Twice the same is once.
                numbers.sort_unstable();
                numbers.dedup();
                Members::Numbers(numbers)
            })
        }
        _ => {
            let message = format!("`overload.members` must be {}, or a list of numbers", either(&words));
            mistakes.add(Diagnostic::error(value.span(), message));
            None
        }
    }
}

fn sent_by(operations: &[Operation]) -> Vec<String> {
    operations.iter().flat_map(|operation| action::commands(&operation.action)).collect()
}
