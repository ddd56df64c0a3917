//! What a condition comes to in a trial's summary.

use std::convert::Infallible;

use super::Condition;
use crate::metric::Metric;
use crate::results::facts::title;
use crate::results::summary::{OpSummary, SegmentSummary};
use crate::results::trial_rows::summary_row;
use crate::results::{Early, Summary};

/// What the figure of a threshold was.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The threshold: what makes the trial fail if it holds.
    pub condition: Condition,
    /// What its figure was, in the metric's unit; `None` where there was too little for one.
    pub value: Option<f64>,
}

/// A verdict for each `fail_if` of the trial's plan, in its order. A trial that a knob began or ended gets none: how long it
/// was, and after what, was in somebody's hand. Neither does a shard: thresholds are about the whole load.
pub fn evaluate(summary: &Summary) -> Vec<Verdict> {
    let plan = &summary.facts.plan;
    if plan.live || plan.is_part() || summary.early == Some(Early::TakenOver) {
        return Vec::new();
    }
    let conditions = summary.facts.plan.thresholds.fail_if.iter();
    conditions.map(|c| Verdict { condition: c.clone(), value: c.value(summary) }).collect()
}

impl Verdict {
    /// Whether the trial failed by it: what nobody knows is no pass.
    pub fn failed(&self) -> bool {
        self.value.is_none_or(|value| self.condition.is_met_by(value))
    }

    /// Its figure as people read it.
    pub fn seen(&self) -> String {
        self.condition.shown(self.value)
    }

    /// What people are told of a trial that it says has failed.
    pub fn told(&self, summary: &Summary) -> String {
        let (trial, variant) = (summary.facts.trial, &summary.facts.variant);
        format!("threshold crossed in trial {trial} ({variant}): {}, seen {}", self.condition, self.seen())
    }
}

impl Condition {
    /// Its figure in a trial's summary: that of the row in `summary.csv`, rates of errors and losses not rounded. `None` when there is no such segment or operation,
    /// or too little in it.
    pub fn value(&self, summary: &Summary) -> Option<f64> {
        let (segment, operation) = self.place(summary)?;
        match self.metric {
            // Files have six digits of them, which one failure in millions does not reach.
            Metric::ErrorRate => return operation.stats.error_rate(),
            Metric::LossRate => return operation.stats.loss_rate(),
            _ => {}
        }
        let row = serde_json::to_value(summary_row(summary, segment, operation)).ok()?;
        let Ok(value) = self.metric.of(|column| Ok::<_, Infallible>(row[column].as_f64()));
        value
    }

    /// A value of its figure as people read it.
    pub fn shown(&self, value: Option<f64>) -> String {
        let Some(value) = value else { return "no data".to_owned() };
        let shown = self.metric.show(value);
        // What looks like the limit and is on one side of it needs a word on that.
        if shown == self.metric.show(self.limit) && value.total_cmp(&self.limit).is_ne() {
            let side = if value > self.limit { "above" } else { "below" };
            return format!("{shown}, just {side}");
        }
        shown
    }

    /// Whether it holds for this value of its figure.
    pub fn is_met_by(&self, value: f64) -> bool {
        self.comparison.holds(value, self.limit)
    }

    /// Whose figure it is.
    pub(super) fn place<'s>(&self, summary: &'s Summary) -> Option<(&'s SegmentSummary, &'s OpSummary)> {
        let segment = summary.segments.iter().find(|segment| segment.name == self.segment)?;
        let title = title(&self.client, &self.op);
        Some((segment, segment.operations.iter().find(|operation| operation.name == title)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::EndFacts;
    use crate::results::accumulated::Accumulated;
    use crate::results::testing::{self, cell, snapshot};
    use crate::snapshot::Totals;

    /// Warm-up 2 s, then before, shed and after of 3 s each. Every second 75 reads and 25 scans are due and end, after a
    /// millisecond; in shed 15 of the reads fail, and 30 retries are made.
    fn summary(fail_if: &[&str]) -> Summary {
        let mut plan = testing::overload_plan();
        plan.thresholds.fail_if = fail_if.iter().map(|text| text.parse().unwrap()).collect();
        let mut sums = Accumulated::new(&plan);
        for (second, segment) in (0..).zip([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]) {
            let mut reads = cell(75, 75, 75, 0);
            if segment == 2 {
                reads = cell(75, 60, 75, 30);
                (reads.outcomes.failed, reads.calls) = (15, 75);
            }
            let cells = [((segment, 0), reads), ((segment, 1), cell(25, 25, 25, 0))];
            sums.add(&plan, &snapshot(second, segment, cells, [0; 3]));
        }
        Summary::new("run".to_owned(), testing::facts(plan), &sums, Totals::default(), EndFacts::default())
    }

    fn value(text: &str) -> Option<f64> {
        text.parse::<Condition>().unwrap().value(&summary(&[]))
    }

    #[test]
    fn figures_are_those_worked_out_by_hand() {
        // 9 s of 100 operations a second, of which 45 failed.
        assert_eq!(value("goodput > 1/s"), Some(95.0));
        assert_eq!(value("offered > 1/s"), Some(100.0));
        assert_eq!(value("error_rate > 1%"), Some(0.05));
        assert_eq!(value("loss_rate > 1%"), Some(0.05));
        assert_eq!(value("ops_failed > 1"), Some(45.0));
        assert_eq!(value("rejected > 1"), Some(90.0));
        assert_eq!(value("retries_per_op > 1"), Some(0.1), "90 of 900");
        assert_eq!(value("amplification > 1"), Some(1.1), "990 attempts of 900 commands");
        assert_eq!(value("latency_mean > 1ms"), Some(1000.0), "in microseconds");
        assert_eq!(value("behind_max > 1s"), Some(0.0));
        // A tenth of a second of CPU time for 100 operations.
        assert_eq!(value("cpu_per_op > 1ms"), Some(1000.0));
    }

    #[test]
    fn a_segment_or_an_operation_can_be_asked_alone() {
        assert_eq!(value("segment.shed.error_rate > 1%"), Some(0.15), "15 of 100");
        assert_eq!(value("op.read.error_rate > 1%"), Some(45.0 / 675.0), "45 of 675");
        assert_eq!(value("segment.shed.op.read.error_rate > 1%"), Some(0.2), "15 of 75");
        assert_eq!(value("segment.shed.op.scan.error_rate > 1%"), Some(0.0));
        assert_eq!(value("segment.all.op.all.goodput > 1/s"), Some(95.0));
        for nowhere in ["segment.between.error_rate > 1%", "op.unused.error_rate > 1%"] {
            assert_eq!(value(nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn one_of_several_clients_can_be_asked_alone() {
        let plan = testing::groups_plan();
        let mut sums = Accumulated::new(&plan);
        let mut batch = cell(40, 30, 40, 0);
        (batch.outcomes.failed, batch.calls) = (10, 40);
        sums.add(&plan, &snapshot(0, 1, [((1, 0), cell(60, 60, 60, 0)), ((1, 2), batch)], [0; 3]));
        let facts = testing::facts(plan);
        let summary = Summary::new("run".to_owned(), facts, &sums, Totals::default(), EndFacts::default());
        let value = |text: &str| text.parse::<Condition>().unwrap().value(&summary);
        assert_eq!(value("client.critical.error_rate > 1%"), Some(0.0));
        assert_eq!(value("client.batch.error_rate > 1%"), Some(0.25));
        assert_eq!(value("segment.all.client.batch.op.read.goodput > 1/s"), Some(30.0));
        assert_eq!(value("error_rate > 1%"), Some(0.1));
        assert_eq!(value("op.read.error_rate > 1%"), None, "whose?");
    }

    #[test]
    fn a_trial_fails_by_what_holds_and_by_what_nobody_knows() {
        let verdicts = evaluate(&summary(&[
            "error_rate > 5%",
            "error_rate >= 5%",
            "goodput < 94/s",
            "latency_p99_9 > 1h",
            "segment.between.goodput < 1/s",
        ]));
        let told: Vec<_> = verdicts.iter().map(|v| (v.failed(), v.seen())).collect();
        let told: Vec<_> = told.iter().map(|(failed, seen)| (*failed, seen.as_str())).collect();
        // 855 operations succeeded, which is too few for the 99.9th percentile.
        assert_eq!(
            told,
            [(false, "5.0%"), (true, "5.0%"), (false, "95.0/s"), (true, "no data"), (true, "no data")]
        );
        let asked = |text: &str| {
            let condition = text.parse::<Condition>().unwrap();
            condition.value(&summary(&[])).map(|value| condition.is_met_by(value))
        };
        assert_eq!(
            [asked("error_rate < 6%"), asked("error_rate < 5%"), asked("latency_p99_9 < 1h")],
            [Some(true), Some(false), None]
        );
    }
}
