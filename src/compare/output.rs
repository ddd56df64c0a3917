//! How a comparison is printed: a file for each way.

pub mod csv;
pub mod json;
pub mod markdown;
pub mod table;

use super::row::Row;
use super::side::Side;
use super::verdict::{FEWEST_TRIALS, Verdict};
use super::{Comparison, Pair};
use crate::results::facts::rounded;

/// A side in one line: what it is, of how many trials, and by what.
fn described(side: &Side) -> String {
    let (first, n) = (side.first(), side.trials.len());
    let trials = if n == 1 { "trial" } else { "trials" };
    format!("{} ({n} {trials}, driver {}, server {})", side.name, first.driver, first.server)
}

/// What the figures are of.
fn scope(comparison: &Comparison) -> String {
    let settings = &comparison.settings;
    let ops =
        if settings.op == "all" { "all operations".to_owned() } else { format!("operation {}", settings.op) };
    let time = if settings.segment == "all" {
        "the whole measured time".to_owned()
    } else {
        format!("segment {}", settings.segment)
    };
    format!("{ops}, {time}; differences up to {} % do not matter", rounded(settings.noise * 100.0, 6))
}

/// Why some rows have no more to say, each reason once, with the metrics that it is about. That there are too few trials of
/// the whole pair is told by the pair.
fn reasons(pair: &Pair, base: &Side) -> Vec<String> {
    let few = base.trials.len().min(pair.new.trials.len()) < FEWEST_TRIALS;
    let of_the_pair = |row: &Row| row.verdict == Verdict::NotEnoughData && row.trials.0.min(row.trials.1) > 0;
    let told = |row: &Row| row.reason.is_empty() || (few && of_the_pair(row));
    let mut grouped: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in pair.rows.iter().filter(|&row| !told(row)) {
        match grouped.iter_mut().find(|(reason, _)| *reason == row.reason) {
            Some((_, metrics)) => metrics.push(row.metric.label()),
            None => grouped.push((&row.reason, vec![row.metric.label()])),
        }
    }
    grouped.into_iter().map(|(reason, metrics)| format!("{}: {reason}", metrics.join(", "))).collect()
}

/// Figures that only some trials have, which may be no fair choice of all.
fn partial(pair: &Pair, base: &Side) -> Vec<String> {
    let (all_base, all_new) = (base.trials.len(), pair.new.trials.len());
    let rows = pair.rows.iter().filter(|row| {
        let (base, new) = row.trials;
        base > 0 && new > 0 && (base < all_base || new < all_new)
    });
    rows.map(|row| {
        let ((base, new), label) = (row.trials, row.metric.label());
        format!("{label}: there is a value in {base} of {all_base} and {new} of {all_new} trials, and none in the others")
    })
    .collect()
}

/// All that must be known of a pair, what was left out of its sides included.
pub(crate) fn notes(comparison: &Comparison, pair: usize) -> Vec<String> {
    let pair = &comparison.pairs[pair];
    let left_out = comparison.base.notes.iter().chain(&pair.new.notes).cloned();
    let base = &comparison.base;
    pair.notes.iter().cloned().chain(reasons(pair, base)).chain(partial(pair, base)).chain(left_out).collect()
}

/// What comes out of files must not move a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
