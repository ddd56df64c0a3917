//! How many operations the application had under way at once at most, over the whole trial: the axis of time is that of the
//! rates.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::plan::ConcurrencyLimit;

use super::View;
use super::history::{SCALE, Time, row};
use super::text::{panel, put_right};

/// Rows that it takes at least: the title and two of picture.
pub const LEAST: u16 = 3;

/// More than this tells nothing more.
pub const MOST: u16 = 9;

/// The client whose limit is shown, and its limit: the one that was picked, or else the only one that has any.
pub fn shown(view: &View<'_>) -> Option<(usize, ConcurrencyLimit)> {
    let plan = &view.model.facts.plan;
    let picked = view.app.whose.client_index(plan);
    let own = plan.clients.iter().map(|group| group.flow.limit);
    let limits: Vec<_> = match plan.clients.len() {
        0 => vec![(0, plan.flow.limit?)],
        _ => own.enumerate().filter_map(|(client, limit)| Some((client, limit?))).collect(),
    };
    let of_picked = limits.iter().find(|(client, _)| Some(*client) == picked);
    of_picked.or(limits.first().filter(|_| limits.len() == 1)).copied()
}

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let (model, theme) = (view.model, view.theme);
    let Some((client, limit)) = shown(view) else { return };
    let end_ns = model.end_ns();
    let now = model.history.limit(client, end_ns.saturating_sub(1), end_ns);
    let now = now.map_or(String::new(), |now| format!(": {now}"));
    let whose =
        model.facts.plan.clients.get(client).map_or(String::new(), |group| format!("{}: ", group.name));
    let title = format!("{whose}operations at once{now} (floor {}, ceiling {})", limit.floor, limit.ceiling);
    let inner = panel(buffer, area, &title, theme);
    if inner.height < LEAST - 1 || inner.width < SCALE + 2 {
        return;
    }
    let plot = Rect { x: inner.x + SCALE, width: inner.width - SCALE, ..inner };
    let time = Time::new(view, plot);
    let lowest: Vec<Option<u32>> = (plot.x..plot.right())
        .map(|x| {
            let (from, to) = time.stretch(x);
            model.history.limit(client, from, to)
        })
        .collect();
    let top = lowest.iter().flatten().copied().max().unwrap_or(limit.initial).max(1);
    for (x, lowest) in (plot.x..plot.right()).zip(lowest) {
        time.shade(view, x, buffer);
        if let Some(lowest) = lowest {
            let y = plot.bottom() - row(f64::from(lowest) / f64::from(top), plot.height);
            let style = if lowest <= limit.floor { theme.bad() } else { theme.strong() };
            buffer[(x, y)].set_symbol(theme.glyphs().offered).set_style(style);
        }
    }
    let right = (inner.x + SCALE - 1, plot.y);
    put_right(buffer, right, SCALE, &top.to_string(), theme.quiet(), theme);
    put_right(buffer, (right.0, plot.bottom() - 1), SCALE, "0", theme.quiet(), theme);
}
