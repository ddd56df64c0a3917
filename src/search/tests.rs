use proptest::prelude::*;

use super::*;

/// No search of these tests may take more trials, whatever comes of them.
const MOST_TRIALS: usize = 200;

fn search() -> Search {
    Search { first: 100.0, ceiling: 1e7 }
}

/// A whole search of a deployment that answers each trial, and how it ended.
fn run(search: Search, mut holds: impl FnMut(Role, f64) -> bool) -> (Vec<Tried>, Ending) {
    let mut history = Vec::new();
    loop {
        match search.next(&history) {
            Next::End(ending) => return (history, ending),
            Next::Try(role, rate) => {
                let held = holds(role, rate);
                history.push(Tried { role, rate, held });
            }
        }
        assert!(history.len() < MOST_TRIALS, "{history:?}");
    }
}

fn told(history: &[Tried]) -> Vec<String> {
    let word = |held| if held { "holds" } else { "fails" };
    history.iter().map(|t| format!("{} {} {}", t.role.name(), t.rate, word(t.held))).collect()
}

/// The next number from 0 to 1 of a small generator, the same in each run.
fn chance(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    f64::from(u32::try_from(*state >> 32).unwrap()) / f64::from(u32::MAX)
}

fn count(history: &[Tried], role: Role) -> usize {
    history.iter().filter(|tried| tried.role == role).count()
}

#[test]
fn it_doubles_bisects_and_confirms() {
    let (history, ending) = run(search(), |_, rate| rate <= 300.0);
    assert_eq!(
        told(&history),
        [
            "step 100 holds",
            "step 200 holds",
            "step 400 fails",
            "baseline 100 holds",
            "step 283 holds",
            "step 336 fails",
            "baseline 100 holds",
            "step 308 fails",
            "baseline 100 holds",
            "step 295 holds",
            "confirm 295 holds",
        ]
    );
    assert_eq!(ending, Ending::Found);
    let known = Known::of(&history);
    assert_eq!((known.confirmed, known.failed), (Some(295.0), Some(308.0)));
}

#[test]
fn a_first_rate_that_fails_is_halved_and_what_failed_on_the_way_is_tried_again() {
    let (history, ending) = run(Search { first: 800.0, ..search() }, |_, rate| rate <= 210.0);
    let told = told(&history);
    assert_eq!(
        told[..6],
        [
            "step 800 fails",
            "step 400 fails",
            "step 200 holds",
            "step 400 fails",
            "baseline 200 holds",
            "step 283 fails"
        ]
    );
    let known = Known::of(&history);
    assert_eq!((ending, known.confirmed), (Ending::Found, Some(209.0)), "{told:?}");
}

#[test]
fn a_failure_right_after_another_one_says_nothing() {
    // The first trial spoils the second: the deployment can do 500/s.
    let mut trials = 0;
    let (history, ending) = run(Search { first: 800.0, ..search() }, |_, rate| {
        trials += 1;
        rate <= 500.0 && trials != 2
    });
    let confirmed = Known::of(&history).confirmed.unwrap();
    assert!(ending == Ending::Found && (476.0..=500.0).contains(&confirmed), "{history:?}");
}

#[test]
fn where_nothing_holds_it_ends_at_the_floor() {
    let (history, ending) = run(Search { first: 1000.0, ..search() }, |_, _| false);
    let rates: Vec<f64> = history.iter().map(|tried| tried.rate).collect();
    assert_eq!(rates, [1000.0, 500.0, 250.0, 125.0, 62.5, 31.2, 15.6]);
    assert_eq!(ending, Ending::NoneHeld);
}

#[test]
fn where_nothing_fails_it_ends_at_the_ceiling() {
    let (history, ending) = run(Search { first: 100.0, ceiling: 1000.0 }, |_, _| true);
    let rates: Vec<f64> = history.iter().map(|tried| tried.rate).collect();
    assert_eq!(rates, [100.0, 200.0, 400.0, 800.0, 1000.0, 1000.0]);
    assert_eq!((ending, Known::of(&history).failed), (Ending::Found, None));
}

#[test]
fn a_deployment_that_comes_back_late_is_waited_for() {
    // Each overload is felt for three trials more.
    let mut suffers = 0_u32;
    let (history, ending) = run(search(), |_, rate| {
        let well = suffers == 0;
        suffers = if rate > 300.0 { 3 } else { suffers.saturating_sub(1) };
        well && rate <= 300.0
    });
    let known = Known::of(&history);
    assert_eq!((known.confirmed, known.failed), (Some(295.0), Some(308.0)), "{history:?}");
    assert_eq!((ending, count(&history, Role::Baseline)), (Ending::Found, 3 * 4));
}

#[test]
fn a_deployment_that_does_not_come_back_is_a_finding() {
    let mut collapsed = false;
    let (history, ending) = run(search(), |_, rate| {
        collapsed |= rate > 300.0;
        !collapsed
    });
    assert_eq!((ending, count(&history, Role::Baseline)), (Ending::NeverBack, PATIENCE));
    let known = Known::of(&history);
    assert_eq!((known.held, known.failed, known.confirmed), (Some(200.0), Some(400.0), None));
}

#[test]
fn what_does_not_hold_for_longer_is_lowered_and_bisected_again() {
    // For the time of a step 300/s go well, for longer 240/s.
    let (history, ending) =
        run(search(), |role, rate| rate <= if role == Role::Confirm { 240.0 } else { 300.0 });
    let confirmations = told(&history).into_iter().filter(|told| told.starts_with("confirm"));
    assert_eq!(
        confirmations.collect::<Vec<_>>(),
        [
            "confirm 295 fails",
            "confirm 283 fails",
            "confirm 238 holds",
            "confirm 260 fails",
            "confirm 249 fails"
        ]
    );
    let known = Known::of(&history);
    assert_eq!((ending, known.confirmed, known.failed), (Ending::Found, Some(238.0), Some(249.0)));
}

#[test]
fn where_nothing_holds_for_longer_it_goes_below_the_first_rate_and_ends() {
    let (history, ending) = run(search(), |role, rate| role != Role::Confirm && rate <= 120.0);
    assert_eq!((ending, count(&history, Role::Confirm)), (Ending::NoneConfirmed, MOST_CONFIRMATIONS));
    let confirmed: Vec<f64> =
        history.iter().filter(|t| t.role == Role::Confirm).map(|tried| tried.rate).collect();
    assert!(
        confirmed.is_sorted_by(|a, b| a > b) && confirmed[MOST_CONFIRMATIONS - 1] < 100.0,
        "{confirmed:?}"
    );
}

#[test]
fn rates_have_three_digits() {
    let rates = [565.685_4, 15.625, 1234.5, 0.031_25, 100.0, 9_999_999.0].map(rounded);
    assert_eq!(rates, [566.0, 15.6, 1230.0, 0.0312, 100.0, 10_000_000.0]);
}

/// That each trial follows from what was known: it lies between what held and what failed, repeats what held for longer, or
/// asks whether the deployment is back.
fn assert_in_order(search: Search, history: &[Tried]) {
    for (i, tried) in history.iter().enumerate() {
        let known = Known::of(&history[..i]);
        assert_eq!(search.next(&history[..i]), Next::Try(tried.role, tried.rate), "the same after the same");
        let after_failure = i > 0 && !history[i - 1].held;
        if tried.role == Role::Baseline {
            assert!(after_failure && Some(tried.rate) == known.lowest, "{history:?}");
        } else {
            assert!(!after_failure || known.lowest.is_none(), "{history:?}");
            assert!(known.failed.is_none_or(|failed| tried.rate < failed), "{history:?}");
            let above = |held: Option<f64>| held.is_none_or(|held| tried.rate > held);
            let longer = tried.role == Role::Confirm && known.held == Some(tried.rate);
            assert!(longer || above(known.confirmed.or(known.held)), "{history:?}");
        }
        // What is known to fail never becomes more.
        let after = Known::of(&history[..=i]).failed;
        assert!(known.failed.is_none_or(|before| after.is_some_and(|now| now <= before)), "{history:?}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "few trials")]
fn trials(history: &[Tried]) -> f64 {
    history.len() as f64
}

proptest! {
    #[test]
    fn a_sharp_edge_is_found(capacity in 2.0_f64..1e6, first in 1.0_f64..1e4) {
        let search = Search { first, ..search() };
        let (history, ending) = run(search, |_, rate| rate <= capacity);
        assert_in_order(search, &history);
        // Between these the last halving decides.
        if capacity < first / 70.0 {
            prop_assert_eq!(ending, Ending::NoneHeld);
        } else if capacity > first / 60.0 {
            prop_assert_eq!(ending, Ending::Found);
            let known = Known::of(&history);
            let (found, failed) = (known.confirmed.unwrap(), known.failed.unwrap());
            prop_assert!(found <= capacity && capacity < failed && failed / found <= NEAR, "{:?}", history);
            // Doubling or halving, then bisecting, with a baseline after each failure, then the confirmation.
            let most = 2.0 * ((capacity / first).log2().abs() + 8.0) + 1.0;
            prop_assert!(trials(&history) <= most, "{:?}", history);
        }
    }

    #[test]
    fn a_noisy_edge_is_found_as_far_as_there_is_one(capacity in 150.0_f64..1e5, mut seed: u64) {
        // Within a tenth of the capacity it is a matter of luck.
        let (history, ending) = run(search(), |_, rate| rate < capacity * (0.9 + 0.2 * chance(&mut seed)));
        assert_in_order(search(), &history);
        prop_assert_eq!(ending, Ending::Found);
        let found = Known::of(&history).confirmed.unwrap();
        prop_assert!((capacity * 0.85..capacity * 1.1).contains(&found), "{}: {:?}", found, history);
    }

    #[test]
    fn whatever_comes_of_its_trials_it_ends(first in 0.001_f64..1e7, share in 0.0_f64..1.0, mut seed: u64) {
        let search = Search { first, ..search() };
        let (history, _) = run(search, |_, _| chance(&mut seed) < share);
        assert_in_order(search, &history);
    }
}
