//! Counts over the last while.

use std::collections::VecDeque;
use std::time::Duration;

/// Parts of a window, which it moves on by.
const PARTS: u64 = 20;

/// Two counts over a sliding window, in constant memory: it moves on a twentieth at a time, so what counts is between 19
/// and 20 twentieths of it old at most. A time that goes back counts as the latest known.
#[derive(Clone, Debug)]
pub struct Window {
    part_ns: u64,
    /// In order of time, without those that nothing was counted in.
    parts: VecDeque<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    /// Its place among all since Go.
    number: u64,
    counts: (u64, u64),
}

impl Window {
    /// Of that length, with nothing in it.
    pub fn new(length: Duration) -> Self {
        let part_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).div_ceil(PARTS).max(1);
        Self { part_ns, parts: VecDeque::new() }
    }

    /// Counts.
    pub fn add(&mut self, now_ns: u64, first: u64, second: u64) {
        let number = now_ns / self.part_ns;
        match self.parts.back_mut() {
            Some(newest) if newest.number >= number => {
                newest.counts.0 += first;
                newest.counts.1 += second;
            }
            _ => {
                self.parts.retain(|part| part.number + PARTS > number);
                self.parts.push_back(Part { number, counts: (first, second) });
            }
        }
    }

    /// Both sums.
    pub fn sums(&self, now_ns: u64) -> (u64, u64) {
        let number = now_ns / self.part_ns;
        let within = self.parts.iter().filter(|part| part.number + PARTS > number);
        within.fold((0, 0), |sums, part| (sums.0 + part.counts.0, sums.1 + part.counts.1))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_leave_after_the_length_of_the_window() {
        // Parts of 5 ns.
        let mut window = Window::new(Duration::from_nanos(100));
        window.add(0, 1, 0);
        window.add(7, 10, 3);
        assert_eq!(window.sums(99), (11, 3));
        assert_eq!(window.sums(100), (10, 3));
        assert_eq!(window.sums(105), (0, 0));
        window.add(1000, 1, 1);
        window.add(7, 2, 2);
        assert_eq!(window.sums(1000), (3, 3), "what is late counts with the latest");
        window.clear();
        assert_eq!(window.sums(1000), (0, 0));
    }

    proptest! {
        #[test]
        fn all_that_is_younger_counts_and_nothing_that_is_older(
            length in 1_u64..5000,
            gaps in prop::collection::vec(0_u64..500, 1..200),
        ) {
            let mut window = Window::new(Duration::from_nanos(length));
            let mut times = Vec::new();
            let mut now = 0;
            for gap in gaps {
                now += gap;
                times.push(now);
                window.add(now, 1, 2);
                let (first, second) = window.sums(now);
                let part = length.div_ceil(PARTS);
                let younger = |ns: u64| times.iter().filter(|&&time| now - time < ns).count() as u64;
                prop_assert!(first >= younger(19 * part) && first <= younger(20 * part), "{} at {}", first, now);
                prop_assert_eq!(second, 2 * first);
            }
        }
    }
}
