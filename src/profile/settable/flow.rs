//! The keys of `[flow]` that `--set` and `--vary` change. A part is put there by the word for its kind, or by any of its
//! other keys, and taken away by `none`.

mod change;
mod part;

use crate::plan::{Flow, SpoolPlan, WhenFull};
use crate::profile::flow::{BACKOFF, BREAKER, BUDGET, LIMIT, MOST_OPERATIONS, SPOOL, producer};
use crate::profile::overrides::Draft;

use super::{UNSET, number, put, quantity, word};
use part::Part;

/// Every key.
pub const KEYS: [&str; 36] = [
    "flow.queue",
    "flow.when_full",
    "flow.backoff",
    "flow.backoff.kind",
    "flow.backoff.max_attempts",
    "flow.backoff.base",
    "flow.backoff.cap",
    "flow.limit",
    "flow.limit.kind",
    "flow.limit.signal",
    "flow.limit.initial",
    "flow.limit.floor",
    "flow.limit.ceiling",
    "flow.limit.increase",
    "flow.limit.decrease",
    "flow.limit.once_per_round_trip",
    "flow.limit.smoothing",
    "flow.limit.tolerance",
    "flow.limit.memory",
    "flow.breaker",
    "flow.breaker.signal",
    "flow.breaker.threshold",
    "flow.breaker.window",
    "flow.breaker.minimum",
    "flow.breaker.cool_down",
    "flow.budget",
    "flow.budget.kind",
    "flow.budget.signal",
    "flow.budget.capacity",
    "flow.budget.per_success",
    "flow.budget.k",
    "flow.budget.window",
    "flow.spool",
    "flow.spool.max",
    "flow.spool.rotate",
    "flow.spool.drain",
];

/// Sets a key, given as what comes after `flow`; `None` when there is no such key.
pub fn set(draft: &mut Draft, path: &[&str], value: &str) -> Option<Result<(), String>> {
    let Draft { profile, gone, .. } = draft;
    let (flow, written) = (&mut profile.flow, &profile.flow_numbers);
    if !KEYS.contains(&format!("flow.{}", path.join(".")).as_str()) {
        return None;
    }
    Some(match *path {
        ["spool", key] => set_spool(flow.spool.as_mut(), key, value),
        ["backoff", ref key @ ..] => {
            let part = Part::new("flow.backoff", &mut profile.backoff, written.backoff, BACKOFF, gone);
            part.set(key, value, change::backoff)
        }
        ["limit", ref key @ ..] => {
            let part = Part::new("flow.limit", &mut flow.limit, written.flow.limit, LIMIT, gone);
            part.set(key, value, change::limit)
        }
        ["budget", ref key @ ..] => {
            let part = Part::new("flow.budget", &mut flow.budget, written.flow.budget, BUDGET, gone);
            part.set(key, value, change::budget)
        }
        ["breaker", ref key @ ..] => {
            let part = Part::new("flow.breaker", &mut flow.breaker, written.flow.breaker, BREAKER, gone);
            part.set(key, value, change::breaker)
        }
        [key] => set_producer(flow, written.flow.spool, key, value),
        _ => return None,
    })
}

/// Whether a value takes a part away.
fn is_none(value: &str) -> bool {
    [UNSET, "none"].contains(&value)
}

/// `queue`, `when_full`, and the spool as a whole, which comes and goes with the producer that spools.
fn set_producer(flow: &mut Flow, written: Option<SpoolPlan>, key: &str, value: &str) -> Result<(), String> {
    let mut producer = flow.producer.unwrap_or_default();
    match (key, is_none(value)) {
        ("spool", true) => {
            // Without one, the producer waits as it does when nobody says anything.
            producer.when_full = if flow.spool.is_some() { WhenFull::Block } else { producer.when_full };
            flow.producer = flow.producer.and(Some(producer));
        }
        (_, true) => flow.producer = None,
        ("queue", _) => {
            put(&mut producer.queue, number(value, 1..=MOST_OPERATIONS))?;
            flow.producer = Some(producer);
        }
        ("when_full", _) => {
            put(&mut producer.when_full, word(value, &producer::WHEN_FULL))?;
            flow.producer = Some(producer);
        }
        _ => {
            return Err("it can only be taken away, with none: flow.when_full=spool puts it there".to_owned());
        }
    }
    let spools = flow.producer.is_some_and(|producer| producer.when_full == WhenFull::Spool);
    flow.spool = spools.then(|| flow.spool.or(written).unwrap_or(SPOOL));
    Ok(())
}

fn set_spool(spool: Option<&mut SpoolPlan>, key: &str, value: &str) -> Result<(), String> {
    let Some(spool) = spool else {
        return Err("there is no spool then: set flow.when_full=spool before it".to_owned());
    };
    let bytes = || producer::check_bytes(quantity(value)?).map_err(|message| format!("it {message}"));
    match key {
        "max" => {
            spool.max_bytes = bytes()?;
            spool.rotate_bytes = spool.rotate_bytes.min(spool.max_bytes);
        }
        "rotate" => spool.rotate_bytes = bytes()?,
        _ => spool.drain = quantity(value)?,
    }
    Ok(())
}
