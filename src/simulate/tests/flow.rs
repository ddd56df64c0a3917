//! What applications do about rejection, held against what it has to come to.

use super::*;
use crate::plan::{Arrivals, Breaker, ConcurrencyLimit, LimitLaw, Plan, Producer, WhenFull};
use crate::simulate::testing::Came;
use crate::snapshot::{ErrorLevel, FlowState, Snapshot};

/// Reads at this rate in steps that are always the same.
fn even(rate: f64, duration_s: u64) -> Plan {
    let mut plan = plan(rate, 1, duration_s);
    plan.operations.truncate(1);
    if let Model::Open { arrivals, .. } = &mut plan.load.model {
        *arrivals = Arrivals::Even;
    }
    plan
}

fn limited(initial: u32, floor: u32, ceiling: u32) -> Option<ConcurrencyLimit> {
    Some(ConcurrencyLimit { signal: Signal::Operation, initial, floor, ceiling, law: LimitLaw::AIMD })
}

/// Opens at half of ten, and lets a probe go after two seconds.
fn breaker() -> Option<Breaker> {
    let (window, cool_down) = (Span::seconds(10), Span::seconds(2));
    Some(Breaker { signal: Signal::Operation, threshold: 0.5, window, minimum: 10, cool_down })
}

fn queue(queue: u32, when_full: WhenFull) -> Option<Producer> {
    Some(Producer { queue, when_full })
}

/// All that is sent is rejected.
fn rejects_all() -> Fault {
    Fault::FailCommand(FailCommand {
        commands: vec!["find".to_owned()],
        probability: 1.0,
        code: 462,
        labels: vec!["SystemOverloadedError".to_owned(), "RetryableError".to_owned()],
    })
}

fn sound(came: Came) -> Came {
    assert!(came.broken.is_empty(), "{:?}", came.broken);
    came
}

/// How many operations were not sent for a reason.
fn reasons(came: &Came, kind: &str) -> u64 {
    let errors = came.intervals.iter().flat_map(|interval| &interval.errors);
    let of_kind = errors.filter(|error| error.level == ErrorLevel::Operation && error.class.kind == kind);
    of_kind.map(|error| error.count).sum()
}

/// What happened to the applications, in words.
fn told(came: &Came, kind: &str) -> Vec<(u64, String)> {
    let events = came.intervals.iter().flat_map(|interval| &interval.events);
    let of_kind = events.filter(|event| event.kind == kind);
    of_kind.map(|event| (u64::try_from(event.at_ns).unwrap() / 1_000_000, event.detail.clone())).collect()
}

fn all(came: &Came, count: impl Fn(&crate::stats::OpStats) -> u64) -> u64 {
    came.intervals.iter().flat_map(|interval| interval.cells.values()).map(count).sum()
}

/// The intervals of the measured time.
fn measured(came: &Came) -> impl Iterator<Item = &Snapshot> {
    came.intervals.iter().filter(|interval| interval.segment == 1)
}

#[test]
fn what_finds_no_place_under_the_limit_waits_in_the_queue_and_beyond_it_is_dropped() {
    let mut plan = even(40.0, 20);
    (plan.flow.limit, plan.flow.producer) = (limited(1, 1, 1), queue(4, WhenFull::Drop));
    let came = sound(came(&plan, &slow(128, 200), &driver(0)));
    // One at a time, each 200 ms and half a millisecond on the wire; four more are let out at the end.
    close(came.done(2, 20), 1.0 / 0.2005, 0.03, "goodput");
    let outcomes = came.measured.outcomes;
    assert_eq!(came.measured.offered, outcomes.ok + outcomes.dropped);
    assert_eq!(reasons(&came, "queue_full"), all(&came, |stats| stats.outcomes.dropped));
    let full = FlowState { limit: Some(1), queued: Some(4), ..FlowState::default() };
    assert!(measured(&came).all(|interval| interval.flow == full && interval.generator.in_flight == 1));
    // Five are before the one that arrives last.
    assert!((900_000..1_010_000).contains(&came.measured.latency.max_us().unwrap()));
}

#[test]
fn a_producer_that_waits_drops_nothing_and_its_queue_shows_how_much_of_what_waits_fits_into_it() {
    let mut plan = even(40.0, 10);
    (plan.flow.limit, plan.flow.producer) = (limited(1, 1, 1), queue(4, WhenFull::Block));
    // 48.8 a second are more than are due.
    let enough = sound(came(&plan, &slow(128, 20), &driver(0)));
    assert_eq!((enough.measured.outcomes.ok, enough.measured.outcomes.dropped), (400, 0));
    // Less than five a second are not.
    let late = sound(came(&plan, &slow(128, 200), &driver(0)));
    assert_eq!((late.measured.outcomes.ok, late.measured.outcomes.dropped), (400, 0));
    assert!(measured(&late).all(|interval| interval.flow.queued == Some(4)));
    let behind_ns = measured(&late).last().unwrap().generator.behind_ns;
    // In eleven seconds 54 of 440 were begun, and the next was due at 1.35 s.
    assert!((9_500_000_000..9_800_000_000).contains(&behind_ns), "{behind_ns}");
}

#[test]
fn rejections_halve_the_limit_down_to_its_floor_which_is_told_once() {
    let mut plan = even(40.0, 10);
    plan.flow.limit = limited(32, 2, 64);
    always(&mut plan, "fail", rejects_all());
    let came = sound(came(&plan, &fast(), &driver(0)));
    assert_eq!(told(&came, "limit_moved"), [(1000, "32 to 2 operations at once".to_owned())]);
    // The fifth rejection, at 100 ms, takes it there.
    let floor = told(&came, "limit_at_floor");
    assert_eq!(floor.iter().map(|(at_ms, _)| *at_ms).collect::<Vec<_>>(), [6000]);
    assert!(measured(&came).all(|interval| interval.flow.limit == Some(2)));
}

/// With c operations worked on at once, L − √L = tolerance × c: for ten, and one and a half times the shortest round trip,
/// 19.4.
#[test]
fn a_limit_by_latency_rests_where_theory_says() {
    let mut plan = plan(1200.0, 30, 25);
    plan.operations.truncate(1);
    let law = LimitLaw::Gradient { smoothing: 0.2, tolerance: 1.5, memory: Span::seconds(600) };
    plan.flow.limit = Some(ConcurrencyLimit { law, ..limited(10, 1, 200).unwrap() });
    let came = sound(came(&plan, &slow(10, 10), &driver(0)));
    let limits: Vec<u32> = measured(&came).map(|interval| interval.flow.limit.unwrap()).collect();
    assert!(limits.iter().all(|limit| (18..=21).contains(limit)), "{limits:?}");
    close(came.done(31, 55), 1000.0, 0.01, "and the servers are busy");
}

#[test]
fn an_open_breaker_lets_one_probe_through_at_a_time() {
    let mut plan = even(40.0, 20);
    (plan.flow.breaker, plan.flow.producer) = (breaker(), queue(64, WhenFull::Drop));
    always(&mut plan, "fail", rejects_all());
    let came = sound(came(&plan, &fast(), &driver(0)));
    let changes = told(&came, "breaker");
    let words: Vec<&str> = changes.iter().map(|(_, detail)| &**detail).collect();
    assert_eq!(words[..3], ["closed to open", "open to half_open", "half_open to open"]);
    // The tenth arrives at 225 ms, and then one every two seconds, when the first arrives that is due after it.
    assert_eq!((changes[0].0, changes[1].0), (225, 2250));
    let probes = words.iter().filter(|word| **word == "open to half_open").count() as u64;
    assert_eq!(probes, 10);
    assert_eq!(came.totals.attempts, 10 + probes);
    let dropped = all(&came, |stats| stats.outcomes.dropped);
    assert_eq!(reasons(&came, "breaker_open"), dropped);
    assert_eq!(dropped + 10 + probes, all(&came, |stats| stats.offered));
    assert_eq!(measured(&came).last().unwrap().flow.breaker.as_deref(), Some("open"));
}

#[test]
fn whoever_waits_at_a_breaker_goes_when_a_probe_is_served_and_a_probe_goes_once() {
    let mut plan = even(40.0, 20);
    plan.flow.breaker = breaker();
    plan.backoff = Some(crate::profile::USUAL_BACKOFF);
    always(&mut plan, "fail", rejects_all());
    // For the first 5.9 s: the tenth rejected call opens it, probes go two and four seconds later, and the third is served.
    (plan.overloads[0].at, plan.overloads[0].length) = (Offset::seconds(-1), Span::millis(5900));
    let came = sound(came(&plan, &fast(), &driver(0)));
    let (at_ms, words): (Vec<u64>, Vec<String>) = told(&came, "breaker").into_iter().unzip();
    let probe = ["open to half_open", "half_open to open"];
    let served = ["open to half_open", "half_open to closed"];
    assert_eq!(words, [&["closed to open"][..], &probe, &probe, &served].concat());
    assert!((50..226).contains(&at_ms[0]) && (6050..6240).contains(&at_ms[6]), "{at_ms:?}");
    // Ten, the two probes, which had waited longest, once each, and what was between two calls when it opened: no more than
    // the nine operations that had become due.
    let rejected = all(&came, |stats| stats.rejected);
    assert!((12..=21).contains(&rejected), "{rejected}");
    assert_eq!((came.measured.outcomes.dropped, came.measured.outcomes.ok), (0, 800));
    // What became due at 1 s waited for the third probe.
    let longest_us = came.measured.latency.max_us().unwrap();
    assert!((5_050_000..5_250_000).contains(&longest_us), "{longest_us}");
    assert!(
        measured(&came).any(|interval| interval.generator.in_flight == 0 && interval.generator.workers > 200)
    );
    // The first that found it open is how far the load is behind, but for the two that have gone as probes since.
    let first_ms = (at_ms[0] / 25 + 1) * 25;
    let oldest_ms = [(2000, 0), (3000, 25), (4000, 25), (5000, 50), (5900, 50)];
    let behind_ms: Vec<u64> =
        measured(&came).map(|interval| interval.generator.behind_ns / 1_000_000).collect();
    assert_eq!(behind_ms, oldest_ms.map(|(end_ms, gone_ms)| end_ms - first_ms - gone_ms));
    let closed = came.intervals.iter().filter(|interval| interval.end_ns >= 7_000_000_000);
    assert!(closed.map(|interval| interval.generator.behind_ns).all(|behind_ns| behind_ns == 0));
}

#[test]
fn every_client_has_a_limit_a_breaker_and_a_queue_of_its_own() {
    let mut plan = plan(900.0, 5, 30);
    plan.operations.truncate(1);
    (plan.flow.limit, plan.flow.producer) = (limited(1, 1, 1), queue(2, WhenFull::Drop));
    let hundred = |ms| Assumptions { clients: 100, ..slow(128, ms) };
    let limits = sound(came(&plan, &hundred(200), &driver(0)));
    // Each client: one worked on for 200.5 ms, two that wait, and 9 a second that arrive by chance. Erlang's loss formula
    // (M/M/1/3) says 3.7 % idle for exponential times; of fixed ones less.
    let most = 100.0 / 0.2005;
    assert!(
        limits.done(6, 35) > 0.963 * most && limits.done(6, 35) <= most * 1.001,
        "{}",
        limits.done(6, 35)
    );
    assert!(
        measured(&limits)
            .all(|interval| interval.flow.limit == Some(100) && interval.flow.queued <= Some(200))
    );

    (plan.flow.limit, plan.flow.breaker) = (None, breaker());
    always(&mut plan, "fail", rejects_all());
    let breakers = sound(came(&plan, &hundred(1), &driver(0)));
    // A hundred clients send ten each, and then one for each two seconds.
    assert_eq!(measured(&breakers).last().unwrap().flow.breaker.as_deref(), Some("open"));
    let probes = 100 * (35 / 2);
    let sent = breakers.totals.attempts;
    assert!(sent > 1000 + probes * 8 / 10 && sent <= 1000 + probes, "{sent}");
    let told = told(&breakers, "breaker");
    assert!(told.len() <= 36, "once an interval: {told:?}");
    assert!(told[0].1.ends_with(" half_open") && told[0].1.contains(" closed, "), "{told:?}");
}

/// Calls that a client leaves out by itself once servers accept too few: what it sends comes to k times what they accept.
#[test]
fn a_throttle_sends_k_times_what_is_accepted() {
    let mut limited = plan(1200.0, 60, 60);
    limited.operations.truncate(1);
    always(&mut limited, "limit", limit(300));
    let law = BudgetLaw::Throttle { k: 2.0, window: Span::seconds(20) };
    limited.flow.budget = Some(Budget { signal: Signal::Operation, law });
    limited.flow.producer = queue(64, WhenFull::Drop);
    let drops = sound(came(&limited, &fast(), &driver(0)));
    close(drops.goodput(), 300.0, 0.01, "goodput");
    close(drops.attempts(), 600.0, 0.03, "attempts");
    assert!(drops.measured.outcomes.dropped > 30_000);
    assert_eq!(reasons(&drops, "throttled"), all(&drops, |stats| stats.outcomes.dropped));

    // Workers who wait ask again, and what they send is no more.
    (limited.load.model, limited.flow.producer) = (Model::Closed { workers: 100 }, None);
    limited.load.warmup = Span::seconds(30);
    limited.load.duration = Span::seconds(30);
    let waits = sound(came(&limited, &fast(), &driver(0)));
    close(waits.goodput(), 300.0, 0.02, "goodput of workers");
    close(waits.attempts(), 600.0, 0.05, "attempts of workers");
    assert_eq!(waits.measured.outcomes.dropped, 0);
}

#[test]
fn workers_wait_for_a_place() {
    let mut plan = even(1.0, 20);
    plan.load.model = Model::Closed { workers: 32 };
    plan.flow.limit = limited(4, 4, 4);
    let came_to = sound(came(&plan, &slow(128, 20), &driver(0)));
    close(came_to.done(2, 20), 4.0 / 0.0205, 0.01, "four at a time");
    assert!(measured(&came_to).all(|interval| interval.generator.in_flight <= 4));
    plan.flow.breaker = breaker();
    always(&mut plan, "fail", rejects_all());
    let stopped = sound(came(&plan, &slow(128, 20), &driver(0)));
    // Four at a time, of which the tenth opens it: the other three of its time are under way. Then a probe for each two
    // seconds and a round trip, of 21 and the five that the end waits for those who wait.
    assert_eq!(stopped.totals.attempts, 13 + 12);
    assert_eq!(stopped.measured.offered, 12 - 4, "the first four had waited since the warm-up");
    assert!(stopped.intervals.iter().all(|interval| interval.generator.behind_ns == 0), "nothing was due");
}

/// Whatever of it goes on at once, and however early the load is cut: every operation has one outcome.
#[test]
fn nothing_is_lost_at_the_entrance() {
    for seed in 0..24 {
        let bit = |n: u64| seed >> n & 1 == 1;
        let mut plan = plan(300.0, 2, 12);
        plan.seed = seed;
        plan.load.cooldown = Span::seconds(seed % 3);
        plan.timeout = Timeout { operation: Some(Span::millis(400)), ..Timeout::default() };
        plan.backoff = Some(crate::profile::USUAL_BACKOFF);
        plan.flow.limit = bit(0).then(|| limited(4, 1, 20).unwrap());
        plan.flow.breaker = bit(1).then(|| Breaker { signal: Signal::Attempt, ..breaker().unwrap() });
        let law = BudgetLaw::Throttle { k: 2.0, window: Span::seconds(5) };
        plan.flow.budget = bit(2).then_some(Budget { signal: Signal::Operation, law });
        let when_full = if bit(3) { WhenFull::Drop } else { WhenFull::Block };
        plan.flow.producer = queue(5, when_full);
        if let Model::Open { max_in_flight, .. } = &mut plan.load.model {
            *max_in_flight = if bit(4) { 30 } else { 1000 };
        }
        always(&mut plan, "limit", limit(150));
        let came = sound(came(&plan, &Assumptions { clients: 5, ..slow(4, 15) }, &driver(1)));
        assert_eq!(came.measured.offered, came.measured.outcomes.sum(), "seed {seed}");
        let most = if bit(4) { 30 } else { 1000 };
        assert!(came.intervals.iter().all(|interval| interval.generator.in_flight <= most), "seed {seed}");
        let restrains = seed % 8 > 0;
        assert!(!(bit(3) && restrains) || came.measured.outcomes.dropped > 0, "seed {seed}");
    }
}
