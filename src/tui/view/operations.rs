//! The segment that goes on, by operation, and by client where there are several.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::View;
use super::text::{Table, panel};
use crate::report::human::{micros, percent, quotient, rate};
use crate::results::facts::{Scope, per_second};
use crate::tui::model::Window;

/// Rows that it takes at least: the title, the heads, two operations or one and how many more there are.
pub const LEAST: u16 = 4;

/// Rows that it has any use for.
pub fn most(view: &View<'_>) -> u16 {
    u16::try_from(view.model.rows().len() + 2).unwrap_or(u16::MAX)
}

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let name = view.model.part.as_ref().map_or("", |part| &part.name);
    let title = if name.is_empty() { "operations".to_owned() } else { format!("operations, {name}") };
    let inner = panel(buffer, area, &title, view.theme);
    let Some(window) = &view.model.part else { return };
    let running = view.model.rows();
    let table = Table {
        heads: vec![
            "operation",
            "goodput",
            "errors",
            "retries/op",
            "p50",
            "p99",
            "offered",
            "amplified",
            "p90",
        ],
        rows: running.iter().map(|&whose| row(view, window, whose)).collect(),
        picked: running.iter().position(|&whose| whose == view.app.whose),
    };
    table.draw(buffer, inner, view.theme);
}

fn row(view: &View<'_>, window: &Window, whose: Scope) -> Vec<String> {
    let stats = window.of(whose);
    let figures = view.model.figures(whose, stats);
    let per_second = |count| rate(per_second(count, window.length_s));
    // A mark beside the colours, which say nothing where there are none.
    let mark = if whose == view.app.whose { '>' } else { ' ' };
    vec![
        format!("{mark}{}", view.model.name(whose)),
        per_second(stats.outcomes.ok),
        percent(stats.error_rate()),
        quotient(figures.retries_per_op()),
        micros(stats.latency.percentile_us(0.5)),
        micros(stats.latency.percentile_us(0.99)),
        if whose.is_open(&view.model.facts.plan) { per_second(stats.offered) } else { "-".to_owned() },
        quotient(figures.amplification()),
        micros(stats.latency.percentile_us(0.9)),
    ]
}
