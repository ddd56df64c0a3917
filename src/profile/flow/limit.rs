//! `[flow.limit]`: how many operations may be under way at once.

use crate::plan::{ConcurrencyLimit, LimitLaw};
use crate::profile::load::above_zero;
use crate::profile::reader::Table;

use super::{Kind, LIMIT, MOST_OPERATIONS, NOT_SHRINKING, SHRINKING, SOME_SHARE, bounded, law, signal};

/// What can move a limit.
pub const KINDS: [Kind<LimitLaw>; 2] = [
    Kind { word: "aimd", law: LimitLaw::AIMD, keys: &["increase", "decrease", "once_per_round_trip"] },
    Kind { word: "gradient", law: LimitLaw::GRADIENT, keys: &["smoothing", "tolerance", "memory"] },
];

/// Reads a limit.
pub fn read(table: &mut Table<'_>) -> ConcurrencyLimit {
    let law = match law(table, &KINDS) {
        LimitLaw::Aimd { increase, decrease, once_per_round_trip } => LimitLaw::Aimd {
            increase: operations(table, "increase").unwrap_or(increase),
            decrease: bounded(table, "decrease", &SHRINKING).unwrap_or(decrease),
            once_per_round_trip: table.flag("once_per_round_trip").unwrap_or(once_per_round_trip),
        },
        LimitLaw::Gradient { smoothing, tolerance, memory } => LimitLaw::Gradient {
            smoothing: bounded(table, "smoothing", &SOME_SHARE).unwrap_or(smoothing),
            tolerance: bounded(table, "tolerance", &NOT_SHRINKING).unwrap_or(tolerance),
            memory: above_zero(table, "memory").unwrap_or(memory),
        },
    };
    let signal = signal(table);
    let [initial, floor, ceiling] = ["initial", "floor", "ceiling"].map(|key| operations(table, key));
    let floor = floor.unwrap_or_else(|| LIMIT.floor.min(ceiling.unwrap_or(LIMIT.floor)));
    let ceiling = ceiling.unwrap_or_else(|| LIMIT.ceiling.max(floor));
    let mut limit = ConcurrencyLimit { signal, initial: LIMIT.initial, floor, ceiling, law };
    match initial {
        Some(initial) => limit.initial = initial,
        None => move_initial(&mut limit),
    }
    if let Some(message) = disorder(&limit) {
        let place = ["floor", "initial", "ceiling"].iter().find_map(|key| table.key_span(key));
        table.wrong(place.unwrap_or_else(|| table.span.clone()), message);
    }
    limit
}

fn operations(table: &mut Table<'_>, key: &'static str) -> Option<u32> {
    table.integer(key, 1, MOST_OPERATIONS)
}

/// Where a limit begins goes along when its bounds are moved.
pub fn move_initial(limit: &mut ConcurrencyLimit) {
    limit.initial = limit.initial.max(limit.floor).min(limit.ceiling);
}

/// What is wrong with a limit although each of its numbers is in bounds.
pub fn disorder(limit: &ConcurrencyLimit) -> Option<String> {
    let ConcurrencyLimit { initial, floor, ceiling, .. } = *limit;
    if floor > ceiling {
        return Some(format!("flow.limit.floor = {floor} is above flow.limit.ceiling = {ceiling}"));
    }
    let within = (floor..=ceiling).contains(&initial);
    (!within).then(|| {
        format!(
            "flow.limit.initial = {initial} is not from {floor} to {ceiling}, the limit's floor and ceiling"
        )
    })
}
