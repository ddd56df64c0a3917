//! The tables of a report, as text in cells: each way of printing dresses them for itself.

mod settings;

pub use self::settings::settings;

use super::groups::{Group, Report};
use super::human::{percent, quotient, rate, time};
use super::stored::{Recovery, Row, State, StoredTrial};
use crate::compare::statistics::median;
use crate::results::facts::{ALL, is_of_client};

/// The most characters of an error's example.
const EXAMPLE: usize = 100;

/// The most classes of errors of a group.
const MOST_ERRORS: usize = 8;

/// A table. Its cells hold text as it is: to be escaped by whoever prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What the columns are.
    pub head: Vec<&'static str>,
    /// As long as the head, all of them.
    pub rows: Vec<Vec<String>>,
    /// How many columns at the left are names; numbers follow.
    pub names: usize,
}

/// What a row of figures has behind its names, here and on the terminal.
pub const FIGURES: [&str; 12] = [
    "offered",
    "goodput",
    "done",
    "errors",
    "lost",
    "retries/op",
    "amplified",
    "mean",
    "p50",
    "p90",
    "p99",
    "max",
];

/// A figure of a row, and how it is written.
type Figure = (fn(&Row) -> Option<f64>, fn(Option<f64>) -> String);

/// In the order of [`FIGURES`].
const COLUMNS: [Figure; 12] = [
    (|row| row.offered_ops_per_s, rate),
    (|row| row.goodput_ops_per_s, rate),
    (|row| row.completed_ops_per_s, rate),
    (|row| row.error_rate, percent),
    (|row| row.loss_rate, percent),
    (Row::retries_per_op, quotient),
    (|row| row.amplification, quotient),
    (|row| row.latency_mean_us, maybe_time),
    (|row| row.latency_p50_us, maybe_time),
    (|row| row.latency_p90_us, maybe_time),
    (|row| row.latency_p99_us, maybe_time),
    (|row| row.latency_max_us, maybe_time),
];

fn maybe_time(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), time)
}

/// A row for each group: all operations over the whole measured time; before it one for each of several clients.
pub fn headline(report: &Report) -> Grid {
    let rows = report.groups.iter().flat_map(|group| {
        let row =
            |name: String, op: &str| with_figures(vec![name, trial_count(group)], &rows_of(group, ALL, op));
        let clients = group.operations().into_iter().filter(|op| is_of_client(op));
        let clients = clients.map(|op| row(format!("{}: {op}", group.name), &op));
        clients.chain([row(group.name.clone(), ALL)]).collect::<Vec<_>>()
    });
    grid(&["of", "trials"], rows.collect())
}

/// A row for each operation of a group, and one for all.
pub fn operations(group: &Group) -> Grid {
    let each = group.operations().into_iter().chain([ALL.to_owned()]);
    let rows = each.map(|op| with_figures(vec![op.clone()], &rows_of(group, ALL, &op)));
    grid(&["operation"], rows.collect())
}

/// A row for each segment of a group; `None` where there is but one.
pub fn segments(group: &Group) -> Option<Grid> {
    let rows: Vec<Vec<String>> = group
        .segments()
        .into_iter()
        .map(|segment| with_figures(vec![segment.clone()], &rows_of(group, &segment, ALL)))
        .collect();
    (!rows.is_empty()).then(|| grid(&["segment"], rows))
}

/// A row for each trial of a group; `None` where there is but one.
pub fn trials(group: &Group) -> Option<Grid> {
    let rows = group.trials.iter().map(|trial| {
        let rows: Vec<&Row> = trial.row(ALL, ALL).into_iter().collect();
        with_figures(vec![trial_name(trial), state(trial.state).to_owned()], &rows)
    });
    (group.trials.len() > 1).then(|| grid(&["trial", "ended"], rows.collect()))
}

/// What came of each overload; `None` where nothing is known of any.
pub fn recoveries(group: &Group) -> Option<Grid> {
    let head = vec!["overload", "trial", "goodput before", "during", "after", "recovered"];
    let each =
        group.counted().into_iter().flat_map(|trial| trial.recoveries.iter().map(move |of| (trial, of)));
    let rows: Vec<Vec<String>> = each
        .map(|(trial, of)| {
            vec![
                of.overload.clone(),
                trial_name(trial),
                rate(of.goodput_before_ops_per_s),
                rate(of.goodput_during_ops_per_s),
                rate(of.goodput_after_ops_per_s),
                recovered(of),
            ]
        })
        .collect();
    (!rows.is_empty()).then_some(Grid { head, rows, names: 2 })
}

/// Why operations failed, the commonest first; `None` when none did.
pub fn errors(group: &Group) -> Option<Grid> {
    let mut classes: Vec<(Vec<String>, u64)> = Vec::new();
    for error in group.counted().into_iter().flat_map(|trial| &trial.errors) {
        let kind = if error.code_name.is_empty() { &error.kind } else { &error.code_name };
        let code = error.code.map(|code| code.to_string()).unwrap_or_default();
        let key = vec![error.op.clone(), kind.clone(), code, shortened(&error.example)];
        match classes.iter_mut().find(|(other, _)| other[..3] == key[..3]) {
            Some((_, count)) => *count += error.count,
            None => classes.push((key, error.count)),
        }
    }
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rows: Vec<Vec<String>> = classes
        .into_iter()
        .take(MOST_ERRORS)
        .map(|(key, count)| key.into_iter().chain([count.to_string()]).collect())
        .collect();
    (!rows.is_empty()).then(|| Grid {
        head: vec!["operation", "error", "code", "for example", "operations"],
        rows,
        names: 4,
    })
}

fn grid(names: &[&'static str], rows: Vec<Vec<String>>) -> Grid {
    Grid { head: names.iter().copied().chain(FIGURES).collect(), rows, names: names.len() }
}

/// Names, and the median of each figure over the trials that have it.
fn with_figures(names: Vec<String>, rows: &[&Row]) -> Vec<String> {
    let cells = COLUMNS.iter().map(|(of, show)| {
        let values: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
        show(median(&values))
    });
    names.into_iter().chain(cells).collect()
}

fn rows_of<'a>(group: &'a Group, segment: &str, op: &str) -> Vec<&'a Row> {
    group.counted().into_iter().filter_map(|trial| trial.row(segment, op)).collect()
}

/// How many trials the figures are of, and how many were left out.
fn trial_count(group: &Group) -> String {
    let (counted, all) = (group.counted(), group.trials.len());
    let whole = counted.iter().filter(|trial| trial.state == State::Whole).count();
    match (whole, all - counted.len()) {
        (0, _) => format!("{all}, none whole"),
        (whole, 0) => whole.to_string(),
        (whole, others) => format!("{whole}, {others} left out"),
    }
}

/// A trial by its run and number.
pub fn trial_name(trial: &StoredTrial) -> String {
    format!("{} #{}", trial.trial.run_id, trial.trial.trial)
}

const fn state(state: State) -> &'static str {
    match state {
        State::Whole => "whole",
        State::Cut => "cut short",
        State::Broken => "does not add up",
        State::Killed => "no run.json",
    }
}

fn recovered(of: &Recovery) -> String {
    match (of.recovered.as_str(), of.time_to_recover_s) {
        ("yes", Some(seconds)) if seconds > 0.0 => format!("after {seconds} s"),
        ("yes", _) => "at once".to_owned(),
        ("no", _) => "did not recover".to_owned(),
        _ => "not known".to_owned(),
    }
}

fn shortened(example: &str) -> String {
    let mut short: String = example.chars().take(EXAMPLE).collect();
    if example.chars().nth(EXAMPLE).is_some() {
        short.push('…');
    }
    short
}
