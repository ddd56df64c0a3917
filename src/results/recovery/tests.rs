use super::*;
use crate::results::testing::{self, cell, snapshot};
use crate::units::{Offset, Span};

/// A second in a hand-made series: what is due and ends well, how long it takes, and what waits.
#[derive(Clone, Copy)]
struct Load {
    offered: u64,
    ok: u64,
    latency_us: u64,
    behind_ms: u64,
}

/// As it is without an overload.
const FINE: Load = Load { offered: 100, ok: 100, latency_us: 1_000, behind_ms: 0 };
/// Half of it fails.
const SHED: Load = Load { ok: 50, ..FINE };
/// All of it ends well, but late.
const SLOW: Load = Load { latency_us: 2_001, ..FINE };
/// All of it ends well, and soon after it started, which it does late.
const BEHIND_BY_A_SECOND: Load = Load { behind_ms: 1_000, ..FINE };
/// Nothing at all.
const SILENT: Load = Load { offered: 0, ok: 0, ..FINE };

/// 2 s of warm-up, then this many measured seconds with overloads at and for so many milliseconds.
fn plan(seconds: u64, overloads: &[(i64, u64)]) -> Plan {
    let mut plan = testing::overload_plan();
    plan.load.duration = Span::seconds(seconds);
    let pattern = plan.overloads.remove(0);
    for (i, &(at_ms, for_ms)) in overloads.iter().enumerate() {
        let mut overload = pattern.clone();
        overload.name = format!("shed{i}");
        overload.at = format!("{at_ms}ms").parse::<Offset>().unwrap();
        overload.length = Duration::from_millis(for_ms).into();
        plan.overloads.push(overload);
    }
    plan
}

/// Seconds since the start of the measured time, as intervals come: cut where an overload begins or ends, too.
fn follow(plan: &Plan, series: &[(usize, Load)], stopped_s: Option<u64>) -> Vec<Recovery> {
    let mut recoveries = Recoveries::new(plan);
    let mut cuts: Vec<u64> = recoveries.watched.iter().flat_map(|w| [w.on_ns, w.off_ns]).collect();
    cuts.sort_unstable();
    let mut start_ns = 2 * SECOND;
    for load in series.iter().flat_map(|&(times, load)| vec![load; times]) {
        let end_ns = start_ns + SECOND;
        let mut from_ns = start_ns;
        let inner = cuts.iter().copied().filter(|cut| (start_ns + 1..end_ns).contains(cut));
        for to_ns in inner.chain([end_ns]) {
            let part = |count: u64| count * (to_ns - from_ns) / SECOND;
            let mut stats = cell(part(load.offered), 0, 0, 0);
            stats.outcomes.ok = part(load.ok);
            (0..part(load.ok)).for_each(|_| stats.latency.record_ns(load.latency_us * 1000));
            let mut interval =
                snapshot(0, 1, [((1, 0), stats)], [load.offered - load.ok.min(load.offered), 0, 0]);
            (interval.start_ns, interval.end_ns) = (from_ns, to_ns);
            interval.generator.behind_ns = load.behind_ms * 1_000_000;
            recoveries.add(&interval);
            from_ns = to_ns;
        }
        start_ns = end_ns;
    }
    recoveries.finish(stopped_s.map(|s| s * SECOND))
}

/// The verdict alone.
fn verdict(recovery: &Recovery) -> (Option<bool>, Option<f64>) {
    (recovery.recovered, recovery.time_to_recover_s)
}

/// 3 s before, 3 s on, and then this.
fn after(series: &[(usize, Load)]) -> (Option<bool>, Option<f64>) {
    let all: Vec<_> = [(3, FINE), (3, SHED)].iter().chain(series).copied().collect();
    let seconds = all.iter().map(|&(times, _)| times as u64).sum();
    verdict(&follow(&plan(seconds, &[(3_000, 3_000)]), &all, None)[0])
}

#[test]
fn a_dip_and_a_recovery() {
    let series = [(3, FINE), (3, SHED), (2, SHED), (4, FINE)];
    assert_eq!(
        follow(&plan(12, &[(3_000, 3_000)]), &series, None),
        [Recovery {
            overload: "shed0".to_owned(),
            kind: "fail_command",
            on_s: Some(5.0),
            off_s: Some(8.0),
            goodput_before_ops_per_s: Some(100.0),
            goodput_during_ops_per_s: Some(50.0),
            goodput_after_ops_per_s: Some(83.333),
            latency_p50_before_us: Some(1_000),
            recovered: Some(true),
            time_to_recover_s: Some(2.0),
        }]
    );
}

#[test]
fn three_good_seconds_in_a_row_make_a_recovery() {
    assert_eq!(after(&[(3, FINE)]), (Some(true), Some(0.0)), "it never got bad");
    assert_eq!(after(&[(9, SHED)]), (Some(false), None));
    assert_eq!(after(&[(2, FINE), (1, SHED), (2, FINE), (1, SHED), (2, FINE)]), (Some(false), None));
    assert_eq!(
        after(&[(2, FINE), (1, SHED), (3, FINE), (9, SHED)]),
        (Some(true), Some(3.0)),
        "the first three"
    );
}

#[test]
fn beside_one_that_goes_on_to_the_end_a_recovery_is_seen_and_the_want_of_one_is_nobodys() {
    // The second is on from the first one's end, or from before it, to the end.
    for second in [(6_000, 6_000), (4_000, 60_000)] {
        let judged = |last: &[(usize, Load)]| {
            let series: Vec<_> = [(3, FINE), (3, SHED)].iter().chain(last).copied().collect();
            let recoveries = follow(&plan(12, &[(3_000, 3_000), second]), &series, None);
            assert_eq!(verdict(&recoveries[1]), (None, None));
            verdict(&recoveries[0])
        };
        assert_eq!(judged(&[(2, SHED), (4, FINE)]), (Some(true), Some(2.0)));
        assert_eq!(judged(&[(6, SHED)]), (None, None));
    }
    // One that begins later leaves time to be judged by.
    let series = [(3, FINE), (3, SHED), (6, SHED)];
    let recoveries = follow(&plan(12, &[(3_000, 3_000), (10_000, 2_000)]), &series, None);
    assert_eq!(verdict(&recoveries[0]), (Some(false), None));
}

#[test]
fn fewer_than_three_seconds_tell_nothing() {
    assert_eq!(after(&[]), (None, None));
    assert_eq!(after(&[(2, SHED)]), (None, None));
    assert_eq!(after(&[(2, FINE)]), (None, None));
    assert_eq!(after(&[(3, SHED)]), (Some(false), None));
}

#[test]
fn what_is_late_is_not_good() {
    assert_eq!(after(&[(9, SLOW)]), (Some(false), None));
    assert_eq!(after(&[(9, BEHIND_BY_A_SECOND)]), (Some(false), None));
    assert_eq!(after(&[(1, SLOW), (1, BEHIND_BY_A_SECOND), (3, FINE)]), (Some(true), Some(2.0)));
    assert_eq!(
        after(&[(3, Load { latency_us: 1_900, behind_ms: 100, ok: 90, ..FINE })]),
        (Some(true), Some(0.0))
    );
    assert_eq!(after(&[(3, Load { ok: 89, ..FINE })]), (Some(false), None));
    // What waited for long ends together: more than is asked for, but slowly.
    assert_eq!(
        after(&[(1, Load { ok: 900, latency_us: 4_000_000, ..FINE }), (3, FINE)]),
        (Some(true), Some(1.0))
    );
}

#[test]
fn silence_is_good_only_where_nothing_was_to_do() {
    assert_eq!(after(&[(3, SILENT)]), (Some(true), Some(0.0)));
    let mut recoveries = Recoveries::new(&plan(9, &[(3_000, 3_000)]));
    for second in 2..11 {
        // Closed: what does not end keeps its worker from starting more.
        let cells = if second < 5 { vec![((1, 0), cell(100, 100, 100, 0))] } else { Vec::new() };
        let mut interval = snapshot(second, 1, [], [8, 0, 0]);
        interval.cells = cells.into_iter().collect();
        recoveries.add(&interval);
    }
    assert_eq!(verdict(&recoveries.finish(None)[0]), (Some(false), None));
}

#[test]
fn each_overload_has_its_own_time() {
    let series = [(3, FINE), (2, SHED), (4, FINE), (2, SILENT), (4, SHED)];
    let both = follow(&plan(15, &[(3_000, 2_000), (9_000, 2_000)]), &series, None);
    let goodput =
        |r: &Recovery| (r.goodput_before_ops_per_s, r.goodput_during_ops_per_s, r.goodput_after_ops_per_s);
    assert_eq!(
        both.iter().map(goodput).collect::<Vec<_>>(),
        [(Some(100.0), Some(50.0), Some(100.0)), (Some(100.0), Some(0.0), Some(50.0)),]
    );
    assert_eq!(both.iter().map(verdict).collect::<Vec<_>>(), [(Some(true), Some(0.0)), (Some(false), None)]);
}

#[test]
fn what_one_overload_left_is_no_measure_for_the_next() {
    let series = [(3, FINE), (3, SHED), (4, SLOW), (3, SHED), (4, SLOW)];
    let both = follow(&plan(17, &[(3_000, 3_000), (10_000, 3_000)]), &series, None);
    assert_eq!([0, 1].map(|i| verdict(&both[i])), [(Some(false), None); 2]);
    assert_eq!(both[1].latency_p50_before_us, Some(1_000), "as it was when all was well");
}

#[test]
fn an_overload_that_ends_within_another_has_no_time_after_it() {
    let series = [(3, FINE), (9, SHED), (4, FINE)];
    let both = follow(&plan(16, &[(3_000, 9_000), (5_000, 2_000)]), &series, None);
    assert_eq!(both.iter().map(verdict).collect::<Vec<_>>(), [(Some(true), Some(0.0)), (None, None)]);
    assert_eq!((both[1].goodput_before_ops_per_s, both[1].goodput_after_ops_per_s), (Some(100.0), None));
    // Nor has one that the next one follows at once.
    let both = follow(&plan(16, &[(3_000, 4_000), (7_000, 5_000)]), &series, None);
    assert_eq!(both.iter().map(verdict).collect::<Vec<_>>(), [(None, None), (Some(true), Some(0.0))]);
    assert_eq!((both[0].goodput_after_ops_per_s, both[1].goodput_before_ops_per_s), (None, Some(100.0)));
}

#[test]
fn one_that_is_always_on_is_how_the_servers_are() {
    let always = (0, 16_000);
    let judged = |series| {
        let both = follow(&plan(16, &[always, (3_000, 3_000)]), series, None);
        assert_eq!((verdict(&both[0]), both[0].goodput_before_ops_per_s), ((None, None), None));
        (verdict(&both[1]), both[1].goodput_before_ops_per_s)
    };
    assert_eq!(judged(&[(3, FINE), (3, SHED), (10, FINE)]), ((Some(true), Some(0.0)), Some(100.0)));
    assert_eq!(judged(&[(3, FINE), (13, SHED)]), ((Some(false), None), Some(100.0)));
}

#[test]
fn the_rest_of_a_second_is_judged_with_the_next() {
    // Off at 6.25 s; the measured time starts at a whole second.
    let plan = plan(12, &[(3_250, 3_000)]);
    let fine = follow(&plan, &[(3, FINE), (3, SHED), (6, FINE)], None);
    assert_eq!(verdict(&fine[0]), (Some(true), Some(0.0)));
    let late = follow(&plan, &[(3, FINE), (5, SHED), (4, FINE)], None);
    assert_eq!(verdict(&late[0]), (Some(true), Some(1.75)));
    assert_eq!((late[0].on_s, late[0].off_s), (Some(5.25), Some(8.25)));
    let short = follow(&plan, &[(3, FINE), (3, SHED), (3, FINE)], None);
    assert_eq!(verdict(&short[0]), (None, None), "2.75 s are no three seconds");
}

#[test]
fn intervals_that_were_merged_count_as_what_they_are() {
    let mut recoveries = Recoveries::new(&plan(12, &[(3_000, 3_000)]));
    for (from, to, ok) in [(2, 5, 300), (5, 8, 150), (8, 10, 100), (10, 13, 300)] {
        let mut interval = snapshot(from, 1, [((1, 0), cell((to - from) * 100, ok, ok, 0))], [0; 3]);
        interval.end_ns = to * SECOND;
        recoveries.add(&interval);
    }
    assert_eq!(verdict(&recoveries.finish(None)[0]), (Some(true), Some(2.0)));
}

#[test]
fn what_a_stop_leaves_out_does_not_count() {
    let plan = plan(60, &[(3_000, 3_000)]);
    // Stopped 2 s after the overload: what then still ends is neither goodput nor a good second.
    let drained = Load { offered: 0, ok: 30, ..FINE };
    let cut = follow(&plan, &[(3, FINE), (3, SHED), (2, FINE), (5, drained)], Some(10));
    assert_eq!(verdict(&cut[0]), (None, None));
    assert_eq!(cut[0].goodput_after_ops_per_s, Some(100.0));
    // What of a second came before the stop is not known.
    let mut recoveries = Recoveries::new(&plan);
    for second in 2..10 {
        recoveries.add(&snapshot(second, 1, [((1, 0), cell(100, 100, 100, 0))], [0; 3]));
    }
    let cut = recoveries.finish(Some(5 * SECOND + SECOND / 10));
    assert_eq!((cut[0].goodput_during_ops_per_s, cut[0].goodput_after_ops_per_s), (None, None));
    // Stopped later, it is known.
    let cut = follow(&plan, &[(3, FINE), (3, SHED), (4, FINE), (5, drained)], Some(12));
    assert_eq!(verdict(&cut[0]), (Some(true), Some(0.0)));
    // Stopped before it began, only the plan is.
    let cut = follow(&plan, &[(2, FINE), (5, drained)], Some(4));
    assert_eq!((cut[0].on_s, cut[0].goodput_before_ops_per_s, cut[0].recovered), (Some(5.0), None, None));
}

#[test]
fn an_overload_at_the_edge_of_the_measured_time_lacks_one_side() {
    let series = [(3, SHED), (6, FINE)];
    let from_the_start = &follow(&plan(9, &[(-1_000, 4_000)]), &series, None)[0];
    assert_eq!((from_the_start.on_s, from_the_start.off_s), (Some(2.0), Some(5.0)));
    assert_eq!(verdict(from_the_start), (None, None), "nothing is known of the time before");
    assert_eq!(from_the_start.goodput_after_ops_per_s, Some(100.0));
    let to_the_end = &follow(&plan(9, &[(3_000, 3_600_000)]), &[(3, FINE), (6, SHED)], None)[0];
    assert_eq!((to_the_end.on_s, to_the_end.off_s), (Some(5.0), Some(11.0)));
    assert_eq!((to_the_end.goodput_during_ops_per_s, verdict(to_the_end)), (Some(50.0), (None, None)));
    for outside in [(-2_000, 1_000), (9_000, 1_000)] {
        let recovery = &follow(&plan(9, &[outside]), &[(9, FINE)], None)[0];
        let nothing = Recovery {
            overload: "shed0".to_owned(),
            kind: "fail_command",
            on_s: None,
            off_s: None,
            goodput_before_ops_per_s: None,
            goodput_during_ops_per_s: None,
            goodput_after_ops_per_s: None,
            latency_p50_before_us: None,
            recovered: None,
            time_to_recover_s: None,
        };
        assert_eq!(*recovery, nothing);
    }
}

#[test]
fn memory_does_not_grow_with_time() {
    let mut recoveries = Recoveries::new(&plan(100_000, &[(3_000, 3_000)]));
    for second in 2..10_000 {
        recoveries.add(&snapshot(second, 1, [((1, 0), cell(1, 1, 1, 0))], [0; 3]));
    }
    assert_eq!((recoveries.held.len(), recoveries.held.capacity() <= 2 * HELD), (HELD, true));
}
