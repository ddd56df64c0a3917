//! Rates over time, as few points as a picture can show. No extreme is lost: where a point stands for more than one
//! interval, it has their mean, their least and their most.

use super::stored::{Interval, StoredTrial};
use crate::compare::statistics::count;
use crate::results::facts::rounded;

/// The most points of a line.
pub const MOST_POINTS: usize = 300;

/// What a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Operations that ended well.
    Goodput,
    /// Operations that were due.
    Offered,
    /// Tries of commands on servers.
    Attempts,
    /// Those that servers rejected.
    Rejected,
}

impl Measure {
    /// In the order of the legend.
    pub const ALL: [Self; 4] = [Self::Goodput, Self::Offered, Self::Attempts, Self::Rejected];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Offered => "offered",
            Self::Attempts => "attempts",
            Self::Rejected => "rejected",
        }
    }

    fn count(self, interval: &Interval) -> Option<f64> {
        match self {
            Self::Goodput => Some(interval.ops_ok),
            // Then nothing that is due is recorded any more.
            Self::Offered => Some(interval.offered).filter(|_| interval.phase != "cooldown"),
            Self::Attempts => Some(interval.attempts),
            Self::Rejected => interval.rejected,
        }
    }
}

/// Something counted over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// In seconds since Go.
    pub from_s: f64,
    /// The same.
    pub to_s: f64,
    /// How many.
    pub count: f64,
}

impl Sample {
    fn rate(self) -> f64 {
        self.count / (self.to_s - self.from_s)
    }
}

/// A point of a line, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The middle of the time it stands for, in seconds since Go.
    pub at_s: f64,
    /// All that was counted ÷ all time.
    pub mean: f64,
    /// The least rate of an interval.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many intervals it stands for; 0 where nothing is known, which leaves a gap.
    pub samples: usize,
}

/// Lines of some trials together, and what one point of them is.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Measures that are known, with their points.
    pub lines: Vec<(Measure, Vec<Point>)>,
    /// The time that a point stands for, in seconds.
    pub width_s: f64,
    /// The most intervals that a point stands for.
    pub most_samples: usize,
    /// Where the time ends.
    pub end_s: f64,
}

impl Series {
    /// Of trials of one kind. `None` when none has an interval.
    pub fn of(trials: &[&StoredTrial]) -> Option<Self> {
        let closed = trials.iter().any(|trial| trial.trial.closed);
        // In the closed model operations start when others have ended, so that what was due says nothing about demand.
        let measures = Measure::ALL.into_iter().filter(|&m| !(closed && m == Measure::Offered));
        let intervals = || trials.iter().flat_map(|trial| &trial.intervals);
        let usual_s = usual_length(intervals())?;
        let end_s = intervals().map(|interval| interval.elapsed_s).fold(0.0, f64::max);
        let width_s = width(usual_s, end_s);
        let samples = |measure: Measure| -> Vec<Sample> {
            trials.iter().flat_map(|trial| samples(&trial.intervals, usual_s, measure)).collect()
        };
        let lines = measures.map(|measure| (measure, samples(measure)));
        let lines: Vec<(Measure, Vec<Point>)> = lines
            .filter(|(_, samples)| !samples.is_empty())
            .map(|(measure, samples)| (measure, points(&samples, width_s, end_s)))
            .collect();
        let all_samples = lines.iter().flat_map(|(_, points)| points).map(|point| point.samples);
        Some(Self { most_samples: all_samples.max().unwrap_or(0), lines, width_s, end_s })
    }

    /// The highest rate of all.
    pub fn most(&self) -> f64 {
        self.lines.iter().flat_map(|(_, points)| points).map(|point| point.high).fold(0.0, f64::max)
    }

    /// Whether a point stands for several intervals.
    pub const fn is_summed(&self) -> bool {
        self.most_samples > 1
    }
}

/// A trial's intervals. One that is less than half as long as usual, as the last often is, counts with the one before it: by
/// itself a handful of operations in a moment would look like a rate.
fn samples(intervals: &[Interval], usual_s: f64, measure: Measure) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for interval in intervals {
        let Some(count) = measure.count(interval) else { continue };
        let (from_s, to_s) = (interval.elapsed_s - interval.interval_s, interval.elapsed_s);
        match samples.last_mut() {
            Some(last) if interval.interval_s < usual_s / 2.0 && last.to_s - last.from_s < usual_s * 2.0 => {
                last.to_s = last.to_s.max(to_s);
                last.count += count;
            }
            _ if interval.interval_s > 0.0 => samples.push(Sample { from_s, to_s, count }),
            _ => {}
        }
    }
    samples
}

/// How long intervals are, to the millisecond: half of the time lies in longer ones. (Half of a short run's intervals may be
/// pieces that its phases cut.) `None` without any that has a length.
fn usual_length<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Option<f64> {
    let mut lengths: Vec<f64> = intervals.map(|interval| interval.interval_s).filter(|&s| s > 0.0).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let (mut passed, half) = (0.0, lengths.iter().sum::<f64>() / 2.0);
    let usual = lengths.into_iter().find(|length| {
        passed += length;
        passed >= half
    });
    usual.map(|usual| rounded(usual, 3).max(0.001))
}

/// The time that one point stands for: a whole number of usual intervals.
fn width(usual_s: f64, end_s: f64) -> f64 {
    usual_s * (end_s / usual_s / count(MOST_POINTS)).ceil().max(1.0)
}

/// One point for each stretch of `width_s` up to `end_s`; a sample belongs where its middle is.
pub fn points(samples: &[Sample], width_s: f64, end_s: f64) -> Vec<Point> {
    let middle = |sample: &Sample| f64::midpoint(sample.from_s, sample.to_s);
    let mut points = Vec::new();
    let mut left: Vec<Sample> = samples.to_vec();
    left.sort_unstable_by(|a, b| middle(a).total_cmp(&middle(b)));
    let mut rest = &left[..];
    while count(points.len()) * width_s < end_s && points.len() <= MOST_POINTS {
        let from_s = count(points.len()) * width_s;
        let taken = rest.partition_point(|sample| middle(sample) < from_s + width_s);
        let (ours, others) = rest.split_at(taken);
        rest = others;
        points.push(point(ours, from_s + width_s / 2.0));
    }
    points
}

fn point(samples: &[Sample], at_s: f64) -> Point {
    let (mut counted, mut seconds) = (0.0, 0.0);
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for sample in samples {
        counted += sample.count;
        seconds += sample.to_s - sample.from_s;
        low = low.min(sample.rate());
        high = high.max(sample.rate());
    }
    match samples {
        [] => Point { at_s, mean: 0.0, low: 0.0, high: 0.0, samples: 0 },
        _ => Point { at_s, mean: counted / seconds, low, high, samples: samples.len() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(rates: impl IntoIterator<Item = f64>) -> Vec<Sample> {
        let timed = rates.into_iter().enumerate();
        timed.map(|(i, rate)| Sample { from_s: count(i), to_s: count(i + 1), count: rate }).collect()
    }

    fn interval(elapsed_s: f64, interval_s: f64, ops_ok: f64) -> Interval {
        Interval { elapsed_s, interval_s, ops_ok, ..Interval::default() }
    }

    #[test]
    fn few_intervals_are_shown_as_they_are() {
        let samples = seconds([10.0, 20.0, 30.0]);
        assert_eq!(width(1.0, 3.0), 1.0);
        let points = points(&samples, 1.0, 3.0);
        let shown: Vec<_> = points.iter().map(|p| (p.at_s, p.mean, p.low, p.high, p.samples)).collect();
        assert_eq!(
            shown,
            [(0.5, 10.0, 10.0, 10.0, 1), (1.5, 20.0, 20.0, 20.0, 1), (2.5, 30.0, 30.0, 30.0, 1)]
        );
    }

    #[test]
    fn many_are_summed_and_no_extreme_is_lost() {
        // An hour at 100/s, with one second of nothing and one of 5000/s.
        let mut rates = vec![100.0; 3600];
        rates[1000] = 0.0;
        rates[2001] = 5000.0;
        let samples = seconds(rates);
        // 3600 intervals on 300 points are 12 each.
        assert_eq!(width(1.0, 3600.0), 12.0);
        let points = points(&samples, 12.0, 3600.0);
        assert_eq!(points.len(), 300);
        assert!(points.iter().all(|point| point.samples == 12));
        let dip = &points[1000 / 12];
        assert_eq!((dip.low, dip.high), (0.0, 100.0));
        assert!((dip.mean - 1100.0 / 12.0).abs() < 1e-9);
        let peak = &points[2001 / 12];
        assert_eq!((peak.low, peak.high), (100.0, 5000.0));
        assert!((peak.mean - 6100.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn several_trials_lie_over_each_other() {
        let both: Vec<Sample> = seconds([100.0, 50.0]).into_iter().chain(seconds([80.0, 70.0])).collect();
        let points = points(&both, 1.0, 2.0);
        let shown: Vec<_> = points.iter().map(|p| (p.mean, p.low, p.high, p.samples)).collect();
        assert_eq!(shown, [(90.0, 80.0, 100.0, 2), (60.0, 50.0, 70.0, 2)]);
    }

    #[test]
    fn a_time_without_intervals_is_a_gap() {
        let samples = [seconds([10.0])[0], Sample { from_s: 2.0, to_s: 3.0, count: 30.0 }];
        let known: Vec<usize> = points(&samples, 1.0, 3.0).iter().map(|point| point.samples).collect();
        assert_eq!(known, [1, 0, 1]);
    }

    #[test]
    fn a_short_end_counts_with_what_was_before_it() {
        let intervals = [interval(1.0, 1.0, 100.0), interval(2.0, 1.0, 90.0), interval(2.1, 0.1, 21.0)];
        let usual_s = usual_length(intervals.iter()).unwrap();
        assert_eq!(usual_s, 1.0);
        let samples = samples(&intervals, usual_s, Measure::Goodput);
        assert_eq!(samples.len(), 2);
        assert_eq!((samples[1].from_s, samples[1].to_s, samples[1].count), (1.0, 2.1, 111.0));
        assert_eq!(super::samples(&intervals, usual_s, Measure::Rejected), [], "nobody counted them");
    }

    #[test]
    fn a_long_interval_takes_none_of_the_usual_ones_in() {
        // A disk that was slow for a while has intervals merged.
        let intervals = [interval(1.0, 1.0, 9.0), interval(6.0, 5.0, 50.0), interval(7.0, 1.0, 10.0)];
        let samples = samples(&intervals, 1.0, Measure::Goodput);
        assert_eq!(samples.iter().map(|sample| sample.count).collect::<Vec<_>>(), [9.0, 50.0, 10.0]);
    }

    #[test]
    fn what_was_due_after_the_load_is_not_known() {
        let late = Interval { phase: "cooldown".to_owned(), offered: 0.0, ..interval(1.0, 1.0, 5.0) };
        assert_eq!(samples(&[late], 1.0, Measure::Offered), []);
    }

    #[test]
    fn pieces_that_phases_cut_are_not_usual() {
        let lengths = [0.5, 0.5, 1.0, 1.0, 1.0, 0.5, 0.5];
        assert_eq!(usual_length(lengths.map(|length| interval(9.0, length, 1.0)).iter()), Some(1.0));
    }

    #[test]
    fn intervals_of_no_length_are_no_rate() {
        let still = [interval(1.0, 0.0, 5.0)];
        assert_eq!(samples(&still, 1.0, Measure::Goodput), []);
        assert_eq!(usual_length(still.iter()), None);
    }
}
