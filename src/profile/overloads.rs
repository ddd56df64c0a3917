//! `[[overload]]`: what happens to the servers meanwhile.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::plan::{FailCommand, Fault, Members, Operation, Overload};
use crate::units::Offset;

use super::diagnostic::{Diagnostic, either};
use super::load::above_zero;
use super::mistakes::{Mistakes, unknown};
use super::operations::plain_name;
use super::reader::{Table, Value, whole};
use super::{action, fault};

/// Names of segments, which overloads name too.
const RESERVED: [&str; 7] = ["before", "between", "after", "measure", "warmup", "cooldown", "all"];

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
    let members = table.take("members").map_or(Some(Members::All), |value| read_members(mistakes, value));
    let fault = read_fault(&mut table, operations);
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

fn read_members(mistakes: &Mistakes, value: &Value<'_>) -> Option<Members> {
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
            numbers.map(Members::Numbers)
        }
        _ => {
            let message = format!("`overload.members` must be {}, or a list of numbers", either(&words));
            mistakes.add(Diagnostic::error(value.span(), message));
            None
        }
    }
}

/// Exactly one kind of fault.
fn read_fault(table: &mut Table<'_>, operations: &[Operation]) -> Option<Fault> {
    let Some(mut fields) = table.table(fault::FAIL_COMMAND) else {
        // A key nobody knows is probably a mistyped fault, and reported as such.
        if table.key_span(fault::FAIL_COMMAND).is_none() && !table.has_strangers() {
            let message = format!("this overload does nothing: it lacks {}", either(&fault::KINDS));
            let help = "for example fail_command = { probability = 0.5 }";
            table.mistakes().add(Diagnostic::error(table.span.clone(), message).help(help));
        }
        return None;
    };
    let commands = fault::read_commands(&mut fields, &sent_by(operations));
    let probability = fault::read_probability(&mut fields);
    let code = fields.integer("code", 1, i32::MAX).unwrap_or(fault::CODE);
    let labels = fault::read_labels(&mut fields);
    fields.finish();
    Some(Fault::FailCommand(FailCommand { commands, probability: probability?, code, labels }))
}

fn sent_by(operations: &[Operation]) -> Vec<String> {
    operations.iter().flat_map(|operation| action::commands(&operation.action)).collect()
}
