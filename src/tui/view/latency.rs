//! How latencies are spread, on a logarithmic axis: operations that succeeded at once above those that had to be retried,
//! each drawn to its own scale, because there are usually far fewer of the latter.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::bars::{Place, column};
use super::text::{panel, put, put_right, width};
use crate::report::human::{micros, time};
use crate::results::figures::Quantiles;
use crate::stats::Latencies;
use crate::tui::theme::Theme;

/// Rows that it takes at least: the title, a row for each kind, marks, the axis.
pub const LEAST: u16 = 5;

/// Cells of what names a strip.
const NAME: u16 = 10;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let inner = panel(buffer, area, &view.titled("latency (successful)"), theme);
    let Some(window) = &view.model.part else { return };
    let stats = window.of(view.app.whose);
    let Some((least, most)) = stats.latency.range_us() else {
        put(buffer, (inner.x, inner.y), inner.width, "none yet", theme.quiet(), theme);
        return;
    };
    let plot = Rect { x: inner.x + NAME, width: inner.width.saturating_sub(NAME), ..inner };
    if plot.width < 2 || inner.height < LEAST - 1 {
        return;
    }
    let axis = Axis::over(least, most, plot);
    let strips = inner.height - 2;
    let upper = Rect { height: strips.div_ceil(2), ..plot };
    let lower = Rect { y: upper.bottom(), height: strips / 2, ..plot };
    let (first, retried) = stats.latency_by_first_try();
    let glyphs = theme.glyphs();
    strip(buffer, ("first try", &first), upper, &axis, (glyphs.up, theme.good()), theme);
    strip(buffer, ("retried", &retried), lower, &axis, (&[glyphs.other], theme.again()), theme);
    axis.marks(buffer, lower.bottom(), &Quantiles::of(&stats.latency), theme);
    axis.labels(buffer, lower.bottom() + 1, theme);
}

/// One kind of operations: its name and number at the left, a bar in each column.
fn strip(
    buffer: &mut Buffer,
    (name, times): (&str, &Latencies),
    area: Rect,
    axis: &Axis,
    (parts, style): (&[&str], Style),
    theme: &Theme,
) {
    put(buffer, (axis.plot.x - NAME, area.y), NAME, name, theme.quiet(), theme);
    if area.height > 1 {
        put(buffer, (axis.plot.x - NAME, area.y + 1), NAME, &times.count().to_string(), theme.quiet(), theme);
    }
    let counts = times.spread(&axis.bounds());
    let most = counts.iter().copied().max().unwrap_or(0);
    for (x, count) in (area.x..area.right()).zip(counts) {
        let share = crate::stats::ratio(count, most).unwrap_or(0.0);
        column(buffer, Place { x, bottom: area.bottom(), height: area.height }, share, parts, style);
    }
}

/// Whole decades of time over the columns of the plot.
struct Axis {
    plot: Rect,
    /// Powers of ten, in microseconds.
    from: i32,
    to: i32,
}

impl Axis {
    fn over(least_us: u64, most_us: u64, plot: Rect) -> Self {
        let power = |us: u64| i32::try_from(us.max(1).ilog10()).unwrap_or(0);
        let (from, to) = (power(least_us), power(most_us) + 1);
        Self { plot, from, to }
    }

    /// Where each column begins and the last one ends, in microseconds.
    fn bounds(&self) -> Vec<f64> {
        let decades = f64::from(self.to - self.from) / f64::from(self.plot.width);
        let exponent = |column: u16| f64::from(self.from) + decades * f64::from(column);
        (0..=self.plot.width).map(|column| 10_f64.powf(exponent(column))).collect()
    }

    /// The column of a time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held within the plot")]
    fn x(&self, us: f64) -> u16 {
        let share = (us.max(1.0).log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        let column = (share * f64::from(self.plot.width)).clamp(0.0, f64::from(self.plot.width - 1));
        self.plot.x + column as u16
    }

    /// `^p50 3.2ms` under each percentile that is known; one that finds no room is left out.
    fn marks(&self, buffer: &mut Buffer, y: u16, quantiles: &Quantiles, theme: &Theme) {
        let named = [
            ("p50", quantiles.p50),
            ("p90", quantiles.p90),
            ("p99", quantiles.p99),
            ("p99.9", quantiles.p99_9),
        ];
        let mut free = self.plot.x;
        for (name, value) in named {
            let Some(us) = value else { continue };
            #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
            let x = self.x(us as f64);
            let text = format!("^{name} {}", micros(value));
            let wide = width(&text);
            if x >= free && x + wide <= self.plot.right() {
                free = x + wide + 1;
                put(buffer, (x, y), wide, &text, theme.strong(), theme);
            } else if x + 1 >= free + wide && x < self.plot.right() {
                // No room to the right of the mark: the words stand before it.
                let text = format!("{name} {}^", micros(value));
                put_right(buffer, (x + 1, y), wide, &text, theme.strong(), theme);
                free = x + 2;
            }
        }
    }

    fn labels(&self, buffer: &mut Buffer, y: u16, theme: &Theme) {
        for power in self.from..=self.to {
            let us = 10_f64.powi(power);
            let label = round_time(us);
            let x = self.x(us);
            if power == self.to {
                put_right(buffer, (self.plot.right(), y), width(&label), &label, theme.quiet(), theme);
            } else if x + width(&label) < self.plot.right().saturating_sub(5) || power == self.from {
                put(buffer, (x, y), width(&label), &label, theme.quiet(), theme);
            }
        }
    }
}

/// A power of ten without digits that say nothing.
fn round_time(us: f64) -> String {
    time(us).replace(".00", "").replace(".0", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_whole_decades() {
        let axis = Axis::over(850, 61_000, Rect::new(10, 0, 30, 5));
        assert_eq!((axis.from, axis.to), (2, 5));
        let bounds = axis.bounds();
        assert_eq!(bounds.len(), 31);
        assert!((bounds[0] - 100.0).abs() < 1e-6 && (bounds[10] - 1000.0).abs() < 1e-6);
        assert_eq!([100.0, 1000.0, 99_999.0, 1e9].map(|us| axis.x(us)), [10, 20, 39, 39]);
        assert_eq!([1e2, 1e3, 1e5, 1e7].map(round_time), ["100us", "1ms", "100ms", "10s"]);
    }

    #[test]
    fn equal_times_have_a_decade_to_lie_in() {
        let axis = Axis::over(1000, 1000, Rect::new(0, 0, 10, 5));
        assert_eq!((axis.from, axis.to), (3, 4));
    }
}
