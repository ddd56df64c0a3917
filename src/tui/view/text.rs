//! Putting words and tables where there may not be room for them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::tui::theme::Theme;

/// Cells that a text takes.
pub fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// Writes a text within `room` cells; returns the cells it took. What does not fit is cut, visibly.
pub fn put(
    buffer: &mut Buffer,
    (x, y): (u16, u16),
    room: u16,
    text: &str,
    style: Style,
    theme: &Theme,
) -> u16 {
    let area = buffer.area;
    if !area.contains((x, y).into()) || room == 0 {
        return 0;
    }
    let room = room.min(area.right() - x);
    if width(text) <= room {
        let (end, _) = buffer.set_stringn(x, y, text, usize::from(room), style);
        return end - x;
    }
    let (end, _) = buffer.set_stringn(x, y, text, usize::from(room - 1), style);
    buffer.set_stringn(end, y, theme.glyphs().more, 1, style);
    end + 1 - x
}

/// Writes a text that ends at `right`, within `room` cells.
pub fn put_right(
    buffer: &mut Buffer,
    (right, y): (u16, u16),
    room: u16,
    text: &str,
    style: Style,
    theme: &Theme,
) {
    let taken = width(text).min(room);
    put(buffer, (right.saturating_sub(taken), y), taken, text, style, theme);
}

/// Parts of a line, one behind the other.
pub fn put_all(
    buffer: &mut Buffer,
    area: Rect,
    parts: impl IntoIterator<Item = (String, Style)>,
    theme: &Theme,
) -> u16 {
    let mut x = area.x;
    for (text, style) in parts {
        x += put(buffer, (x, area.y), area.right().saturating_sub(x), &text, style, theme);
    }
    x - area.x
}

/// A panel's first line; returns what is left for the panel.
pub fn panel(buffer: &mut Buffer, area: Rect, title: &str, theme: &Theme) -> Rect {
    if area.is_empty() {
        return area;
    }
    let rule = theme.glyphs().rule;
    for x in area.x..area.right() {
        buffer[(x, area.y)].set_symbol(rule).set_style(theme.quiet());
    }
    let room = area.width.saturating_sub(3);
    put(buffer, (area.x + 1, area.y), room, &format!(" {title} "), theme.strong(), theme);
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Rows under heads. Columns stand in the order of their weight: those that find no room are left out from the right.
pub struct Table {
    /// The first names the rows and gets what is left; the others are numbers.
    pub heads: Vec<&'static str>,
    /// As many cells each as there are heads.
    pub rows: Vec<Vec<String>>,
    /// A row that was picked.
    pub picked: Option<usize>,
}

/// The least and the most room that is kept for what names a row before numbers get any.
const NAME: (u16, u16) = (9, 22);
/// The least room for a number, so that columns stand still when numbers change.
const NUMBER: u16 = 5;

impl Table {
    /// Draws as many columns and rows as fit. A row that was picked is among them, and what is missing is said.
    pub fn draw(&self, buffer: &mut Buffer, area: Rect, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        let columns = self.columns(area.width);
        let name = area.width - columns.iter().sum::<u16>();
        let heads: Vec<String> = self.heads.iter().map(|&head| head.to_owned()).collect();
        draw_row(buffer, area, name, &columns, &heads, theme.quiet(), theme);
        let room = usize::from(area.height - 1);
        let all_fit = self.rows.len() <= room;
        let shown = if all_fit { room } else { room.saturating_sub(1) };
        let skipped = self.picked.map_or(0, |picked| (picked + 1).saturating_sub(shown));
        let mut line = Rect { y: area.y + 1, height: 1, ..area };
        for (i, row) in self.rows.iter().enumerate().skip(skipped).take(shown) {
            let style = if self.picked == Some(i) { theme.picked() } else { Style::new() };
            buffer.set_style(line, style);
            draw_row(buffer, line, name, &columns, row, style, theme);
            line.y += 1;
        }
        if !all_fit && room > 0 {
            let text = format!("{} {} more", theme.glyphs().more, self.rows.len() - shown);
            put(buffer, (line.x, line.y), line.width, &text, theme.quiet(), theme);
        }
    }

    /// The widths of the columns that fit, gaps included.
    fn columns(&self, room: u16) -> Vec<u16> {
        let names = self.rows.iter().filter_map(|row| row.first()).map(|name| width(name)).max();
        let mut left = room.saturating_sub(names.unwrap_or(0).clamp(NAME.0, NAME.1));
        let mut columns = Vec::new();
        for i in 1..self.heads.len() {
            let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|cell| width(cell));
            let wide = cells.chain([width(self.heads[i]), NUMBER]).max().unwrap_or(NUMBER) + 2;
            let Some(rest) = left.checked_sub(wide) else { break };
            left = rest;
            columns.push(wide);
        }
        columns
    }
}

fn draw_row(
    buffer: &mut Buffer,
    area: Rect,
    name: u16,
    columns: &[u16],
    cells: &[String],
    style: Style,
    theme: &Theme,
) {
    let Some((first, numbers)) = cells.split_first() else { return };
    put(buffer, (area.x, area.y), name, first, style, theme);
    let mut right = area.x + name;
    for (cell, wide) in numbers.iter().zip(columns) {
        right += wide;
        put_right(buffer, (right, area.y), *wide, cell, style, theme);
    }
}
