//! The headline: the figures of the last interval, of the segment that goes on, and of the one before it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::{self, put, put_right};
use crate::report::human::{micros, percent, quotient, rate};
use crate::results::facts::{Scope, per_second, rounded};
use crate::tui::model::Window;

/// The figures' names, in their order, and what they are called where there is little room.
const HEADS: [(&str, &str); 11] = [
    ("offered", "offered"),
    ("goodput", "goodput"),
    ("errors", "errors"),
    ("retries/op", "retr/op"),
    ("amplified", "amplif."),
    ("p50", "p50"),
    ("p99", "p99"),
    ("service p50", "svc p50"),
    ("service p99", "svc p99"),
    ("in flight", "flight"),
    ("behind", "behind"),
];

/// Cells of what names a row.
const NAME: u16 = 10;
/// The least cells of a figure, the gap before it included.
const FIGURE: u16 = 8;

/// Rows that it takes at this width, with this many windows.
pub fn height(width: u16, windows: u16) -> u16 {
    u16::try_from(blocks(width).len()).unwrap_or(1) * (1 + windows)
}

/// A figure's column: its place among the figures, its head and its cells.
type Column = (usize, &'static str, u16);

/// The figures that stand beside each other: all of them by their whole names where there is room, else by their short
/// ones in as many blocks as it takes.
fn blocks(width: u16) -> Vec<Vec<Column>> {
    let column = |i: usize, head: &'static str| (i, head, FIGURE.max(text::width(head) + 2));
    let long: Vec<Column> = HEADS.iter().enumerate().map(|(i, heads)| column(i, heads.0)).collect();
    if NAME + long.iter().map(|(.., cells)| cells).sum::<u16>() <= width {
        return vec![long];
    }
    let short: Vec<Column> = HEADS.iter().enumerate().map(|(i, heads)| (i, heads.1, FIGURE)).collect();
    let beside = usize::from((width.saturating_sub(NAME) / FIGURE).max(1));
    short.chunks(beside).map(<[Column]>::to_vec).collect()
}

/// Draws it, with this many windows.
pub fn draw(view: &View<'_>, area: Rect, windows: u16, buffer: &mut Buffer) {
    let (model, theme) = (view.model, view.theme);
    let last_name = |window: &Window| format!("last {} s", rounded(window.length_s, 3));
    let own_name = |window: &Window| window.name.clone();
    let rows = [
        (model.last.as_ref(), model.last.as_ref().map_or("last".to_owned(), last_name)),
        (model.part.as_ref(), model.part.as_ref().map_or("so far".to_owned(), own_name)),
        (model.before.as_ref(), model.before.as_ref().map_or(String::new(), own_name)),
    ];
    let rows = &rows[..usize::from(windows).min(rows.len())];
    let values: Vec<[String; 11]> =
        rows.iter().enumerate().map(|(i, (window, _))| values(view, *window, i == 0)).collect();
    let mut y = area.y;
    for block in blocks(area.width) {
        put(buffer, (area.x, y), NAME, &model.name(view.app.whose), theme.strong(), theme);
        let mut right = area.x + NAME;
        for (column, head, cells) in block {
            right += cells;
            put_right(buffer, (right, y), cells - 1, head, theme.quiet(), theme);
            for (((window, _), row), line) in rows.iter().zip(&values).zip(y + 1..) {
                let style = style(view, column, *window);
                put_right(buffer, (right, line), cells - 1, &row[column], style, theme);
            }
        }
        for ((_, name), line) in rows.iter().zip(y + 1..) {
            put(buffer, (area.x, line), NAME, name, theme.quiet(), theme);
        }
        y += 1 + windows;
    }
}

/// Goodput and errors stand out: good or bad is what they are about.
fn style(view: &View<'_>, column: usize, window: Option<&Window>) -> Style {
    let failing = |w: &Window| w.of(view.app.whose).error_rate().is_some_and(|share| share > 0.0);
    match HEADS[column].0 {
        "goodput" => view.theme.good(),
        "errors" if window.is_some_and(failing) => view.theme.bad(),
        _ => Style::new(),
    }
}

fn values(view: &View<'_>, window: Option<&Window>, is_last: bool) -> [String; 11] {
    let Some(window) = window else { return Default::default() };
    let whose = view.app.whose;
    let stats = window.of(whose);
    let figures = view.model.figures(whose, stats);
    let per_second = |count| rate(per_second(count, window.length_s));
    let generator = &view.model.health.generator;
    // The generator is one for all operations, and these two are of a moment.
    let of_now = |text: String| if is_last && whose == Scope::All { text } else { String::new() };
    [
        // In the closed model the load follows the servers, so a rate of it says nothing about demand.
        if whose.is_open(&view.model.facts.plan) { per_second(stats.offered) } else { "-".to_owned() },
        per_second(stats.outcomes.ok),
        percent(stats.error_rate()),
        quotient(figures.retries_per_op()),
        quotient(figures.amplification()),
        micros(stats.latency.percentile_us(0.5)),
        micros(stats.latency.percentile_us(0.99)),
        micros(stats.service.percentile_us(0.5)),
        micros(stats.service.percentile_us(0.99)),
        of_now(generator.in_flight.to_string()),
        of_now(micros(Some(generator.behind_ns / 1000))),
    ]
}
