//! `[op.<name>.<kind>]`: the mix.

use toml::de::DeValue;

use crate::plan::Operation;

use super::action::{self, KINDS};
use super::diagnostic::{Diagnostic, nearest};
use super::mistakes::unknown;
use super::reader::{Table, Value};

/// The largest weight.
pub const MOST_WEIGHT: u32 = 10_000;

/// What to do about a weight that is a fraction.
pub const SCALE: &str = "scale all weights, like 1 and 3 for 0.25 and 0.75";

/// Reads all operations.
pub fn read(root: &mut Table<'_>) -> Vec<Operation> {
    let mistakes = root.mistakes();
    let Some(value) = root.take("op") else {
        mistakes.add(Diagnostic::general("there is no operation").help(EXAMPLE));
        return Vec::new();
    };
    let Some(table) = Table::of(mistakes, value, root.path_of("op")) else { return Vec::new() };
    let mut operations = Vec::new();
    let mut count = 0_usize;
    for (name, value) in table.entries() {
        count += 1;
        if let Err(message) = operation_name(name.get_ref()) {
            table.wrong(name.span(), message);
        }
        operations.extend(read_operation(&table, name.get_ref(), value));
    }
    if count == 0 {
        mistakes.add(Diagnostic::error(table.span, "there is no operation").help(EXAMPLE));
    } else if operations.len() == count && operations.iter().all(|op| op.weight == 0) {
        // Pointed at the first one; with mistakes in some, their weights are not known yet.
        let message = "every operation has weight 0, so there is nothing to do";
        mistakes.add(Diagnostic::error(value.span(), message).help("give one of them a weight above 0"));
    }
    operations
}

const EXAMPLE: &str = "add one, for example [op.ping.run_command] with command = { ping = 1 }";

/// Whether an operation may have this name.
///
/// # Errors
/// Why it may not.
pub fn operation_name(name: &str) -> Result<(), String> {
    if name == "all" {
        return Err("an operation cannot be called `all`: the rows of all operations together are".to_owned());
    }
    plain_name(name, "an operation")
}

/// Names go into files, and are joined by `+` and `.` there.
///
/// # Errors
/// When there is another character in it, or none at all.
pub fn plain_name(name: &str, whose: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(fine) {
        return Ok(());
    }
    Err(format!("{whose}'s name has letters, digits, _ and - only, not '{name}'"))
}

/// `[op.<name>]` holds one table, named by the kind.
fn read_operation(all: &Table<'_>, name: &str, value: &Value<'_>) -> Option<Operation> {
    let (mistakes, path) = (all.mistakes(), all.path_of(name));
    let table = Table::of(mistakes, value, path.clone())?;
    let mut kinds = Vec::new();
    for (key, inner) in table.entries() {
        let kind: &str = key.get_ref();
        if KINDS.contains(&kind) {
            kinds.push((key, inner));
        } else if is_field(inner) && nearest(kind, KINDS).is_none() {
            let message =
                format!("`{kind}` stands directly in `{path}`, which holds the operation's kind alone");
            let help = format!("put it in a table like [{path}.find_one]");
            mistakes.add(Diagnostic::error(key.span(), message).help(help));
        } else {
            mistakes.add(unknown(key.span(), format!("unknown kind of operation `{kind}`"), kind, &KINDS));
        }
    }
    if let [(first, _), (second, _), ..] = kinds.as_slice() {
        let message = format!("`{path}` has two kinds, {} and {}", first.get_ref(), second.get_ref());
        let help = "make them two operations, each with its own name";
        mistakes.add(Diagnostic::error(second.span(), message).help(help));
    }
    if table.entries().next().is_none() {
        let help = format!("name it in the header, like [{path}.find_one]");
        mistakes.add(Diagnostic::error(value.span(), format!("`{path}` has no kind")).help(help));
    }
    let (kind, inner) = kinds.into_iter().next()?;
    let mut fields = Table::of(mistakes, inner, format!("{path}.{}", kind.get_ref()))?;
    let weight = read_weight(&mut fields);
    let action = action::read(kind.get_ref(), &mut fields);
    fields.finish();
    Some(Operation { name: name.to_owned(), weight, action: action? })
}

/// The weight, 1 if nobody gives one. Shares of a whole are written by many.
fn read_weight(fields: &mut Table<'_>) -> u32 {
    let fraction =
        fields.entries().find(|(key, value)| key.get_ref() == "weight" && value.get_ref().is_float());
    if let Some((_, value)) = fraction {
        fields.take("weight");
        let message = format!("`{}` must be a whole number", fields.path_of("weight"));
        fields.mistakes().add(Diagnostic::error(value.span(), message).help(SCALE));
        return 1;
    }
    fields.integer("weight", 0, MOST_WEIGHT).unwrap_or(1)
}

fn is_field(value: &Value<'_>) -> bool {
    !matches!(value.get_ref(), DeValue::Table(_))
}
