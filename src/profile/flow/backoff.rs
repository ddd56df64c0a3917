//! `[flow.backoff]`: further calls of an operation.

use crate::plan::{Backoff, BackoffKind};
use crate::profile::load::above_zero;
use crate::profile::reader::Table;

use super::BACKOFF;

/// The words for how pauses grow.
pub const KINDS: [(&str, BackoffKind); 7] = [
    ("immediate", BackoffKind::Immediate),
    ("fixed", BackoffKind::Fixed),
    ("exponential", BackoffKind::Exponential),
    ("full_jitter", BackoffKind::FullJitter),
    ("equal_jitter", BackoffKind::EqualJitter),
    ("decorrelated", BackoffKind::Decorrelated),
    ("server_guided", BackoffKind::ServerGuided),
];

/// The most calls of an operation.
pub const MOST_ATTEMPTS: u32 = 1000;

/// Reads how often and after which pauses.
pub fn read(table: &mut Table<'_>) -> Backoff {
    Backoff {
        kind: table.word("kind", &KINDS).unwrap_or(BACKOFF.kind),
        max_attempts: table.integer("max_attempts", 1, MOST_ATTEMPTS).unwrap_or(BACKOFF.max_attempts),
        base: above_zero(table, "base").unwrap_or(BACKOFF.base),
        cap: above_zero(table, "cap").unwrap_or(BACKOFF.cap),
    }
}
