//! When operations are due: a pure, seeded iterator that never looks at a clock.
//!
//! Arrivals are laid out in expected counts and mapped to time through the inverse of the cumulative rate
//! Λ(t) = ∫ rate. Equal steps in Λ make even arrivals, exponential steps of mean 1 make a Poisson process of that rate
//! (time-change theorem), and ramps, steps and phase changes need no special case: no burst, no drift.

use crate::document::{Random, Stream};
use crate::plan::Shard;
use crate::plan::load::{Arrivals, Stage};
use crate::units::Span;

/// One operation that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The operation's number: from 0, unless another trial went before on the same data.
    pub n: u64,
    /// Its intended start, in nanoseconds since Go.
    pub at_ns: u64,
}

/// All operations of an open load, in order, without end: after the last stage the last rate goes on.
#[derive(Clone, Debug)]
pub struct Schedule {
    pieces: Vec<Piece>,
    current: usize,
    arrivals: Arrivals,
    random: Random,
    /// Expected arrivals before the next one: its place in Λ.
    position: f64,
    n: u64,
}

/// A stretch of time in which the rate changes in a straight line.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start_s: f64,
    /// Λ at its start.
    before: f64,
    /// Λ at its end; infinite for the last.
    after: f64,
    rate: f64,
    /// Change of rate per second.
    slope: f64,
}

impl Schedule {
    /// Warm-up runs at the first stage's starting rate, cool-down at the last stage's final one.
    pub fn new(warmup: Span, stages: &[Stage], arrivals: Arrivals, seed: u64) -> Self {
        let first = stages.first().map(|s| s.from.get());
        let last = stages.last().map(|s| s.to.get());
        let mut pieces = Vec::with_capacity(stages.len() + 2);
        let (mut start_s, mut before) = (0.0, 0.0);
        let lengths = stages.iter().map(|s| (s.length.duration().as_secs_f64(), s.from.get(), s.to.get()));
        let warmup = first.map(|rate| (warmup.duration().as_secs_f64(), rate, rate));
        for (length, from, to) in warmup.into_iter().chain(lengths).filter(|&(length, ..)| length > 0.0) {
            let after = before + length * (from + to) / 2.0;
            pieces.push(Piece { start_s, before, after, rate: from, slope: (to - from) / length });
            start_s += length;
            before = after;
        }
        let rate = last.unwrap_or(1.0);
        pieces.push(Piece { start_s, before, after: f64::INFINITY, rate, slope: 0.0 });
        let mut schedule = Self {
            pieces,
            current: 0,
            arrivals,
            random: Random::stream(seed, Stream::Arrivals, 0),
            position: 0.0,
            n: 0,
        };
        if arrivals == Arrivals::Poisson {
            schedule.step();
        }
        schedule
    }

    /// The same times, for operations that are numbered from `first` on.
    pub fn numbered_from(self, first: u64) -> Self {
        Self { n: first, ..self }
    }

    /// The same for a shard, whose rate is its part of the whole's: even arrivals of all shards interleave to those of the
    /// whole. Random ones need nothing, as independent Poisson processes sum to one.
    pub fn in_shard(mut self, shard: Shard) -> Self {
        if self.arrivals == Arrivals::Even {
            self.position += f64::from(shard.index) / f64::from(shard.count);
        }
        self
    }

    /// The next operation, left in place.
    pub fn peek(&mut self) -> Due {
        // The last piece never ends, so there is always one that holds the position.
        while self.pieces[self.current].after <= self.position {
            self.current += 1;
        }
        Due { n: self.n, at_ns: self.pieces[self.current].time_of(self.position) }
    }

    fn step(&mut self) {
        self.position += match self.arrivals {
            Arrivals::Even => 1.0,
            // 1 − u is in (0, 1], so the logarithm is finite.
            Arrivals::Poisson => -(1.0 - self.random.unit_f64()).ln(),
        };
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let due = self.peek();
        self.step();
        self.n += 1;
        Some(due)
    }
}

impl Piece {
    /// Solves rate·x + slope·x²/2 = position − before, in the form that does not cancel for small slopes.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times are positive, and a float cast saturates"
    )]
    fn time_of(&self, position: f64) -> u64 {
        let wanted = position - self.before;
        let root = (self.rate * self.rate + 2.0 * self.slope * wanted).max(0.0).sqrt();
        let x = if wanted > 0.0 { 2.0 * wanted / (self.rate + root) } else { 0.0 };
        ((self.start_s + x) * 1e9) as u64
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small counts")]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn stage(seconds: u64, from: f64, to: f64) -> Stage {
        let rate = |r| Rate::per_second(r).unwrap();
        Stage { length: Span::seconds(seconds), from: rate(from), to: rate(to) }
    }

    fn count(schedule: Schedule, from_s: f64, to_s: f64) -> f64 {
        schedule
            .take_while(|due| (due.at_ns as f64) < to_s * 1e9)
            .filter(|due| due.at_ns as f64 >= from_s * 1e9)
            .count() as f64
    }

    #[test]
    fn even_arrivals_are_exact_to_one_at_any_rate() {
        for rate in [0.5, 1.0, 3.0, 60.0, 777.0, 5000.0] {
            let schedule = Schedule::new(Span::seconds(3), &[stage(20, rate, rate)], Arrivals::Even, 1);
            for (from, to) in [(0.0, 3.0), (3.0, 23.0), (3.0, 4.0), (22.0, 23.0), (23.0, 60.0)] {
                let got = count(schedule.clone(), from, to);
                assert!((got - rate * (to - from)).abs() <= 1.0, "{rate}/s in {from}..{to}: {got}");
            }
        }
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_variance_of_their_rate() {
        for (seed, rate) in [(1, 0.5), (2, 60.0), (3, 5000.0)] {
            let schedule =
                Schedule::new(Span::seconds(2), &[stage(100, rate, rate)], Arrivals::Poisson, seed);
            let expected = rate * 100.0;
            let got = count(schedule, 2.0, 102.0);
            assert!((got - expected).abs() <= 3.0 * expected.sqrt(), "{rate}/s: {got}");
        }
        // Exponential gaps: the variance of counts per second equals their mean (index of dispersion 1).
        let schedule = Schedule::new(Span::ZERO, &[stage(2000, 50.0, 50.0)], Arrivals::Poisson, 7);
        let mut counts = vec![0.0; 2000];
        for due in schedule {
            let second = usize::try_from(due.at_ns / 1_000_000_000).unwrap();
            let Some(slot) = counts.get_mut(second) else { break };
            *slot += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2000.0;
        let variance = counts.iter().map(|c: &f64| (c - mean).powi(2)).sum::<f64>() / 2000.0;
        assert!((variance / mean - 1.0).abs() < 0.1, "{variance} against {mean}");
    }

    #[test]
    fn ramps_steps_and_spikes_give_the_area_under_the_rate() {
        let stages =
            [stage(10, 0.1, 100.0), stage(10, 100.0, 100.0), stage(1, 900.0, 900.0), stage(9, 50.0, 10.0)];
        let schedule = Schedule::new(Span::ZERO, &stages, Arrivals::Even, 1);
        for (from, to, area) in
            [(0.0, 10.0, 500.5), (10.0, 20.0, 1000.0), (20.0, 21.0, 900.0), (21.0, 30.0, 270.0)]
        {
            let got = count(schedule.clone(), from, to);
            assert!((got - area).abs() <= 1.0, "{from}..{to}: {got} for {area}");
        }
        // Half of a ramp from 0 to r holds a quarter of its arrivals.
        assert!((count(schedule, 0.0, 5.0) - 125.4).abs() <= 1.0);
    }

    #[test]
    fn the_same_seed_is_the_same_schedule_and_time_never_runs_back() {
        let make = |seed| Schedule::new(Span::ZERO, &[stage(5, 10.0, 2000.0)], Arrivals::Poisson, seed);
        assert!(make(3).take(5000).eq(make(3).take(5000)));
        assert!(make(3).take(50).ne(make(4).take(50)));
        assert!(make(3).take(5000).is_sorted_by_key(|due| due.at_ns));
        let later = make(3).numbered_from(7);
        assert!(later.zip(make(3)).take(50).all(|(l, d)| (l.n, l.at_ns) == (d.n + 7, d.at_ns)));
    }

    #[test]
    fn even_arrivals_of_shards_interleave_to_those_of_the_whole() {
        let mut plan = crate::results::testing::plan_with_stages(&[(4, 10.0, 300.0), (3, 50.0, 50.0)]);
        plan.load.warmup = Span::seconds(2);
        let of = |plan: &crate::plan::Plan| {
            let crate::plan::Model::Open { stages, .. } = &plan.load.model else {
                unreachable!("it is open")
            };
            Schedule::new(plan.load.warmup, stages, Arrivals::Even, 1)
        };
        for count in [1, 2, 3, 7] {
            let mut together: Vec<u64> = (0..count)
                .flat_map(|index| {
                    let shard = Shard { index, count, start_at: None };
                    let part = of(&plan.divided(shard).unwrap()).in_shard(shard);
                    part.map(|due| due.at_ns).take_while(|&at_ns| at_ns < 9_000_000_000).collect::<Vec<_>>()
                })
                .collect();
            together.sort_unstable();
            let whole: Vec<u64> = of(&plan).map(|due| due.at_ns).take(together.len()).collect();
            // A microsecond is what rounding in other places may come to.
            assert!(together.iter().zip(&whole).all(|(a, b)| a.abs_diff(*b) < 1000), "{count} shards");
            assert!(together.len() > 700);
        }
    }
}
