//! The text format of Go's benchmarks, for benchstat: a line for each trial, segment and operation. Trials of one variant have
//! the same name, so that they are samples of one thing.

use std::fmt::Write;

use super::{Exported, nothing_of};
use crate::compare::Error;
use crate::compare::trial::Figures;
use crate::metric::Metric;
use crate::report::stored::{State, StoredTrial};

/// Metrics, their units there, and how many of it one of ours is. Benchstat knows `ns`, and shows it as seconds with a prefix.
const UNITS: [(Metric, &str, f64); 13] = [
    (Metric::GoodputOpsPerS, "goodput-ops/s", 1.0),
    (Metric::ErrorRate, "error-rate", 1.0),
    (Metric::RetriesPerOp, "retries/op", 1.0),
    (Metric::Amplification, "amplification", 1.0),
    (Metric::LatencyP50Us, "latency-p50-ns", 1e3),
    (Metric::LatencyP90Us, "latency-p90-ns", 1e3),
    (Metric::LatencyP99Us, "latency-p99-ns", 1e3),
    (Metric::LatencyP999Us, "latency-p99.9-ns", 1e3),
    (Metric::ServiceP50Us, "service-p50-ns", 1e3),
    (Metric::ServiceP90Us, "service-p90-ns", 1e3),
    (Metric::ServiceP99Us, "service-p99-ns", 1e3),
    (Metric::ServiceP999Us, "service-p99.9-ns", 1e3),
    (Metric::CpuUsPerOp, "cpu-ns/op", 1e3),
];

/// Trials that ran to their end; of these all segments and operations, or one.
///
/// # Errors
/// When nothing is left.
pub fn render(trials: &[StoredTrial], segment: Option<&str>, op: Option<&str>) -> Result<Exported, Error> {
    let (whole, cut): (Vec<_>, Vec<_>) = trials.iter().partition(|trial| trial.state == State::Whole);
    let notes = cut.iter().map(|t| format!("{} is left out: it {}", t.trial.place(), t.state.words()));
    let notes: Vec<String> = notes.collect();
    if whole.is_empty() {
        return Err(Error::asked(format!("there is no trial to export: {}", notes.join("; "))));
    }
    let mut lines = String::new();
    let mut last = String::new();
    for trial in &whole {
        let configuration = configuration(trial);
        let wanted = trial.trial.figures.iter().filter(|figures| {
            segment.is_none_or(|segment| figures.segment == segment) && op.is_none_or(|op| figures.op == op)
        });
        for figures in wanted {
            let Some(line) = line(trial, figures) else { continue };
            if configuration != last {
                lines.push_str(&configuration);
                last.clone_from(&configuration);
            }
            lines.push_str(&line);
        }
    }
    if lines.is_empty() {
        return Err(nothing_of(trials, segment, op));
    }
    Ok(Exported { text: format!("{}{lines}", units()), notes })
}

/// Which way is better.
fn units() -> String {
    let units = UNITS.iter().map(|(metric, unit, _)| {
        let better = if metric.lower_is_better() { "lower" } else { "higher" };
        format!("Unit {unit} better={better}\n")
    });
    units.collect()
}

/// What holds for the lines that follow. Benchstat puts in one table what has the same; so the run, which is another in
/// every file, is a comment.
fn configuration(trial: &StoredTrial) -> String {
    let of = &trial.trial;
    let profile = of.plan["profile"].as_str().unwrap_or_default();
    let mut text = format!("# run {}\n", one_line(&of.run_id));
    for (key, value) in [
        ("profile", profile),
        ("driver", &of.driver),
        ("server", &of.server),
        ("mechanism", &of.mechanism),
        ("machine", &of.machine),
        ("overdrive", &of.tool_version),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key}: {}", one_line(value));
    }
    text
}

/// `None` without a figure, of which the tool wants one at least.
fn line(trial: &StoredTrial, figures: &Figures) -> Option<String> {
    let row = trial.row(&figures.segment, &figures.op)?;
    let ended: f64 = [row.ops_ok, row.ops_failed, row.ops_timed_out].into_iter().flatten().sum();
    let mut values = String::new();
    for (metric, unit, each) in UNITS {
        if let Some(value) = figures.value(metric) {
            let _ = write!(values, " {} {unit}", value * each);
        }
    }
    (!values.is_empty()).then(|| format!("{} {ended:.0}{values}\n", name(trial, figures)))
}

/// `BenchmarkProfile/option=value/op=…/segment=…`
fn name(trial: &StoredTrial, figures: &Figures) -> String {
    let profile = trial.trial.plan["profile"].as_str().unwrap_or_default();
    let mut letters = profile.chars();
    // After the word there must be no small letter.
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let mut name = format!("Benchmark{}", part(&format!("{first}{}", letters.as_str())));
    let params = trial.trial.params.iter();
    let params = params.map(|(key, value)| (key.as_str(), value.as_deref().unwrap_or("unset")));
    // A slash would begin the next part.
    let (client, op) =
        figures.op.split_once('/').map_or((None, &*figures.op), |(client, op)| (Some(client), op));
    let client = client.map(|client| ("client", client));
    for (key, value) in params.chain(client).chain([("op", op), ("segment", figures.segment.as_str())]) {
        let _ = write!(name, "/{}={}", part(key), part(value));
    }
    name
}

/// Text as a part of a name: without spaces and slashes, and without a number at its end that would be taken for that of
/// processors.
fn part(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_whitespace() || c.is_control() || c == '/' { '_' } else { c }).collect();
    match clean.rsplit_once('-') {
        Some((before, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{before}_{number}")
        }
        _ => clean,
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_nothing_that_ends_them() {
        assert_eq!(part("a b/c\td"), "a_b_c_d");
        assert_eq!(part("a-8"), "a_8");
        assert_eq!(part("-1"), "_1");
        assert_eq!(part("a-b"), "a-b");
        assert_eq!(part("a-"), "a-");
    }

    #[test]
    fn every_metric_has_a_unit_of_its_own() {
        assert_eq!(UNITS.map(|(metric, ..)| metric), Metric::COMPARED);
        let units: std::collections::BTreeSet<&str> = UNITS.iter().map(|(_, unit, _)| *unit).collect();
        assert_eq!(units.len(), UNITS.len());
        assert!(units.iter().all(|unit| !unit.contains(char::is_whitespace)));
    }
}
