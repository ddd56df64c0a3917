//! `limit_requests` and `limit_connections`: token buckets.

use crate::plan::gate::{LONGEST_BASE_BACKOFF_MS, MOST_WAITING, RATE_LIMIT_EXCEEDED};
use crate::plan::{Fault, Generation, Limit, LimitConnections, LimitRequests, Mechanism};
use crate::profile::load::above_zero;
use crate::profile::reader::Table;
use crate::units::{Span, WholeRate};

/// The words for what sheds.
const MECHANISMS: [(&str, Mechanism); 2] = [("native", Mechanism::Native), ("gate", Mechanism::Gate)];

/// The words for whose rejections are copied.
const GENERATIONS: [(&str, Generation); 2] = [("8.2", Generation::V8_2), ("9.0", Generation::V9_0)];

/// What a bucket holds when nobody says: a second's worth, as servers do.
pub const BURST: Span = Span::seconds(1);

/// Reads a limit on requests.
pub fn requests(fields: &mut Table<'_>) -> Option<Fault> {
    let limit = limit(fields);
    let mechanism = fields.word("mechanism", &MECHANISMS);
    let base_backoff_ms = fields.integer("base_backoff_ms", 1, LONGEST_BASE_BACKOFF_MS);
    let allow_retries = fields.flag("allow_retries").unwrap_or(true);
    let generation = fields.word("generation", &GENERATIONS).unwrap_or_default();
    let code = fields.integer("code", 1, i32::MAX).unwrap_or(RATE_LIMIT_EXCEEDED);
    let labels = super::fail_command::read_labels(fields);
    if mechanism == Some(Mechanism::Native) {
        for key in ["generation", "code", "labels"] {
            if let Some(place) = fields.key_span(key) {
                fields.wrong(place, format!("a server's own limiter has its own `{key}`: this is for gates"));
            }
        }
    }
    Some(Fault::LimitRequests(LimitRequests {
        limit: limit?,
        mechanism,
        base_backoff_ms,
        allow_retries,
        generation,
        code,
        labels,
    }))
}

/// Reads a limit on new connections.
pub fn connections(fields: &mut Table<'_>) -> Option<Fault> {
    let limit = limit(fields);
    let mechanism = fields.word("mechanism", &MECHANISMS);
    Some(Fault::LimitConnections(LimitConnections { limit: limit?, mechanism }))
}

fn limit(fields: &mut Table<'_>) -> Option<Limit> {
    let rate = fields.quantity::<WholeRate>("rate").map(|rate| rate.into_inner().get());
    if fields.key_span("rate").is_none() {
        fields.missing("rate");
    }
    let burst = above_zero(fields, "burst").unwrap_or(BURST);
    let queue_depth = fields.integer("queue_depth", 0, MOST_WAITING).unwrap_or(0);
    Some(Limit { rate: rate?, burst, queue_depth })
}
