//! Pauses before further calls of an operation.

use std::time::Duration;

use crate::document::Random;
use crate::plan::{Backoff, BackoffKind};

/// The pauses of one operation.
#[derive(Clone, Debug)]
pub struct Pauses {
    policy: Backoff,
    /// Pauses so far.
    retries: u32,
    last: Duration,
}

impl Pauses {
    /// Of an operation that has made no call yet.
    pub const fn new(policy: Backoff) -> Self {
        Self { policy, retries: 0, last: policy.base.duration() }
    }

    /// The pause before the next call after one that failed; `None` when there have been enough.
    pub fn next(&mut self, random: &mut Random) -> Option<Duration> {
        self.next_after(None, random)
    }

    /// The same after an answer in which the server asked for a base of its own (`baseBackoffMS`), if it did. Only
    /// [`BackoffKind::ServerGuided`] heeds it, and never waits longer than the cap.
    pub fn next_after(&mut self, asked_for: Option<Duration>, random: &mut Random) -> Option<Duration> {
        if self.retries + 1 >= self.policy.max_attempts {
            return None;
        }
        let guided = asked_for.filter(|_| self.policy.kind == BackoffKind::ServerGuided);
        let (base, cap) = (guided.unwrap_or(self.policy.base.duration()), self.policy.cap.duration());
        let exponential = base.saturating_mul(2_u32.saturating_pow(self.retries)).min(cap);
        let pause = match self.policy.kind {
            BackoffKind::Immediate => Duration::ZERO,
            BackoffKind::Fixed => base.min(cap),
            BackoffKind::Exponential => exponential,
            BackoffKind::FullJitter | BackoffKind::ServerGuided => exponential.mul_f64(random.unit_f64()),
            BackoffKind::EqualJitter => exponential / 2 + (exponential / 2).mul_f64(random.unit_f64()),
            BackoffKind::Decorrelated => {
                let most = self.last.saturating_mul(3).max(base);
                (base + (most - base).mul_f64(random.unit_f64())).min(cap)
            }
        };
        self.retries += 1;
        self.last = pause;
        Some(pause)
    }
}

/// From so many on pauses do not grow any more, or only by a cap that nobody writes.
const GROWING: u32 = 32;

/// The sum of the mean pauses of an operation that makes all its calls, where no server asks for a base of its own.
/// Decorrelated jitter is taken by the means of the pauses before: half of base + 3 × the last.
pub fn expected(policy: &Backoff) -> Duration {
    let (base, cap) = (policy.base.duration(), policy.cap.duration());
    let pauses = policy.max_attempts.saturating_sub(1);
    let (mut sum, mut last) = (Duration::ZERO, base);
    for n in 0..pauses.min(GROWING) {
        let exponential = base.saturating_mul(2_u32.saturating_pow(n)).min(cap);
        last = match policy.kind {
            BackoffKind::Immediate => Duration::ZERO,
            BackoffKind::Fixed => base.min(cap),
            BackoffKind::Exponential => exponential,
            BackoffKind::FullJitter | BackoffKind::ServerGuided => exponential / 2,
            BackoffKind::EqualJitter => exponential * 3 / 4,
            BackoffKind::Decorrelated => (last.saturating_mul(3).saturating_add(base) / 2).min(cap),
        };
        sum = sum.saturating_add(last);
    }
    sum.saturating_add(last.saturating_mul(pauses.saturating_sub(GROWING)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Span;

    const MS: Duration = Duration::from_millis(1);

    fn policy(kind: BackoffKind, max_attempts: u32) -> Backoff {
        let (base, cap) = (Span::from(100 * MS), Span::from(1000 * MS));
        Backoff { kind, max_attempts, base, cap }
    }

    fn pauses(kind: BackoffKind, max_attempts: u32, seed: u64) -> Vec<Duration> {
        let (mut pauses, mut random) = (Pauses::new(policy(kind, max_attempts)), Random::new(seed));
        std::iter::from_fn(|| pauses.next(&mut random)).collect()
    }

    #[test]
    fn pauses_grow_as_their_kind_says_and_end() {
        let ms = |list: [u32; 5]| list.map(|n| n * MS).to_vec();
        assert_eq!(pauses(BackoffKind::Immediate, 6, 1), ms([0; 5]));
        assert_eq!(pauses(BackoffKind::Fixed, 6, 1), ms([100; 5]));
        assert_eq!(pauses(BackoffKind::Exponential, 6, 1), ms([100, 200, 400, 800, 1000]));
        assert!(pauses(BackoffKind::Fixed, 1, 1).is_empty(), "one call is one call");
        assert_eq!(
            pauses(BackoffKind::Exponential, 60, 1).last(),
            Some(&(1000 * MS)),
            "and nothing overflows"
        );
    }

    #[test]
    fn the_expected_sum_is_what_many_operations_come_to() {
        for kind in [
            BackoffKind::Immediate,
            BackoffKind::Fixed,
            BackoffKind::Exponential,
            BackoffKind::FullJitter,
            BackoffKind::EqualJitter,
            BackoffKind::ServerGuided,
        ] {
            let sums: Duration = (0..2000).map(|seed| pauses(kind, 7, seed).iter().sum::<Duration>()).sum();
            let (seen, expected) = ((sums / 2000).as_secs_f64(), expected(&policy(kind, 7)).as_secs_f64());
            assert!((seen - expected).abs() <= expected * 0.03, "{kind:?}: {seen} and {expected}");
        }
        // 200, then 350, 575, 912.5 ms, and the cap.
        let decorrelated = [200.0, 350.0, 575.0, 912.5, 1000.0].map(|ms| ms / 1000.0);
        let expected = expected(&policy(BackoffKind::Decorrelated, 6)).as_secs_f64();
        assert!((expected - decorrelated.iter().sum::<f64>()).abs() < 1e-6, "{expected}");
        assert_eq!(super::expected(&policy(BackoffKind::Fixed, 1001)), 100_000 * MS);
    }

    #[test]
    fn a_server_that_asks_for_pauses_sets_their_base() {
        let of = |kind, asked_for: [Option<u32>; 4], seed| {
            let (mut pauses, mut random) = (Pauses::new(policy(kind, 5)), Random::new(seed));
            asked_for.map(|ms| pauses.next_after(ms.map(|ms| ms * MS), &mut random).unwrap())
        };
        for seed in 0..50 {
            // The same draws, so a base of half the length makes half the pause, as far as the cap of 1 s is not met.
            let guided = of(BackoffKind::ServerGuided, [Some(50), None, Some(25), Some(u32::MAX)], seed);
            let own = of(BackoffKind::FullJitter, [Some(50), None, Some(25), Some(u32::MAX)], seed);
            assert_eq!(guided[1], own[1], "nothing asked for leaves the plan's base");
            for (n, times) in [(0, 2), (2, 4)] {
                let expected = own[n] / times;
                assert!(guided[n].abs_diff(expected) < Duration::from_nanos(4), "{guided:?} {own:?}");
            }
            assert!(guided[3] <= 1000 * MS, "a server cannot make anybody wait beyond the cap");
        }
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bounds(seed: u64) {
            let most = pauses(BackoffKind::Exponential, 8, seed);
            for (full, most) in pauses(BackoffKind::FullJitter, 8, seed).iter().zip(&most) {
                prop_assert!(full <= most);
            }
            for (equal, most) in pauses(BackoffKind::EqualJitter, 8, seed).iter().zip(&most) {
                prop_assert!((*most / 2..=*most).contains(equal));
            }
            let mut before = 100 * MS;
            for pause in pauses(BackoffKind::Decorrelated, 8, seed) {
                prop_assert!(pause >= 100 * MS && pause <= (3 * before).min(1000 * MS), "{:?} after {:?}", pause, before);
                before = pause;
            }
        }
    }

    #[test]
    fn full_jitter_is_even_over_its_range() {
        let first: Vec<Duration> =
            (0..4000).map(|seed| pauses(BackoffKind::FullJitter, 2, seed)[0]).collect();
        let mean = first.iter().sum::<Duration>() / 4000;
        // 50 ms, and a standard error of 0.46 ms.
        assert!(mean > 48 * MS && mean < 52 * MS, "{mean:?}");
    }
}
