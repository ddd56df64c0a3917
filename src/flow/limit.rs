//! How many operations may be under way at once, whatever law moves the limit.

use super::Reply;
use super::aimd::Aimd;
use super::gradient::Gradient;
use crate::plan::{ConcurrencyLimit, LimitLaw};

/// A limit that follows what the servers bear. The operations under way are counted by whoever asks.
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    law: Law,
    floor: u32,
    moves: bool,
    floor_since_ns: Option<u64>,
}

#[derive(Clone, Debug)]
enum Law {
    Aimd(Aimd),
    Gradient(Gradient),
}

/// A change of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Operations before.
    pub from: u32,
    /// Operations now.
    pub to: u32,
}

impl AdaptiveLimit {
    /// As it is at Go.
    pub fn new(plan: &ConcurrencyLimit) -> Self {
        let range = (plan.initial, plan.floor, plan.ceiling);
        let law = match plan.law {
            LimitLaw::Aimd { increase, decrease, once_per_round_trip } => {
                Law::Aimd(Aimd::new(range, increase, decrease, once_per_round_trip))
            }
            LimitLaw::Gradient { smoothing, tolerance, memory } => {
                Law::Gradient(Gradient::new(range, smoothing, tolerance, memory.duration()))
            }
        };
        let mut limit =
            Self { law, floor: plan.floor, moves: plan.floor < plan.ceiling, floor_since_ns: None };
        limit.watch_floor(0);
        limit
    }

    /// Operations that may be under way; always from the plan's floor to its ceiling. When the limit shrinks, more may be:
    /// nothing is to be begun until they are fewer.
    pub fn limit(&self) -> u32 {
        match &self.law {
            Law::Aimd(aimd) => aimd.limit(),
            Law::Gradient(gradient) => gradient.limit(),
        }
    }

    /// Takes note of an ending; `None` when the limit stays.
    pub fn told(&mut self, reply: &Reply) -> Option<Move> {
        let from = self.limit();
        match &mut self.law {
            Law::Aimd(aimd) => aimd.told(reply),
            Law::Gradient(gradient) => gradient.told(reply),
        }
        self.watch_floor(reply.ended_ns);
        let to = self.limit();
        (from != to).then_some(Move { from, to })
    }

    /// Whether there is room between its floor and its ceiling.
    pub const fn moves(&self) -> bool {
        self.moves
    }

    /// Since when the limit has been at its floor without a break, in nanoseconds since Go; `None` when it is above.
    pub const fn at_floor_since(&self) -> Option<u64> {
        self.floor_since_ns
    }

    fn watch_floor(&mut self, now_ns: u64) {
        if self.limit() > self.floor {
            self.floor_since_ns = None;
        } else {
            self.floor_since_ns.get_or_insert(now_ns);
        }
    }
}

/// The whole operations in a limit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits are never negative, and a cast stays at the ends of its range"
)]
pub(super) const fn whole(limit: f64) -> u32 {
    limit as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flow::Verdict;
    use crate::plan::Signal;

    fn plan(law: LimitLaw, (initial, floor, ceiling): (u32, u32, u32)) -> ConcurrencyLimit {
        ConcurrencyLimit { signal: Signal::Operation, initial, floor, ceiling, law }
    }

    fn reply(verdict: Verdict, ended_ns: u64) -> Reply {
        Reply { verdict, started_ns: ended_ns, ended_ns, in_flight: 1 }
    }

    #[test]
    fn moves_are_told_and_the_time_at_the_floor_known() {
        let mut limit = AdaptiveLimit::new(&plan(LimitLaw::AIMD, (4, 1, 32)));
        assert_eq!(limit.at_floor_since(), None);
        assert_eq!(limit.told(&reply(Verdict::Served, 10)), None);
        assert_eq!(limit.told(&reply(Verdict::Rejected, 20)), Some(Move { from: 4, to: 2 }));
        assert_eq!(limit.told(&reply(Verdict::Rejected, 30)), Some(Move { from: 2, to: 1 }));
        assert_eq!(limit.told(&reply(Verdict::Rejected, 40)), None);
        assert_eq!(limit.at_floor_since(), Some(30), "further rejections there change nothing");
        assert_eq!(limit.told(&reply(Verdict::Served, 50)), Some(Move { from: 1, to: 2 }));
        assert_eq!(limit.at_floor_since(), None);
    }

    #[test]
    fn a_limit_that_begins_at_its_floor_is_there_since_go() {
        let limit = AdaptiveLimit::new(&plan(LimitLaw::GRADIENT, (3, 3, 9)));
        assert_eq!(limit.at_floor_since(), Some(0));
    }

    fn laws() -> impl Strategy<Value = LimitLaw> {
        prop_oneof![
            (1_u32..5, 0.01..0.99, any::<bool>()).prop_map(|(increase, decrease, once_per_round_trip)| {
                LimitLaw::Aimd { increase, decrease, once_per_round_trip }
            }),
            (0.01..=1.0, 1.0..4.0, 1_u64..5).prop_map(|(smoothing, tolerance, seconds)| {
                LimitLaw::Gradient { smoothing, tolerance, memory: crate::units::Span::seconds(seconds) }
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_limit_stays_within_its_bounds(
            law in laws(),
            (floor, above_floor, above) in (1_u32..50, 0_u32..50, 0_u32..50),
            replies in prop::collection::vec((any::<bool>(), 0_u64..2_000_000_000, 0_u64..100_000_000, 1_u32..200), 0..500),
        ) {
            let range = (floor + above_floor, floor, floor + above_floor + above);
            let mut limit = AdaptiveLimit::new(&plan(law, range));
            prop_assert_eq!(limit.limit(), range.0);
            let mut now = 0;
            for (served, took, gap, in_flight) in replies {
                now += gap;
                let verdict = if served { Verdict::Served } else { Verdict::Rejected };
                let before = limit.limit();
                let moved = limit.told(&Reply { verdict, started_ns: now, ended_ns: now + took, in_flight });
                prop_assert!((range.1..=range.2).contains(&limit.limit()), "{} in {:?}", limit.limit(), range);
                prop_assert_eq!(moved.map_or(before, |moved| moved.to), limit.limit());
                prop_assert_eq!(limit.at_floor_since().is_some(), limit.limit() == floor);
            }
        }
    }
}
