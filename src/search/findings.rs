//! What a search has come to: its trials as steps, and what they show together.

use serde_json::{Map, Value, json};

use super::{Ending, Known, Role, Tried};
use crate::results::notes::{fell_behind, saturation};
use crate::results::tables::SearchRow;
use crate::results::trial_rows::summary_row;
use crate::results::{Early, Summary};
use crate::thresholds::{Condition, Verdict, evaluate};
use crate::units::Span;

/// A trial of a search that has ended.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it was for, and whether it held.
    pub tried: Tried,
    /// Its row in `search.csv`.
    pub row: SearchRow,
    /// What each condition's figure was, in the metric's unit; `None` where there was too little for one.
    pub figures: Vec<Option<f64>>,
    /// Why the client may have been the limit, and not the servers, if it may.
    pub generator: Option<String>,
}

impl Step {
    /// Judges a trial. It holds if every condition does, no threshold of its plan was crossed, and the load was made and
    /// kept up with: what piles up is a rate that nobody can hold for long.
    pub fn of(role: Role, rate: f64, number: u32, conditions: &[Condition], summary: &Summary) -> Self {
        let (facts, whole) = (&summary.facts, summary.whole());
        let figures: Vec<Option<f64>> = conditions.iter().map(|condition| condition.value(summary)).collect();
        let broken = broken(conditions, &figures);
        let behind = fell_behind(facts, whole);
        let own = behind.iter().find(|(_, is_generator)| broken.is_none() && *is_generator);
        let generator = saturation(facts, whole).or_else(|| own.map(|(told, _)| told.clone()));
        let cut = summary
            .totals
            .cut
            .then(|| "operations were still under way when the cool-down was over".to_owned());
        let reason = broken.or_else(|| crossed(summary)).or_else(|| behind.map(|(told, _)| told)).or(cut);
        let of = summary_row(summary, whole, whole.all());
        let row = SearchRow {
            run_id: of.run_id,
            step: number,
            trial: of.trial,
            variant: of.variant,
            role: role.name().to_owned(),
            target_ops_per_s: rate,
            held: reason.is_none(),
            reason: reason.clone().unwrap_or_default(),
            figures: named(conditions, &figures).to_string(),
            duration_s: of.duration_s,
            offered: of.offered,
            ops_ok: of.ops_ok,
            offered_ops_per_s: of.offered_ops_per_s,
            goodput_ops_per_s: of.goodput_ops_per_s,
            completed_ops_per_s: of.completed_ops_per_s,
            error_rate: of.error_rate,
            loss_rate: of.loss_rate,
            amplification: of.amplification,
            latency_p50_us: of.latency_p50_us,
            latency_p90_us: of.latency_p90_us,
            latency_p99_us: of.latency_p99_us,
        };
        Self { tried: Tried { role, rate, held: reason.is_none() }, row, figures, generator }
    }

    /// The verdict in words, with what was seen.
    pub fn verdict(&self, conditions: &[Condition]) -> String {
        let rate = self.tried.rate;
        if !self.tried.held {
            return format!("{rate}/s fails: {}", self.row.reason);
        }
        let each: Vec<String> =
            conditions.iter().zip(&self.figures).map(|(condition, &value)| told(condition, value)).collect();
        format!("{rate}/s holds: {}", each.join("; "))
    }
}

/// The conditions that do not hold, if there are such; what nobody knows does not.
fn broken(conditions: &[Condition], figures: &[Option<f64>]) -> Option<String> {
    let each = conditions.iter().zip(figures);
    let broken = each.filter(|(condition, value)| !value.is_some_and(|value| condition.is_met_by(value)));
    let told: Vec<String> = broken.map(|(condition, &value)| told(condition, value)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// The thresholds of the plan that were crossed, if there are such.
fn crossed(summary: &Summary) -> Option<String> {
    let verdicts = evaluate(summary);
    let crossed = verdicts.iter().filter(|verdict| verdict.failed());
    let told: Vec<String> =
        crossed.map(|Verdict { condition, value }| format!("fails if {}", told(condition, *value))).collect();
    match summary.early {
        _ if !told.is_empty() => Some(told.join("; ")),
        Some(Early::Aborted) => Some("it was ended early by a threshold".to_owned()),
        _ => None,
    }
}

fn told(condition: &Condition, value: Option<f64>) -> String {
    format!("{condition}, seen {}", condition.shown(value))
}

fn named(conditions: &[Condition], figures: &[Option<f64>]) -> Value {
    let named =
        conditions.iter().zip(figures).map(|(condition, value)| (condition.to_string(), json!(value)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// A search, as far as it got.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// How long a confirmation measures.
    pub confirm: Span,
    /// The trials that have ended, in their order.
    pub steps: Vec<Step>,
    /// How it ended; `None` while it goes on, and when something else ended it.
    pub ending: Option<Ending>,
}

impl Findings {
    /// What was tried.
    pub fn history(&self) -> Vec<Tried> {
        self.steps.iter().map(|step| step.tried).collect()
    }

    /// What it has shown.
    pub fn known(&self) -> Known {
        Known::of(&self.history())
    }

    /// The number of the next step or confirmation.
    pub fn next_number(&self) -> u32 {
        let before = self.steps.iter().filter(|step| step.tried.role != Role::Baseline);
        before.map(|step| step.row.step).max().unwrap_or(0) + 1
    }

    /// The trial that showed that the smallest rate that failed does.
    pub fn failing(&self) -> Option<&Step> {
        let failed = self.known().failed?;
        self.steps
            .iter()
            .rfind(|step| step.tried.role != Role::Baseline && !step.tried.held && step.tried.rate == failed)
    }

    /// Its part of run.json.
    pub fn json(&self) -> Value {
        let known = self.known();
        json!({
            "find_max": self.conditions,
            "ending": self.ending,
            "confirmed_ops_per_s": known.confirmed,
            "confirm_s": self.confirm.duration().as_secs_f64(),
            "held_ops_per_s": known.held,
            "failed_ops_per_s": known.failed,
            "failed_because": self.failing().map(|step| &step.row.reason),
            "generator": self.failing().and_then(|step| step.generator.as_ref()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::EndFacts;
    use crate::results::accumulated::Accumulated;
    use crate::results::testing::{self, cell, snapshot};
    use crate::snapshot::Totals;

    /// 60 s of 75 reads and 25 scans that are due in each second, of which so many reads succeed.
    fn summary(ok: u64, change: impl FnOnce(&mut crate::plan::Plan, &mut Totals)) -> Summary {
        let mut plan = testing::plan();
        let mut totals = Totals::default();
        change(&mut plan, &mut totals);
        let mut sums = Accumulated::new(&plan);
        for second in 0..60 {
            let mut reads = cell(75, ok, 75, 0);
            reads.outcomes.failed = 75 - ok;
            let cells = [((1, 0), reads), ((1, 1), cell(25, 25, 25, 0))];
            sums.add(&plan, &snapshot(second, 1, cells, [0; 3]));
        }
        Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, EndFacts::default())
    }

    fn step(conditions: &[&str], summary: &Summary) -> (Step, Vec<Condition>) {
        let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
        (Step::of(Role::Step, 100.0, 1, &conditions, summary), conditions)
    }

    #[test]
    fn a_trial_holds_when_all_its_conditions_do() {
        let (held, conditions) =
            step(&["error_rate < 1%", "op.read.goodput > 74/s"], &summary(75, |_, _| {}));
        assert!(held.tried.held && held.row.held && held.row.reason.is_empty(), "{held:?}");
        assert_eq!(
            held.verdict(&conditions),
            "100/s holds: error_rate < 1%, seen 0.0%; op.read.goodput > 74/s, seen 75.0/s"
        );
        assert_eq!(held.row.figures, r#"{"error_rate < 1%":0.0,"op.read.goodput > 74/s":75.0}"#);

        let (failed, conditions) = step(
            &["error_rate < 1%", "goodput > 1/s", "segment.after.goodput > 1/s"],
            &summary(72, |_, _| {}),
        );
        assert_eq!(
            failed.verdict(&conditions),
            "100/s fails: error_rate < 1%, seen 3.0%; segment.after.goodput > 1/s, seen no data"
        );
        assert!(!failed.tried.held && failed.generator.is_none());
    }

    #[test]
    fn it_must_cross_no_threshold_and_leave_nothing_behind() {
        let reason = |summary: &Summary| step(&["error_rate < 50%"], summary).0.row.reason;
        let crossed = summary(72, |plan, _| {
            plan.thresholds.fail_if = vec!["error_rate > 1%".parse().unwrap()];
        });
        assert_eq!(reason(&crossed), "fails if error_rate > 1%, seen 3.0%");
        let cut = summary(75, |_, totals| totals.cut = true);
        assert!(reason(&cut).contains("still under way"), "{}", reason(&cut));
    }

    #[test]
    fn a_load_that_was_not_made_is_the_generators_limit_alone_where_the_conditions_hold() {
        // Twice as much was wanted as was due, while all that may be under way was.
        let few = |ok| {
            summary(ok, |plan, _| {
                plan.load = testing::plan_with_stages(&[(60, 200.0, 200.0)]).load;
                if let crate::plan::Model::Open { max_in_flight, .. } = &mut plan.load.model {
                    *max_in_flight = 1;
                }
            })
        };
        let (missed, _) = step(&["error_rate < 1%"], &few(75));
        assert!(!missed.tried.held && missed.row.reason.starts_with("not kept up with"), "{missed:?}");
        assert_eq!(missed.generator.as_ref(), Some(&missed.row.reason));
        let (overloaded, _) = step(&["error_rate < 1%"], &few(50));
        assert!(overloaded.row.reason.starts_with("error_rate") && overloaded.generator.is_none());
    }
}
