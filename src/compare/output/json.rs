//! For programs: everything, notes included.

use serde_json::{Value, json};

use super::csv::{digits, kind_name};
use super::notes;
use crate::compare::Comparison;
use crate::compare::row::Row;
use crate::compare::side::Side;

/// One document.
///
/// # Errors
/// Never: what is in it can always be written.
pub fn render(comparison: &Comparison) -> anyhow::Result<String> {
    let settings = &comparison.settings;
    let pairs = comparison.pairs.iter().enumerate().map(|(i, pair)| {
        json!({
            "new": side(&pair.new),
            "metrics": pair.rows.iter().map(row).collect::<Vec<_>>(),
            "notes": notes(comparison, i),
        })
    });
    let document = json!({
        "base": side(&comparison.base),
        "segment": settings.segment,
        "op": settings.op,
        "noise": settings.noise,
        "regression": comparison.has_regression(),
        "comparisons": pairs.collect::<Vec<_>>(),
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}

fn side(side: &Side) -> Value {
    let trials = side.trials.iter().map(|trial| json!({"directory": trial.directory, "trial": trial.trial}));
    let first = side.first();
    json!({
        "name": side.name,
        "driver": first.driver,
        "server": first.server,
        "mechanism": first.mechanism,
        "options": first.options,
        "trials": trials.collect::<Vec<_>>(),
    })
}

/// A number that is not finite is null, as is what is not known.
fn row(row: &Row) -> Value {
    json!({
        "metric": row.metric.name(),
        "better": if row.metric.lower_is_better() { "lower" } else { "higher" },
        "trials": {"base": row.trials.0, "new": row.trials.1},
        "median": {"base": row.medians.0, "new": row.medians.1},
        "ratio": row.ratio.map(digits),
        "interval": row.interval.map(|(low, high, kind)| json!({"low": digits(low), "high": digits(high), "of": kind_name(kind)})),
        "p_value": row.p_value,
        "p_adjusted": row.p_adjusted,
        "verdict": row.verdict.words(),
        "reason": row.reason,
    })
}
