//! How the load went from its start until now, in a fixed number of points: when they are used up, neighbours are merged,
//! so that a long run's beginning becomes coarser and takes no more memory.

use crate::stats::OpStats;

/// The most points.
const POINTS: usize = 512;

/// What is counted in a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations due.
    pub offered: u64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Attempts that ended.
    pub attempts: u64,
    /// Attempts that were rejected.
    pub rejected: u64,
}

impl Counts {
    /// Those of an interval.
    pub const fn of(stats: &OpStats) -> Self {
        Self {
            offered: stats.offered,
            ok: stats.outcomes.ok,
            attempts: stats.attempts,
            rejected: stats.rejected,
        }
    }

    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.ok += other.ok;
        self.attempts += other.attempts;
        self.rejected += other.rejected;
    }
}

/// Some time and what was counted in it: of all operations first, then of each, then of each of several clients.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    start_ns: u64,
    end_ns: u64,
    counts: Vec<Counts>,
    /// The lowest limit of concurrency of each client; `None` without one.
    limits: Vec<Option<u32>>,
}

/// Rates in a stretch of time, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Operations due.
    pub offered: f64,
    /// Operations that succeeded.
    pub ok: f64,
    /// Attempts that ended.
    pub attempts: f64,
    /// Attempts that were rejected.
    pub rejected: f64,
}

/// Points from the start until now.
#[derive(Clone, Debug, Default)]
pub struct History {
    points: Vec<Point>,
}

impl History {
    /// Adds an interval that follows the last: counts of all operations, then of each, then of each of several clients; and
    /// each client's limit of concurrency.
    pub fn add(&mut self, start_ns: u64, end_ns: u64, counts: Vec<Counts>, limits: Vec<Option<u32>>) {
        if self.points.len() >= POINTS {
            self.halve();
        }
        self.points.push(Point { start_ns, end_ns, counts, limits });
    }

    /// Rates between two times, of all operations or of one; `None` where nothing is known. A point that is only partly
    /// in the stretch counts by that part.
    #[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds far below 2^53")]
    pub fn rates(&self, operation: Option<usize>, from_ns: u64, to_ns: u64) -> Option<Rates> {
        let first = self.points.partition_point(|point| point.end_ns <= from_ns);
        let (mut covered, mut sum) = (0.0, Rates::default());
        for point in self.points[first..].iter().take_while(|point| point.start_ns < to_ns) {
            let overlap = point.end_ns.min(to_ns).saturating_sub(point.start_ns.max(from_ns)) as f64;
            let Some(counts) = point.counts.get(operation.map_or(0, |o| o + 1)) else { continue };
            let part = overlap / (point.end_ns - point.start_ns).max(1) as f64;
            covered += overlap;
            sum.offered += part * counts.offered as f64;
            sum.ok += part * counts.ok as f64;
            sum.attempts += part * counts.attempts as f64;
            sum.rejected += part * counts.rejected as f64;
        }
        let per_second = |count: f64| count / covered * 1e9;
        (covered > 0.0).then(|| Rates {
            offered: per_second(sum.offered),
            ok: per_second(sum.ok),
            attempts: per_second(sum.attempts),
            rejected: per_second(sum.rejected),
        })
    }

    /// The lowest limit of concurrency of a client between two times; `None` where none is known.
    pub fn limit(&self, client: usize, from_ns: u64, to_ns: u64) -> Option<u32> {
        let first = self.points.partition_point(|point| point.end_ns <= from_ns);
        let within = self.points[first..].iter().take_while(|point| point.start_ns < to_ns);
        within.filter_map(|point| *point.limits.get(client)?).min()
    }

    /// Makes one of each two neighbours.
    fn halve(&mut self) {
        let pairs = std::mem::take(&mut self.points);
        let mut pairs = pairs.into_iter();
        while let Some(mut point) = pairs.next() {
            if let Some(next) = pairs.next() {
                point.end_ns = next.end_ns;
                for (ours, theirs) in point.limits.iter_mut().zip(&next.limits) {
                    *ours = [*ours, *theirs].into_iter().flatten().min();
                }
                point.counts.iter_mut().zip(&next.counts).for_each(|(ours, theirs)| ours.add(theirs));
            }
            self.points.push(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn history(seconds: u64) -> History {
        let mut history = History::default();
        for second in 0..seconds {
            let all = Counts { offered: 100, ok: second % 10, attempts: 120, rejected: 20 };
            history.add(
                second * SECOND,
                (second + 1) * SECOND,
                vec![all, Counts { ok: 1, ..all }],
                Vec::new(),
            );
        }
        history
    }

    #[test]
    fn rates_are_counts_by_time() {
        let history = history(10);
        let rates = history.rates(None, 2 * SECOND, 4 * SECOND).unwrap();
        assert!((rates.attempts - 120.0).abs() < 1e-9 && (rates.rejected - 20.0).abs() < 1e-9);
        assert_eq!((rates.offered, rates.ok), (100.0, 2.5));
        assert_eq!(history.rates(Some(0), 0, SECOND).unwrap().ok, 1.0);
        let half = history.rates(None, 4 * SECOND + SECOND / 2, 5 * SECOND).unwrap();
        assert_eq!(half.ok, 4.0, "a part of a point has the point's rate");
    }

    #[test]
    fn nothing_is_known_of_the_future() {
        assert_eq!(history(3).rates(None, 3 * SECOND, 4 * SECOND), None);
        assert_eq!(History::default().rates(None, 0, SECOND), None);
    }

    #[test]
    fn the_lowest_limit_stays_when_neighbours_are_merged() {
        let mut history = History::default();
        for second in 0..POINTS as u64 + 1 {
            let limit = if second == 101 { 2 } else { 50 };
            history.add(second * SECOND, (second + 1) * SECOND, Vec::new(), vec![None, Some(limit)]);
        }
        let limit = |from, to| history.limit(1, from * SECOND, to * SECOND);
        assert_eq!([limit(0, 100), limit(100, 102), limit(102, 200)], [Some(50), Some(2), Some(50)]);
        assert_eq!(limit(2000, 2001), None);
        assert_eq!(history.limit(0, 0, 200 * SECOND), None, "the other client has none");
    }

    #[test]
    fn a_long_run_takes_no_more_memory_and_loses_no_counts() {
        let history = history(10_000);
        assert!(history.points.len() <= POINTS);
        let rates = history.rates(None, 0, 10_000 * SECOND).unwrap();
        assert!((rates.ok - 4.5).abs() < 1e-9 && (rates.offered - 100.0).abs() < 1e-9, "{rates:?}");
    }
}
