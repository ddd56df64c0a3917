//! What the keys do, over everything else.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use super::View;
use super::text::{panel, put, width};
use crate::tui::keys::BINDINGS;

/// Cells of a key's name.
const NAME: u16 = 9;

/// Every key and what it does.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    BINDINGS.iter().map(|binding| (binding.name, binding.help))
}

/// Draws it in the middle.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let wide = lines().map(|(_, help)| width(help)).max().unwrap_or(0) + NAME + 2;
    let high = u16::try_from(lines().count()).unwrap_or(u16::MAX).saturating_add(2);
    let (wide, high) = (wide.min(area.width), high.min(area.height));
    let box_ = Rect {
        x: area.x + (area.width - wide) / 2,
        y: area.y + (area.height - high) / 2,
        width: wide,
        height: high,
    };
    Clear.render(box_, buffer);
    let inner = panel(buffer, box_, "keys", theme);
    for ((name, help), y) in lines().zip(inner.y..inner.bottom()) {
        put(buffer, (inner.x + 1, y), NAME, name, theme.strong(), theme);
        put(buffer, (inner.x + 1 + NAME, y), inner.width.saturating_sub(NAME + 1), help, Style::new(), theme);
    }
    if high > 2 {
        panel(buffer, Rect { y: box_.bottom() - 1, height: 1, ..box_ }, "? hides this", theme);
    }
}
