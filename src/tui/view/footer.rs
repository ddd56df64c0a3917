//! The last line: what is wrong, else what was said last, else the keys; and what found no room.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text::{put, put_right, width};
use super::{View, generator};
use crate::tui::keys::{Action, BINDINGS};

/// For how long what was said last stands here.
const FRESH_NS: u64 = 8_000_000_000;

/// Draws it; `hidden` are the panels that found no room.
pub fn draw(view: &View<'_>, area: Rect, hidden: &[&str], buffer: &mut Buffer) {
    let theme = view.theme;
    let missing = if hidden.is_empty() { String::new() } else { format!("  no room: {}", hidden.join(", ")) };
    let (text, style) = match (generator::warning(&view.model.health), news(view)) {
        (Some(warning), _) => (format!(" {warning} "), theme.alarm()),
        (None, Some(news)) => (news.to_owned(), theme.strong()),
        (None, None) => (keys(area.width.saturating_sub(width(&missing))), Style::new()),
    };
    // What is wrong or new goes before what is merely not there.
    let left = width(&text).min(area.width * 2 / 3).max(area.width.saturating_sub(width(&missing)));
    let left = left.min(area.width);
    put(buffer, (area.x, area.y), left, &text, style, theme);
    put_right(buffer, (area.right(), area.y), area.width - left, &missing, theme.quiet(), theme);
}

/// What was said last, if that was only just.
fn news<'a>(view: &View<'a>) -> Option<&'a str> {
    let told = view.model.events.back()?;
    let at_ns = u64::try_from(told.at_ns?).ok()?;
    (view.now_ns.saturating_sub(at_ns) < FRESH_NS).then_some(told.text.as_str())
}

/// The keys that nobody knows from elsewhere; the knobs where there is room for them.
fn keys(room: u16) -> String {
    let keys = BINDINGS.iter().filter(|key| !key.short.is_empty());
    let keys: Vec<String> = keys.map(|key| format!("{} {}", key.name, key.short)).collect();
    let knobs = BINDINGS.iter().filter(|key| matches!(key.action, Action::Knob(_)));
    let knobs: Vec<&str> = knobs.map(|key| key.name).collect();
    let (keys, all) = (keys.join("  "), format!("{}  {} knobs", keys.join("  "), knobs.join(" ")));
    if width(&all) <= room { all } else { keys }
}
