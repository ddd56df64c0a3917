//! Rejections that rise for minutes. A steady few are how a client finds out what servers bear; that they become more and
//! more is what deserves somebody's attention.

use std::collections::VecDeque;
use std::time::Duration;

use crate::plan::timeline::nanos;
use crate::snapshot::Snapshot;

/// In so many minutes in a row they have to be more than in the one before.
const MINUTES: usize = 3;

const MINUTE: Duration = Duration::from_secs(60);

/// Rejected attempts by the minute.
#[derive(Debug, Default)]
pub struct Rising {
    /// The minute that goes on.
    minute: u64,
    /// Rejections in it.
    rejected: u64,
    /// Those of the minutes before it, the latest last.
    before: VecDeque<u64>,
    rises: bool,
}

impl Rising {
    /// Takes an interval. Returns the rejections of each minute when they have begun to rise.
    pub fn add(&mut self, snapshot: &Snapshot) -> Option<Vec<u64>> {
        // One that spans the change of minutes is no longer than a second, and it is all the same in which it counts.
        let minute = snapshot.start_ns / nanos(MINUTE);
        let mut begun = None;
        while self.minute < minute {
            self.minute += 1;
            begun = self.end_minute().or(begun);
        }
        self.rejected += snapshot.cells.values().map(|stats| stats.rejected).sum::<u64>();
        begun
    }

    fn end_minute(&mut self) -> Option<Vec<u64>> {
        self.before.push_back(std::mem::take(&mut self.rejected));
        if self.before.len() > MINUTES + 1 {
            self.before.pop_front();
        }
        let pairs = self.before.iter().zip(self.before.iter().skip(1));
        let rises =
            self.before.len() > MINUTES && pairs.clone().all(|(&before, &after)| is_more(before, after));
        let rose = std::mem::replace(&mut self.rises, rises);
        (rises && !rose).then(|| self.before.iter().copied().collect())
    }
}

/// Whether it is more than counts differ by chance: twice the deviation of two Poisson variables' difference.
#[expect(clippy::cast_precision_loss, reason = "rejections in a minute are far below 2^53")]
fn is_more(before: u64, after: u64) -> bool {
    after as f64 - before as f64 > 2.0 * ((before + after) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;

    /// What is told when each minute has so many rejections, by the minute in which it is told.
    fn told(minutes: &[u64]) -> Vec<(u64, Vec<u64>)> {
        let mut rising = Rising::default();
        let mut told = Vec::new();
        for (minute, &rejected) in (0..).zip(minutes) {
            for second in 0..60 {
                let mut cell = testing::cell(0, 0, 0, 0);
                cell.rejected = if second == 7 { rejected } else { 0 };
                let snapshot = testing::snapshot(minute * 60 + second, 1, [((1, 0), cell)], [0, 0, 0]);
                told.extend(rising.add(&snapshot).map(|counts| (minute, counts)));
            }
        }
        told
    }

    #[test]
    fn three_minutes_of_more_and_more_are_told_once() {
        assert_eq!(told(&[10, 40, 100, 200, 400, 800, 1600]), [(4, vec![10, 40, 100, 200])]);
    }

    #[test]
    fn what_may_be_chance_is_not() {
        assert_eq!(told(&[100, 110, 120, 130, 140, 150]), []);
        assert_eq!(told(&[0, 0, 0, 0, 0, 0]), []);
    }

    #[test]
    fn a_second_rise_is_told_again() {
        let told = told(&[0, 10, 100, 1000, 20, 100, 500, 2500, 0]);
        assert_eq!(told, [(4, vec![0, 10, 100, 1000]), (8, vec![20, 100, 500, 2500])]);
    }
}
