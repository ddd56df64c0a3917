//! Rates over time, with the times of overload shaded.

use super::Plot;
use super::scale::{Scale, rate_label, round_ticks, time_ticks};
use super::svg::{Anchor, Path, Svg, marker};
use crate::compare::statistics::count;
use crate::report::series::{Measure, Point, Series};
use crate::report::stored::Band;

/// How often a line has its marker, at most.
const MARKERS: usize = 12;

const HEIGHT: f64 = 280.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 36.0;

/// What a plot shows.
#[derive(Clone, Debug)]
pub struct OverTime<'a> {
    /// A name for its file.
    pub stem: String,
    /// What it is of.
    pub title: &'a str,
    /// The lines.
    pub series: &'a Series,
    /// When overloads were on.
    pub overloads: &'a [Band],
    /// When phases changed, in seconds since Go, and what began then.
    pub phases: &'a [(f64, String)],
    /// The highest rate on the axis: the same on plots that are to be held beside each other.
    pub most: f64,
    /// The end of the time axis, likewise.
    pub end_s: f64,
    /// How many trials the lines are of.
    pub trials: usize,
    /// In pixels.
    pub width: f64,
}

/// Draws it.
pub fn draw(of: &OverTime<'_>) -> Plot {
    let label = format!("{}: operations and attempts per second over time", of.title);
    let mut svg = Svg::new(of.width, HEIGHT, &label);
    let ticks = round_ticks(of.most);
    let top = ticks.last().copied().unwrap_or(1.0);
    let x = Scale::linear((0.0, of.end_s), (LEFT, of.width - RIGHT));
    let y = Scale::linear((0.0, top), (HEIGHT - BOTTOM, TOP));
    svg.text("title", (LEFT, 16.0), Anchor::Start, of.title);
    legend(&mut svg, of.series);
    overloads(&mut svg, of, &x);
    axes(&mut svg, of, &x, &y, &ticks);
    for (measure, points) in &of.series.lines {
        if of.series.is_summed() {
            band(&mut svg, *measure, points, &x, &y);
        }
    }
    // Goodput is drawn last, so that it lies above what it is to be held against.
    for (measure, points) in of.series.lines.iter().rev() {
        line(&mut svg, *measure, points, &x, &y);
    }
    Plot { stem: of.stem.clone(), title: label, caption: caption(of), svg: svg.finish() }
}

/// What a point stands for, and whatever else has to be known.
fn caption(of: &OverTime<'_>) -> String {
    let trials = match of.trials {
        1 => String::new(),
        n => format!(" of {n} trials"),
    };
    let width = of.series.width_s;
    let point = if of.series.is_summed() {
        format!(
            "Each point stands for {width} s{trials}, up to {} intervals: the line is their mean, and the band reaches from \
             the least to the most of them.",
            of.series.most_samples
        )
    } else {
        format!("Each point is one interval of {width} s{trials}.")
    };
    let shaded = if of.overloads.is_empty() { "" } else { " Shaded: an overload was on." };
    format!("{point}{shaded} By the time things ended.")
}

/// How a measure is drawn: its colour, its dash and its marker.
const fn look(measure: Measure) -> (usize, &'static str, Option<usize>) {
    match measure {
        Measure::Goodput => (0, "", Some(0)),
        Measure::Offered => (1, "7 3", None),
        Measure::Attempts => (2, "2 3", Some(2)),
        Measure::Rejected => (3, "9 3 2 3", Some(3)),
    }
}

fn legend(svg: &mut Svg, series: &Series) {
    let mut x = LEFT;
    for (measure, _) in &series.lines {
        let (colour, dash, shape) = look(*measure);
        let y = 34.0;
        svg.path(&format!("line c{colour}"), dash, &Path::through([(x, y), (x + 26.0, y)]));
        mark(svg, colour, shape, (x + 13.0, y));
        svg.text("small", (x + 31.0, y + 4.0), Anchor::Start, measure.name());
        x += 88.0;
    }
}

fn mark(svg: &mut Svg, colour: usize, shape: Option<usize>, at: (f64, f64)) {
    if let Some(shape) = shape {
        let class = match shape {
            0 | 1 => format!("f{colour}"),
            _ => format!("mark c{colour}"),
        };
        svg.path(&class, "", &marker(shape, at));
    }
}

fn overloads(svg: &mut Svg, of: &OverTime<'_>, x: &Scale) {
    let mut told = f64::NEG_INFINITY;
    for band in of.overloads.iter().filter(|band| band.off_s > 0.0 && band.on_s < of.end_s) {
        let (from, to) = (x.place(band.on_s), x.place(band.off_s));
        svg.rect("overload", (from, TOP), (to, HEIGHT - BOTTOM));
        svg.line("edge", (from, TOP), (from, HEIGHT - BOTTOM));
        if band.off_s <= of.end_s {
            svg.line("edge", (to, TOP), (to, HEIGHT - BOTTOM));
        }
        // A name that would lie over the last one is left to the table of segments.
        if from >= told {
            let name = shortened(&band.name);
            svg.text("small", (from + 3.0, TOP + 12.0), Anchor::Start, &name);
            told = from + room(&name);
        }
    }
}

/// The width of a name at the usual width of a letter, and a little beside it.
fn room(name: &str) -> f64 {
    9.0 + 6.5 * count(name.chars().count())
}

/// A name as long as there may be room for.
fn shortened(name: &str) -> String {
    const MOST: usize = 24;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

fn axes(svg: &mut Svg, of: &OverTime<'_>, x: &Scale, y: &Scale, ticks: &[f64]) {
    let (left, right, bottom) = (LEFT, of.width - RIGHT, HEIGHT - BOTTOM);
    for &tick in ticks {
        let at = y.place(tick);
        svg.line("grid", (left, at), (right, at));
        svg.text("small quiet", (left - 6.0, at + 4.0), Anchor::End, &rate_label(tick));
    }
    for (time, label) in time_ticks(of.end_s) {
        let at = x.place(time);
        svg.line("axis", (at, bottom), (at, bottom + 4.0));
        svg.text("small quiet", (at, bottom + 17.0), Anchor::Middle, &label);
    }
    for (i, (from_s, name)) in of.phases.iter().enumerate() {
        let at = x.place(*from_s);
        if *from_s > 0.0 {
            svg.line("phase", (at, TOP - 6.0), (at, bottom));
        }
        // What hardly lasts has no room for a name.
        let end = of.phases.get(i + 1).map_or(right, |(next_s, _)| x.place(*next_s));
        if end - at > room(name) {
            svg.text("small quiet", (at + 3.0, TOP - 6.0), Anchor::Start, name);
        }
    }
    svg.line("axis", (left, bottom), (right, bottom));
}

/// Stretches of points that are known, one after the other.
fn stretches(points: &[Point]) -> impl Iterator<Item = &[Point]> {
    points.split(|point| point.samples == 0).filter(|stretch| !stretch.is_empty())
}

fn band(svg: &mut Svg, measure: Measure, points: &[Point], x: &Scale, y: &Scale) {
    let (colour, ..) = look(measure);
    for stretch in stretches(points) {
        let above = stretch.iter().map(|point| (x.place(point.at_s), y.place(point.high)));
        let below = stretch.iter().rev().map(|point| (x.place(point.at_s), y.place(point.low)));
        let mut path = Path::through(above.chain(below));
        path.close();
        svg.path(&format!("band f{colour}"), "", &path);
    }
}

fn line(svg: &mut Svg, measure: Measure, points: &[Point], x: &Scale, y: &Scale) {
    let (colour, dash, shape) = look(measure);
    let place = |point: &Point| (x.place(point.at_s), y.place(point.mean));
    for stretch in stretches(points) {
        svg.path(&format!("line c{colour}"), dash, &Path::through(stretch.iter().map(place)));
    }
    let known = points.iter().enumerate().filter(|(_, point)| point.samples > 0);
    let apart = points.len().div_ceil(MARKERS).max(1);
    for (_, point) in known.filter(|(i, _)| i % apart == apart / 2) {
        mark(svg, colour, shape, place(point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rates: &[f64], spread: f64) -> Series {
        let points = rates.iter().zip(0_u32..).map(|(&mean, i)| Point {
            at_s: f64::from(i) + 0.5,
            mean,
            low: mean - spread,
            high: mean + spread,
            samples: if mean == 0.0 { 0 } else { 1 + usize::from(spread > 0.0) },
        });
        let most_samples = if spread > 0.0 { 2 } else { 1 };
        let end_s = f64::from(u32::try_from(rates.len()).unwrap());
        Series { lines: vec![(Measure::Goodput, points.collect())], width_s: 1.0, most_samples, end_s }
    }

    fn plot(series: &Series, overloads: &[Band]) -> Plot {
        draw(&OverTime {
            stem: "s".to_owned(),
            title: "a <b>",
            series,
            overloads,
            phases: &[(0.0, "warm-up".to_owned()), (1.0, "measured".to_owned())],
            most: 100.0,
            end_s: 4.0,
            trials: 1,
            width: 474.0,
        })
    }

    #[test]
    fn lines_go_through_their_points() {
        let plot = plot(&series(&[100.0, 50.0, 100.0, 100.0], 0.0), &[]);
        // 400 pixels for four seconds, from 58 on; 182 for a hundred a second, from 244 up.
        assert!(plot.svg.contains("d=\"M108 62L208 153L308 62L408 62\""), "{}", plot.svg);
        assert!(!plot.svg.contains("class=\"band"), "{}", plot.svg);
        assert!(plot.caption.starts_with("Each point is one interval of 1 s."), "{}", plot.caption);
        assert!(plot.svg.contains("a &lt;b&gt;") && !plot.svg.contains("<b>"), "{}", plot.svg);
    }

    #[test]
    fn what_was_summed_has_a_band_and_says_so() {
        let plot = plot(&series(&[50.0, 50.0], 25.0), &[]);
        assert!(plot.svg.contains("class=\"band f0\" d=\"M108 107.5L208 107.5L208 198.5L108 198.5Z\""));
        assert!(plot.caption.contains("the band reaches from the least to the most"), "{}", plot.caption);
    }

    #[test]
    fn gaps_are_no_lines() {
        let plot = plot(&series(&[50.0, 0.0, 50.0, 50.0], 0.0), &[]);
        assert!(plot.svg.contains("d=\"M308 153L408 153\""), "{}", plot.svg);
    }

    #[test]
    fn overloads_are_shaded_where_they_were() {
        let band = |name: &str, on_s, off_s| Band { name: name.to_owned(), on_s, off_s };
        let series = series(&[50.0; 4], 0.0);
        let shaded = plot(&series, &[band("x & y", 1.0, 2.0), band("open", 3.0, f64::INFINITY)]);
        assert!(shaded.svg.contains("class=\"overload\" x=\"158\" y=\"62\" width=\"100\" height=\"182\""));
        assert!(shaded.svg.contains("class=\"overload\" x=\"358\" y=\"62\" width=\"100\" height=\"182\""));
        assert!(shaded.svg.contains(">x &amp; y<"), "{}", shaded.svg);
        assert_eq!(shaded.svg.matches("class=\"edge\"").count(), 3, "one was never taken back");
        let outside = plot(&series, &[band("late", 9.0, 10.0)]);
        assert!(!outside.svg.contains("class=\"overload\""), "{}", outside.svg);
    }
}
