use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::plan::Signal;
use crate::units::Span;

const MS: u64 = 1_000_000;

fn allowance(law: BudgetLaw) -> Allowance {
    Allowance::new(&Budget { signal: Signal::Operation, law })
}

fn reply(verdict: Verdict, now_ns: u64) -> Reply {
    Reply { verdict, started_ns: now_ns, ended_ns: now_ns, in_flight: 1 }
}

/// Retries that are allowed until one is not.
fn retries(allowance: &mut Allowance) -> usize {
    let mut random = Random::new(1);
    std::iter::from_fn(|| allowance.allows(Call::Retry, 0, &mut random).then_some(())).take(10_000).count()
}

#[test]
fn tokens_pay_for_retries_and_come_back_with_successes() {
    let mut tokens = allowance(BudgetLaw::TOKEN_BUCKET);
    assert_eq!(retries(&mut tokens), 1000);
    assert!(tokens.allows(Call::First, 0, &mut Random::new(1)), "first calls are free");
    for successes in [9, 10, 11] {
        for _ in 0..successes {
            tokens.told(&reply(Verdict::Served, 0));
        }
        tokens.told(&reply(Verdict::Rejected, 0));
        assert_eq!(retries(&mut tokens), [0, 1, 2][successes - 9], "after {successes} more");
    }
    for _ in 0..20_000 {
        tokens.told(&reply(Verdict::Served, 0));
    }
    assert_eq!(retries(&mut tokens), 1000, "never more than its capacity");
    tokens.retried(0);
    assert_eq!(retries(&mut tokens), 0, "what nobody asked about makes no debts");
}

fn throttle(k: f64) -> Throttle {
    Throttle { k, calls: Window::new(Span::seconds(120).duration()) }
}

#[test]
fn the_chance_is_that_of_the_formula() {
    // (requests, accepts, k, chance), each worked out by hand.
    for (requests, accepts, k, chance) in [
        (0, 0, 2.0, 0.0),
        (100, 50, 2.0, 0.0),
        (100, 49, 2.0, 2.0 / 101.0),
        (100, 30, 2.0, 40.0 / 101.0),
        (100, 0, 2.0, 100.0 / 101.0),
        (100, 80, 1.1, 12.0 / 101.0),
        (100, 100, 2.0, 0.0),
    ] {
        let mut throttle = throttle(k);
        throttle.calls.add(0, requests, accepts);
        assert!((throttle.chance(0) - chance).abs() < 1e-9, "{requests} {accepts} {k}");
    }
}

#[test]
fn what_is_sent_comes_to_k_times_what_is_accepted() {
    for (k, capacity) in [(2.0, 100), (1.5, 100), (2.0, 20)] {
        let law = BudgetLaw::Throttle { k, window: Span::seconds(10) };
        let (mut allowance, mut random) = (allowance(law), Random::new(7));
        let limit = crate::plan::Limit {
            rate: NonZeroU32::new(capacity).unwrap(),
            burst: Span::seconds(1),
            queue_depth: 0,
        };
        let mut server = crate::limiter::Limiter::new(Some(limit), 0);
        let (mut sent, mut accepted) = (0_u32, 0_u32);
        // 1000/s offered for a minute, of which the last half is looked at.
        for n in 0..60_000 {
            let now = n * MS;
            if allowance.allows(Call::First, now, &mut random) {
                let served = server.ask(now) == crate::limiter::Decision::Admit;
                allowance.told(&reply(if served { Verdict::Served } else { Verdict::Rejected }, now));
                if n >= 30_000 {
                    sent += 1;
                    accepted += u32::from(served);
                }
            }
        }
        let per_accepted = f64::from(sent) / f64::from(accepted);
        assert!((per_accepted / k - 1.0).abs() < 0.05, "{per_accepted} sent per accepted, not {k}");
        assert!(
            (f64::from(accepted) / (30.0 * f64::from(capacity)) - 1.0).abs() < 0.02,
            "{accepted} accepted"
        );
    }
}

#[test]
fn a_server_that_takes_everything_is_sent_everything() {
    let (mut throttle, mut random) = (allowance(BudgetLaw::THROTTLE), Random::new(1));
    let untouched = random.clone();
    for n in 0..1000 {
        assert!(throttle.allows(Call::First, n * MS, &mut random));
        throttle.told(&reply(Verdict::Served, n * MS));
    }
    assert_eq!(random, untouched, "where chance decides nothing, nothing is drawn");
}

proptest! {
    /// retries ≤ capacity + per_success × successes, at any time and in any order.
    #[test]
    fn retries_are_paid_for(
        capacity in 0_u32..20,
        hundredths in 0_u32..=100,
        steps in prop::collection::vec(any::<bool>(), 0..500),
    ) {
        let law = BudgetLaw::TokenBucket { capacity, per_success: f64::from(hundredths) / 100.0 };
        let (mut allowance, mut random) = (allowance(law), Random::new(1));
        let (mut retries, mut successes) = (0, 0);
        for retry in steps {
            if retry {
                retries += u32::from(allowance.allows(Call::Retry, 0, &mut random));
            } else {
                successes += 1;
                allowance.told(&reply(Verdict::Served, 0));
            }
            prop_assert!(100 * retries <= 100 * capacity + hundredths * successes);
            let Allowance::Tokens(tokens) = &allowance else { unreachable!() };
            prop_assert!(tokens.left() <= u64::from(capacity));
        }
    }
}
