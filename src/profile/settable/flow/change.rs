//! What changes a key of a part that is there. Only keys that are known come here.

use std::mem::discriminant;

use crate::plan::{Backoff, Breaker, Budget, BudgetLaw, ConcurrencyLimit, LimitLaw};
use crate::profile::diagnostic::either;
use crate::profile::flow::breaker::Threshold;
use crate::profile::flow::limit::move_initial;
use crate::profile::flow::{
    ANY_SHARE, Bounds, Kind, MOST_OPERATIONS, NOT_SHRINKING, SHRINKING, SIGNALS, SOME_SHARE,
    backoff as calls, budget as budgets, limit as limits,
};
use crate::profile::settable::{above_zero, number, put, quantity, word};

/// `flow.backoff`
pub fn backoff(backoff: &mut Backoff, _: Option<Backoff>, key: &str, value: &str) -> Result<(), String> {
    match key {
        "kind" => put(&mut backoff.kind, kind(value, &calls::KINDS)),
        "max_attempts" => put(&mut backoff.max_attempts, number(value, 1..=calls::MOST_ATTEMPTS)),
        "base" => put(&mut backoff.base, above_zero(value)),
        _ => put(&mut backoff.cap, above_zero(value)),
    }
}

/// `flow.limit`
pub fn limit(
    limit: &mut ConcurrencyLimit,
    written: Option<ConcurrencyLimit>,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let operations = || number(value, 1..=MOST_OPERATIONS);
    match (key, &mut limit.law) {
        ("kind", law) => put(law, chosen(*law, written.map(|limit| limit.law), value, &limits::KINDS)),
        ("signal", _) => put(&mut limit.signal, word(value, &SIGNALS)),
        ("initial", _) => put(&mut limit.initial, operations()),
        ("floor", _) => put(&mut limit.floor, operations()).map(|()| move_initial(limit)),
        ("ceiling", _) => put(&mut limit.ceiling, operations()).map(|()| move_initial(limit)),
        ("increase", LimitLaw::Aimd { increase, .. }) => put(increase, operations()),
        ("decrease", LimitLaw::Aimd { decrease, .. }) => put(decrease, bounded(value, &SHRINKING)),
        ("once_per_round_trip", LimitLaw::Aimd { once_per_round_trip, .. }) => {
            put(once_per_round_trip, word(value, &[("true", true), ("false", false)]))
        }
        ("smoothing", LimitLaw::Gradient { smoothing, .. }) => put(smoothing, bounded(value, &SOME_SHARE)),
        ("tolerance", LimitLaw::Gradient { tolerance, .. }) => put(tolerance, bounded(value, &NOT_SHRINKING)),
        ("memory", LimitLaw::Gradient { memory, .. }) => put(memory, above_zero(value)),
        _ => Err(of_another_kind("flow.limit", key, &limits::KINDS)),
    }
}

/// `flow.breaker`, of which there is one kind.
pub fn breaker(breaker: &mut Breaker, _: Option<Breaker>, key: &str, value: &str) -> Result<(), String> {
    match key {
        "kind" => kind(value, &[("on", ())]),
        "signal" => put(&mut breaker.signal, word(value, &SIGNALS)),
        "threshold" => put(&mut breaker.threshold, quantity::<Threshold>(value).map(|share| share.0)),
        "window" => put(&mut breaker.window, above_zero(value)),
        "minimum" => put(&mut breaker.minimum, number(value, 1..=MOST_OPERATIONS)),
        _ => put(&mut breaker.cool_down, quantity(value)),
    }
}

/// `flow.budget`
pub fn budget(budget: &mut Budget, written: Option<Budget>, key: &str, value: &str) -> Result<(), String> {
    match (key, &mut budget.law) {
        ("kind", law) => put(law, chosen(*law, written.map(|budget| budget.law), value, &budgets::KINDS)),
        ("signal", _) => put(&mut budget.signal, word(value, &SIGNALS)),
        ("capacity", BudgetLaw::TokenBucket { capacity, .. }) => {
            put(capacity, number(value, 0..=MOST_OPERATIONS))
        }
        ("per_success", BudgetLaw::TokenBucket { per_success, .. }) => {
            put(per_success, bounded(value, &ANY_SHARE))
        }
        ("k", BudgetLaw::Throttle { k, .. }) => put(k, bounded(value, &NOT_SHRINKING)),
        ("window", BudgetLaw::Throttle { window, .. }) => put(window, above_zero(value)),
        _ => Err(of_another_kind("flow.budget", key, &budgets::KINDS)),
    }
}

/// The law of a kind: the one there is if it is of that kind, else the profile's if that is, else the one nobody changed.
fn chosen<L: Copy>(now: L, written: Option<L>, value: &str, kinds: &[Kind<L>]) -> Result<L, String> {
    let words: Vec<(&str, L)> = kinds.iter().map(|kind| (kind.word, kind.law)).collect();
    let wanted = kind(value, &words)?;
    let known = [Some(now), written].into_iter().flatten();
    Ok(known.into_iter().find(|law| discriminant(law) == discriminant(&wanted)).unwrap_or(wanted))
}

/// One of the words for kinds, beside which there are those that take the part away.
fn kind<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value);
    let names: Vec<&str> = words.iter().map(|&(word, _)| word).chain(["none"]).collect();
    found.map(|&(_, kind)| kind).ok_or_else(|| format!("it cannot be '{value}', only {}", either(&names)))
}

fn of_another_kind<L>(part: &str, key: &str, kinds: &[Kind<L>]) -> String {
    let owner = kinds.iter().find(|kind| kind.keys.contains(&key)).map_or("", |kind| kind.word);
    format!("it belongs to {owner}, which the kind is not: set {part}={owner} before it")
}

fn bounded(value: &str, bounds: &Bounds) -> Result<f64, String> {
    let number = value.trim().parse().map_err(|_| format!("'{value}' is no number"))?;
    bounds.check(number).map_err(|message| format!("it {message}"))
}
