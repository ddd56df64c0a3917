use super::*;
use crate::results::EndFacts;
use crate::results::accumulated::Accumulated;
use crate::results::testing::{self, cell, snapshot};
use crate::snapshot::Totals;
use crate::stats::Latencies;

/// Warm-up, then 100 operations a second; while `shed` is on a fifth of the reads fails.
fn summary() -> Summary {
    let plan = testing::overload_plan();
    let mut sums = Accumulated::new(&plan);
    for second in 0..12 {
        let segment = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4][usize::try_from(second).unwrap()];
        let mut reads = if segment == 2 { cell(75, 60, 75, 75) } else { cell(75, 75, 75, 0) };
        if segment == 2 {
            (reads.outcomes.failed, reads.calls) = (15, 75);
            reads.latency_ns += 15 * 201_000_000;
            reads.backoff_ns = 75 * 40_000_000;
        }
        reads.attempt_ns = 75 * 600_000;
        reads.wait_ns = 75 * 50_000;
        let scans = cell(25, 25, 100, 0);
        sums.add(&plan, &snapshot(second, segment, [((segment, 0), reads), ((segment, 1), scans)], [0; 3]));
    }
    let every = [0, 1, 2, 3, 4];
    let ended = (0..3).map(|i| sums.merged(&every, Some(i)).outcomes.sum()).collect();
    let totals =
        Totals { ended, attempts: sums.merged(&every, None).attempts, cut: false, ..Totals::default() };
    Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, EndFacts::default())
}

#[test]
fn a_result_is_tables_and_what_to_know() {
    insta::assert_snapshot!(render(&[summary()], Path::new("results/20260101T000000Z-test-0a1b")), @"
    Trial 1: maxAdaptiveRetries=2 (repeat 1); driver rust 3.9.1, server 6.0.5; 9 s measured, target 100/s

    Latencies are those of successful operations, from the intended start:
    | operation | offered | goodput |   done | errors | lost | retries/op | amplified |   mean |    p50 |    p90 | p99 |    max |
    |-----------|---------|---------|--------|--------|------|------------|-----------|--------|--------|--------|-----|--------|
    | read      |  75.0/s |  70.0/s | 70.0/s |   6.7% | 6.7% |       0.33 |      1.33 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |
    | scan      |  25.0/s |  25.0/s | 25.0/s |   0.0% | 0.0% |       0.00 |      1.00 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |
    | all       |   100/s |  95.0/s | 95.0/s |   5.0% | 5.0% |       0.25 |      1.14 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |

    All operations, by segment of the intended start:
    | segment | offered | goodput |   done | errors |  lost | retries/op | amplified |   mean |    p50 |    p90 | p99 |    max |
    |---------|---------|---------|--------|--------|-------|------------|-----------|--------|--------|--------|-----|--------|
    | all     |   100/s |  95.0/s | 95.0/s |   5.0% |  5.0% |       0.25 |      1.14 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |
    | before  |   100/s |   100/s |  100/s |   0.0% |  0.0% |       0.00 |      1.00 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |
    | shed    |   100/s |  85.0/s | 85.0/s |  15.0% | 15.0% |       0.75 |      1.43 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |
    | after   |   100/s |   100/s |  100/s |   0.0% |  0.0% |       0.00 |      1.00 | 1.00ms | 1.00ms | 1.00ms |   - | 1.00ms |

    What came of each overload, by the time things happened:
    | overload | goodput before | during | after | p50 before | recovered |
    |----------|----------------|--------|-------|------------|-----------|
    | shed     |          100/s | 85.0/s | 100/s |     1.00ms |   at once |

    Where the mean latency went, failed operations included:
    | operation | wait | check-out | attempts | backoff |  other | = latency |
    |-----------|------|-----------|----------|---------|--------|-----------|
    | read      | 50us |       0us |    600us |  13.3ms |  350us |    14.3ms |
    | scan      |  0us |       0us |      0us |     0us | 1.00ms |    1.00ms |
    | all       | 38us |       0us |    450us |  10.0ms |  512us |    11.0ms |

    note: these rejections do not depend on load, so more retries always look better here than on a server that is really overloaded
    note: p99 takes 1000 successful operations, so it is left out for read (630), scan (225), all (855)

    Results: results/20260101T000000Z-test-0a1b
    ");
}

#[test]
fn why_operations_failed_is_told() {
    let plan = testing::overload_plan();
    let mut sums = Accumulated::new(&plan);
    let mut reads = cell(50, 0, 50, 0);
    reads.outcomes.failed = 50;
    let mut failing = snapshot(0, 1, [((1, 0), reads)], [0; 3]);
    let class = |code: Option<i32>, code_name: &str| crate::snapshot::ErrorClass {
        kind: if code.is_some() { "command" } else { "io" }.to_owned(),
        code,
        code_name: code_name.to_owned(),
        labels: Vec::new(),
    };
    let error = |segment, level, class, count, example: &str| crate::snapshot::ErrorCount {
        segment,
        operation: 0,
        level,
        class,
        count,
        first_ns: 0,
        last_ns: 0,
        example: example.to_owned(),
    };
    use crate::snapshot::ErrorLevel::{Attempt, Operation};
    let long = format!("no such command: 'frobnicate'\n{}", "x".repeat(100));
    failing.errors = vec![
        error(1, Operation, class(None, ""), 3, "\u{1b}[2Jconnection reset"),
        error(1, Operation, class(Some(59), "CommandNotFound"), 40, &long),
        error(2, Operation, class(Some(59), "CommandNotFound"), 7, &long),
        error(0, Operation, class(Some(1), "InWarmUp"), 900, "not measured"),
        error(1, Attempt, class(Some(462), "Repeated"), 900, "not the operation's"),
    ];
    sums.add(&plan, &failing);
    let totals = Totals { ended: vec![50, 0, 0], attempts: 50, cut: false, ..Totals::default() };
    let summary = Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, EndFacts::default());
    let text = trial(&summary);
    let from = text.find("Why").unwrap();
    let lines: Vec<&str> = text[from..].lines().take_while(|line| !line.starts_with("note")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    Why operations failed, the commonest first (errors.csv has all):
      47 × read: code 59 CommandNotFound, like: no such command: 'frobnicate' xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
      3 × read: io, like:  [2Jconnection reset
    ");
    assert!(text.contains("note: not one of these operations succeeded: read (errors.csv"), "{text}");
}

#[test]
fn a_recovery_is_told_in_words() {
    let told = |recovered, time_to_recover_s| {
        let mut recovery = summary().recoveries.remove(0);
        (recovery.recovered, recovery.time_to_recover_s) = (recovered, time_to_recover_s);
        let table =
            recovery_table("overload", [(recovery.overload.clone(), &recovery)].into_iter()).to_string();
        table.trim_end_matches([' ', '|']).rsplit('|').next().map(str::trim).map(str::to_owned).unwrap()
    };
    assert_eq!(told(Some(true), Some(2.25)), "after 2.25 s");
    assert_eq!(told(Some(true), Some(0.0)), "at once");
    assert_eq!(told(Some(false), None), "did not recover");
    assert_eq!(told(None, None), "not known");
}

#[test]
fn staleness_is_told_by_role() {
    let mut probed = summary();
    assert!(!trial(&probed).contains("stale"));
    for (role, segment, ms) in [("primary", "all", 0), ("secondary", "all", 30), ("secondary", "shed", 40)] {
        let mut times = Latencies::default();
        (0..1000).for_each(|_| times.record_or_none_ns(ms * 1_000_000));
        let (segment, role) = (segment.to_owned(), role.to_owned());
        probed.staleness.push(RoleStaleness { segment, role, times });
    }
    let text = trial(&probed);
    let table = text.split("How stale").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(table, @"
     reads were, by the server's role (0 is a read that saw everything):
    | role      | reads |    p50 |    p99 |    max |
    |-----------|-------|--------|--------|--------|
    | primary   |  1000 |    0us |    0us |    0us |
    | secondary |  1000 | 30.0ms | 30.0ms | 30.0ms |
    ");
}

#[test]
fn thresholds_are_told_with_what_was_seen() {
    let mut held = summary();
    assert!(!trial(&held).contains("Thresholds"));
    let fail_if = ["error_rate > 4%", "segment.shed.op.read.goodput < 50/s", "latency_p99 > 50ms"];
    held.facts.plan.thresholds.fail_if = fail_if.map(|text| text.parse().unwrap()).into();
    let text = trial(&held);
    let table = text.split("\n\n").find(|part| part.starts_with("Thresholds")).unwrap();
    insta::assert_snapshot!(table, @"
    Thresholds:
    | fails if                            |    seen | verdict |
    |-------------------------------------|---------|---------|
    | error_rate > 4%                     |    5.0% |  FAILED |
    | segment.shed.op.read.goodput < 50/s |  60.0/s |  passed |
    | latency_p99 > 50ms                  | no data |  FAILED |
    ");

    let mut other = summary();
    (other.facts.trial, other.facts.variant) = (2, "maxAdaptiveRetries=5".to_owned());
    other.facts.plan.thresholds.fail_if = vec!["goodput < 1/s".parse().unwrap()];
    let text = matrix(&[held, other.clone()]);
    let table = text.split("\n\n").find(|part| part.starts_with("Thresholds")).unwrap();
    insta::assert_snapshot!(table, @"
    Thresholds: 2 of 4 FAILED:
    | trial: variant (repeat)     |           fails if |    seen |
    |-----------------------------|--------------------|---------|
    | 1: maxAdaptiveRetries=2 (1) |    error_rate > 4% |    5.0% |
    | 1: maxAdaptiveRetries=2 (1) | latency_p99 > 50ms | no data |
    ");
    assert!(matrix(&[other.clone(), other]).contains("\n\nThresholds: all 2 passed\n"));
}

#[test]
fn broken_sums_come_before_the_numbers() {
    let mut broken = summary();
    broken.broken.push("3 read operations ended, but 2 outcomes were recorded".to_owned());
    let text = trial(&broken);
    let (warning, table) = (text.find("BROKEN: 3 read").unwrap(), text.find("| operation").unwrap());
    assert!(warning < table && text.contains("DO NOT ADD UP"));
}

#[test]
fn the_closed_model_shows_no_offered_rate() {
    let plan = testing::closed_plan(4);
    let mut sums = Accumulated::new(&plan);
    sums.add(&plan, &snapshot(0, 1, [((1, 0), cell(50, 50, 50, 0))], [0; 3]));
    let totals = Totals { ended: vec![50, 0, 0], attempts: 50, cut: false, ..Totals::default() };
    let closed = Summary::new("run".to_owned(), testing::facts(plan), &sums, totals, EndFacts::default());
    let text = trial(&closed);
    let row: Vec<&str> =
        text.lines().find(|l| l.contains("| read")).unwrap().split('|').map(str::trim).collect();
    assert_eq!(row[1..6], ["read", "-", "50.0/s", "50.0/s", "0.0%"]);
    assert!(text.contains("note: closed: latency omits waiting"));
}
