//! For programs: a row per new side and metric.

use serde::Serialize;

use crate::compare::Comparison;
use crate::compare::row::{IntervalKind, Row};
use crate::compare::side::Side;
use crate::results::facts::rounded;

/// A row. Empty means no data; an upper end that is empty beside a lower one is infinite.
#[derive(Debug, Serialize)]
struct Line<'a> {
    base: &'a str,
    new: &'a str,
    segment: &'a str,
    op: &'a str,
    metric: &'a str,
    better: &'a str,
    trials_base: usize,
    trials_new: usize,
    driver_base: &'a str,
    driver_new: &'a str,
    median_base: Option<f64>,
    median_new: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    interval: &'a str,
    p_value: Option<f64>,
    p_adjusted: Option<f64>,
    verdict: &'a str,
    reason: &'a str,
}

/// The table with its header.
///
/// # Errors
/// Never: memory takes every row.
pub fn render(comparison: &Comparison) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for pair in &comparison.pairs {
        for row in &pair.rows {
            writer.serialize(line(comparison, &pair.new, row))?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn line<'a>(comparison: &'a Comparison, new: &'a Side, row: &'a Row) -> Line<'a> {
    let (base, settings) = (&comparison.base, &comparison.settings);
    Line {
        base: &base.name,
        new: &new.name,
        segment: &settings.segment,
        op: &settings.op,
        metric: row.metric.name(),
        better: if row.metric.lower_is_better() { "lower" } else { "higher" },
        trials_base: row.trials.0,
        trials_new: row.trials.1,
        driver_base: &base.first().driver,
        driver_new: &new.first().driver,
        median_base: row.medians.0,
        median_new: row.medians.1,
        ratio: row.ratio.map(digits),
        ratio_low: row.interval.map(|(low, _, _)| digits(low)).filter(|end| end.is_finite()),
        ratio_high: row.interval.map(|(_, high, _)| digits(high)).filter(|end| end.is_finite()),
        interval: row.interval.map_or("", |(_, _, kind)| kind_name(kind)),
        p_value: row.p_value,
        p_adjusted: row.p_adjusted,
        verdict: row.verdict.words(),
        reason: &row.reason,
    }
}

/// What an interval comes from, as files call it.
pub(super) const fn kind_name(kind: IntervalKind) -> &'static str {
    match kind {
        IntervalKind::Trials => "trials",
        IntervalKind::Seconds => "seconds, weaker",
    }
}

/// A ratio to as many digits as are worth storing.
pub(super) fn digits(ratio: f64) -> f64 {
    rounded(ratio, 6)
}
