//! What is printed when a run has ended: a table for each trial, and what must be known to read it.
//!
//! And what `overdrive report` makes of runs that are stored:
//!
//! ```text
//!  selections ──stored──▶ trials and their rows ──groups──▶ Report ──┬─ grids: tables ──────┬─▶ html, markdown
//!                                                                    └─ plots ──plot──▶ SVG ┘
//! ```

pub mod calibration;
pub mod grids;
pub mod groups;
pub mod html;
pub mod human;
pub mod markdown;
pub mod plot;
pub mod plots;
pub mod search;
pub mod series;
pub mod stored;

use std::fmt::Write;
use std::path::Path;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::results::Summary;
use crate::results::facts::{ALL, Scope, per_second, reasons_known};
use crate::results::figures::Breakdown;
use crate::results::recovery::Recovery;
use crate::results::staleness::RoleStaleness;
use crate::results::summary::{CommonError, OpSummary, SegmentSummary};
use crate::thresholds::{Verdict, evaluate};
use human::{micros, percent, quotient, rate, time};

/// The most characters of an error's example.
const EXAMPLE: usize = 100;

/// The whole result of a run, for standard output. Needs no terminal: no colours, no cursor, no width.
pub fn render(trials: &[Summary], directory: &Path) -> String {
    let mut text = match trials {
        [only] => trial(only),
        _ => matrix(trials),
    };
    text.push('\n');
    let _ = writeln!(text, "Results: {}", directory.display());
    text
}

/// Many trials: a line for each, all operations over the whole measured time; the files have the rest.
fn matrix(trials: &[Summary]) -> String {
    let rows = trials.iter().flat_map(|summary| together(name(summary), summary, summary.whole()));
    let table = figures("trial: variant (repeat)", rows);
    let mut text = format!("All operations over the whole measured time of each trial:\n{table}");
    if trials.iter().any(|summary| !summary.recoveries.is_empty()) {
        let each = trials.iter().flat_map(|summary| {
            summary.recoveries.iter().map(|of| (format!("{}: {}", summary.facts.trial, of.overload), of))
        });
        let table = recovery_table("trial: overload", each);
        let _ = write!(text, "\n\nWhat came of each overload, by the time things happened:\n{table}");
    }
    text.push_str(&failed(trials));
    text.push_str(&broken(trials));
    let mut told: Vec<&String> = Vec::new();
    for summary in trials {
        for note in summary.notes.iter().filter(|note| !told.contains(note)).collect::<Vec<_>>() {
            told.push(note);
            let of: Vec<String> = trials
                .iter()
                .filter(|summary| summary.notes.contains(note))
                .map(|summary| summary.facts.trial.to_string())
                .collect();
            let whose = match of.len() == trials.len() {
                true => String::new(),
                false => format!("trial {}: ", of.join(", ")),
            };
            let _ = write!(text, "{}note: {whose}{note}", if told.len() == 1 { "\n\n" } else { "\n" });
        }
    }
    text.push('\n');
    text
}

/// The rows of all operations of a segment together, and before that those of each of several clients.
fn together<'a>(
    name: String,
    summary: &'a Summary,
    segment: &'a SegmentSummary,
) -> impl Iterator<Item = FiguresOf<'a>> {
    let each = segment.operations.iter().filter(|op| !matches!(op.scope, Scope::Operation(_)));
    each.map(move |op| {
        let client = if op.scope == Scope::All { String::new() } else { format!(": {}", op.name) };
        (format!("{name}{client}"), summary, segment, op)
    })
}

/// What does not add up in many trials.
fn broken(trials: &[Summary]) -> String {
    let each = trials.iter().flat_map(|of| of.broken.iter().map(|sentence| (of.facts.trial, sentence)));
    each.map(|(trial, sentence)| format!("\nBROKEN: trial {trial}: {sentence}")).collect()
}

/// A trial among others.
fn name(summary: &Summary) -> String {
    let facts = &summary.facts;
    format!("{}: {} ({})", facts.trial, facts.variant, facts.repeat)
}

/// One trial's part of it.
pub fn trial(summary: &Summary) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", heading(summary));
    if !summary.broken.is_empty() {
        let _ = writeln!(
            text,
            "\nTHE NUMBERS DO NOT ADD UP. This is a fault of overdrive: do not use them, please report it."
        );
        for sentence in &summary.broken {
            let _ = writeln!(text, "  BROKEN: {sentence}");
        }
    }
    let whole = summary.whole();
    let _ = writeln!(
        text,
        "\nLatencies are those of successful operations, from the intended start:\n{}",
        figures("operation", whole.operations.iter().map(|op| (op.name.clone(), summary, whole, op)))
    );
    if summary.segments.len() > 1 {
        let rows = summary.segments.iter().flat_map(|of| together(of.name.clone(), summary, of));
        let _ = writeln!(
            text,
            "\nAll operations, by segment of the intended start:\n{}",
            figures("segment", rows)
        );
    }
    if !summary.recoveries.is_empty() {
        let _ = writeln!(
            text,
            "\nWhat came of each overload, by the time things happened:\n{}",
            recovery_table("overload", summary.recoveries.iter().map(|of| (of.overload.clone(), of)))
        );
    }
    let mut staleness = summary.staleness.iter().filter(|of| of.segment == ALL).peekable();
    if staleness.peek().is_some() {
        let _ = writeln!(
            text,
            "\nHow stale reads were, by the server's role (0 is a read that saw everything):\n{}",
            staleness_table(staleness)
        );
    }
    let _ =
        write!(text, "\nWhere the mean latency went, failed operations included:\n{}", breakdown(summary));
    text.push_str(&errors(summary));
    text.push_str(&thresholds(summary));
    for (i, note) in summary.notes.iter().enumerate() {
        let _ = write!(text, "{}note: {note}", if i == 0 { "\n\n" } else { "\n" });
    }
    text.push('\n');
    text
}

/// What a trial was held on; nothing when that was nothing.
fn thresholds(summary: &Summary) -> String {
    let verdicts = evaluate(summary);
    if verdicts.is_empty() {
        return String::new();
    }
    let mut table = table(&["fails if", "seen", "verdict"]);
    for verdict in &verdicts {
        let word = if verdict.failed() { "FAILED" } else { "passed" };
        table.add_row([verdict.condition.to_string(), verdict.seen(), word.to_owned()]);
    }
    format!("\n\nThresholds:\n{}", align(table))
}

/// Which of many trials failed by what; nothing when they were held on nothing.
fn failed(trials: &[Summary]) -> String {
    let verdicts = |summary| evaluate(summary).into_iter().map(move |verdict| (summary, verdict));
    let all: Vec<(&Summary, Verdict)> = trials.iter().flat_map(verdicts).collect();
    let failed: Vec<_> = all.iter().filter(|(_, verdict)| verdict.failed()).collect();
    match (failed.len(), all.len()) {
        (_, 0) => return String::new(),
        (0, all) => return format!("\n\nThresholds: all {all} passed"),
        _ => {}
    }
    let mut table = table(&["trial: variant (repeat)", "fails if", "seen"]);
    for (summary, verdict) in &failed {
        table.add_row([name(summary), verdict.condition.to_string(), verdict.seen()]);
    }
    format!("\n\nThresholds: {} of {} FAILED:\n{}", failed.len(), all.len(), align(table))
}

/// Why operations failed; nothing when none did.
fn errors(summary: &Summary) -> String {
    if summary.errors.is_empty() {
        return String::new();
    }
    let mut text = "\n\nWhy operations failed, the commonest first (errors.csv has all):".to_owned();
    for CommonError { operation, class, count, example } in &summary.errors {
        let code = class.code.map(|code| format!("code {code} ")).unwrap_or_default();
        let kind = if class.code_name.is_empty() { &class.kind } else { &class.code_name };
        let example = plain(example);
        let _ = write!(text, "\n  {count} × {operation}: {code}{kind}, like: {example}");
    }
    text
}

/// A server's words in one line, cut short, and without anything that a terminal obeys.
fn plain(example: &str) -> String {
    let mut short: String =
        example.chars().take(EXAMPLE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if example.chars().nth(EXAMPLE).is_some() {
        short.push('…');
    }
    short
}

fn heading(summary: &Summary) -> String {
    let facts = &summary.facts;
    let (driver, whole) = (&facts.driver, summary.whole());
    let target =
        whole.all().target_ops_per_s.map(|t| format!(", target {}", rate(Some(t)))).unwrap_or_default();
    format!(
        "Trial {}: {} (repeat {}); driver {} {}, server {}; {} s measured{target}",
        facts.trial,
        facts.variant,
        facts.repeat,
        driver.name,
        driver.version,
        facts.server_version(),
        whole.duration_s,
    )
}

/// What a row of figures is called, and whose they are.
type FiguresOf<'a> = (String, &'a Summary, &'a SegmentSummary, &'a OpSummary);

/// Rows of figures: a name, the trial and the segment they are over, and the operation they are of.
fn figures<'a>(first: &str, rows: impl Iterator<Item = FiguresOf<'a>>) -> Table {
    let mut table = table(&[&[first], &grids::FIGURES[..]].concat());
    for (name, summary, segment, operation) in rows {
        let plan = &summary.facts.plan;
        let stats = &operation.stats;
        let figures = operation.figures(plan);
        let per_second = |count| rate(per_second(count, segment.duration_s));
        table.add_row([
            name,
            // In the closed model the load follows the servers, so a rate of it says nothing about demand.
            if operation.scope.is_open(plan) { per_second(stats.offered) } else { "-".to_owned() },
            per_second(stats.outcomes.ok),
            rate(operation.completed_ops_per_s),
            percent(stats.error_rate()),
            percent(stats.loss_rate()),
            quotient(figures.retries_per_op()),
            quotient(figures.amplification()),
            micros(stats.latency.mean_us()),
            micros(stats.latency.percentile_us(0.5)),
            micros(stats.latency.percentile_us(0.9)),
            micros(stats.latency.percentile_us(0.99)),
            micros(stats.latency.max_us()),
        ]);
    }
    align(table)
}

/// Overloads by the name that is given with each.
fn recovery_table<'a>(head: &str, recoveries: impl Iterator<Item = (String, &'a Recovery)>) -> Table {
    let mut table = table(&[head, "goodput before", "during", "after", "p50 before", "recovered"]);
    for (name, of) in recoveries {
        table.add_row([
            name,
            rate(of.goodput_before_ops_per_s),
            rate(of.goodput_during_ops_per_s),
            rate(of.goodput_after_ops_per_s),
            micros(of.latency_p50_before_us),
            match (of.recovered, of.time_to_recover_s) {
                (Some(true), Some(seconds)) if seconds > 0.0 => format!("after {seconds} s"),
                (Some(true), _) => "at once".to_owned(),
                (Some(false), _) => "did not recover".to_owned(),
                (None, _) => "not known".to_owned(),
            },
        ]);
    }
    align(table)
}

fn staleness_table<'a>(staleness: impl Iterator<Item = &'a RoleStaleness>) -> Table {
    let mut table = table(&["role", "reads", "p50", "p99", "max"]);
    for RoleStaleness { role, times, .. } in staleness {
        let reads = times.count().to_string();
        let [p50, p99] = [0.5, 0.99].map(|quantile| micros(times.percentile_us(quantile)));
        table.add_row([role.clone(), reads, p50, p99, micros(times.max_us())]);
    }
    align(table)
}

fn breakdown(summary: &Summary) -> Table {
    let mut table = table(&["operation", "wait", "check-out", "attempts", "backoff", "other", "= latency"]);
    for operation in &summary.whole().operations {
        let b = Breakdown::of(&operation.stats, reasons_known(&summary.facts.plan));
        let cells = [
            b.map(|b| b.wait_us),
            b.map(|b| b.checkout_us),
            b.and_then(|b| b.attempts_us),
            b.and_then(|b| b.backoff_us),
            b.and_then(|b| b.other_us),
            b.map(|b| b.latency_us),
        ]
        .map(|us| us.map_or_else(|| "-".to_owned(), time));
        table.add_row(std::iter::once(operation.name.clone()).chain(cells));
    }
    align(table)
}

fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    table.set_header(columns.iter().copied());
    table
}

/// Names to the left, numbers to the right.
fn align(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests;
