//! Latencies by percentile. The scale of the percentiles is that of what is left beyond them, 1 ÷ (1 − p), so that p90, p99
//! and p99.9 are as far apart as they are rare.

use hdrhistogram::Histogram;

use super::scale::{Scale, log_ticks, time_label};
use super::svg::{Anchor, Path, Svg, marker};
use super::{COLOURS, Plot, dash};
use crate::compare::statistics::count;

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;

/// A percentile is only told when so many samples lie beyond it, as in the tables.
const SAMPLES_BEYOND: f64 = 10.0;

/// Points for each factor of ten of the scale.
const POINTS_PER_DECADE: f64 = 40.0;

/// A line: latencies at percentiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// Whose.
    pub name: String,
    /// 1 ÷ (1 − p) and microseconds, ascending.
    pub points: Vec<(f64, f64)>,
    /// Whether it is of a whole distribution; else of the few percentiles that tables have.
    pub whole: bool,
}

impl Spectrum {
    /// Of a distribution in microseconds; `None` when that is too small for any percentile.
    pub fn of(name: &str, histogram: &Histogram<u64>) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "counts and times stay far below 2^53")]
        let number = |value: u64| value as f64;
        let most = number(histogram.len()) / SAMPLES_BEYOND;
        let steps = (most.log10() * POINTS_PER_DECADE).floor();
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut step = 0.0;
        while step <= steps {
            let left = 10_f64.powf(step / POINTS_PER_DECADE);
            points.push((left, number(histogram.value_at_quantile(1.0 - 1.0 / left))));
            step += 1.0;
        }
        (points.len() > 1).then(|| Self { name: name.to_owned(), points, whole: true })
    }

    /// Of single percentiles (0 to 1) and their times, where they are known.
    pub fn of_percentiles(name: &str, known: &[(f64, Option<f64>)]) -> Option<Self> {
        let points = known.iter().filter_map(|&(p, us)| Some((1.0 / (1.0 - p), us?)));
        let points: Vec<(f64, f64)> = points.collect();
        (!points.is_empty()).then(|| Self { name: name.to_owned(), points, whole: false })
    }
}

/// The shortest and the longest latency of some lines, in microseconds; `None` when there are none.
pub fn range<'a>(lines: impl IntoIterator<Item = &'a Spectrum>) -> Option<(f64, f64)> {
    let latencies = lines.into_iter().flat_map(|line| &line.points).map(|(_, us)| us.max(1.0));
    latencies.fold(None, |range, us| match range {
        None => Some((us, us)),
        Some((least, most)) => Some((us.min(least), us.max(most))),
    })
}

/// Draws some lines over each other, on an axis of this range, which is the same on plots that are to be held beside each
/// other.
pub fn draw(stem: String, title: &str, lines: &[Spectrum], range: (f64, f64), width: f64) -> Plot {
    let lefts = lines.iter().flat_map(|line| &line.points).map(|(left, _)| *left);
    let end = lefts.fold(10.0, f64::max);
    let label = format!("{title}: latency by percentile");
    let height = HEIGHT + legend_height(lines.len());
    let mut svg = Svg::new(width, height, &label);
    svg.text("title", (12.0, 16.0), Anchor::Start, title);
    let x = Scale::logarithmic((1.0, end), (LEFT, width - RIGHT));
    let (bottom, right) = (HEIGHT - BOTTOM, width - RIGHT);
    // A little room above and below, and never a range of nothing.
    let (least, most) = (range.0 / 1.15, range.1 * 1.15);
    let y = Scale::logarithmic((least, most), (bottom, TOP));
    for us in log_ticks(least, most) {
        let at = y.place(us);
        svg.line("grid", (LEFT, at), (right, at));
        svg.text("small quiet", (LEFT - 6.0, at + 4.0), Anchor::End, &time_label(us));
    }
    for (left, label) in percentile_ticks(end) {
        let at = x.place(left);
        svg.line("grid", (at, TOP), (at, bottom));
        svg.text("small quiet", (at, bottom + 16.0), Anchor::Middle, &label);
    }
    svg.line("axis", (LEFT, bottom), (right, bottom));
    for (i, line) in lines.iter().enumerate() {
        let place = |&(left, us): &(f64, f64)| (x.place(left), y.place(us));
        svg.path(&format!("line c{}", i % COLOURS), dash(i), &Path::through(line.points.iter().map(place)));
        // Marks of neighbours are not above each other, where lines run together.
        let apart = if line.whole { (line.points.len() / 5).max(1) } else { 1 };
        let offset = (i * 7) % apart;
        for point in line.points.iter().skip(offset).step_by(apart) {
            svg.path(&format!("mark c{}", i % COLOURS), "", &marker(i, place(point)));
        }
        legend(&mut svg, i, &line.name, width);
    }
    Plot { stem, title: label, caption: caption(lines), svg: svg.finish() }
}

fn caption(lines: &[Spectrum]) -> String {
    let source = match (lines.iter().any(|line| line.whole), lines.iter().all(|line| line.whole)) {
        (_, true) => "From whole distributions, those of several trials added up.",
        (false, _) => {
            "There is no distribution, so lines join the few percentiles that the tables have: medians over trials."
        }
        _ => {
            "From whole distributions, but where there is none, lines join the few percentiles that the tables have: medians \
             over trials."
        }
    };
    format!(
        "{source} Successful operations, from when they were due; a line ends where fewer than ten samples lie beyond."
    )
}

/// The percentiles on the axis.
fn percentile_ticks(end: f64) -> Vec<(f64, String)> {
    let mut ticks = vec![(1.0, "p0".to_owned()), (2.0, "p50".to_owned())];
    let mut left = 10.0;
    let mut nines = 1;
    while left <= end * (1.0 + 1e-9) && nines <= 9 {
        let label = match nines {
            1 => "p90".to_owned(),
            2 => "p99".to_owned(),
            n => format!("p99.{}", "9".repeat(n - 2)),
        };
        ticks.push((left, label));
        left *= 10.0;
        nines += 1;
    }
    ticks
}

/// Legend entries stand in two columns.
fn legend_height(lines: usize) -> f64 {
    18.0 * count(lines.div_ceil(2)) + 6.0
}

fn legend(svg: &mut Svg, i: usize, name: &str, width: f64) {
    let column = (width - LEFT - RIGHT) / 2.0;
    let (x, y) = (LEFT + column * count(i % 2), HEIGHT + 18.0 * count(i / 2));
    svg.path(&format!("line c{}", i % COLOURS), dash(i), &Path::through([(x, y), (x + 26.0, y)]));
    svg.path(&format!("mark c{}", i % COLOURS), "", &marker(i, (x + 13.0, y)));
    svg.text("small", (x + 32.0, y + 4.0), Anchor::Start, &fitting(name, column - 34.0));
}

/// As much of a name as there is room for, at the usual width of a letter.
fn fitting(name: &str, room: f64) -> String {
    let is_too_long = |letters: usize| count(letters) * 6.2 > room;
    if !is_too_long(name.chars().count()) {
        return name.to_owned();
    }
    let mut short = String::new();
    for (i, c) in name.chars().enumerate() {
        if is_too_long(i + 2) {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 times from 1 to 1000 us.
    fn thousand() -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1000).for_each(|us| histogram.record(us).unwrap());
        histogram
    }

    #[test]
    fn a_line_ends_where_ten_samples_lie_beyond() {
        let spectrum = Spectrum::of("a", &thousand()).unwrap();
        // 1000 samples tell p99, which is 1 ÷ (1 − p) = 100, and nothing beyond.
        let (left, us) = *spectrum.points.last().unwrap();
        assert!((left - 100.0).abs() < 1e-6, "{left}");
        assert!((us - 990.0).abs() <= 1.0, "{us}");
        let median =
            spectrum.points.iter().min_by(|a, b| (a.0 - 2.0).abs().total_cmp(&(b.0 - 2.0).abs())).unwrap();
        assert!((median.1 - 1000.0 * (1.0 - 1.0 / median.0)).abs() <= 1.0, "{median:?}");
        assert_eq!(spectrum.points[0], (1.0, 1.0));
    }

    #[test]
    fn little_has_no_percentiles() {
        let mut few = Histogram::new(3).unwrap();
        (1..=9).for_each(|us| few.record(us).unwrap());
        assert_eq!(Spectrum::of("a", &few), None);
        assert_eq!(Spectrum::of("a", &Histogram::new(3).unwrap()), None);
    }

    #[test]
    fn percentiles_of_tables_do_as_well() {
        let known = [(0.5, Some(100.0)), (0.9, Some(200.0)), (0.99, None)];
        let spectrum = Spectrum::of_percentiles("a", &known).unwrap();
        assert_eq!(spectrum.points.len(), 2);
        assert!((spectrum.points[1].0 - 10.0).abs() < 1e-9);
        let plot = draw("s".to_owned(), "t", &[spectrum], (100.0, 200.0), 500.0);
        assert!(plot.caption.starts_with("There is no distribution"), "{}", plot.caption);
        assert_eq!(Spectrum::of_percentiles("a", &[(0.5, None)]), None);
    }

    #[test]
    fn the_axis_has_nines() {
        let labels: Vec<String> = percentile_ticks(1e4).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["p0", "p50", "p90", "p99", "p99.9", "p99.99"]);
    }

    #[test]
    fn names_are_cut_to_their_room_and_escaped() {
        assert_eq!(fitting("short", 100.0), "short");
        assert_eq!(fitting("abcdefghijklmnop", 62.0), "abcdefghi…");
        let lines = [Spectrum { name: "<b>".to_owned(), points: vec![(1.0, 5.0), (2.0, 5.0)], whole: true }];
        assert_eq!((range(&lines), range(&[])), (Some((5.0, 5.0)), None));
        let plot = draw("s".to_owned(), "t", &lines, (5.0, 5.0), 500.0);
        assert!(plot.svg.contains("&lt;b&gt;") && !plot.svg.contains("<b>") && !plot.svg.contains("NaN"));
    }
}
