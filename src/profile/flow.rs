//! `[timeout]` and `[flow]`: what the application does about calls that take too long or fail.

use crate::plan::{Backoff, BackoffKind, Timeout};
use crate::units::Span;

use super::load::above_zero;
use super::reader::Table;

/// The words for how pauses grow.
pub const KINDS: [(&str, BackoffKind); 6] = [
    ("immediate", BackoffKind::Immediate),
    ("fixed", BackoffKind::Fixed),
    ("exponential", BackoffKind::Exponential),
    ("full_jitter", BackoffKind::FullJitter),
    ("equal_jitter", BackoffKind::EqualJitter),
    ("decorrelated", BackoffKind::Decorrelated),
];

/// The most calls of an operation.
pub const MOST_ATTEMPTS: u32 = 1000;

/// What nobody says of the pauses.
pub const DEFAULT: Backoff = Backoff {
    kind: BackoffKind::FullJitter,
    max_attempts: 3,
    base: Span::millis(100),
    cap: Span::seconds(10),
};

/// Reads `[timeout]`.
pub fn timeout(root: &mut Table<'_>) -> Timeout {
    let Some(mut table) = root.table("timeout") else { return Timeout::default() };
    let operation = above_zero(&mut table, "operation");
    if table.key_span("operation").is_none() {
        table.missing("operation");
    }
    table.finish();
    Timeout { operation, ..Timeout::default() }
}

/// Reads `[flow]`.
pub fn backoff(root: &mut Table<'_>) -> Option<Backoff> {
    let mut flow = root.table("flow")?;
    let backoff = flow.table("backoff").map(|mut table| {
        let backoff = Backoff {
            kind: table.word("kind", &KINDS).unwrap_or(DEFAULT.kind),
            max_attempts: table.integer("max_attempts", 1, MOST_ATTEMPTS).unwrap_or(DEFAULT.max_attempts),
            base: above_zero(&mut table, "base").unwrap_or(DEFAULT.base),
            cap: above_zero(&mut table, "cap").unwrap_or(DEFAULT.cap),
        };
        table.finish();
        backoff
    });
    flow.finish();
    backoff
}
