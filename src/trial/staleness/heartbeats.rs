//! Which heartbeats were acknowledged when, and how stale a read is that does not see all of them.

use std::collections::VecDeque;

/// How many acknowledgements are remembered before some are forgotten: memory does not grow with time.
const MOST: usize = 4096;

/// So many of the latest are never forgotten.
const LATEST: usize = 2048;

/// Of the older ones so few are kept that what they tell is off by about this part of it, and never by three times as much: a
/// lag of hours need not be known to the millisecond.
const COARSENESS: u64 = 100;

/// The heartbeats that were acknowledged, in their order. Times are nanoseconds since Go.
#[derive(Debug, Default)]
pub struct Heartbeats {
    /// Number and time of acknowledgement; both only grow.
    acknowledged: VecDeque<(u64, u64)>,
}

impl Heartbeats {
    /// Takes note of an acknowledgement. A heartbeat that got none is not waited for: it may be seen or not.
    pub fn acknowledge(&mut self, number: u64, at_ns: u64) {
        self.acknowledged.push_back((number, at_ns));
        if self.acknowledged.len() > MOST {
            self.forget(at_ns);
        }
    }

    /// Thins out the older ones.
    fn forget(&mut self, now_ns: u64) {
        let latest = self.acknowledged.len() - LATEST;
        let mut kept = VecDeque::with_capacity(MOST + 1);
        let mut newer_ns = now_ns;
        for (place, &(number, at_ns)) in self.acknowledged.iter().enumerate().rev() {
            if place >= latest || (newer_ns - at_ns) * COARSENESS >= now_ns - at_ns {
                kept.push_front((number, at_ns));
                newer_ns = at_ns;
            }
        }
        self.acknowledged = kept;
    }

    /// How stale a read was that was begun at a time and saw the heartbeats up to a number (0: none): the time since the
    /// acknowledgement of the oldest that it did not see, or 0.
    ///
    /// Only what had been acknowledged when the read was begun counts, and only until then: what was written while the read
    /// was on its way it need not see. So a read is never called staler than it was, and one on the server that
    /// acknowledges is not stale at all.
    pub fn staleness_ns(&self, seen: u64, begun_ns: u64) -> u64 {
        let oldest_unseen = self.acknowledged.partition_point(|&(number, _)| number <= seen);
        self.acknowledged.get(oldest_unseen).map_or(0, |&(_, at_ns)| begun_ns.saturating_sub(at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Heartbeats 1, 2, 4 (3 was not acknowledged) at 10, 20, 40.
    fn few() -> Heartbeats {
        let mut heartbeats = Heartbeats::default();
        [(1, 10), (2, 20), (4, 40)].into_iter().for_each(|(number, at)| heartbeats.acknowledge(number, at));
        heartbeats
    }

    #[test]
    fn a_read_is_as_stale_as_the_oldest_it_did_not_see() {
        let at_50 = [0, 1, 2, 3, 4, 5].map(|seen| few().staleness_ns(seen, 50));
        assert_eq!(at_50, [40, 30, 10, 10, 0, 0], "what was not acknowledged is not missed");
    }

    #[test]
    fn what_is_acknowledged_later_is_not_missed() {
        assert_eq!([10, 15, 20, 40].map(|begun| few().staleness_ns(2, begun)), [0; 4]);
        assert_eq!([10, 15, 20, 40].map(|begun| few().staleness_ns(1, begun)), [0, 0, 0, 20]);
        assert_eq!(Heartbeats::default().staleness_ns(0, 1_000), 0);
    }

    #[test]
    fn a_member_that_stands_still_grows_staler_and_catches_up_at_once() {
        let mut heartbeats = few();
        let stalled: Vec<u64> = (5..8)
            .map(|number| {
                heartbeats.acknowledge(number, number * 10);
                heartbeats.staleness_ns(4, number * 10 + 1)
            })
            .collect();
        assert_eq!(stalled, [1, 11, 21]);
        assert_eq!(heartbeats.staleness_ns(7, 100), 0);
    }

    #[test]
    fn memory_is_bounded_and_the_latest_are_all_there() {
        let mut heartbeats = Heartbeats::default();
        (1..=1_000_000).for_each(|number| heartbeats.acknowledge(number, number * 10));
        assert!(heartbeats.acknowledged.len() <= MOST);
        assert_eq!(heartbeats.staleness_ns(1_000_000, 10_000_001), 0);
        for behind in [1, 2, 100, LATEST as u64] {
            let staleness = heartbeats.staleness_ns(1_000_000 - behind, 10_000_001);
            assert_eq!(staleness, (behind - 1) * 10 + 1, "{behind}");
        }
        // What is older is off by a little, and never too long.
        for behind in [10_000, 100_000, 999_000] {
            let staleness = heartbeats.staleness_ns(1_000_000 - behind, 10_000_001);
            assert!((behind * 97 / 10..=behind * 10).contains(&staleness), "{behind}: {staleness}");
        }
    }

    proptest! {
        #[test]
        fn it_is_what_its_definition_says(
            steps in prop::collection::vec((1_u64..3, 0_u64..50), 0..100),
            seen in 0_u64..250,
            begun in 0_u64..5_000,
        ) {
            let (mut number, mut at, mut all) = (0, 0, Vec::new());
            let mut heartbeats = Heartbeats::default();
            for (more, later) in steps {
                (number, at) = (number + more, at + later);
                heartbeats.acknowledge(number, at);
                all.push((number, at));
            }
            let unseen = all.iter().filter(|&&(number, at)| number > seen && at <= begun);
            let oldest = unseen.map(|&(_, at)| at).min();
            prop_assert_eq!(heartbeats.staleness_ns(seen, begun), oldest.map_or(0, |at| begun - at));
        }
    }
}
