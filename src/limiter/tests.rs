use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::units::Span;

const SECOND: u64 = 1_000_000_000;

fn limit(rate: u32, burst_ms: u64, queue_depth: u32) -> Limit {
    let burst = Span::from(Duration::from_millis(burst_ms));
    Limit { rate: NonZeroU32::new(rate).unwrap(), burst, queue_depth }
}

fn limiter(rate: u32, burst_ms: u64, queue_depth: u32) -> Limiter {
    Limiter::new(Some(limit(rate, burst_ms, queue_depth)), 0)
}

/// How many of those who ask at these times are let in at once.
fn admitted(limiter: &mut Limiter, times: impl IntoIterator<Item = u64>) -> u64 {
    times.into_iter().map(|now| u64::from(limiter.ask(now) == Decision::Admit)).sum()
}

#[test]
fn starts_full_and_rejects_below_one_token() {
    let mut limiter = limiter(20, 1000, 0);
    assert_eq!(limiter.counters(0).available_tokens, 20);
    assert_eq!(admitted(&mut limiter, [0; 25]), 20);
    // The next token takes 50 ms to come, to the nanosecond.
    assert_eq!(limiter.ask(50_000_000 - 1), Decision::Reject);
    assert_eq!(limiter.ask(50_000_000), Decision::Admit);
    let counters = limiter.counters(50_000_000);
    assert_eq!((counters.attempted, counters.successful, counters.rejected), (27, 21, 6));
    assert_eq!(limiter.counters(3600 * SECOND).available_tokens, 20, "it never holds more than its capacity");
}

#[test]
fn a_capacity_below_one_token_rejects_everything() {
    let mut limiter = limiter(9, 100, 0);
    assert_eq!(admitted(&mut limiter, (0..100).map(|second| second * SECOND)), 0);
}

#[test]
fn without_a_limit_all_pass_and_nothing_is_counted() {
    let mut limiter = Limiter::new(None, 0);
    assert_eq!(admitted(&mut limiter, [0; 1000]), 1000);
    limiter.exempt();
    assert_eq!(limiter.counters(SECOND), LimiterCounters::default());
}

#[test]
fn the_exempt_cost_nothing() {
    let mut limiter = limiter(1, 1000, 0);
    limiter.exempt();
    assert_eq!(limiter.ask(0), Decision::Admit);
    let counters = limiter.counters(0);
    assert_eq!((counters.exempted, counters.attempted), (1, 1));
}

#[test]
fn a_queue_gives_out_the_times_at_which_tokens_come() {
    let mut limiter = limiter(10, 100, 3);
    let decisions: Vec<_> = (0..5).map(|_| limiter.ask(0)).collect();
    let wait = |tenths| Decision::WaitUntil(tenths * SECOND / 10);
    assert_eq!(decisions, [Decision::Admit, wait(1), wait(2), wait(3), Decision::Reject]);
    assert_eq!(limiter.counters(0).queue_length, 3);
    limiter.leave_queue(true);
    // Room for one; it stands behind the two who still wait.
    assert_eq!(limiter.ask(SECOND / 10), wait(4));
    // Who goes away returns a token, which the next one gets the earlier.
    limiter.leave_queue(false);
    assert_eq!(limiter.ask(SECOND / 10), wait(4));
    let counters = limiter.counters(SECOND / 10);
    assert_eq!((counters.attempted, counters.successful, counters.rejected), (7, 2, 1));
    assert_eq!((counters.interrupted, counters.queue_length), (1, 3));
}

#[test]
fn another_limit_keeps_the_tokens_and_a_new_one_starts_full() {
    let mut limiter = limiter(100, 1000, 0);
    assert_eq!(admitted(&mut limiter, [0; 200]), 100);
    limiter.configure(Some(limit(1000, 1000, 0)), 0);
    assert_eq!(limiter.ask(0), Decision::Reject, "a higher limit comes without a gift");
    limiter.configure(Some(limit(10, 1000, 0)), SECOND);
    assert_eq!(limiter.counters(SECOND).available_tokens, 10, "what does not fit is lost");
    assert_eq!(admitted(&mut limiter, [SECOND; 20]), 10);
    limiter.configure(Some(limit(10, 1000, 0)), SECOND);
    assert_eq!(limiter.ask(SECOND), Decision::Reject, "the same limit again changes nothing");
    limiter.configure(None, SECOND);
    assert_eq!(limiter.ask(SECOND), Decision::Admit);
    limiter.configure(Some(limit(10, 1000, 0)), SECOND);
    assert_eq!(admitted(&mut limiter, [SECOND; 20]), 10, "switched on anew it is full");
}

#[test]
fn the_extremes_do_not_overflow() {
    let mut limiter = Limiter::new(
        Some(Limit { rate: NonZeroU32::MAX, burst: Span::from(Duration::MAX), queue_depth: u32::MAX }),
        0,
    );
    assert_eq!(limiter.ask(u64::MAX), Decision::Admit);
    assert_eq!(limiter.counters(u64::MAX).available_tokens, u64::MAX);
}

proptest! {
    /// Against arithmetic that knows nothing of buckets: whenever people come, no more pass than the bucket held at first
    /// and what has come since.
    #[test]
    fn never_admits_more_than_there_is(
        rate in 1_u32..5000,
        burst_ms in 0_u64..3000,
        gaps in prop::collection::vec(0_u64..20_000_000, 1..500),
    ) {
        let mut limiter = limiter(rate, burst_ms, 0);
        let capacity = u128::from(rate) * u128::from(burst_ms) * 1_000_000;
        let (mut now, mut passed) = (0_u64, 0_u128);
        for gap in gaps {
            now += gap;
            passed += u128::from(limiter.ask(now) == Decision::Admit);
            prop_assert!(passed * 1_000_000_000 <= capacity + u128::from(now) * u128::from(rate));
        }
    }

    #[test]
    fn admits_all_of_it_when_more_is_offered(
        rate in 1_u32..5000, burst_ms in 1_u64..3000, percent in 101_u64..400, seconds in 1_u64..20,
    ) {
        prop_assume!(u64::from(rate) * burst_ms >= 2000);
        let mut limiter = limiter(rate, burst_ms, 0);
        let offered = u64::from(rate) * percent / 100 + 1;
        // All that the bucket holds at once, then evenly. Whoever is rejected finds less than one token, and until the next
        // arrival there comes less than one more, so none is lost to a bucket that holds two.
        let held = u64::from(rate) * burst_ms / 1000;
        let mut passed = admitted(&mut limiter, std::iter::repeat_n(0, usize::try_from(held).unwrap()));
        passed += admitted(&mut limiter, (1..=offered * seconds).map(|i| i * SECOND / offered));
        let expected = (u64::from(rate) * (burst_ms + seconds * 1000)) / 1000;
        prop_assert!(passed <= expected && passed + 1 >= expected, "{passed} of {expected}");
    }

    #[test]
    fn rejects_none_below_its_rate(rate in 5_u32..5000, burst_ms in 200_u64..2000, seconds in 1_u64..20) {
        let mut limiter = limiter(rate, burst_ms, 0);
        let offered = u64::from(rate) * 8 / 10;
        let times = (0..offered * seconds).map(|i| i * SECOND / offered);
        prop_assert_eq!(admitted(&mut limiter, times), offered * seconds);
    }

    /// Whoever waits gets in at the time of a token of their own, in order of arrival, and never later than the queue's
    /// depth takes to pay.
    #[test]
    fn a_queue_is_first_come_first_served(
        rate in 1_u32..2000, depth in 1_u32..50, gaps in prop::collection::vec(0_u64..5_000_000, 1..300),
    ) {
        let mut limiter = limiter(rate, 1000, depth);
        let mut waiting = std::collections::VecDeque::new();
        let (mut now, mut last, mut passed) = (0, 0, 0_u128);
        for gap in gaps {
            now += gap;
            while waiting.front().is_some_and(|&time| time <= now) {
                waiting.pop_front();
                limiter.leave_queue(true);
                passed += 1;
            }
            match limiter.ask(now) {
                Decision::Admit => passed += 1,
                Decision::WaitUntil(time) => {
                    prop_assert!(time > now && time >= last);
                    prop_assert!(time - now <= u64::from(depth) * SECOND / u64::from(rate) + 1);
                    last = time;
                    waiting.push_back(time);
                }
                Decision::Reject => prop_assert_eq!(waiting.len(), usize::try_from(depth).unwrap()),
            }
            prop_assert!(passed <= u128::from(rate) + u128::from(now) * u128::from(rate) / u128::from(SECOND));
            let counters = limiter.counters(now);
            prop_assert_eq!(
                counters.attempted,
                counters.successful + counters.rejected + u64::from(counters.queue_length)
            );
        }
    }
}
