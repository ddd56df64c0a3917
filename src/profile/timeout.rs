//! `[timeout]`: how long the application waits for a call, and servers work on it.

use crate::plan::flow::LONGEST_MAX_TIME;
use crate::plan::{Action, OnTimeout, Operation, Plan, Timeout};
use crate::units::Span;

use super::diagnostic::{Diagnostic, either};
use super::load::above_zero;
use super::reader::Table;

/// The words for what becomes of a call that has passed its deadline.
pub const ON_TIMEOUT: [(&str, OnTimeout); 2] =
    [("cancel", OnTimeout::Cancel), ("read_in_background", OnTimeout::ReadInBackground)];

/// What says nothing where no call has a deadline.
pub const AFTER_DEADLINE: [&str; 2] = ["on_timeout", "grace"];

/// What servers count in; nothing shorter can be said to them, and they take 0 for no limit at all.
const SHORTEST_MAX_TIME: Span = Span::millis(1);

/// What was written in `[timeout]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenTimeout {
    operation: Option<Span>,
    on_timeout: Option<OnTimeout>,
    grace: Option<Span>,
    max_time: Option<Span>,
}

impl WrittenTimeout {
    /// Whether a key was written.
    pub fn says(&self, key: &str) -> bool {
        match key {
            "operation" => self.operation.is_some(),
            "on_timeout" => self.on_timeout.is_some(),
            "grace" => self.grace.is_some(),
            _ => self.max_time.is_some(),
        }
    }

    /// With what was not written taken from another.
    pub fn over(self, base: Timeout) -> Timeout {
        Timeout {
            operation: self.operation.or(base.operation),
            on_timeout: self.on_timeout.unwrap_or(base.on_timeout),
            grace: self.grace.unwrap_or(base.grace),
            max_time: self.max_time.or(base.max_time),
        }
    }
}

/// Reads `[timeout]`. What it leaves out is said by `base`.
pub fn read(root: &mut Table<'_>, base: Timeout) -> WrittenTimeout {
    let Some(mut table) = root.table("timeout") else { return WrittenTimeout::default() };
    let timeout = WrittenTimeout {
        operation: above_zero(&mut table, "operation"),
        on_timeout: table.word("on_timeout", &ON_TIMEOUT),
        grace: table.quantity("grace").map(|grace| grace.into_inner()),
        max_time: max_time(&mut table),
    };
    if table.key_span("operation").is_none() && base.operation.is_none() {
        check_without_deadline(&table);
    }
    table.finish();
    timeout
}

fn max_time(table: &mut Table<'_>) -> Option<Span> {
    let written = table.quantity("max_time")?;
    check_max_time(*written.get_ref())
        .map_err(|message| table.wrong(written.span(), format!("`{}` {message}", table.path_of("max_time"))))
        .ok()
}

/// Whether servers can be told this.
///
/// # Errors
/// Why they cannot; the key's name is to stand before it.
pub fn check_max_time(span: Span) -> Result<Span, String> {
    match span < SHORTEST_MAX_TIME {
        true => Err(format!("must be at least {SHORTEST_MAX_TIME}")),
        false => Ok(span),
    }
}

fn check_without_deadline(table: &Table<'_>) {
    let mut idle = AFTER_DEADLINE.iter().filter_map(|key| Some((key, table.key_span(key)?))).peekable();
    if idle.peek().is_none() && table.key_span("max_time").is_none() {
        table.wrong(table.span.clone(), format!("`{}` lacks `operation` or `max_time`", table.path));
    }
    for (key, place) in idle {
        let (path, deadline) = (table.path_of(key), table.path_of("operation"));
        let message = format!("`{path}` says nothing without `{deadline}`: no call has a deadline");
        let help = "write operation = \"500ms\", or leave it out";
        table.mistakes().add(Diagnostic::error(place, message).help(help));
    }
}

/// What of a timeout servers will not be told; one sentence each.
pub fn doubts(plan: &Plan) -> Option<String> {
    let max_time = plan.timeout.max_time?;
    if max_time > LONGEST_MAX_TIME {
        return Some(format!(
            "timeout.max_time = {max_time} is longer than the longest that servers take ({}ms), so they are told nothing",
            LONGEST_MAX_TIME.duration().as_millis()
        ));
    }
    let unreached = |operation: &&Operation| operation.weight > 0 && !carries_max_time(&operation.action);
    let names: Vec<&str> =
        plan.operations.iter().filter(unreached).map(|operation| operation.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let names = either(&names).replace(" or ", " and ");
        format!(
            "timeout.max_time = {max_time} is not sent with {names}: the driver has no such option for writes"
        )
    })
}

/// Whether the driver can tell servers how long they may work on it.
fn carries_max_time(action: &Action) -> bool {
    match action {
        Action::FindOne(_)
        | Action::Find(_)
        | Action::Aggregate(_)
        | Action::Count(_)
        | Action::Distinct(_)
        | Action::FindOneAndUpdate(_)
        | Action::RunCommand(_) => true,
        Action::InsertOne(_)
        | Action::InsertMany(_)
        | Action::UpdateOne(_)
        | Action::UpdateMany(_)
        | Action::ReplaceOne(_)
        | Action::DeleteOne(_)
        | Action::DeleteMany(_)
        | Action::BulkWrite(_)
        | Action::CreateCollection(_)
        | Action::Drop(_) => false,
        Action::Transaction(transaction) => transaction.statements.iter().all(carries_max_time),
    }
}
