//! What happened, and what people are told: the newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::{panel, put_all};
use crate::results::facts::signed_seconds;

/// Rows that it takes at least.
pub const LEAST: u16 = 3;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let inner = panel(buffer, area, "events", theme);
    for (told, y) in view.model.events.iter().rev().zip(inner.y..inner.bottom()) {
        let at = told.at_ns.map_or_else(String::new, |at_ns| format!("{:.1}s", signed_seconds(at_ns)));
        let parts = [(format!("{at:>8} "), theme.quiet()), (told.text.clone(), Style::new())];
        put_all(buffer, Rect { y, height: 1, ..inner }, parts, theme);
    }
}
