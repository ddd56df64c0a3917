//! Rates over the whole trial on one axis of time: goodput as an area, what was offered, attempted and rejected as marks in
//! front of it. Times in which servers are pushed are shaded, those to come as well.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::bars::{Place, column};
use super::text::{panel, put, put_all, put_right, width};
use crate::tui::history::Rates;
use crate::tui::theme::{ATTEMPTS, REJECTED};

/// Rows that it takes at least: the title, the legend, three of picture, the axis.
pub const LEAST: u16 = 6;

/// Cells of the scale.
pub const SCALE: u16 = 7;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let inner = panel(buffer, area, &format!("rates: {}", view.model.name(view.app.whose)), theme);
    if inner.height < LEAST - 1 || inner.width < SCALE + 2 {
        return;
    }
    legend(view, Rect { height: 1, ..inner }, buffer);
    let plot =
        Rect { x: inner.x + SCALE, y: inner.y + 1, width: inner.width - SCALE, height: inner.height - 2 };
    let time = Time::new(view, plot);
    let rates: Vec<Option<Rates>> = (plot.x..plot.right())
        .map(|x| {
            let (from, to) = time.stretch(x);
            view.model.rates(view.app.whose, from, to)
        })
        .collect();
    let most = rates.iter().flatten().flat_map(|r| [r.offered, r.ok, r.attempts]).fold(0.0, f64::max);
    let top = ceiling(most);
    for (x, rates) in (plot.x..plot.right()).zip(&rates) {
        time.shade(view, x, buffer);
        if let Some(rates) = rates {
            stand(view, buffer, plot, x, rates, top);
        }
    }
    let right = (inner.x + SCALE - 1, plot.y);
    put_right(buffer, right, SCALE, &format!("{top}/s"), theme.quiet(), theme);
    put_right(buffer, (right.0, plot.bottom() - 1), SCALE, "0", theme.quiet(), theme);
    axis(view, &time, buffer);
}

/// One column: the area, then the marks, the rarest last.
fn stand(view: &View<'_>, buffer: &mut Buffer, plot: Rect, x: u16, rates: &Rates, top: f64) {
    let (theme, glyphs) = (view.theme, view.theme.glyphs());
    let place = Place { x, bottom: plot.bottom(), height: plot.height };
    column(buffer, place, rates.ok / top, glyphs.up, theme.good());
    let mut mark = |rate: f64, symbol: &str, style: Style| {
        if rate > 0.0 {
            let y = plot.bottom() - row(rate / top, plot.height);
            buffer[(x, y)].set_symbol(symbol).set_style(style);
        }
    };
    mark(rates.attempts, ATTEMPTS, theme.attempts());
    if view.app.whose.is_open(&view.model.facts.plan) {
        mark(rates.offered, glyphs.offered, theme.strong());
    }
    mark(rates.rejected, REJECTED, theme.bad());
}

/// The row that a share of the height falls in, from 1 at the bottom.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the height")]
pub fn row(share: f64, height: u16) -> u16 {
    ((share * f64::from(height)).ceil() as u16).clamp(1, height)
}

fn legend(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let (theme, glyphs) = (view.theme, view.theme.glyphs());
    let whole = glyphs.up.last().copied().unwrap_or_default();
    let mut parts = vec![(whole, " goodput", theme.good())];
    if view.app.whose.is_open(&view.model.facts.plan) {
        parts.push((glyphs.offered, " offered", theme.strong()));
    }
    parts.extend([
        (ATTEMPTS, " attempts", theme.attempts()),
        (REJECTED, " rejected", theme.bad()),
        (glyphs.shade, " overload", theme.quiet()),
    ]);
    let mut x = area.x;
    for (symbol, name, style) in parts {
        let wide = width(symbol) + width(name);
        if x + wide > area.right() {
            break;
        }
        let words = [(symbol.to_owned(), style), (name.to_owned(), Style::new())];
        x += put_all(buffer, Rect { x, width: wide, ..area }, words, theme) + 2;
    }
}

/// The whole trial over the columns of the plot.
pub struct Time {
    plot: Rect,
    whole_ns: u64,
}

impl Time {
    /// With its columns in this plot.
    pub fn new(view: &View<'_>, plot: Rect) -> Self {
        Self { plot, whole_ns: view.model.measured_until_ns().max(view.model.end_ns()).max(1) }
    }

    /// From when to when a column is.
    pub fn stretch(&self, x: u16) -> (u64, u64) {
        let at = |column: u16| self.whole_ns / u64::from(self.plot.width) * u64::from(column);
        (at(x - self.plot.x), at(x - self.plot.x + 1))
    }

    /// The column of a time; beyond the plot for one that is beyond the trial.
    fn x(&self, ns: u64) -> u16 {
        let column = ns / (self.whole_ns / u64::from(self.plot.width)).max(1);
        self.plot.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX))
    }

    /// Shades a column in which servers are pushed.
    pub fn shade(&self, view: &View<'_>, x: u16, buffer: &mut Buffer) {
        if self.is_shaded(view, x) {
            for y in self.plot.y..self.plot.bottom() {
                buffer[(x, y)].set_symbol(view.theme.glyphs().shade).set_style(view.theme.quiet());
            }
        }
    }

    fn is_shaded(&self, view: &View<'_>, x: u16) -> bool {
        let (from, to) = self.stretch(x);
        let middle = u64::midpoint(from, to);
        view.model.overloads().any(|(on, off)| (on..off).contains(&middle))
    }
}

/// Where the parts of the trials begin, in seconds since the first Go.
fn axis(view: &View<'_>, time: &Time, buffer: &mut Buffer) {
    let (theme, y) = (view.theme, time.plot.bottom());
    let mut free = time.plot.x;
    for part in view.model.parts() {
        let x = time.x(part.start_ns);
        let label = format!("|{}s {}", part.start_ns / 1_000_000_000, part.name);
        let short = format!("|{}s", part.start_ns / 1_000_000_000);
        let next = time.x(part.end_ns).min(time.plot.right());
        let label = if x + width(&label) < next { label } else { short };
        if part.start_ns < part.end_ns && x >= free && x + width(&label) <= time.plot.right() {
            free = x + put(buffer, (x, y), width(&label), &label, theme.quiet(), theme);
        }
    }
}

/// The next round number that is not below.
fn ceiling(most: f64) -> f64 {
    let tens = (0..15).map(|power| 10_f64.powi(power));
    let mut steps = tens.flat_map(|ten| [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0].map(|step| step * ten));
    steps.find(|&step| step >= most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_at_a_round_number() {
        assert_eq!([0.0, 1.0, 11.0, 400.0, 501.0, 2e6].map(ceiling), [1.0, 1.0, 12.0, 400.0, 600.0, 2e6]);
    }

    #[test]
    fn marks_stay_within_the_plot() {
        assert_eq!([1e-9, 0.5, 0.51, 1.0, 2.0].map(|share| row(share, 4)), [1, 2, 3, 4, 4]);
    }
}
