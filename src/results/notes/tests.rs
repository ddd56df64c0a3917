use super::*;
use crate::results::EndFacts;
use crate::results::Summary;
use crate::results::accumulated::Accumulated;
use crate::results::testing::{self, cell, snapshot};
use crate::snapshot::{ClientState, Generator, Totals};

/// Ten seconds of a plan with these many reads due and these many left open, and a hand in the last snapshot.
fn summary(
    plan: crate::plan::Plan,
    due: u64,
    left: u64,
    change: fn(&mut crate::snapshot::Snapshot),
) -> Summary {
    let mut sums = Accumulated::new(&plan);
    for second in 0..9 {
        sums.add(&plan, &snapshot(second, 1, [((1, 0), cell(due / 10, due / 10, due / 10, 0))], [0; 3]));
    }
    let mut last =
        snapshot(9, 1, [((1, 0), cell(due / 10, due / 10 - left, due / 10 - left, 0))], [left, 0, 0]);
    change(&mut last);
    sums.add(&plan, &last);
    Summary::new("run".to_owned(), testing::facts(plan), &sums, Totals::default(), EndFacts::default())
}

fn plan() -> crate::plan::Plan {
    testing::plan_with_stages(&[(10, 100.0, 100.0)])
}

fn missed_by(due: u64, left: u64, change: fn(&mut crate::snapshot::Snapshot)) -> Option<String> {
    let summary = summary(plan(), due, left, change);
    missed(&summary.facts, summary.whole())
}

#[test]
fn a_target_is_missed_by_what_was_due_and_not_started() {
    // One of the operations left open is with the driver, so eleven left are ten of a thousand not started: just 1 %.
    assert_eq!(missed_by(1000, 11, |_| ()), None);
    assert_eq!(
        missed_by(1000, 12, |_| ()).unwrap(),
        "target missed: 1000 operations were wanted in the measured time, 1000 were due and 989 started; the servers' \
         answers were the limit"
    );
}

#[test]
fn chance_is_no_miss() {
    // The root of 1000 is 32: four of them and 1 % are less than 140.
    assert_eq!(missed_by(870, 0, |_| ()), None);
    assert!(missed_by(850, 0, |_| ()).is_some());
}

#[test]
fn a_backlog_is_what_was_due_and_did_not_end() {
    let behind = |due, left, change| {
        let summary = summary(plan(), due, left, change);
        fell_behind(&summary.facts, summary.whole())
    };
    assert_eq!(behind(1000, 50, |_| ()), None, "5 %");
    let told = "not kept up with: 1000 operations were wanted in the measured time, 1000 were due and 949 ended; the \
                servers' answers were the limit";
    assert_eq!(behind(1000, 51, |_| ()), Some((told.to_owned(), false)));
    assert!(
        behind(1000, 51, |s| s.generator.cpu_ns = 20_000_000_000).is_some_and(|(_, generator)| generator)
    );
    assert!(behind(850, 0, |_| ()).is_some_and(|(told, _)| told.contains("850 were due and 850 ended")));
    // Of few operations some are always under way.
    let plan = testing::plan_with_stages(&[(10, 10.0, 10.0)]);
    let summary = summary(plan, 100, 10, |_| ());
    assert_eq!(fell_behind(&summary.facts, summary.whole()), None);
}

#[test]
fn what_was_short_is_named() {
    let limit = |change| missed_by(1000, 50, change).unwrap().split("; ").last().unwrap().to_owned();
    // Two processors for all ten seconds.
    assert!(limit(|s| s.generator.cpu_ns = 20_000_000_000).contains("processors"));
    assert!(limit(|s| s.cells.get_mut(&(1, 0)).unwrap().checkout_ns = 2_000_000_000).contains("maxPoolSize"));
    assert_eq!(
        missed_by(10_000, 1000, |s| s.generator.in_flight = 800).unwrap().split("; ").last(),
        Some("the servers' answers were the limit")
    );
    assert!(
        missed_by(20_000, 1900, |s| s.generator.in_flight = 1000).unwrap().contains("max_in_flight = 1000")
    );
}

#[test]
fn overloads_are_told_of_where_they_were_on() {
    let told = |at: i64, stopped_s: Option<u64>| {
        let mut plan = testing::overload_plan();
        plan.overloads[0].at = crate::units::Offset::seconds(at);
        let mut sums = Accumulated::new(&plan);
        sums.end_ns = 11_000_000_000;
        let end = EndFacts { stopped_ns: stopped_s.map(|s| s * 1_000_000_000), ..EndFacts::default() };
        let summary = Summary::new("run".to_owned(), testing::facts(plan), &sums, Totals::default(), end);
        let note = summary.notes.iter().any(|note| note.starts_with("these rejections"));
        (note, summary.segments.len())
    };
    assert_eq!(told(3, None), (true, 4));
    // Never, in the warm-up alone (it lasts 3 s, the warm-up 2 s), and after the run was cut at its third second.
    for (at, stopped) in [(9, None), (-3, None), (-6, None)] {
        assert_eq!(told(at, stopped), (false, 1), "{at}");
    }
    assert_eq!(told(3, Some(3)), (false, 2), "only `before` was reached");
    assert_eq!(told(-1, None), (true, 3), "it reaches into the measured time");
}

#[test]
fn readers_are_told_what_the_numbers_leave_out() {
    let quiet = |s: &Summary| s.notes.clone();
    assert_eq!(
        quiet(&summary(plan(), 1000, 0, |_| ())),
        ["p50 takes 20 successful operations, so it is left out for scan (0)"]
    );
    let mut light = testing::closed_plan(4);
    light.attempts = crate::plan::Attempts::Light;
    light.overloads = testing::overload_plan().overloads;
    light.overloads[0].at = crate::units::Offset::seconds(0);
    light.operations[1].weight = 0;
    let mut sums = Accumulated::new(&light);
    let mut slow = cell(150, 149, 149, 0);
    slow.outcomes.failed = 1;
    slow.failed_latency.record_ns(121_000_000_000);
    sums.add(&light, &snapshot(0, 1, [((1, 0), slow)], [0; 3]));
    let totals = Totals { ended: vec![150, 0, 0], attempts: 149, cut: true, ..Totals::default() };
    let summary = Summary::new("run".to_owned(), testing::facts(light), &sums, totals, EndFacts::default());
    let starts = [
        "the run was cut: 1 s of 1m were measured",
        "these rejections do not depend on load",
        "closed: latency omits waiting for a worker",
        "attempts were counted by pool events alone",
        "p99 takes 1000 successful operations, so it is left out for read (149), all (149)",
        "1 latencies above 120 s were counted as 120 s",
    ];
    assert_eq!(summary.notes.len(), starts.len(), "{:?}", summary.notes);
    for (note, start) in summary.notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}");
    }
}

#[test]
fn a_client_that_is_short_of_workers_is_named() {
    let plan = testing::groups_plan();
    let mut sums = Accumulated::new(&plan);
    let mut second = snapshot(0, 1, [((1, 0), cell(60, 60, 60, 0))], [0; 3]);
    let behind = |behind_ns| ClientState {
        generator: Generator { behind_ns, ..Generator::default() },
        ..ClientState::default()
    };
    second.clients = vec![behind(250_000_000), behind(0)];
    sums.add(&plan, &second);
    let facts = testing::facts(plan);
    let summary = Summary::new("run".to_owned(), facts, &sums, Totals::default(), EndFacts::default());
    let told = summary.notes.join("\n");
    assert!(told.contains("waited for a worker: critical/all (up to 250 ms)"), "{told}");
    assert!(told.contains("closed (batch): latency omits waiting for a worker"), "{told}");
}
