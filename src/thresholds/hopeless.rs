//! Whether the measured part so far has crossed a threshold for long enough to give the trial up.

use std::time::Duration;

use super::{Condition, Verdict};
use crate::plan::load::Phase;
use crate::plan::timeline::nanos;
use crate::results::accumulated::Accumulated;
use crate::results::{Summary, TrialFacts};
use crate::snapshot::Snapshot;
use crate::units::Span;

/// How long a condition has to hold, at the end of every interval.
pub const HOLD: Duration = Duration::from_secs(5);

/// How many of the operations that it is about have to be due by then: of fewer, a few slow or failed ones make a figure
/// that says more about luck than about the servers.
pub const FEWEST: u64 = 100;

/// Follows a trial as far as its `abort_when` takes it. Its size depends on the plan, never on time or load.
pub struct Hopeless {
    facts: TrialFacts,
    sums: Accumulated,
    /// How long each condition has held, in nanoseconds.
    held_ns: Vec<u64>,
}

impl Hopeless {
    /// Nothing yet; `None` where nobody asked, and in a shard, which knows a part of the load alone.
    pub fn of(facts: &TrialFacts) -> Option<Self> {
        let conditions = facts.plan.thresholds.abort_when.len();
        (conditions > 0 && !facts.plan.is_part()).then(|| Self {
            facts: facts.clone(),
            sums: Accumulated::new(&facts.plan),
            held_ns: vec![0; conditions],
        })
    }

    /// Takes the next interval, and tells by which condition the trial is hopeless, if it is now.
    ///
    /// A figure is over the measured time so far. Operations that are under way are left out until they have ended: they
    /// are neither successes nor lost. Where the measured time has ended there is nothing left to save.
    pub fn see(&mut self, snapshot: &Snapshot) -> Option<Verdict> {
        let plan = &self.facts.plan;
        self.sums.add(plan, snapshot);
        let end_ns = nanos(plan.load.warmup.duration()) + nanos(plan.load.duration.duration());
        if self.sums.segment_of(snapshot).phase != Phase::Measure || snapshot.end_ns >= end_ns {
            return None;
        }
        let mut summary = Summary::so_far(&self.facts, &self.sums);
        let conditions = &self.facts.plan.thresholds.abort_when;
        let enough: Vec<bool> = conditions.iter().map(|c| due(c, &summary) >= FEWEST).collect();
        summary.leave_out_what_is_under_way();
        let length_ns = snapshot.end_ns.saturating_sub(snapshot.start_ns);
        for ((condition, enough), held_ns) in conditions.iter().zip(enough).zip(&mut self.held_ns) {
            let value = condition.value(&summary).filter(|&value| enough && condition.is_met_by(value));
            *held_ns = if value.is_some() { *held_ns + length_ns } else { 0 };
            if *held_ns >= nanos(HOLD) {
                return Some(Verdict { condition: condition.clone(), value });
            }
        }
        None
    }
}

/// What an event says of it.
pub fn held(verdict: &Verdict) -> String {
    format!("has held for {}, last with {}", Span::from(HOLD), verdict.seen())
}

/// How many of the operations that a condition is about were due so far.
fn due(condition: &Condition, summary: &Summary) -> u64 {
    condition.place(summary).map_or(0, |(_, operation)| operation.stats.offered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{self, cell, snapshot};

    /// A trial of a plan without warm-up, 60 s long.
    fn hopeless(abort_when: &[&str]) -> Hopeless {
        let mut plan = testing::plan();
        plan.thresholds.abort_when = abort_when.iter().map(|text| text.parse().unwrap()).collect();
        Hopeless::of(&testing::facts(plan)).unwrap()
    }

    /// A second in which so many reads were due, of which some succeeded, some failed, and the others are under way.
    fn second(second: u64, segment: usize, due: u64, ok: u64, failed: u64) -> Snapshot {
        let mut reads = cell(due, ok, ok, 0);
        reads.outcomes.failed = failed;
        snapshot(second, segment, [((segment, 0), reads)], [0; 3])
    }

    /// In which second, if any, a trial with these seconds is given up, and what was seen then.
    fn given_up(
        abort_when: &str,
        seconds: impl IntoIterator<Item = (u64, u64, u64)>,
    ) -> Option<(u64, String)> {
        let mut hopeless = hopeless(&[abort_when]);
        (0..).zip(seconds).find_map(|(at, (due, ok, failed))| {
            hopeless.see(&second(at, 1, due, ok, failed)).map(|verdict| (at, verdict.seen()))
        })
    }

    #[test]
    fn what_nobody_asked_for_is_not_followed() {
        assert!(Hopeless::of(&testing::facts(testing::plan())).is_none());
    }

    #[test]
    fn a_trial_is_given_up_when_a_condition_has_held_for_five_seconds() {
        let always = given_up("error_rate > 50%", [(100, 40, 60); 20]);
        assert_eq!(always, Some((4, "60.0%".to_owned())), "in the fifth");
        assert_eq!(given_up("error_rate > 60%", [(100, 40, 60); 20]), None);
        // 100 % for a second, then 0 %: half of all in the second one, which is no more than half.
        let burst = [(100, 0, 100)].into_iter().chain([(100, 100, 0); 20]);
        assert_eq!(given_up("error_rate > 50%", burst), None);
        // Good for 3 s, then bad: more than half of all from the seventh second on.
        let late = [(100, 100, 0); 3].into_iter().chain([(100, 0, 100); 20]);
        assert_eq!(given_up("error_rate > 50%", late), Some((10, "72.7%".to_owned())), "8 of 11");
    }

    #[test]
    fn a_condition_that_ceases_begins_anew() {
        // 60 % for four seconds, then 260 of 500: 52 %. The ninth is the first above 55 % again: 500 of 900.
        let dip = [(100, 40, 60); 4].into_iter().chain([(100, 80, 20)]).chain([(100, 40, 60); 10]);
        assert_eq!(given_up("error_rate > 55%", dip), Some((12, "56.9%".to_owned())), "740 of 1300");
    }

    #[test]
    fn few_operations_are_no_reason() {
        assert_eq!(given_up("error_rate > 50%", [(1, 0, 1); 50]), None);
        // A hundred of them are due by the end of the tenth second.
        assert_eq!(given_up("error_rate > 50%", [(10, 0, 10); 50]), Some((13, "100.0%".to_owned())));
    }

    #[test]
    fn what_is_under_way_is_not_lost_and_servers_that_never_answer_are_hopeless() {
        assert_eq!(given_up("loss_rate > 10%", [(100, 60, 0); 20]), None);
        let answers = given_up("loss_rate > 10%", [(100, 60, 20); 20]);
        assert_eq!(answers, Some((4, "25.0%".to_owned())), "20 of the 80 that ended");
        assert_eq!(given_up("goodput < 1/s", [(100, 0, 0); 20]), Some((4, "0.0/s".to_owned())));
    }

    #[test]
    fn the_warm_up_does_not_count_and_the_end_comes_by_itself() {
        let mut hopeless = hopeless(&["error_rate > 50%"]);
        assert!((0..20).all(|at| hopeless.see(&second(at, 0, 100, 0, 100)).is_none()));
        let mut plan = testing::plan_with_stages(&[(5, 100.0, 100.0)]);
        plan.thresholds.abort_when = vec!["error_rate > 50%".parse().unwrap()];
        let mut short = Hopeless::of(&testing::facts(plan)).unwrap();
        assert!((0..5).all(|at| short.see(&second(at, 1, 100, 0, 100)).is_none()));
    }

    #[test]
    fn the_first_of_several_is_told() {
        let mut hopeless = hopeless(&["goodput < 1/s", "error_rate > 50%"]);
        let told = (0..20).find_map(|at| hopeless.see(&second(at, 1, 100, 40, 60))).unwrap();
        assert_eq!(told.condition.to_string(), "error_rate > 50%");
    }
}
