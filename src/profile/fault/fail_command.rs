//! `fail_command`: rejection by the servers' own failpoint.

use toml::Spanned;

use crate::plan::gate::RATE_LIMIT_EXCEEDED;
use crate::plan::{FailCommand, Fault};
use crate::profile::diagnostic::{Diagnostic, nearest};
use crate::profile::reader::Table;

/// The labels of a server's own limiter: overloaded, and worth another try.
const LABELS: [&str; 2] = ["SystemOverloadedError", "RetryableError"];

/// Every command that carries data for some kind of operation. Handshakes and heartbeats are not among them: failing
/// those makes a member look dead, which is another experiment.
const COMMANDS: [&str; 12] = [
    "find",
    "getMore",
    "aggregate",
    "distinct",
    "count",
    "insert",
    "update",
    "delete",
    "findAndModify",
    "bulkWrite",
    "create",
    "drop",
];

/// Reads its fields; `sent` are the commands that operations send, for telling which are never sent.
pub fn read(fields: &mut Table<'_>, sent: &[String]) -> Option<Fault> {
    let commands = read_commands(fields, sent);
    let probability = read_probability(fields);
    let code = fields.integer("code", 1, i32::MAX).unwrap_or(RATE_LIMIT_EXCEEDED);
    let labels = read_labels(fields).unwrap_or_else(|| LABELS.map(str::to_owned).to_vec());
    Some(Fault::FailCommand(FailCommand { commands, probability: probability?, code, labels }))
}

/// `commands`, with a warning for each that no operation sends: a rejection that never happens proves nothing.
fn read_commands(fields: &mut Table<'_>, sent: &[String]) -> Vec<String> {
    let place = fields.key_span("commands");
    let Some(commands) = fields.texts("commands") else { return COMMANDS.map(str::to_owned).to_vec() };
    if let (true, Some(place)) = (commands.is_empty(), place) {
        fields.wrong(place, "`commands` must not be empty; left out, it means every command with data");
    }
    // With mistakes in the operations, what they send is not known.
    for command in commands.iter().filter(|c| !sent.is_empty() && !sent.contains(c.get_ref())) {
        let warning = Diagnostic::warning(
            command.span(),
            format!("no operation of this profile sends `{}`", command.get_ref()),
        );
        fields.mistakes().add(match nearest(command.get_ref(), sent.iter().map(String::as_str)) {
            Some(name) => warning.label(format!("did you mean `{name}`?")),
            None => warning,
        });
    }
    commands.into_iter().map(|command| command.into_inner()).collect()
}

/// `probability`, 1 when left out.
fn read_probability(fields: &mut Table<'_>) -> Option<f64> {
    let Some(probability) = fields.number("probability") else {
        return fields.key_span("probability").is_none().then_some(1.0);
    };
    match check_probability(*probability.get_ref()) {
        Ok(()) => Some(probability.into_inner()),
        Err(message) => {
            fields.wrong(probability.span(), message);
            None
        }
    }
}

/// Whether a number is a probability that does something.
///
/// # Errors
/// When it is not above 0 or above 1.
pub fn check_probability(probability: f64) -> Result<(), String> {
    if probability > 0.0 && probability <= 1.0 {
        return Ok(());
    }
    Err(format!("a probability must be above 0 and at most 1, not {probability}"))
}

/// `labels`.
pub fn read_labels(fields: &mut Table<'_>) -> Option<Vec<String>> {
    let labels = fields.texts("labels")?;
    for label in labels.iter().filter(|label| label.get_ref().contains('\0')) {
        fields.wrong(label.span(), "a label cannot hold a zero byte");
    }
    Some(labels.into_iter().map(Spanned::into_inner).collect())
}
