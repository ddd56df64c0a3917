use super::*;
use crate::results::testing::{self, cell, snapshot};
use crate::results::trial_rows;

/// Warm-up 2 s, then before, shed and after of 3 s each. Every second 100 operations are due, 75 reads and 25 scans, and
/// end in it; of the reads in shed 15 fail, and the 60 others need a retry each.
fn trial(seconds: u64, end: EndFacts) -> Summary {
    let plan = testing::overload_plan();
    let mut sums = Accumulated::new(&plan);
    for second in 0..seconds {
        let segment = match second {
            0..2 => 0,
            2..5 => 1,
            5..8 => 2,
            8..11 => 3,
            _ => 4,
        };
        let reads = if segment == 2 {
            let mut reads = cell(75, 60, 75, 75);
            reads.outcomes.failed = 15;
            reads.gave_up = 15;
            reads.calls = 75;
            for i in 0..60 {
                reads.backoff_before(1).record_ns(100_000_000);
                let served = reads.with_retries(1);
                served.ok += 1;
                served.latency.record_ns(1_000_000 * i);
            }
            reads
        } else {
            cell(75, 75, 75, 0)
        };
        sums.add(
            &plan,
            &snapshot(second, segment, [((segment, 0), reads), ((segment, 1), cell(25, 25, 100, 0))], [0; 3]),
        );
    }
    let totals = totals(&sums, seconds < 12);
    Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, end)
}

fn totals(sums: &Accumulated, cut: bool) -> Totals {
    let every = [0, 1, 2, 3, 4];
    let ended = (0..3).map(|i| sums.merged(&every, Some(i)).outcomes.sum()).collect();
    Totals { ended, attempts: sums.merged(&every, None).attempts, cut, ..Totals::default() }
}

#[test]
fn segments_are_the_measured_ones_and_the_whole() {
    let summary = trial(12, EndFacts::default());
    assert_eq!(summary.broken, Vec::<String>::new());
    let named: Vec<_> =
        summary.segments.iter().map(|s| (&*s.name, s.duration_s, s.all().stats.offered)).collect();
    assert_eq!(named, [("all", 9.0, 900), ("before", 3.0, 300), ("shed", 3.0, 300), ("after", 3.0, 300)]);
    let operations: Vec<_> = summary.whole().operations.iter().map(|o| (&*o.name, o.stats.offered)).collect();
    assert_eq!(operations, [("read", 675), ("scan", 225), ("all", 900)], "what has no weight has no row");
}

#[test]
fn rows_hold_what_was_worked_out_by_hand() {
    let summary = trial(12, EndFacts::default());
    let rows: Vec<_> = trial_rows::summary(&summary).collect();
    assert_eq!(rows.len(), 4 * 3);
    let row = |segment: &str, op: &str| rows.iter().find(|r| r.segment == segment && r.op == op).unwrap();

    let read = row("shed", "read");
    assert_eq!((read.offered, read.ops_ok, read.ops_failed, read.ops_gave_up), (225, 180, 45, 45));
    assert_eq!((read.commands, read.attempts, read.retries), (Some(225), 450, Some(225)));
    assert_eq!((read.error_rate, read.loss_rate), (Some(0.2), Some(0.2)), "45 of 225");
    assert_eq!(read.amplification, Some(2.0));
    assert_eq!(read.target_ops_per_s, Some(75.0), "three quarters of 100/s");
    assert_eq!((read.offered_ops_per_s, read.goodput_ops_per_s), (Some(75.0), Some(60.0)));
    assert_eq!(read.backoff_mean_us, Some(100_000));
    assert_eq!((read.calls, read.app_retries), (225, 0));
    assert_eq!((&*read.mechanism, &*read.model, read.workers), ("failpoint", "open", None));
    // 180 samples: ten lie beyond the 90th percentile, but not beyond the 99th.
    assert_eq!(read.latency_mean_us, Some(1000));
    assert!(read.latency_p90_us.is_some() && read.latency_p99_us.is_none());
    assert_eq!((read.cpu_us_per_op, read.behind_max_ms), (None, None));

    let all = row("all", "all");
    assert_eq!((all.offered, all.ops_ok, all.ops_failed), (900, 855, 45));
    assert_eq!((all.attempts, all.commands), (675 + 225 + 900, Some(675 + 900)));
    assert_eq!((all.error_rate, all.goodput_ops_per_s), (Some(0.05), Some(95.0)));
    assert_eq!((all.completed_ops_per_s, read.completed_ops_per_s), (Some(95.0), Some(60.0)), "all in time");
    // 0.1 s of CPU in each of 9 s, for 900 operations.
    assert_eq!(all.cpu_us_per_op, Some(1000.0));
    assert_eq!((all.rss_max_bytes, all.duration_s), (Some(1 << 20), 9.0));

    let retries: Vec<_> = trial_rows::retries(&summary).filter(|r| r.op == "read").collect();
    let counted: Vec<_> = retries.iter().map(|r| (r.segment, r.retries, r.ops_ok)).collect();
    assert_eq!(counted, [("all", 1, 180), ("shed", 1, 180)]);
    // Three times 0, 1, … 59 ms: half of them are at most 29 ms.
    assert!((29_000..29_030).contains(&retries[0].latency_p50_us.unwrap()));
    let backoff: Vec<_> = trial_rows::backoff(&summary).map(|r| (r.op, r.retry, r.count)).collect();
    assert_eq!(backoff, [("read", 1, 180), ("all", 1, 180)]);
}

/// A thousand reads a second are due for ten seconds; a hundred a second succeed while they last, then the rest does.
fn saturated(cut: bool, stopped_s: Option<u64>) -> Summary {
    let plan = testing::plan_with_stages(&[(10, 1000.0, 1000.0)]);
    let mut sums = Accumulated::new(&plan);
    for second in 0..10 {
        let left = 900 * (second + 1);
        sums.add(&plan, &snapshot(second, 1, [((1, 0), cell(1000, 100, 100, 0))], [left, 0, 0]));
    }
    let late = [((1, 0), cell(0, 9000, 9000, 0)), ((2, 0), cell(50, 50, 50, 0))];
    sums.add(&plan, &snapshot(10, 2, late, [0; 3]));
    let totals = Totals { ended: vec![10_050, 0, 0], attempts: 10_050, cut, ..Totals::default() };
    let end = EndFacts { stopped_ns: stopped_s.map(|s| s * 1_000_000_000), ..EndFacts::default() };
    Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, end)
}

#[test]
fn what_succeeds_after_the_measured_time_is_goodput_and_not_completed() {
    let summary = saturated(false, None);
    let rows: Vec<_> = trial_rows::summary(&summary).collect();
    for row in rows.iter().filter(|row| row.op == "read" || row.op == "all") {
        assert_eq!(
            (row.goodput_ops_per_s, row.completed_ops_per_s),
            (Some(1000.0), Some(100.0)),
            "{}",
            row.op
        );
    }
    assert_eq!(rows[1].completed_ops_per_s, Some(0.0), "no scan ended");
    assert_eq!(trial_rows::runs(&summary).completed_ops_per_s, Some(100.0));
    let told = |s: &Summary| s.notes.iter().any(|note| note.contains("within it 100/s succeeded"));
    assert!(told(&summary), "{:?}", summary.notes);
    let unresolved = saturated(true, None);
    assert!(told(&unresolved) && unresolved.notes[0].starts_with("the run was cut after the measured time"));
    assert!(!told(&saturated(true, Some(9))), "a cut run's late ones are those that were under way");
}

#[test]
fn a_cut_trial_counts_only_the_time_that_ran() {
    // Stopped at 6.5 s, half-way through shed; the last interval ends at 7 s.
    let end = EndFacts { stopped_ns: Some(6_500_000_000), ..EndFacts::default() };
    let summary = trial(7, end);
    let named: Vec<_> = summary.segments.iter().map(|s| (&*s.name, s.duration_s)).collect();
    assert_eq!(named, [("all", 4.5), ("before", 3.0), ("shed", 1.5)], "after was never reached");
    assert_eq!(summary.overall().target_ops_per_s, Some(100.0));
    assert_eq!(trial_rows::runs(&summary).result, "cut");
}

#[test]
fn without_overload_there_is_only_the_whole() {
    let plan = testing::closed_plan(4);
    let sums = Accumulated::new(&plan);
    let summary =
        Summary::new("run".to_owned(), testing::facts(plan), &sums, Totals::default(), EndFacts::default());
    assert_eq!(summary.segments.len(), 1);
    let rows: Vec<_> = trial_rows::summary(&summary).collect();
    let all = &rows[2];
    assert_eq!((&*all.op, &*all.model, all.workers, all.target_ops_per_s), ("all", "closed", Some(4), None));
    let rates = (all.offered_ops_per_s, all.goodput_ops_per_s, all.completed_ops_per_s);
    assert_eq!(rates, (None, None, None), "nothing ran");
    assert_eq!((all.error_rate, all.loss_rate, all.latency_mean_us), (None, None, None), "empty, never NaN");
}

#[test]
fn stretches_of_the_same_name_are_one_segment() {
    let mut plan = testing::overload_plan();
    let mut again = plan.overloads[0].clone();
    again.at = crate::units::Offset::seconds(7);
    again.length = crate::units::Span::seconds(1);
    plan.overloads.push(again);
    let sums = Accumulated::new(&plan);
    let names: Vec<_> = sums.measured().into_iter().map(|(name, parts)| (name.to_owned(), parts)).collect();
    assert_eq!(
        names,
        [
            ("before".to_owned(), vec![1]),
            ("shed".to_owned(), vec![2, 4]),
            ("between".to_owned(), vec![3]),
            ("after".to_owned(), vec![5])
        ]
    );
}
