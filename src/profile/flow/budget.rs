//! `[flow.budget]`: what the application may spend on servers that reject.

use crate::plan::{Budget, BudgetLaw};
use crate::profile::load::above_zero;
use crate::profile::reader::Table;

use super::{ANY_SHARE, Kind, MOST_OPERATIONS, NOT_SHRINKING, bounded, law, signal};

/// How a budget can be counted.
pub const KINDS: [Kind<BudgetLaw>; 2] = [
    Kind { word: "token_bucket", law: BudgetLaw::TOKEN_BUCKET, keys: &["capacity", "per_success"] },
    Kind { word: "throttle", law: BudgetLaw::THROTTLE, keys: &["k", "window"] },
];

/// Reads a budget.
pub fn read(table: &mut Table<'_>) -> Budget {
    let law = match law(table, &KINDS) {
        BudgetLaw::TokenBucket { capacity, per_success } => BudgetLaw::TokenBucket {
            capacity: table.integer("capacity", 0, MOST_OPERATIONS).unwrap_or(capacity),
            per_success: bounded(table, "per_success", &ANY_SHARE).unwrap_or(per_success),
        },
        BudgetLaw::Throttle { k, window } => BudgetLaw::Throttle {
            k: bounded(table, "k", &NOT_SHRINKING).unwrap_or(k),
            window: above_zero(table, "window").unwrap_or(window),
        },
    };
    Budget { signal: signal(table), law }
}
