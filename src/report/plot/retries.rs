//! How many operations took how many retries, and whether that saved them.

use super::Plot;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use crate::compare::statistics::count;
use crate::report::human::percent;
use crate::stats::ratio;

const LEFT: f64 = 78.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 52.0;
const ROW: f64 = 24.0;

/// Operations that took so many retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// How many; of the last bar, so many or more.
    pub retries: u32,
    /// Operations that ended well.
    pub ok: u64,
    /// And those that did not.
    pub failed: u64,
}

/// From this number of retries on they share a bar.
pub const MOST_RETRIES: u32 = 10;

/// Operations by their number of retries, none left out; what has many shares the last bar.
pub fn bars(counts: impl IntoIterator<Item = Bar>) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for count in counts {
        let retries = count.retries.min(MOST_RETRIES);
        while bars.len() <= retries as usize {
            let next = u32::try_from(bars.len()).unwrap_or(MOST_RETRIES);
            bars.push(Bar { retries: next, ..Bar::default() });
        }
        let bar = &mut bars[retries as usize];
        bar.ok += count.ok;
        bar.failed += count.failed;
    }
    bars
}

/// Draws them. `width` is in pixels.
pub fn draw(stem: String, title: &str, bars: &[Bar], width: f64) -> Plot {
    let label = format!("{title}: operations by their number of retries");
    let height = TOP + ROW * count(bars.len()) + 8.0;
    let mut svg = Svg::new(width, height, &label);
    let all: u64 = bars.iter().map(|bar| bar.ok + bar.failed).sum();
    let share = |n: u64| ratio(n, all).unwrap_or(0.0);
    let x = Scale::linear((0.0, 1.0), (LEFT, width - RIGHT));
    svg.text("title", (12.0, 16.0), Anchor::Start, title);
    legend(&mut svg);
    for (i, bar) in bars.iter().enumerate() {
        let (top, bottom) = (TOP + ROW * count(i) + 3.0, TOP + ROW * count(i + 1) - 3.0);
        let middle = f64::midpoint(top, bottom) + 4.0;
        svg.text("small quiet", (LEFT - 8.0, middle), Anchor::End, &name(bar.retries));
        let (ok, both) = (x.place(share(bar.ok)), x.place(share(bar.ok + bar.failed)));
        svg.rect("f0", (LEFT, top), (ok, bottom));
        if bar.failed > 0 {
            // As a sliver it is still seen.
            svg.rect("hollow f2 c2", (ok, top), (both.max(ok + 1.5), bottom));
        }
        let failed = if bar.failed > 0 { format!(", {} failed", bar.failed) } else { String::new() };
        let text = format!("{} ({}){failed}", bar.ok + bar.failed, percent(Some(share(bar.ok + bar.failed))));
        svg.text("small", (both + 8.0, middle), Anchor::Start, &text);
    }
    svg.line("axis", (LEFT, TOP), (LEFT, TOP + ROW * count(bars.len())));
    let caption = "All operations of the measured time that ended, by how many attempts beyond one a command they took. \
                   Filled: they ended well; hollow: they failed all the same."
        .to_owned();
    Plot { stem, title: label, caption, svg: svg.finish() }
}

fn name(retries: u32) -> String {
    match retries {
        1 => "1 retry".to_owned(),
        MOST_RETRIES => format!("{MOST_RETRIES} and more"),
        n => format!("{n} retries"),
    }
}

fn legend(svg: &mut Svg) {
    svg.rect("f0", (LEFT, 28.0), (LEFT + 14.0, 40.0));
    svg.text("small", (LEFT + 20.0, 38.0), Anchor::Start, "ended well");
    svg.rect("hollow f2 c2", (LEFT + 100.0, 28.0), (LEFT + 114.0, 40.0));
    svg.text("small", (LEFT + 120.0, 38.0), Anchor::Start, "failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(retries: u32, ok: u64, failed: u64) -> Bar {
        Bar { retries, ok, failed }
    }

    #[test]
    fn numbers_of_retries_add_up_over_trials() {
        let counts = [bar(0, 90, 0), bar(2, 5, 1), bar(0, 10, 0), bar(12, 1, 0), bar(400, 0, 3)];
        let bars = bars(counts);
        assert_eq!(bars.len(), 11);
        assert_eq!(bars[..3], [bar(0, 100, 0), bar(1, 0, 0), bar(2, 5, 1)]);
        assert_eq!(bars[10], bar(10, 1, 3));
        assert_eq!(super::bars([]), []);
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        // 272 pixels for all.
        let plot = draw("s".to_owned(), "a", &[bar(0, 80, 0), bar(1, 10, 10)], 540.0);
        assert!(plot.svg.contains("class=\"f0\" x=\"78\" y=\"55\" width=\"217.6\""), "{}", plot.svg);
        assert!(plot.svg.contains("class=\"f0\" x=\"78\" y=\"79\" width=\"27.2\""), "{}", plot.svg);
        assert!(
            plot.svg.contains("class=\"hollow f2 c2\" x=\"105.2\" y=\"79\" width=\"27.2\""),
            "{}",
            plot.svg
        );
        assert!(plot.svg.contains(">80 (80.0%)<") && plot.svg.contains(">20 (20.0%), 10 failed<"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let plot = draw("s".to_owned(), "a", &[], 500.0);
        assert!(!plot.svg.contains("NaN") && !plot.svg.contains("class=\"f0\" x=\"78\" y=\"55\""));
    }
}
