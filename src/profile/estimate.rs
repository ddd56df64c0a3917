//! What a plan will ask of the client, reckoned before anything runs.

use std::time::Duration;

use crate::flow::backoff;
use crate::plan::client::OptionSource;
use crate::plan::{Model, Plan, ResolvedOption, timeline};
use crate::units::{Rate, Span};

use super::{flow, thresholds, timeout};

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
    /// Calls of an operation that uses all of them.
    pub calls: u32,
    /// The expected pauses between these.
    pub pauses: Duration,
    /// More are never under way at once; `None` for any number.
    pub most: Option<u32>,
}

impl Estimate {
    /// The estimate for a plan; `None` for a closed load, whose workers are all that is ever under way.
    pub fn of(plan: &Plan, options: Options<'_>) -> Option<Self> {
        let Model::Open { stages, .. } = &plan.load.model else { return None };
        let rates = stages.iter().flat_map(|stage| [stage.from, stage.to]);
        let rate = rates.max_by(|a, b| a.get().total_cmp(&b.get()))?;
        let retries =
            options.value(plan, "maxAdaptiveRetries").and_then(|n| n.parse().ok()).unwrap_or(RETRIES);
        Some(Self {
            rate,
            service: SERVICE,
            backoff: expected_backoff(retries),
            retries,
            calls: plan.backoff.map_or(1, |backoff| backoff.max_attempts.max(1)),
            pauses: plan.backoff.as_ref().map(backoff::expected).unwrap_or_default(),
            most: plan.flow.limit.map(|limit| limit.ceiling),
        })
    }

    /// Rate × (calls × (service + backoff) + pauses), as far as it may be.
    pub fn in_flight(&self) -> f64 {
        let calls = f64::from(self.calls) * (self.service + self.backoff).as_secs_f64();
        let all = self.rate.get() * (calls + self.pauses.as_secs_f64());
        all.min(self.most.map_or(f64::INFINITY, f64::from))
    }
}

/// The sum of the mean backoffs of n retries: each is drawn evenly from 0 to 100 ms × 2^i, but never above 10 s.
pub fn expected_backoff(retries: u32) -> Duration {
    // From here on every backoff has the longest bound.
    let growing = retries.min(6);
    let sum: Duration = (1..=growing).map(|i| (BASE * 2_u32.pow(i)).min(LONGEST) / 2).sum();
    sum.saturating_add((LONGEST / 2).saturating_mul(retries - growing))
}

/// The connection-string options that a plan runs with: all of them, or, without a connection string, only what the plan
/// itself says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a>(pub Option<&'a [ResolvedOption]>);

impl<'a> Options<'a> {
    /// An option's value, unless that is the driver's default.
    pub fn value(self, plan: &'a Plan, name: &str) -> Option<&'a str> {
        match self.0 {
            Some(all) => {
                let set =
                    all.iter().find(|option| option.name == name && option.from != OptionSource::Default);
                set.map(|option| option.value.as_str())
            }
            None => plan.client.iter().rfind(|s| s.name == name).and_then(|s| s.value.as_deref()),
        }
    }
}

/// What is doubtful about a plan although it can be run; one sentence each.
pub fn doubts(plan: &Plan, options: Options<'_>) -> Vec<String> {
    doubts_of_each(plan, &vec![options; plan.clients.len().max(1)])
}

/// The same with the options of each of several clients.
pub fn doubts_of_each(plan: &Plan, options: &[Options<'_>]) -> Vec<String> {
    let mut doubts = Vec::new();
    for ((index, engine), options) in plan.engines().iter().enumerate().zip(options) {
        let whose = plan.clients.get(index).map(|group| format!("client {}: ", group.name));
        let whose = whose.unwrap_or_default();
        doubts.extend(of_engine(engine, *options).into_iter().map(|doubt| format!("{whose}{doubt}")));
    }
    doubts.extend(timeline_doubts(plan));
    doubts.extend(thresholds::doubts(plan));
    doubts
}

/// What is doubtful about one client.
fn of_engine(plan: &Plan, options: Options<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    if options.value(plan, "maxPoolSize").is_none() {
        let unless = if options.0.is_none() { " unless the connection string sets it," } else { "" };
        doubts.push(format!(
            "maxPoolSize is not set:{unless} the driver opens 10 connections per server, and the load may queue in the \
             client"
        ));
    }
    if let (Some(estimate), Model::Open { max_in_flight, .. }) =
        (Estimate::of(plan, options), &plan.load.model)
        && estimate.in_flight() > f64::from(*max_in_flight)
    {
        doubts.push(format!(
            "about {:.0} operations would be under way while everything is rejected, more than max_in_flight = \
             {max_in_flight}",
            estimate.in_flight()
        ));
    }
    doubts.extend(timeout::doubts(plan));
    doubts.extend(flow::doubts(plan));
    doubts
}

fn timeline_doubts(plan: &Plan) -> Vec<String> {
    let mut doubts = Vec::new();
    let warmup = nanos(plan.load.warmup);
    for overload in &plan.overloads {
        let Some((_, off)) = timeline::on_time(&plan.load, overload) else {
            doubts.push(format!(
                "the overload {} is never on: it lasts {} from {} on, and the load is over after {} of measured time",
                overload.name, overload.length, overload.at, plan.load.duration
            ));
            continue;
        };
        if i64::try_from(off).is_ok_and(|off| off <= warmup) {
            doubts.push(format!("the overload {} is over before anything is measured", overload.name));
        }
        if overload.at.nanos() < -warmup {
            doubts.push(format!("the overload {} would start before the warm-up does", overload.name));
        }
    }
    doubts
}

/// Nothing written is longer than a year, which fits.
fn nanos(span: Span) -> i64 {
    i64::try_from(timeline::nanos(span.duration())).unwrap_or(i64::MAX)
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
