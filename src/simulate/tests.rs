//! The simulation held against closed forms, and against itself.

mod flow;

use std::time::Duration;

use super::driver::ReadPreference;
use super::testing::{always, came, driver, limit, plan};
use crate::plan::flow::Signal;
use crate::plan::model::ServiceDistribution;
use crate::plan::{
    Assumptions, Backoff, BackoffKind, Budget, BudgetLaw, FailCommand, Fault, HoldTickets, Members, Model,
    Tickets, Timeout,
};
use crate::units::{Offset, Span};

/// Servers so fast that nothing but the limiter counts.
fn fast() -> Assumptions {
    Assumptions {
        service_time: Span::from(Duration::from_micros(10)),
        tickets: 100_000,
        ..Assumptions::default()
    }
}

/// One server that does `tickets` operations at a time, each in `ms`.
fn slow(tickets: u32, ms: u64) -> Assumptions {
    Assumptions {
        servers: 1,
        tickets,
        service_time: Span::millis(ms),
        service_distribution: ServiceDistribution::Fixed,
        ..Assumptions::default()
    }
}

fn close(got: f64, wanted: f64, share: f64, what: &str) {
    assert!((got / wanted - 1.0).abs() <= share, "{what}: {got}, by theory {wanted}");
}

/// Rejections that cost nothing: p = (1 − R/λ)^(1/(n+1)); goodput R, error rate 1 − R/λ whatever n is, and
/// (R/λ)/(1 − p) attempts an operation.
#[test]
fn free_rejections_come_to_what_theory_says() {
    let capacity = 300.0;
    for load in [1.2, 2.0, 3.0] {
        for retries in [0, 1, 2, 5] {
            let mut plan = plan(load * capacity, 30, 40);
            always(&mut plan, "limit", limit(300));
            let came = came(&plan, &fast(), &driver(retries));
            assert!(came.broken.is_empty(), "{:?}", came.broken);
            // Poisson arrivals are off by the root of their number.
            let share = capacity / came.offered();
            let p = (1.0 - share).powf(1.0 / f64::from(retries + 1));
            let what = format!("λ/R = {load}, n = {retries}");
            close(came.goodput(), capacity, 0.01, &format!("{what}: goodput"));
            let errors = came.measured.error_rate().unwrap();
            assert!((errors - (1.0 - share)).abs() < 0.01, "{what}: errors {errors}");
            close(
                came.measured.amplification().unwrap(),
                share / (1.0 - p),
                0.015,
                &format!("{what}: attempts"),
            );
            assert_eq!(came.measured.gave_up, came.measured.outcomes.failed);
        }
    }
}

#[test]
fn below_the_limit_nothing_is_rejected() {
    let mut plan = plan(800.0, 10, 60);
    always(&mut plan, "limit", limit(1000));
    let came = came(&plan, &fast(), &driver(5));
    let rejected = came.measured.rejected;
    assert!(rejected < 20, "{rejected}: a bucket of a hundred is seldom empty");
    assert_eq!(came.measured.outcomes.failed, 0);
}

/// Rejections that cost the share ρ of a served operation's time on a server of capacity C: G = (C − ρA)/(1 − ρ).
#[test]
fn costly_rejections_eat_the_goodput() {
    let capacity = 500.0;
    let of = |cost, retries| {
        let model = Assumptions { rejection_cost: cost, max_queue: Some(50), ..slow(5, 10) };
        let came = came(&plan(600.0, 30, 30), &model, &driver(retries));
        assert!(came.broken.is_empty(), "{:?}", came.broken);
        came
    };
    let mut before = f64::INFINITY;
    for retries in [0, 1, 2, 5] {
        let came = of(0.1, retries);
        let theory = (capacity - 0.1 * came.attempts()) / 0.9;
        close(came.goodput(), theory, 0.03, &format!("n = {retries}: goodput"));
        assert!(came.goodput() < before, "it falls as n grows");
        before = came.goodput();
    }
    // 3600 attempts of which each costs a fifth of an operation are more than 500 operations: nothing is left to serve with.
    assert!(of(0.2, 5).goodput() < 5.0);
}

/// A queue and a deadline: with n immediate retries a burst is outlived by the overload that it starts for
/// μ/(n+1) < λ < μ, and by nothing below.
#[test]
fn overload_outlives_its_cause_within_the_metastable_window() {
    let after_the_burst = |rate: f64, calls: u32| {
        // Five tickets of 50 ms: 100/s.
        let mut plan = plan(rate, 5, 90);
        plan.timeout = Timeout { operation: Some(Span::millis(500)), ..Timeout::default() };
        let (base, cap) = (Span::millis(100), Span::seconds(10));
        plan.backoff = Some(Backoff { kind: BackoffKind::Immediate, max_attempts: calls, base, cap });
        let hold = Fault::HoldTickets(HoldTickets { count: 5, hold: Span::seconds(1) });
        always(&mut plan, "burst", hold);
        (plan.overloads[0].at, plan.overloads[0].length) = (Offset::seconds(10), Span::seconds(8));
        let came = came(&plan, &slow(5, 50), &driver(0));
        assert!(came.broken.is_empty(), "{:?}", came.broken);
        close(came.done(5, 14), rate, 0.15, "before the burst");
        came.done(65, 90) / rate
    };
    for (rate, calls, recovers) in
        [(40.0, 4, false), (90.0, 2, false), (20.0, 4, true), (40.0, 2, true), (80.0, 1, true)]
    {
        let share = after_the_burst(rate, calls);
        let told = format!("{rate}/s, {calls} calls: {share} of the load afterwards");
        assert!(if recovers { share > 0.9 } else { share < 0.3 }, "{told}");
    }
}

/// A token bucket that gets back a share of a token for each success: in steady state there are that many further calls
/// for each success, and the overload of the metastable window ends soon after its cause.
#[test]
fn a_retry_budget_bounds_retries_to_its_share_and_lets_the_servers_recover() {
    let tokens = |capacity, per_success| {
        let law = BudgetLaw::TokenBucket { capacity, per_success };
        Some(Budget { signal: Signal::Operation, law })
    };
    let calls_at_once = |max_attempts| {
        let (base, cap) = (Span::millis(100), Span::seconds(10));
        Some(Backoff { kind: BackoffKind::Immediate, max_attempts, base, cap })
    };
    let mut limited = plan(600.0, 20, 60);
    always(&mut limited, "limit", limit(300));
    (limited.backoff, limited.flow.budget) = (calls_at_once(4), tokens(100, 0.1));
    let came_to = came(&limited, &fast(), &driver(0));
    assert!(came_to.broken.is_empty(), "{:?}", came_to.broken);
    close(came_to.goodput(), 300.0, 0.01, "goodput");
    let again = crate::stats::ratio(came_to.measured.app_retries(), came_to.measured.outcomes.ok).unwrap();
    assert!((again - 0.1).abs() < 0.005, "{again} further calls for each success");

    // 40/s on 100/s, four calls each, a burst of eight seconds: without a budget it never recovers.
    let mut burst = plan(40.0, 5, 60);
    burst.timeout = Timeout { operation: Some(Span::millis(500)), ..Timeout::default() };
    (burst.backoff, burst.flow.budget) = (calls_at_once(4), tokens(20, 0.1));
    always(&mut burst, "burst", Fault::HoldTickets(HoldTickets { count: 5, hold: Span::seconds(1) }));
    (burst.overloads[0].at, burst.overloads[0].length) = (Offset::seconds(10), Span::seconds(8));
    let recovered = came(&burst, &slow(5, 50), &driver(0)).done(30, 65);
    close(recovered, 40.0, 0.1, "soon after the burst");
}

#[test]
fn tickets_bound_what_a_server_does_and_holders_take_theirs() {
    let mut busy = plan(300.0, 5, 30);
    let came_to = came(&busy, &slow(128, 20), &driver(0));
    close(came_to.goodput(), 300.0, 0.02, "128 tickets");
    always(&mut busy, "few", Fault::Tickets(Tickets { read: Some(5), write: None }));
    close(came(&busy, &slow(128, 20), &driver(0)).done(6, 30), 250.0, 0.01, "five tickets of 20 ms");
    always(&mut busy, "held", Fault::HoldTickets(HoldTickets { count: 3, hold: Span::seconds(1) }));
    busy.overloads[1].at = Offset::seconds(-4);
    let held = came(&busy, &slow(128, 20), &driver(0));
    assert!(held.broken.is_empty(), "{:?}", held.broken);
    // Each holder waits in the queue with the others before it gets its ticket again, so less than three are out.
    let done = held.done(10, 30);
    assert!(done < 240.0 && done > 95.0, "{done}");
}

/// Of a queue with one server, Poisson arrivals and exponential service (M/M/1): the mean time in the system is
/// 1/(μ − λ).
#[test]
fn a_queue_takes_as_long_as_theory_says() {
    let model =
        Assumptions { service_distribution: ServiceDistribution::Exponential, rtt: Span::ZERO, ..slow(1, 1) };
    for rate in [500.0, 800.0] {
        let came = came(&plan(rate, 20, 400), &model, &driver(0));
        let mean_us = f64::from(u32::try_from(came.measured.latency.mean_us().unwrap()).unwrap());
        close(mean_us, 1e6 / (1000.0 - rate), 0.06, &format!("{rate}/s"));
    }
}

#[test]
fn a_stopped_server_answers_when_it_goes_on() {
    let mut stalled = plan(200.0, 5, 20);
    always(&mut stalled, "stop", Fault::Stall {});
    (stalled.overloads[0].at, stalled.overloads[0].length) = (Offset::seconds(5), Span::seconds(3));
    let came = came(&stalled, &slow(128, 1), &driver(2));
    assert!(came.broken.is_empty(), "{:?}", came.broken);
    assert!(came.done(10, 13) < 1.0);
    close(came.done(13, 14), 800.0, 0.2, "what had piled up");
    assert_eq!(came.measured.outcomes.failed, 0);
    let longest = came.measured.latency.max_us().unwrap();
    assert!((2_900_000..3_100_000).contains(&longest), "{longest}");
}

#[test]
fn failpoints_reject_their_share_and_what_may_not_be_retried_is_not() {
    let fail = |labels: &[&str]| {
        Fault::FailCommand(FailCommand {
            commands: vec!["find".to_owned()],
            probability: 0.5,
            code: 462,
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
        })
    };
    let of = |labels: &[&str]| {
        let mut plan = plan(500.0, 1, 60);
        always(&mut plan, "fail", fail(labels));
        came(&plan, &fast(), &driver(2))
    };
    let retried = of(&["SystemOverloadedError", "RetryableError"]);
    let errors = retried.measured.error_rate().unwrap();
    assert!((errors - 0.125).abs() < 0.01, "a half, three times: {errors}");
    close(retried.measured.amplification().unwrap(), 1.75, 0.02, "attempts");
    let overloaded = of(&["SystemOverloadedError"]);
    assert_eq!((overloaded.measured.retries, overloaded.measured.gave_up), (0, 0));
    assert!(overloaded.measured.rejected > 10_000);
    let plain = of(&[]);
    assert_eq!((plain.measured.retries, plain.measured.rejected), (0, 0));
    assert!((plain.measured.error_rate().unwrap() - 0.5).abs() < 0.02);
}

#[test]
fn retargeting_finds_the_servers_that_have_room() {
    let of = |prefers, retargets| {
        let mut plan = plan(300.0, 10, 60);
        plan.operations.truncate(1);
        always(&mut plan, "limit", limit(100));
        plan.overloads[0].members = Members::Primary;
        let driver = super::driver::Driver { prefers, retargets, ..driver(2) };
        let came = came(&plan, &fast(), &driver);
        assert!(came.broken.is_empty(), "{:?}", came.broken);
        (came.measured.error_rate().unwrap(), came.measured.retargeted)
    };
    let (errors, retargeted) = of(ReadPreference::PrimaryPreferred, false);
    assert!((errors - 2.0 / 3.0).abs() < 0.03, "{errors}");
    assert_eq!(retargeted, 0);
    let (errors, retargeted) = of(ReadPreference::PrimaryPreferred, true);
    assert!(errors < 0.001 && retargeted > 11_000, "{errors}, {retargeted}");
    assert_eq!(of(ReadPreference::Primary, true).1, 0, "nowhere else to go");
    assert_eq!(of(ReadPreference::Secondary, true).0, 0.0, "no limit there");
}

#[test]
fn pools_bound_attempts_and_the_wait_for_a_connection_is_told() {
    let model = slow(128, 10);
    let plan = plan(300.0, 5, 30);
    let tight = came(&plan, &model, &super::driver::Driver { pool: 2, ..driver(0) });
    assert!(tight.broken.is_empty(), "{:?}", tight.broken);
    // Two connections, each 10.5 ms at a time.
    close(tight.done(6, 30), 2.0 / 0.0105, 0.02, "goodput");
    assert!(tight.measured.checkout.mean_us().unwrap() > 1_000_000);
    let shared =
        came(&plan, &Assumptions { clients: 50, ..model }, &super::driver::Driver { pool: 2, ..driver(0) });
    close(shared.goodput(), 300.0, 0.02, "fifty such clients");
}

#[test]
fn closed_loads_and_bounded_ones_add_up() {
    let mut closed = plan(1.0, 2, 20);
    closed.load.model = Model::Closed { workers: 32 };
    always(&mut closed, "limit", limit(200));
    let errors: Vec<f64> = [0, 1, 2, 5]
        .map(|retries| {
            let came = came(&closed, &slow(128, 1), &driver(retries));
            assert!(came.broken.is_empty(), "{:?}", came.broken);
            close(came.goodput(), 200.0, 0.03, "goodput");
            came.measured.error_rate().unwrap()
        })
        .to_vec();
    assert!(errors[0] > 0.95 && errors.is_sorted_by(|a, b| a > b), "the knob measures itself: {errors:?}");

    let mut bounded = plan(500.0, 2, 20);
    bounded.load.cooldown = Span::seconds(3);
    if let Model::Open { max_in_flight, .. } = &mut bounded.load.model {
        *max_in_flight = 10;
    }
    // Five tickets of 20 ms: half of it is left over.
    let came = came(&bounded, &slow(5, 20), &driver(0));
    assert!(came.broken.is_empty(), "{:?}", came.broken);
    assert!(came.totals.cut && came.measured.outcomes.not_started > 4000);
    assert!(came.intervals.iter().any(|interval| interval.generator.behind_ns > 5_000_000_000));
    assert!(came.intervals.iter().all(|interval| interval.generator.in_flight <= 10));
}

#[test]
fn the_same_seed_is_the_same_to_the_last_digit() {
    let mut plan = plan(2000.0, 2, 10);
    plan.timeout = Timeout { operation: Some(Span::millis(300)), ..Timeout::default() };
    plan.backoff = Some(crate::profile::USUAL_BACKOFF);
    always(&mut plan, "limit", limit(700));
    let model = Assumptions { clients: 1000, rejection_cost: 0.1, max_queue: Some(50), ..slow(20, 10) };
    let told = |seed| {
        let mut plan = plan.clone();
        plan.seed = seed;
        let came = came(&plan, &model, &driver(2));
        assert!(came.broken.is_empty(), "{:?}", came.broken);
        format!("{:?} {:?} {:?}", came.intervals, came.events, came.totals)
    };
    assert!(told(1) == told(1));
    assert!(told(1) != told(2));
}

/// Whatever goes on at once, every operation has one outcome, and every attempt is a command's first or a retry.
#[test]
fn nothing_is_lost_or_counted_twice() {
    for seed in 0..8 {
        let mut plan = plan(400.0, 3, 15);
        plan.seed = seed;
        plan.timeout = Timeout { operation: Some(Span::millis(200 + 150 * seed)), ..Timeout::default() };
        plan.backoff = Some(crate::profile::USUAL_BACKOFF);
        plan.load.cooldown = Span::seconds(seed % 4);
        always(&mut plan, "limit", limit(300));
        always(&mut plan, "hold", Fault::HoldTickets(HoldTickets { count: 2, hold: Span::millis(300) }));
        always(&mut plan, "stop", Fault::Stall {});
        (plan.overloads[1].at, plan.overloads[1].length) = (Offset::seconds(2), Span::seconds(5));
        (plan.overloads[2].at, plan.overloads[2].length) = (Offset::seconds(9), Span::seconds(2));
        let model =
            Assumptions { servers: 3, clients: 7, max_queue: Some(20), rejection_cost: 0.3, ..slow(4, 15) };
        let prefers = ReadPreference::Nearest;
        let came =
            came(&plan, &model, &super::driver::Driver { pool: 3, prefers, retargets: true, ..driver(3) });
        assert!(came.broken.is_empty(), "seed {seed}: {:?}", came.broken);
        assert_eq!(came.measured.offered, came.measured.outcomes.sum());
        assert_eq!(came.measured.attempts, came.measured.commands + came.measured.retries);
    }
}
