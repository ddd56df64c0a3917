//! Which plots a report has.

use super::groups::{Group, Report};
use super::plot::over_time::{self, OverTime};
use super::plot::retries::{self, Bar};
use super::plot::spectrum::{self, Spectrum};
use super::plot::{Plot, ratios};
use super::series::Series;
use super::stored::{Band, Row};
use crate::compare::statistics::median;
use crate::results::facts::ALL;
use crate::results::sanitized;

/// The width of a plot that stands alone, in pixels.
const ALONE: f64 = 940.0;

/// The width of one beside others.
const BESIDE: f64 = 460.0;

/// A report's plots, by what they show.
#[derive(Clone, Debug, Default)]
pub struct Plots {
    /// Rates over time, one for each group that has any, on the same axes.
    pub over_time: Vec<Plot>,
    /// Ratios to the base, one for each that was compared.
    pub ratios: Vec<Plot>,
    /// Operations by their number of retries, one for each group.
    pub retries: Vec<Plot>,
    /// Latencies by percentile: a line for each segment and operation of one group, or plots for these with a line for each
    /// of several groups.
    pub latency: Vec<Plot>,
}

impl Plots {
    /// Draws them.
    pub fn of(report: &Report) -> Self {
        Self {
            over_time: over_time(report),
            ratios: ratios(report),
            retries: retries(report),
            latency: latency(report),
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Plot> {
        self.over_time.iter().chain(&self.ratios).chain(&self.retries).chain(&self.latency)
    }
}

/// A file's name: what it shows, its number, so that no two are the same, and whose it is.
fn stem(kind: &str, number: usize, name: &str) -> String {
    let name = sanitized(name);
    let name = if name.is_empty() { String::new() } else { format!("-{name}") };
    format!("{kind}-{}{name}", number + 1)
}

const fn width(plots: usize) -> f64 {
    if plots > 1 { BESIDE } else { ALONE }
}

fn over_time(report: &Report) -> Vec<Plot> {
    let known: Vec<(&Group, Series)> =
        report.groups.iter().filter_map(|group| Some((group, Series::of(&group.counted())?))).collect();
    let most = known.iter().map(|(_, series)| series.most()).fold(0.0, f64::max);
    let end_s = known.iter().map(|(_, series)| series.end_s).fold(0.0, f64::max);
    let plots = known.iter().enumerate().map(|(i, (group, series))| {
        over_time::draw(&OverTime {
            stem: stem("over-time", i, &group.name),
            title: &group.name,
            series,
            overloads: overloads(group),
            phases: &phases(group),
            most,
            end_s,
            trials: group.counted().len(),
            width: width(known.len()),
        })
    });
    plots.collect()
}

/// When overloads were on in the first trial that tells.
fn overloads(group: &Group) -> &[Band] {
    let counted = group.counted().into_iter();
    counted.map(|trial| &trial.overloads[..]).find(|bands| !bands.is_empty()).unwrap_or_default()
}

/// When phases began in the first trial, and what people call them.
fn phases(group: &Group) -> Vec<(f64, String)> {
    let mut phases: Vec<(f64, String)> = Vec::new();
    for interval in group.counted().first().into_iter().flat_map(|trial| &trial.intervals) {
        let name = match interval.phase.as_str() {
            "warmup" => "warm-up",
            "measure" => "measured",
            "cooldown" => "cool-down",
            other => other,
        };
        if phases.last().is_none_or(|(_, last)| last != name) {
            phases.push((interval.elapsed_s - interval.interval_s, name.to_owned()));
        }
    }
    phases
}

fn ratios(report: &Report) -> Vec<Plot> {
    let Some(comparison) = &report.comparison else { return Vec::new() };
    let pairs = comparison.pairs.iter().enumerate();
    let plots = pairs.filter_map(|(i, pair)| {
        let title = format!("{} against {}", pair.new.name, comparison.base.name);
        ratios::draw(stem("ratios", i, &pair.new.name), &title, &pair.rows, width(comparison.pairs.len()))
    });
    plots.collect()
}

fn retries(report: &Report) -> Vec<Plot> {
    let plots = report.groups.iter().enumerate().filter_map(|(i, group)| {
        let rows = group.counted().into_iter().flat_map(|trial| &trial.retries);
        let ours = rows.filter(|row| row.segment == ALL && row.op == ALL);
        let bars = retries::bars(ours.map(|row| Bar {
            retries: row.retries,
            ok: row.ops_ok,
            failed: row.ops_failed,
        }));
        let width = width(report.groups.len());
        (!bars.is_empty()).then(|| retries::draw(stem("retries", i, &group.name), &group.name, &bars, width))
    });
    plots.collect()
}

/// One group is looked at from within; several are held against each other.
fn latency(report: &Report) -> Vec<Plot> {
    let parts = match &report.groups[..] {
        [only] => within(only),
        groups => between(groups),
    };
    let parts: Vec<(String, Vec<Spectrum>)> =
        parts.into_iter().filter(|(_, lines)| !lines.is_empty()).collect();
    let Some(range) = spectrum::range(parts.iter().flat_map(|(_, lines)| lines)) else { return Vec::new() };
    let (width, plots) = (width(parts.len()), parts.iter().enumerate());
    plots
        .map(|(i, (title, lines))| spectrum::draw(stem("latency", i, title), title, lines, range, width))
        .collect()
}

/// A line for each segment, and another plot with one for each operation.
fn within(group: &Group) -> Vec<(String, Vec<Spectrum>)> {
    let segments = with_all(group.segments());
    let operations = with_all(group.operations());
    let segments = segments.iter().filter_map(|segment| spectrum_of(group, segment, segment, ALL));
    let operations = operations.iter().filter_map(|op| spectrum_of(group, op, ALL, op));
    vec![
        (format!("{}: all operations, by segment", group.name), segments.collect()),
        (format!("{}: all of the measured time, by operation", group.name), operations.collect()),
    ]
}

/// A line for each group; a plot for all of the measured time, for each segment and for each operation.
fn between(groups: &[Group]) -> Vec<(String, Vec<Spectrum>)> {
    let lines = |segment: &str, op: &str| -> Vec<Spectrum> {
        groups.iter().filter_map(|group| spectrum_of(group, &group.name, segment, op)).collect()
    };
    let whole = ("All operations, all of the measured time".to_owned(), lines(ALL, ALL));
    let (segments, operations) = (groups[0].segments(), groups[0].operations());
    let segments = segments.iter().map(|segment| (format!("Segment {segment}"), lines(segment, ALL)));
    let operations = operations.iter().map(|op| (format!("Operation {op}"), lines(ALL, op)));
    std::iter::once(whole).chain(segments).chain(operations).collect()
}

fn with_all(mut names: Vec<String>) -> Vec<String> {
    names.push(ALL.to_owned());
    names
}

/// A group's line: of all its trials' distributions, or else of the percentiles in tables.
fn spectrum_of(group: &Group, name: &str, segment: &str, op: &str) -> Option<Spectrum> {
    let mut trials = group.counted().into_iter().filter_map(|trial| trial.distribution(segment, op));
    if let Some(mut all) = trials.next() {
        for other in trials {
            // All of them resize, so this cannot fail.
            let _ = all.add(other);
        }
        return Spectrum::of(name, &all);
    }
    let rows: Vec<&Row> = group.counted().into_iter().filter_map(|trial| trial.row(segment, op)).collect();
    let of = |column: fn(&Row) -> Option<f64>| {
        median(&rows.iter().filter_map(|row| column(row)).collect::<Vec<_>>())
    };
    let known = [
        (0.5, of(|row| row.latency_p50_us)),
        (0.9, of(|row| row.latency_p90_us)),
        (0.99, of(|row| row.latency_p99_us)),
        (0.999, of(|row| row.latency_p99_9_us)),
    ];
    Spectrum::of_percentiles(name, &known)
}
