//! What the results need to know of a trial beside its snapshots.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::plan::Driver;
use crate::plan::load::Model;
use crate::plan::{Attempts, Plan};

pub(crate) use super::scope::{ALL, Scope, is_of_client, title};

/// What is known when a trial's load starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFacts {
    /// 1, 2, 3 … in the order of running.
    pub trial: u32,
    /// The variant's name, like `maxAdaptiveRetries=2`; `base` when nothing varies.
    pub variant: String,
    /// 1, 2, 3 … among the trials of the same variant.
    pub repeat: u32,
    /// What is run.
    pub plan: Plan,
    /// Who runs it.
    pub driver: Driver,
    /// The servers' versions, sorted, each once.
    pub server_versions: Vec<String>,
    /// What shed load: `native`, `gate`, `failpoint` or `stub`, several joined by `+`; empty when nothing of ours did.
    pub mechanism: String,
    /// Every option that was varied or set anywhere in the run, with its value in this trial: the `param_` columns. All
    /// trials of a run must have the same names in the same order.
    pub params: Vec<(String, Option<String>)>,
    /// Where the knobs stand; empty where there are none.
    pub knobs: Vec<(String, String)>,
    /// Per connection-string option its value and where it came from, for run.json.
    pub options: serde_json::Value,
    /// The wall-clock time of Go.
    pub go: Timestamp,
    /// Processors that the load generator may use.
    pub cores: usize,
}

/// Why a trial ended before its time as it was meant to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Early {
    /// A live trial took over the load.
    TakenOver,
    /// It had become hopeless.
    Aborted,
}

impl Early {
    /// As files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TakenOver => "taken_over",
            Self::Aborted => "aborted",
        }
    }
}

/// What is known when a trial has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndFacts {
    /// The wall-clock time of the end; `None` takes Go plus the snapshots' time.
    pub ended: Option<Timestamp>,
    /// Why it ended before its time, if neither the user nor an accident did it.
    pub early: Option<Early>,
    /// When the load was stopped, in nanoseconds since Go, if it was before its time: rates are over what ran.
    pub stopped_ns: Option<u64>,
    /// What else people should read under the table.
    pub notes: Vec<String>,
}

impl TrialFacts {
    /// All server versions in one field.
    pub(crate) fn server_version(&self) -> String {
        self.server_versions.join("+")
    }

    /// The wall-clock time of an offset from Go.
    pub(crate) fn time_at(&self, offset_ns: i64) -> Timestamp {
        self.go.saturating_add(SignedDuration::from_nanos(offset_ns)).unwrap_or(self.go)
    }
}

/// Positions and names of the operations that run.
pub(crate) fn operations(plan: &Plan) -> impl Iterator<Item = (usize, &str)> {
    plan.operations.iter().enumerate().filter(|(_, o)| o.weight > 0).map(|(i, o)| (i, o.name.as_str()))
}

/// Whether the commands of an operation, or of all in a row together, are told apart: the light way of counting knows them
/// only where each call sends exactly one.
pub(crate) fn commands_known(plan: &Plan, whose: impl Into<Scope>) -> bool {
    let whose = whose.into();
    let single = |i: usize| plan.operations[i].action.is_single_command();
    plan.attempts == Attempts::Full
        || match whose {
            Scope::Operation(operation) => single(operation),
            _ => {
                let own = whose.operations(plan);
                operations(plan).filter(|(i, _)| own.contains(i)).all(|(i, _)| single(i))
            }
        }
}

/// Whether it is known why attempts failed.
pub(crate) fn reasons_known(plan: &Plan) -> bool {
    plan.attempts == Attempts::Full
}

/// How many operations a load wants to be due in a stretch of the measured time, in seconds from its start; `None` in
/// the closed model, which wants none in particular.
pub(crate) fn expected(model: &Model, from_s: f64, to_s: f64) -> Option<f64> {
    let Model::Open { stages, .. } = model else { return None };
    let mut begin = 0.0;
    let mut sum = 0.0;
    for stage in stages {
        let length = stage.length.duration().as_secs_f64();
        let (a, b) = (from_s.max(begin) - begin, to_s.min(begin + length) - begin);
        if a < b {
            let slope = (stage.to.get() - stage.from.get()) / length;
            // The rate is linear, so its mean over the stretch is its value in the middle.
            sum += (b - a) * (stage.from.get() + slope * f64::midpoint(a, b));
        }
        begin += length;
    }
    Some(sum)
}

/// Nanoseconds as seconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a year in microseconds is far below 2^53")]
pub(crate) fn seconds(nanos: u64) -> f64 {
    (nanos / 1000) as f64 / 1e6
}

/// Nanoseconds since or before Go as seconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a year in microseconds is far below 2^53")]
pub(crate) fn signed_seconds(nanos: i64) -> f64 {
    nanos.div_euclid(1000) as f64 / 1e6
}

/// A number cut to the digits worth storing.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// A count per second, to three digits; `None` over no time.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(crate) fn per_second(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| rounded(count as f64 / seconds, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;

    #[test]
    fn the_wanted_number_of_operations_is_the_area_under_the_rate() {
        // 10 s at 100/s, then 10 s from 100/s up to 300/s.
        let plan = testing::plan_with_stages(&[(10, 100.0, 100.0), (10, 100.0, 300.0)]);
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-6, "{a:?} is not {b}");
        close(expected(&plan.load.model, 0.0, 20.0), 1000.0 + 2000.0);
        close(expected(&plan.load.model, 0.0, 10.0), 1000.0);
        close(expected(&plan.load.model, 5.0, 15.0), 500.0 + 5.0 * 150.0);
        close(expected(&plan.load.model, 15.0, 20.0), 5.0 * 250.0);
        close(expected(&plan.load.model, 20.0, 30.0), 0.0);
        assert_eq!(expected(&testing::closed_plan(8).load.model, 0.0, 1.0), None);
    }

    #[test]
    fn light_counting_knows_only_single_commands() {
        let mut plan = testing::plan();
        assert!(commands_known(&plan, None));
        plan.attempts = Attempts::Light;
        // The test plan has find_one, find, and a find_many of weight 0.
        assert!(commands_known(&plan, Some(0)));
        assert!(!commands_known(&plan, Some(1)));
        assert!(!commands_known(&plan, None));
        plan.operations[1].weight = 0;
        assert!(commands_known(&plan, None), "what does not run does not matter");
    }

    #[test]
    fn numbers_are_cut_to_what_is_worth_storing() {
        assert_eq!(seconds(1_234_567_890), 1.234_567);
        assert_eq!(signed_seconds(-1_500), -2e-6);
        assert_eq!(per_second(1, 3.0), Some(0.333));
        assert_eq!(per_second(1, 0.0), None);
    }
}
