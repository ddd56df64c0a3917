//! Every column is fed a number of its own, so that two that are mixed up are found, in both of the wide tables.

use super::*;
use crate::results::accumulated::Accumulated;
use crate::results::intervals::{Interval, for_each_row};
use crate::results::testing::{self, snapshot};
use crate::results::{EndFacts, csv_file};
use crate::snapshot::Totals;
use crate::stats::{Latencies, OpStats, Outcomes};
use serde::Serialize;
use std::collections::BTreeMap;

/// The times 1, 2, … 10000, each this many microseconds: what lies where is known without any histogram.
fn times(factor: u64) -> Latencies {
    let mut times = Latencies::default();
    (1..=10_000).for_each(|n| times.record_ns(n * factor * 1000));
    times
}

/// Each distribution's column prefix and factor.
const FACTORS: [(&str, u64); 7] = [
    ("latency", 2),
    ("service", 3),
    ("failed_latency", 5),
    ("attempt_ok", 7),
    ("attempt_rejected", 11),
    ("checkout", 13),
    ("lag", 17),
];

/// Each count's column and value.
const COUNTS: [(&str, u64); 17] = [
    ("offered", 1000),
    ("ops_ok", 500),
    ("ops_failed", 200),
    ("ops_gave_up", 150),
    ("ops_timed_out", 100),
    ("ops_dropped", 90),
    ("ops_parked", 60),
    ("ops_not_started", 30),
    ("ops_in_flight", 20),
    ("calls", 811),
    ("commands", 900),
    ("attempts", 1350),
    ("retries", 450),
    ("app_retries", 11),
    ("rejected", 403),
    ("retargeted", 77),
    ("backoff_mean_us", 40_000),
];

fn stats() -> OpStats {
    let mut factors = FACTORS.iter().map(|&(_, factor)| times(factor));
    let mut next = || factors.next().unwrap();
    let mut stats = OpStats {
        offered: 1000,
        outcomes: Outcomes {
            ok: 500,
            failed: 200,
            timed_out: 100,
            dropped: 90,
            parked: 60,
            not_started: 30,
            in_flight: 20,
        },
        gave_up: 150,
        calls: 811,
        commands: 900,
        attempts: 1350,
        retries: 450,
        rejected: 403,
        retargeted: 77,
        latency: next(),
        service: next(),
        failed_latency: next(),
        attempt_ok: next(),
        attempt_rejected: next(),
        checkout: next(),
        lag: next(),
        ..OpStats::default()
    };
    stats.backoff_before(1).record_ns(30_000_000);
    stats.backoff_before(2).record_ns(50_000_000);
    stats
}

fn fields(row: impl Serialize) -> BTreeMap<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.serialize(row).unwrap();
    let text = writer.into_inner().unwrap();
    csv::Reader::from_reader(&text[..]).deserialize().next().unwrap().unwrap()
}

fn check(row: &BTreeMap<String, String>) {
    for (column, value) in COUNTS {
        assert_eq!(row[column], value.to_string(), "{column}");
    }
    let mut seen = 0;
    for (column, value) in row {
        let Some((prefix, factor, measure)) = FACTORS.iter().find_map(|(prefix, factor)| {
            let measure = column.strip_prefix(prefix)?.strip_prefix('_')?.strip_suffix("_us")?;
            Some((prefix, factor, measure))
        }) else {
            continue;
        };
        let place = match measure {
            "mean" => 5_000.5,
            "p50" => 5_000.0,
            "p90" => 9_000.0,
            "p99" => 9_900.0,
            "p99_9" => 9_990.0,
            "max" => 10_000.0,
            other => panic!("{prefix} has a {other}"),
        };
        let exact = place * f64::from(u32::try_from(*factor).unwrap());
        let told: f64 = value.parse().unwrap();
        assert!((told - exact).abs() <= exact * 0.001, "{column} is {told}, not {exact}");
        seen += 1;
    }
    assert_eq!(seen, 6 + 6 + 2 + 2 + 2 + 1 + 1);
    // 300 of the 800 that ended.
    assert_eq!((&*row["error_rate"], &*row["amplification"]), ("0.375", "1.5"));
}

#[test]
fn every_number_is_in_its_column() {
    let mut plan = testing::plan();
    plan.load.duration = crate::units::Span::seconds(1);
    let mut second = snapshot(0, 1, [((1, 0), stats())], [7, 0, 0]);
    second.generator = crate::snapshot::Generator {
        cpu_ns: 400_000_000,
        rss_bytes: 12,
        behind_ns: 3_500_000,
        workers: 14,
        in_flight: 15,
    };
    let facts = testing::facts(plan.clone());
    let mut sums = Accumulated::new(&plan);

    let mut rows = Vec::new();
    let interval = Interval {
        run_id: "id",
        facts: &facts,
        snapshot: &second,
        segment: sums.segment_of(&second),
        timestamp: "now",
        open: &[7, 2, 1],
    };
    for_each_row(interval, |row| -> Result<(), ()> {
        rows.push(fields(row));
        Ok(())
    })
    .unwrap();
    assert_eq!(rows.iter().map(|row| &*row["op"]).collect::<Vec<_>>(), ["read", "scan", "all"]);
    check(&rows[0]);
    check(&rows[2]);
    let shown = [
        "open_at_start",
        "open_at_end",
        "in_flight",
        "generator_workers",
        "behind_ms",
        "rss_bytes",
        "cpu_share",
    ];
    assert_eq!(shown.map(|name| &*rows[2][name]), ["10", "7", "15", "14", "3.5", "12", "0.4"]);
    assert_eq!(shown.map(|name| &*rows[0][name]), ["7", "7", "", "", "", "", ""]);
    // 0.4 s for the 800 that ended.
    assert_eq!(rows[2]["cpu_us_per_op"], "500.0");
    assert_eq!((&*rows[2]["offered_ops_per_s"], &*rows[2]["goodput_ops_per_s"]), ("1000.0", "500.0"));

    sums.add(&plan, &second);
    let summary = Summary::new("id".to_owned(), facts, &sums, Totals::default(), EndFacts::default());
    let rows: Vec<_> = super::summary(&summary).map(fields).collect();
    check(&rows[0]);
    check(&rows[2]);
    let shown = [
        "behind_max_ms",
        "rss_max_bytes",
        "cpu_us_per_op",
        "loss_rate",
        "duration_s",
        "goodput_ops_per_s",
        "completed_ops_per_s",
    ];
    assert_eq!(shown.map(|name| &*rows[2][name]), ["3.5", "12", "500.0", "0.5", "1.0", "500.0", "500.0"]);
    assert_eq!(rows[2].len(), csv_file::columns::<SummaryRow>().len());
}
