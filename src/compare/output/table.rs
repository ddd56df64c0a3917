//! For people at a terminal.

use std::fmt::Write;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::{described, notes, plain, scope};
use crate::compare::Comparison;
use crate::compare::row::{IntervalKind, Row};

/// A table for each new side, with what must be known to read it.
pub fn render(comparison: &Comparison) -> String {
    let mut text = format!("Compared: {}\n", scope(comparison));
    for (i, pair) in comparison.pairs.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\nbase: {}\nnew:  {}\n\n", described(&comparison.base), described(&pair.new));
        let _ = writeln!(text, "{}", table(&pair.rows));
        for (i, note) in notes(comparison, i).iter().enumerate() {
            let _ = writeln!(text, "{}note: {note}", if i == 0 { "\n" } else { "" });
        }
    }
    plain(&text)
}

/// What is said of a metric.
pub const COLUMNS: [&str; 7] = ["metric", "base", "new", "ratio", "95% interval", "p (Holm)", "verdict"];

/// The same of one, as people read it.
pub fn cells(row: &Row) -> [String; 7] {
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| row.metric.show(value));
    [
        row.metric.label().to_owned(),
        value(row.medians.0),
        value(row.medians.1),
        row.ratio.map_or_else(|| "-".to_owned(), ratio),
        interval(row),
        row.p_adjusted.map_or_else(|| "-".to_owned(), p_value),
        row.verdict.words().to_owned(),
    ]
}

/// The rows of a pair; it is Markdown as well.
pub(super) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    table.set_header(COLUMNS);
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn interval(row: &Row) -> String {
    row.interval.map_or_else(
        || "-".to_owned(),
        |(low, high, kind)| {
            let weaker = if kind == IntervalKind::Seconds { " (weaker)" } else { "" };
            format!("{} … {}{weaker}", ratio(low), ratio(high))
        },
    )
}

fn ratio(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.3}") } else { "∞".to_owned() }
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}
