//! A comparison at a glance: the ratio of each metric to the base, with its interval.

use super::Plot;
use super::scale::{Scale, trimmed};
use super::svg::{Anchor, Path, Svg, marker};
use crate::compare::row::Row;
use crate::compare::statistics::count;
use crate::compare::verdict::Verdict;

const LEFT: f64 = 104.0;
const RIGHT: f64 = 176.0;
const TOP: f64 = 34.0;
const ROW: f64 = 22.0;
const BOTTOM: f64 = 34.0;

/// How far to each side of equality the axis goes: to these, or further, but never beyond the last.
const REACHES: [f64; 6] = [1.25, 1.5, 2.0, 4.0, 10.0, 100.0];

/// Draws the rows that have a ratio. `None` when none has.
pub fn draw(stem: String, title: &str, rows: &[Row], width: f64) -> Option<Plot> {
    let rows: Vec<(&Row, f64)> =
        rows.iter().filter_map(|row| Some((row, row.ratio.filter(|ratio| *ratio > 0.0)?))).collect();
    if rows.is_empty() {
        return None;
    }
    let label = format!("{title}: ratios to the base");
    let bottom = TOP + ROW * count(rows.len());
    let mut svg = Svg::new(width, bottom + BOTTOM, &label);
    svg.text("title", (12.0, 16.0), Anchor::Start, title);
    let reach = reach(&rows);
    let x = Scale::logarithmic((1.0 / reach, reach), (LEFT, width - RIGHT));
    for value in [1.0 / reach, 1.0, reach] {
        let at = x.place(value);
        svg.line(if value == 1.0 { "axis" } else { "grid" }, (at, TOP), (at, bottom));
        let label = if value == 1.0 { "equal".to_owned() } else { format!("× {}", trimmed(value)) };
        svg.text("small quiet", (at, bottom + 16.0), Anchor::Middle, &label);
    }
    for (i, (row, ratio)) in rows.iter().enumerate() {
        let y = TOP + ROW * (count(i) + 0.5);
        let (colour, shape, words) = look(row.verdict);
        svg.text("small", (LEFT - 8.0, y + 4.0), Anchor::End, row.metric.label());
        if let Some((low, high, _)) = row.interval {
            svg.path(&format!("line c{colour}"), "", &Path::through([(x.place(low), y), (x.place(high), y)]));
        }
        let class = if shape == 0 { format!("f{colour}") } else { format!("mark c{colour}") };
        svg.path(&class, "", &marker(shape, (x.place(*ratio), y)));
        svg.text("small", (width - RIGHT + 12.0, y + 4.0), Anchor::Start, &words);
    }
    let caption = "The median over trials ÷ that of the base, on a logarithmic scale, with a 95 % interval where there is one; \
                   what lies beyond the axis is at its edge."
        .to_owned();
    Some(Plot { stem, title: label, caption, svg: svg.finish() })
}

/// Colour, shape and words of a verdict.
fn look(verdict: Verdict) -> (usize, usize, String) {
    let (colour, shape, sign) = match verdict {
        Verdict::Better => (0, 0, "✓ "),
        Verdict::Worse => (2, 0, "✗ "),
        Verdict::NoDifference => (1, 2, ""),
        Verdict::NotEnoughData | Verdict::NoVerdict => (1, 3, ""),
    };
    (colour, shape, format!("{sign}{}", verdict.words()))
}

fn reach(rows: &[(&Row, f64)]) -> f64 {
    let ends = rows.iter().flat_map(|(row, ratio)| {
        let interval = row.interval.map(|(low, high, _)| [low, high]).into_iter().flatten();
        interval.chain([*ratio]).filter(|value| value.is_finite() && *value > 0.0)
    });
    let furthest = ends.map(|value| value.max(1.0 / value)).fold(1.0, f64::max);
    REACHES.into_iter().find(|reach| *reach >= furthest).unwrap_or(REACHES[REACHES.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::row::test_rows;
    use crate::metric::Metric;

    fn rows(new: [f64; 4]) -> Vec<Row> {
        test_rows(&[Metric::GoodputOpsPerS], &[vec![100.0, 101.0, 102.0, 103.0]], &[new.to_vec()], 1000)
    }

    #[test]
    fn verdicts_are_told_in_words_and_shapes() {
        let plot = draw("s".to_owned(), "a", &rows([80.0, 81.0, 82.0, 83.0]), 600.0).unwrap();
        assert!(plot.svg.contains(">✗ worse<") && plot.svg.contains(">goodput<"), "{}", plot.svg);
        // 0.803 and its interval lie within × 1.5 of equality, which is in the middle of 320 pixels.
        assert!(plot.svg.contains("× 1.5") && plot.svg.contains("× 0.667"), "{}", plot.svg);
        assert!(plot.svg.contains("class=\"axis\" x1=\"264\""), "{}", plot.svg);
    }

    #[test]
    fn what_has_no_ratio_is_left_to_the_table() {
        let rows = test_rows(&[Metric::ErrorRate], &[vec![0.0; 4]], &[vec![0.5; 4]], 100);
        assert_eq!(draw("s".to_owned(), "a", &rows, 600.0), None);
        assert_eq!(draw("s".to_owned(), "a", &[], 600.0), None);
    }
}
