//! How many retries operations took: a bar for each number, and one for those that gave up.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::{panel, put, put_right, width};
use crate::report::human::{micros, percent};
use crate::stats::{Latencies, OpStats, ratio};
use crate::tui::theme::Theme;

/// Rows that it takes at least: the title, none, some, gave up.
pub const LEAST: u16 = 4;

/// Rows that it has any use for: at least as many as the driver's default of two retries takes.
pub fn most(view: &View<'_>) -> u16 {
    let stats = view.model.part.as_ref().map(|part| part.of(view.app.whose));
    let most = stats.and_then(|stats| stats.by_retries.keys().last().copied()).unwrap_or(0);
    u16::try_from(most.max(2)).unwrap_or(u16::MAX).min(MOST) + 3
}

/// Numbers of retries that are told apart at most, however much room there is.
const MOST: u16 = 16;

/// Cells of what names a bar.
const NAME: u16 = 8;
/// Cells of the count and the share.
const COUNT: u16 = 17;
/// Cells of the median.
const MEDIAN: u16 = 8;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let title = view.titled("retries per operation");
    let inner = panel(buffer, area, &title, theme);
    let Some(window) = &view.model.part else { return };
    let stats = window.of(view.app.whose);
    if view.model.figures(view.app.whose, stats).retries().is_none() {
        let why = "not known: attempts are counted lightly, and some operations send several commands";
        put(buffer, (inner.x, inner.y), inner.width, why, theme.quiet(), theme);
        return;
    }
    let bars = bars(stats, usize::from(inner.height.saturating_sub(1)));
    // What the last two numbers are, where the title leaves room.
    let heads = " share     p50";
    if median_room(area.width) > 0 && width(&title) + width(heads) + 6 <= area.width {
        put_right(buffer, (area.right(), area.y), area.width, heads, theme.quiet(), theme);
    }
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let all = bars.iter().map(|bar| bar.count).sum();
    for (bar, y) in bars.iter().zip(inner.y..inner.bottom()) {
        draw_bar(bar, most, all, Rect { y, height: 1, ..inner }, buffer, theme);
    }
}

/// Cells for the medians: none where the bars need them.
fn median_room(width: u16) -> u16 {
    if width >= 2 * (NAME + COUNT) { MEDIAN } else { 0 }
}

/// Operations that took as many retries, and did not give up; or those that did.
struct Bar {
    name: String,
    count: u64,
    /// The median latency of the successful ones.
    median_us: Option<u64>,
    gave_up: bool,
}

/// A bar for each of the numbers from 0 on that find room (the last one stands for all that are more), and one for those
/// that gave up. Together they are all operations that ended.
fn bars(stats: &OpStats, room: usize) -> Vec<Bar> {
    let most = stats.by_retries.keys().last().copied().unwrap_or(0);
    let last = u32::try_from(room.clamp(1, usize::from(MOST)) - 1).unwrap_or(0);
    let bar = |from: u32, to: u32| {
        let mut latency = Latencies::default();
        let mut count = 0;
        for retries in stats.by_retries.range(from..=to).map(|(_, retries)| retries) {
            latency.merge(&retries.latency);
            count += retries.ok + retries.failed - retries.gave_up;
        }
        let name = if from < to && to > last { format!("{from}+") } else { from.to_string() };
        Bar { name, count, median_us: latency.percentile_us(0.5), gave_up: false }
    };
    let mut bars: Vec<Bar> = (0..last).map(|retries| bar(retries, retries)).collect();
    bars.push(bar(last, most.max(last)));
    bars.push(Bar { name: "gave up".to_owned(), count: stats.gave_up, median_us: None, gave_up: true });
    bars
}

fn draw_bar(bar: &Bar, most: u64, all: u64, line: Rect, buffer: &mut Buffer, theme: &Theme) {
    let style = match bar {
        Bar { gave_up: true, .. } => theme.bad(),
        Bar { name, .. } if name == "0" => theme.good(),
        _ => theme.again(),
    };
    put_right(buffer, (line.x + NAME - 1, line.y), NAME, &bar.name, Style::new(), theme);
    let median = median_room(line.width);
    let room = line.width.saturating_sub(NAME + COUNT + median);
    let share = ratio(bar.count, most).unwrap_or(0.0);
    let picture = if bar.gave_up {
        theme.glyphs().other.repeat(usize::from(cells(share, room)))
    } else {
        across(share, room, theme.glyphs().right)
    };
    put(buffer, (line.x + NAME, line.y), room, &picture, style, theme);
    let right = line.right().saturating_sub(median);
    let text = format!("{} {:>6}", bar.count, percent(ratio(bar.count, all)));
    put_right(buffer, (right, line.y), COUNT, &text, Style::new(), theme);
    if median > 0 && !bar.gave_up {
        put_right(buffer, (line.right(), line.y), median, &micros(bar.median_us), theme.quiet(), theme);
    }
}

/// Whole cells of a share of the room; something is never nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the room")]
fn cells(share: f64, room: u16) -> u16 {
    let cells = (share * f64::from(room)).round() as u16;
    if share > 0.0 { cells.max(1).min(room) } else { 0 }
}

/// A bar to the right, its end as fine as the characters allow; something is never nothing.
fn across(share: f64, room: u16, parts: &[&str]) -> String {
    let (Ok(fine), Some(whole)) = (u16::try_from(parts.len()), parts.last()) else { return String::new() };
    let eighths = cells(share, room * fine);
    let mut text = whole.repeat(usize::from(eighths / fine));
    if let Some(part) = usize::from(eighths % fine).checked_sub(1) {
        text.push_str(parts[part]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> OpStats {
        let mut stats = OpStats { gave_up: 4, ..OpStats::default() };
        for (retries, ok, failed, gave_up) in [(0, 90, 2, 0), (1, 8, 0, 0), (2, 3, 4, 4), (5, 1, 0, 0)] {
            let bucket = stats.with_retries(retries);
            (bucket.ok, bucket.failed, bucket.gave_up) = (ok, failed, gave_up);
        }
        stats
    }

    fn shown(stats: &OpStats, room: usize) -> Vec<(String, u64)> {
        bars(stats, room).into_iter().map(|bar| (bar.name, bar.count)).collect()
    }

    #[test]
    fn bars_are_all_that_ended() {
        let expected = [("0", 92), ("1", 8), ("2+", 4), ("gave up", 4)];
        assert_eq!(shown(&stats(), 3), expected.map(|(name, count)| (name.to_owned(), count)));
        let sum = |room| shown(&stats(), room).iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!([1, 2, 4, 6, 100].map(sum), [108; 5], "however few there is room for");
        assert_eq!(shown(&OpStats::default(), 1), [("0".to_owned(), 0), ("gave up".to_owned(), 0)]);
    }

    #[test]
    fn something_is_never_nothing() {
        assert_eq!(across(1e-9, 10, &["."]), ".");
        assert_eq!(across(0.0, 10, &["."]), "");
        assert_eq!(across(0.5, 2, &["a", "b"]), "b");
        assert_eq!(across(0.25, 2, &["a", "b"]), "a");
        assert_eq!(across(1.0, 3, &["a", "b"]), "bbb");
    }
}
