//! From statistics to the values of columns: one way for intervals, summaries and screens.

use crate::plan::Plan;
use crate::results::facts::{Scope, commands_known, reasons_known, rounded};
use crate::stats::{Latencies, OpStats, ratio};

/// Statistics, with what is known of them. A field is `None` where the way of counting cannot tell, or without data.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    stats: &'a OpStats,
    commands_known: bool,
    reasons_known: bool,
}

/// A distribution in the columns of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The mean.
    pub mean: Option<u64>,
    /// The median.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    pub p99_9: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
}

impl Quantiles {
    /// Of some times, in microseconds.
    pub fn of(times: &Latencies) -> Self {
        Self {
            mean: times.mean_us(),
            p50: times.percentile_us(0.5),
            p90: times.percentile_us(0.9),
            p99: times.percentile_us(0.99),
            p99_9: times.percentile_us(0.999),
            max: times.max_us(),
        }
    }
}

impl<'a> Figures<'a> {
    /// Of one of a plan's operations, or of several together.
    pub fn new(plan: &Plan, whose: impl Into<Scope>, stats: &'a OpStats) -> Self {
        Self { stats, commands_known: commands_known(plan, whose), reasons_known: reasons_known(plan) }
    }

    /// Round trips of attempts that were served. Pool events alone tell one only where the end of a call is that of its
    /// last attempt.
    pub fn served(&self) -> Quantiles {
        if self.commands_known { Quantiles::of(&self.stats.attempt_ok) } else { Quantiles::default() }
    }

    /// Commands sent.
    pub fn commands(&self) -> Option<u64> {
        self.commands_known.then_some(self.stats.commands)
    }

    /// Attempts beyond one a command.
    pub fn retries(&self) -> Option<u64> {
        self.commands_known.then_some(self.stats.retries)
    }

    /// Retries ÷ operations that ended.
    pub fn retries_per_op(&self) -> Option<f64> {
        self.retries().and_then(|retries| ratio(retries, ended(self.stats)))
    }

    /// Attempts ÷ commands of first calls.
    pub fn amplification(&self) -> Option<f64> {
        self.commands_known.then(|| self.stats.amplification()).flatten().map(|a| rounded(a, 6))
    }

    /// The mean length of one backoff.
    pub fn backoff_mean_us(&self) -> Option<u64> {
        self.commands_known.then(|| backoff(self.stats).mean_us()).flatten()
    }

    /// Attempts that a server rejected.
    pub fn rejected(&self) -> Option<u64> {
        self.reasons_known.then_some(self.stats.rejected)
    }

    /// Attempts that went elsewhere after a rejection.
    pub fn retargeted(&self) -> Option<u64> {
        self.reasons_known.then_some(self.stats.retargeted)
    }
}

/// Operations that were given to the driver and came to an end.
pub const fn ended(stats: &OpStats) -> u64 {
    stats.outcomes.ok + stats.outcomes.failed + stats.outcomes.timed_out
}

/// Every backoff, whichever retry it came before.
fn backoff(stats: &OpStats) -> Latencies {
    let mut all = Latencies::default();
    for times in stats.backoff.values() {
        all.merge(times);
    }
    all
}

/// Where the mean latency of ended operations went, in microseconds. The parts add up to `latency_us`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Breakdown {
    /// From the intended to the actual start.
    pub wait_us: f64,
    /// Waiting for connections.
    pub checkout_us: f64,
    /// Round trips; `None` when attempts are counted by pool events alone, which do not tell their ends.
    pub attempts_us: Option<f64>,
    /// Between a failed attempt and the next; `None` likewise.
    pub backoff_us: Option<f64>,
    /// What the client itself took; `None` likewise.
    pub other_us: Option<f64>,
    /// From the intended start to the end, failed operations included.
    pub latency_us: f64,
}

impl Breakdown {
    /// `None` when nothing ended. `told_apart` says whether the ends of attempts are known.
    pub fn of(stats: &OpStats, told_apart: bool) -> Option<Self> {
        let parts = stats.wait_ns + stats.checkout_ns + stats.attempt_ns + stats.backoff_ns;
        let mean = |sum_ns| ratio(sum_ns, ended(stats)).map(|ns| rounded(ns / 1e3, 3));
        Some(Self {
            wait_us: mean(stats.wait_ns)?,
            checkout_us: mean(stats.checkout_ns)?,
            attempts_us: mean(stats.attempt_ns).filter(|_| told_apart),
            backoff_us: mean(stats.backoff_ns).filter(|_| told_apart),
            // Attempts that go on after their operation was given up may reach beyond its end.
            other_us: mean(stats.latency_ns.saturating_sub(parts)).filter(|_| told_apart),
            latency_us: mean(stats.latency_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Attempts;
    use crate::results::testing;
    use crate::stats::Outcomes;

    fn stats() -> OpStats {
        let mut stats = OpStats {
            offered: 10,
            outcomes: Outcomes { ok: 6, failed: 2, dropped: 2, ..Outcomes::default() },
            commands: 8,
            attempts: 12,
            retries: 4,
            rejected: 5,
            retargeted: 1,
            wait_ns: 8_000,
            checkout_ns: 16_000,
            attempt_ns: 80_000,
            backoff_ns: 400_000,
            latency_ns: 800_000,
            ..OpStats::default()
        };
        stats.backoff_before(1).record_ns(100_000);
        stats.backoff_before(2).record_ns(200_000);
        stats.backoff_before(2).record_ns(300_000);
        stats
    }

    #[test]
    fn figures_are_quotients_of_the_right_counts() {
        let stats = stats();
        let figures = Figures::new(&testing::plan(), Some(0), &stats);
        assert_eq!(figures.retries_per_op(), Some(0.5), "4 retries of 8 that ended");
        assert_eq!(figures.amplification(), Some(1.5), "12 attempts of 8 commands");
        assert_eq!(figures.backoff_mean_us(), Some(200));
        assert_eq!((figures.rejected(), figures.retargeted()), (Some(5), Some(1)));
    }

    #[test]
    fn light_counting_leaves_out_what_it_cannot_tell() {
        let mut stats = stats();
        (0..40).for_each(|_| stats.attempt_ok.record_ns(600_000));
        let plan = Plan { attempts: Attempts::Light, ..testing::plan() };
        let single = Figures::new(&plan, Some(0), &stats);
        assert_eq!(single.served().p50, Some(600));
        assert_eq!((single.commands(), single.retries()), (Some(8), Some(4)));
        assert_eq!((single.rejected(), single.retargeted()), (None, None), "no command events, no labels");
        for figures in [Figures::new(&plan, Some(1), &stats), Figures::new(&plan, None, &stats)] {
            assert_eq!((figures.commands(), figures.retries(), figures.retries_per_op()), (None, None, None));
            assert_eq!((figures.amplification(), figures.backoff_mean_us()), (None, None));
            assert_eq!(
                figures.served(),
                Quantiles::default(),
                "only the last of several commands would be told"
            );
        }
    }

    #[test]
    fn the_parts_of_the_mean_add_up() {
        let b = Breakdown::of(&stats(), true).unwrap();
        assert_eq!(
            (b.wait_us, b.checkout_us, b.attempts_us, b.backoff_us),
            (1.0, 2.0, Some(10.0), Some(50.0))
        );
        assert_eq!((b.other_us, b.latency_us), (Some(37.0), 100.0));
        assert_eq!(Breakdown::of(&OpStats::default(), true), None);
        let light = Breakdown::of(&stats(), false).unwrap();
        assert_eq!((light.attempts_us, light.backoff_us, light.other_us), (None, None, None));
        assert_eq!((light.wait_us, light.checkout_us, light.latency_us), (1.0, 2.0, 100.0));
    }
}
