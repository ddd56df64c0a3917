//! The screen as a picture: a pure function of what is known, what the user chose to see, and the room there is.
//!
//! Panels stand in one, two or three columns. In each they get room in the order of their weight, and what is left is
//! shared out; those that find none are named in the last line.

mod bars;
mod errors;
mod events;
mod figures;
mod footer;
mod generator;
mod header;
pub mod help;
mod history;
mod latency;
mod limit;
mod operations;
mod retries;
mod servers;
mod text;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::app::App;
use super::model::Model;
use super::theme::Theme;

/// Everything a picture depends on beside its size.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// What is shown of the trial.
    pub model: &'a Model,
    /// What the user chose to see.
    pub app: &'a App,
    /// How it looks.
    pub theme: &'a Theme,
    /// The time since the first trial's Go.
    pub now_ns: u64,
}

impl View<'_> {
    /// A panel's title: what it shows, of which operation, over which time.
    fn titled(&self, what: &str) -> String {
        let operation = self.model.name(self.app.whose);
        match &self.model.part {
            Some(part) => format!("{what}: {operation}, {}", part.name),
            None => format!("{what}: {operation}"),
        }
    }
}

/// What a panel is, and how much room it wants.
struct Panel {
    name: &'static str,
    least: u16,
    /// More than this is of no use to it.
    most: u16,
    /// Its part of the room that is left, among those that want some.
    weight: u16,
    draw: fn(&View<'_>, Rect, &mut Buffer),
}

/// The narrowest and widest arrangements begin at these widths.
const TWO_COLUMNS: u16 = 78;
const THREE_COLUMNS: u16 = 165;

/// The gap between columns.
const GAP: u16 = 2;

/// From this height on the headline has a third row, the segment before.
const TALL: u16 = 28;

/// Draws everything.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let (top, rest) = cut(area, header::HEIGHT);
    header::draw(view, top, buffer);
    let windows = if area.height >= TALL { 3 } else { 2 };
    let (top, rest) = cut(rest, figures::height(area.width, windows));
    figures::draw(view, top, windows, buffer);
    let (panels, footer) = cut(rest, rest.height.saturating_sub(1));
    let hidden = draw_panels(view, panels, buffer);
    footer::draw(view, footer, &hidden, buffer);
    if view.app.help {
        help::draw(view, area, buffer);
    }
    if view.theme.is_ascii() {
        only_ascii(buffer);
    }
}

/// The first rows of an area, and the rest.
fn cut(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

fn draw_panels(view: &View<'_>, area: Rect, buffer: &mut Buffer) -> Vec<&'static str> {
    let columns = columns(view, area.width);
    let count = u16::try_from(columns.len()).unwrap_or(1);
    let wide = (area.width - GAP * (count - 1)) / count;
    let mut hidden = Vec::new();
    let mut x = area.x;
    for (i, panels) in columns.iter().enumerate() {
        // The last column gets what division has left over.
        let width = if i + 1 == columns.len() { area.right() - x } else { wide };
        let heights = share_out(panels, area.height);
        let mut y = area.y;
        for (panel, height) in panels.iter().zip(heights) {
            if height == 0 {
                hidden.push(panel.name);
                continue;
            }
            (panel.draw)(view, Rect { x, y, width, height }, buffer);
            y += height;
        }
        x += width + GAP;
    }
    hidden
}

/// The panels of each column, the weightiest first.
fn columns(view: &View<'_>, width: u16) -> Vec<Vec<Panel>> {
    let panel = |name, least, most, weight, draw| Panel { name, least, most, weight, draw };
    let retries = panel("retries", retries::LEAST, retries::most(view), 4, retries::draw);
    let history = panel("rates", history::LEAST, 30, 4, history::draw);
    let latency = panel("latency", latency::LEAST, 30, 3, latency::draw);
    let operations = panel("operations", operations::LEAST, operations::most(view), 3, operations::draw);
    let servers = panel("servers", servers::LEAST, servers::most(view), 2, servers::draw);
    let errors = panel("errors", errors::LEAST, 14, 1, errors::draw);
    let events = panel("events", events::LEAST, 40, 1, events::draw);
    let generator = panel("generator", generator::LEAST, generator::LEAST, 1, generator::draw);
    let limit = panel("limit", limit::LEAST, limit::MOST, 2, limit::draw);
    let rates = match limit::shown(view) {
        Some(_) => vec![history, limit, latency],
        None => vec![history, latency],
    };
    let then = |mut before: Vec<Panel>, after: Vec<Panel>| {
        before.extend(after);
        before
    };
    if width < TWO_COLUMNS {
        vec![then(then(vec![retries], rates), vec![operations, servers, errors, events, generator])]
    } else if width < THREE_COLUMNS {
        vec![then(rates, vec![events]), vec![retries, operations, servers, errors, generator]]
    } else {
        vec![rates, vec![retries, operations, servers], vec![errors, generator, events]]
    }
}

/// How high each panel is; 0 for those that find no room.
fn share_out(panels: &[Panel], height: u16) -> Vec<u16> {
    let mut left = height;
    let mut heights: Vec<u16> = panels
        .iter()
        .map(|panel| {
            let height = if panel.least <= left { panel.least } else { 0 };
            left -= height;
            height
        })
        .collect();
    // A row at a time to whoever is furthest from its due; few rows and panels, so this is quick.
    while left > 0 {
        let wanting = panels.iter().zip(&mut heights).filter(|(p, h)| **h > 0 && **h < p.most);
        let Some((_, height)) = wanting.min_by_key(|(p, h)| u32::from(**h) * 100 / u32::from(p.weight))
        else {
            break;
        };
        *height += 1;
        left -= 1;
    }
    heights
}

/// Names and messages of others may hold anything.
fn only_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            cell.set_symbol("?");
        }
    }
}

#[cfg(test)]
mod tests;
