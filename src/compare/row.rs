//! A metric on two sides: what is known of it, and what may be said.

use super::comparability::retries_differ;
use super::seconds::Seconds;
use super::side::Side;
use super::statistics::{self, bootstrap, holm, median, rank_sum};
use super::verdict::{ALPHA, Evidence, FEWEST_TRIALS, Verdict, judge, trials_needed};
use super::{Error, Settings, one_each};
use crate::metric::Metric;

/// Fixes the draws, so that the same runs are always judged the same.
const SEED: u64 = 0x6f76_6572_6472_6976;

/// Standard errors to each side of a 95 % interval.
const SPREAD: f64 = 1.959_964;

/// Where an interval comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKind {
    /// Several trials a side, drawn anew.
    Trials,
    /// The seconds within one trial a side: weaker, since the next trial may differ by more.
    Seconds,
}

/// One metric on two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which metric.
    pub metric: Metric,
    /// How many trials of each side have a value.
    pub trials: (usize, usize),
    /// Their medians; `None` without a value.
    pub medians: (Option<f64>, Option<f64>),
    /// New ÷ base; `None` when the base is 0, or without a value.
    pub ratio: Option<f64>,
    /// What the ratio may be, with 95 %; the upper end is infinite when the base may be 0.
    pub interval: Option<(f64, f64, IntervalKind)>,
    /// Of the rank test.
    pub p_value: Option<f64>,
    /// The same, corrected for the whole comparison.
    pub p_adjusted: Option<f64>,
    /// The smallest that `p_value` could have been, whichever side the values had been on; 1 without a test.
    pub least_p: f64,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why there is no more to say; empty when there is.
    pub reason: String,
}

/// Every metric's row, with all but the verdict that needs the others.
pub(crate) fn rows(base: &Side, new: &Side, settings: &Settings) -> Result<Vec<Row>, Error> {
    let closed = base.first().is_closed(&settings.op) || new.first().is_closed(&settings.op);
    let measures_itself = closed && retries_differ(base.first(), new.first());
    let seconds = if one_each(base, new) { Some(Seconds::read(base, new, settings)?) } else { None };
    let row = |&metric: &Metric| {
        let values = |side: &Side| side.values(metric, &settings.segment, &settings.op);
        let mut row = describe(metric, &values(base), &values(new), settings.draws);
        if let Some(relative) = seconds.as_ref().and_then(|seconds| seconds.relative_error(metric)) {
            row.interval = row.ratio.map(|ratio| {
                let factor = (SPREAD * relative).exp();
                (ratio / factor, ratio * factor, IntervalKind::Seconds)
            });
        }
        if measures_itself && metric.is_of_outcomes() {
            row.p_value = None;
            row.verdict = Verdict::NoVerdict;
            row.reason =
                "closed model: workers in backoff offer less, so the retry options measure themselves"
                    .to_owned();
        }
        row
    };
    Ok(settings.metrics.iter().map(row).collect())
}

/// A metric by its trials' values. The row says that there is not enough data until it is decided.
fn describe(metric: Metric, base: &[f64], new: &[f64], draws: usize) -> Row {
    let medians = (median(base), median(new));
    let ratio = medians.0.zip(medians.1).filter(|(base, _)| *base > 0.0).map(|(base, new)| new / base);
    let enough = base.len().min(new.len()) >= FEWEST_TRIALS;
    let interval = ratio.filter(|_| enough).map(|_| {
        let (low, high) = bootstrap::ratio_interval(base, new, draws, SEED);
        (low, high, IntervalKind::Trials)
    });
    let test = enough.then(|| rank_sum::test(base, new));
    let reason = if enough {
        String::new()
    } else if base.is_empty() || new.is_empty() {
        "no value: too few operations for it, or it was not counted".to_owned()
    } else {
        format!("{} against {} trials, of {FEWEST_TRIALS} a side that it takes", base.len(), new.len())
    };
    Row {
        metric,
        trials: (base.len(), new.len()),
        medians,
        ratio,
        interval,
        p_value: test.map(|test| test.p),
        p_adjusted: None,
        least_p: test.map_or(1.0, |test| test.least_p),
        verdict: Verdict::NotEnoughData,
        reason,
    }
}

/// Corrects the p-values of all that was tested, and judges by them.
pub(crate) fn decide(rows: Vec<&mut Row>, noise: f64) {
    // What cannot come out below α whichever trial is on whichever side (a figure that hardly varies) can raise no false
    // alarm either, so it is none of those that are corrected for: R. E. Tarone, "A Modified Bonferroni Method for Discrete
    // Data", Biometrics 46 (1990).
    let (mut family, others): (Vec<_>, Vec<_>) =
        rows.into_iter().filter(|row| row.p_value.is_some()).partition(|row| row.least_p <= ALPHA);
    for row in others {
        row.p_adjusted = Some(1.0);
        if row.medians.0 == row.medians.1 {
            row.verdict = Verdict::NoDifference;
            row.reason = "hardly any trial differs".to_owned();
        } else {
            row.reason =
                "so many trials share a value that nothing can be told of the rest: it takes more".to_owned();
        }
    }
    let p_values: Vec<f64> = family.iter().filter_map(|row| row.p_value).collect();
    let adjusted = holm::adjusted(&p_values);
    let rejected = adjusted.iter().filter(|p| **p <= ALPHA).count();
    let (figures, left) = (family.len(), family.len() - rejected);
    for (row, p_adjusted) in family.iter_mut().zip(adjusted) {
        let (Some(base), Some(new)) = row.medians else { continue };
        row.p_adjusted = Some(p_adjusted);
        let evidence = Evidence {
            metric: row.metric,
            medians: (base, new),
            interval: row.interval.map(|(low, high, _)| (low, high)),
            p_adjusted,
            decidable: p_adjusted <= ALPHA || row.least_p * statistics::count(left) <= ALPHA,
        };
        row.verdict = judge(&evidence, noise);
        if row.verdict == Verdict::NotEnoughData {
            row.reason = format!(
                "{} against {} trials cannot tell {figures} figures apart from chance: it takes {} a side, or fewer \
                 --metrics",
                row.trials.0,
                row.trials.1,
                trials_needed(figures)
            );
        }
    }
}

/// The rows of metrics whose values on both sides are given, decided at the usual noise.
#[cfg(test)]
pub(crate) fn test_rows(metrics: &[Metric], base: &[Vec<f64>], new: &[Vec<f64>], draws: usize) -> Vec<Row> {
    let sides = metrics.iter().zip(base.iter().zip(new));
    let mut rows: Vec<Row> = sides.map(|(&metric, (base, new))| describe(metric, base, new, draws)).collect();
    decide(rows.iter_mut().collect(), 0.02);
    rows
}
