//! The fields of each kind of fault.

use super::diagnostic::{Diagnostic, nearest};
use super::reader::Table;

/// The kinds of fault there are.
pub const KINDS: [&str; 1] = [FAIL_COMMAND];
/// The server's own failpoint.
pub const FAIL_COMMAND: &str = "fail_command";
/// The code of a server's own request limiter.
pub const CODE: i32 = 462;
/// Its labels: overloaded, and worth another try.
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

/// `commands`, with a warning for each that no operation sends: a rejection that never happens proves nothing.
pub fn read_commands(fields: &mut Table<'_>, sent: &[String]) -> Vec<String> {
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
pub fn read_probability(fields: &mut Table<'_>) -> Option<f64> {
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

/// `labels`, those of a server's own limiter when left out.
pub fn read_labels(fields: &mut Table<'_>) -> Vec<String> {
    match fields.texts("labels") {
        Some(labels) => labels.into_iter().map(|label| label.into_inner()).collect(),
        None => LABELS.map(str::to_owned).to_vec(),
    }
}
