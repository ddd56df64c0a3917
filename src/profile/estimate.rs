//! What a plan will ask of the client, reckoned before anything runs.

use std::time::Duration;

use crate::plan::{Model, Plan, timeline};
use crate::units::{Rate, Span};

/// What a served command is taken to last; on a quiet replica set nearby it is about that.
const SERVICE: Duration = Duration::from_millis(1);
/// The drivers' first backoff, doubled with every retry.
const BASE: Duration = Duration::from_millis(100);
/// The drivers' longest backoff.
const LONGEST: Duration = Duration::from_secs(10);
/// What the drivers retry when nobody says.
const RETRIES: u32 = 2;

/// How much is under way at once while every attempt is rejected: the worst a retry policy makes of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The highest rate of the plan.
    pub rate: Rate,
    /// What one attempt is taken to last.
    pub service: Duration,
    /// The expected backoff of an operation that uses all its retries.
    pub backoff: Duration,
    /// The retries that were reckoned with.
    pub retries: u32,
}

impl Estimate {
    /// The estimate for a plan; `None` for a closed load, whose workers are all that is ever under way.
    pub fn of(plan: &Plan) -> Option<Self> {
        let Model::Open { stages, .. } = &plan.load.model else { return None };
        let rates = stages.iter().flat_map(|stage| [stage.from, stage.to]);
        let rate = rates.max_by(|a, b| a.get().total_cmp(&b.get()))?;
        let retries = option(plan, "maxAdaptiveRetries").and_then(|n| n.parse().ok()).unwrap_or(RETRIES);
        Some(Self { rate, service: SERVICE, backoff: expected_backoff(retries), retries })
    }

    /// Rate × (service + backoff).
    pub fn in_flight(&self) -> f64 {
        self.rate.get() * (self.service + self.backoff).as_secs_f64()
    }
}

/// The sum of the mean backoffs of n retries: each is drawn evenly from 0 to 100 ms × 2^i, but never above 10 s.
pub fn expected_backoff(retries: u32) -> Duration {
    // From here on every backoff has the longest bound.
    let growing = retries.min(6);
    let sum: Duration = (1..=growing).map(|i| (BASE * 2_u32.pow(i)).min(LONGEST) / 2).sum();
    sum.saturating_add((LONGEST / 2).saturating_mul(retries - growing))
}

/// What is doubtful about a plan although it can be run; one sentence each.
pub fn doubts(plan: &Plan) -> Vec<String> {
    let mut doubts = Vec::new();
    if option(plan, "maxPoolSize").is_none() {
        doubts.push(
            "maxPoolSize is not set: unless the connection string sets it, the driver opens 10 connections per \
             server, and the load may queue in the client"
                .to_owned(),
        );
    }
    if let (Some(estimate), Model::Open { max_in_flight, .. }) = (Estimate::of(plan), &plan.load.model)
        && estimate.in_flight() > f64::from(*max_in_flight)
    {
        doubts.push(format!(
            "about {:.0} operations would be under way while everything is rejected, more than max_in_flight = \
             {max_in_flight}",
            estimate.in_flight()
        ));
    }
    doubts.extend(timeline_doubts(plan));
    doubts
}

fn timeline_doubts(plan: &Plan) -> Vec<String> {
    let mut doubts = Vec::new();
    let (warmup, measured) = (nanos(plan.load.warmup), nanos(plan.load.duration));
    for overload in &plan.overloads {
        let on = overload.at.nanos();
        let off = on.saturating_add(nanos(overload.length));
        if on >= measured || off <= 0 {
            doubts.push(format!("the overload {} lies outside the measured time", overload.name));
        }
        if on < -warmup {
            doubts.push(format!("the overload {} would start before the warm-up does", overload.name));
        }
    }
    doubts
}

/// Nothing written is longer than a year, which fits.
fn nanos(span: Span) -> i64 {
    i64::try_from(timeline::nanos(span.duration())).unwrap_or(i64::MAX)
}

/// An option's value as the plan sets it.
pub fn option<'p>(plan: &'p Plan, name: &str) -> Option<&'p str> {
    plan.client.iter().rfind(|s| s.name.eq_ignore_ascii_case(name)).and_then(|s| s.value.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_until_it_may_not() {
        let expected = [0, 100, 300, 700, 1500, 3100, 6300, 11_300];
        for (retries, ms) in (0..).zip(expected) {
            assert_eq!(expected_backoff(retries), Duration::from_millis(ms), "{retries}");
        }
        assert_eq!(
            expected_backoff(u32::MAX),
            Duration::from_millis(6300) + Duration::from_secs(5) * (u32::MAX - 6)
        );
    }
}
