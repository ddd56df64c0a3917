//! A run's tables are what their rules say, and say the same as each other.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use crate::running::{Program, Row, sum, whole};
use crate::{alone, shared_lab};

const TABLES: [&str; 8] = [
    "summary.csv",
    "intervals.csv",
    "retries.csv",
    "backoff.csv",
    "errors.csv",
    "servers.csv",
    "events.csv",
    "recovery.csv",
];

/// Columns that hold text; all others are numbers.
const TEXTS: [&str; 24] = [
    "run_id",
    "variant",
    "segment",
    "client",
    "op",
    "driver",
    "driver_version",
    "server_version",
    "mechanism",
    "model",
    "timestamp",
    "phase",
    "level",
    "kind",
    "code_name",
    "labels",
    "example",
    "server",
    "role",
    "subject",
    "detail",
    "profile",
    "overload",
    "recovered",
];

/// Whether a column holds numbers with a fraction: rates, shares, seconds and milliseconds.
fn is_real(column: &str) -> bool {
    let ends = ["_s", "_ms", "_rate", "_share", "_per_op"];
    ends.iter().any(|end| column.ends_with(end)) || column == "amplification"
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_a_run_keep_their_rules_and_agree() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let short = [
        "sample.toml",
        "--duration",
        "6s",
        "--warmup",
        "1s",
        "--set",
        "overload.rejection.at=1s",
        "--set",
        "overload.rejection.for=2s",
        "--set",
        "data.collection=tables",
    ];
    // The sample's rejections are counted by the servers themselves.
    let program = Program::new();
    let profile = include_bytes!("../../results/sample/profile.toml");
    std::fs::write(program.place().join("sample.toml"), profile).unwrap();
    let results = program.run(&lab.uri, &short);
    for name in TABLES {
        cells_are_of_their_columns_type(name, &results.table(name));
    }
    cells_are_of_their_columns_type("runs.csv", &results.table("../runs.csv"));

    let summary = results.table("summary.csv");
    assert!(summary.iter().any(|row| row["segment"] == "rejection" && whole(&row["rejected"]) > 0));
    for segment in ["all", "before", "rejection", "after"] {
        all_is_the_sum_of_its_operations(&in_segment(&summary, segment));
    }
    segments_make_the_whole(&summary);
    retries_agree(&summary, &results.table("retries.csv"));
    backoffs_agree(&summary, &results.table("backoff.csv"));
    intervals_agree(&summary, &results.table("intervals.csv"), &results.table("servers.csv"));
    errors_agree(&summary, &results.table("errors.csv"));
    events_agree(&summary, &results.table("events.csv"));
    distributions_agree(&summary, &std::fs::read(results.path.join("latency.hlog")).unwrap());
}

fn cells_are_of_their_columns_type(table: &str, rows: &[Row]) {
    assert!(!rows.is_empty(), "{table}");
    for (column, cell) in rows.iter().flatten() {
        let place = format!("{table}, {column}: '{cell}'");
        if column == "timestamp" {
            let time: jiff::Timestamp = cell.parse().expect(&place);
            assert_eq!(*cell, format!("{time:.3}"), "{place}: UTC to the millisecond");
        } else if column == "params" {
            assert!(serde_json::from_str::<serde_json::Value>(cell).unwrap().is_object(), "{place}");
        } else if column == "live" {
            assert!(matches!(cell.as_str(), "true" | "false"), "{place}");
        } else if column.starts_with("param_") || column == "result" || TEXTS.contains(&column.as_str()) {
            let control = cell.chars().any(char::is_control);
            assert!(!control, "{place}");
        } else if cell.is_empty() {
            // No data.
        } else if is_real(column) {
            let number: f64 = cell.parse().expect(&place);
            let negative_allowed = table == "events.csv" && column == "elapsed_s";
            assert!(number.is_finite() && (number >= 0.0 || negative_allowed), "{place}");
        } else {
            assert!(cell.bytes().all(|byte| byte.is_ascii_digit()), "{place} is no whole number");
            cell.parse::<u64>().expect(&place);
        }
    }
}

fn in_segment<'a>(summary: &'a [Row], segment: &str) -> Vec<&'a Row> {
    summary.iter().filter(|row| row["segment"] == segment).collect()
}

fn of<'a>(summary: &'a [Row], segment: &str, op: &str) -> &'a Row {
    summary.iter().find(|row| row["segment"] == segment && row["op"] == op).unwrap()
}

/// Columns of the summary that count.
const COUNTS: [&str; 15] = [
    "offered",
    "ops_ok",
    "ops_failed",
    "ops_gave_up",
    "ops_timed_out",
    "ops_dropped",
    "ops_parked",
    "ops_not_started",
    "ops_in_flight",
    "calls",
    "commands",
    "attempts",
    "retries",
    "rejected",
    "retargeted",
];

fn all_is_the_sum_of_its_operations(rows: &[&Row]) {
    let (all, operations): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row["op"] == "all");
    assert_eq!((all.len(), operations.len()), (1, 3));
    for column in COUNTS {
        let parts = sum(operations.iter().copied(), column);
        assert_eq!(whole(&all[0][column]), parts, "{} {column}", all[0]["segment"]);
    }
    for row in rows {
        let outcomes = ["ok", "failed", "timed_out", "dropped", "parked", "not_started", "in_flight"];
        let ended: u64 = outcomes.iter().map(|outcome| whole(&row[&format!("ops_{outcome}")])).sum();
        assert_eq!(whole(&row["offered"]), ended);
        assert_eq!(whole(&row["attempts"]), whole(&row["commands"]) + whole(&row["retries"]));
        assert_eq!(row["commands"], row["calls"], "one command a call");
        let real = |column: &str| real(row, column);
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-3 * b.abs() + 1e-6, "{a} and {b} in {row:?}");
        near(real("goodput_ops_per_s"), real("ops_ok") / real("duration_s"));
        near(real("offered_ops_per_s"), real("offered") / real("duration_s"));
        near(real("error_rate"), real("ops_failed") / (real("ops_ok") + real("ops_failed")));
        near(real("loss_rate"), 1.0 - real("ops_ok") / real("offered"));
        near(real("amplification"), real("attempts") / real("commands"));
    }
}

fn segments_make_the_whole(summary: &[Row]) {
    for op in ["read", "bump", "ping", "all"] {
        for column in COUNTS {
            let parts = summary.iter().filter(|row| row["segment"] != "all" && row["op"] == op);
            assert_eq!(whole(&of(summary, "all", op)[column]), sum(parts, column), "{op} {column}");
        }
    }
    let lengths =
        ["all", "before", "rejection", "after"].map(|s| of(summary, s, "all")["duration_s"].clone());
    assert_eq!(lengths.map(|s| s.parse::<f64>().unwrap()), [6.0, 1.0, 2.0, 3.0]);
}

fn retries_agree(summary: &[Row], retries: &[Row]) {
    for row in summary {
        let these: Vec<&Row> =
            retries.iter().filter(|r| r["segment"] == row["segment"] && r["op"] == row["op"]).collect();
        for column in ["ops_ok", "ops_failed", "ops_gave_up"] {
            assert_eq!(sum(these.iter().copied(), column), whole(&row[column]), "{column} of {row:?}");
        }
        let all: u64 = these
            .iter()
            .map(|r| whole(&r["retries"]) * (whole(&r["ops_ok"]) + whole(&r["ops_failed"])))
            .sum();
        assert_eq!(all, whole(&row["retries"]), "{row:?}");
    }
}

fn backoffs_agree(summary: &[Row], backoff: &[Row]) {
    for op in ["read", "bump", "ping", "all"] {
        let these = backoff.iter().filter(|r| r["op"] == op);
        assert_eq!(
            sum(these, "count"),
            whole(&of(summary, "all", op)["retries"]),
            "each follows a backoff: {op}"
        );
    }
}

fn intervals_agree(summary: &[Row], intervals: &[Row], servers: &[Row]) {
    let phases: BTreeSet<&str> = intervals.iter().map(|row| &*row["phase"]).collect();
    assert!(phases.contains("warmup") && phases.contains("measure"), "{phases:?}");
    for op in ["read", "bump", "ping", "all"] {
        let mut open = 0;
        for row in intervals.iter().filter(|row| row["op"] == op) {
            assert_eq!(whole(&row["open_at_start"]), open, "{row:?}");
            let outcomes = ["ok", "failed", "timed_out", "dropped", "parked", "not_started", "in_flight"];
            let ended: u64 = outcomes.iter().map(|outcome| whole(&row[&format!("ops_{outcome}")])).sum();
            open = (open + whole(&row["offered"]))
                .checked_sub(ended)
                .expect("nothing ends before it is offered");
            assert_eq!(whole(&row["open_at_end"]), open, "{row:?}");
        }
        assert_eq!(open, 0, "at the end nothing is left open");
        let measured = intervals.iter().filter(|row| row["phase"] == "measure" && row["op"] == op);
        let seconds: f64 = measured.clone().map(|row| real(row, "interval_s")).sum();
        let done = real_count(sum(measured.clone(), "ops_ok")) / seconds;
        let told = real(of(summary, "all", op), "completed_ops_per_s");
        assert!(
            (done - told).abs() < 0.01,
            "{op}: {done}/s ended in the measured intervals, {told}/s are told"
        );
        let (by_time, by_start) = (sum(measured, "offered"), whole(&of(summary, "all", op)["offered"]));
        // An interval's end is noticed a little late, and what was due meanwhile is across the border by as much.
        let late: f64 = [("warmup", 1.0), ("measure", 7.0)]
            .map(|(phase, border)| real(ends(intervals, op, phase).last().unwrap(), "elapsed_s") - border)
            .iter()
            .sum();
        assert!(late >= 0.0, "no interval ends before its segment does");
        let across = 2.0 * 400.0 * late + 10.0;
        assert!(
            real_count(by_time.abs_diff(by_start)) <= across,
            "{op}: {by_time} and {by_start}, {late} s late"
        );
    }
    let all: Vec<&Row> = intervals.iter().filter(|row| row["op"] == "all").collect();
    for column in ["attempts", "rejected", "retargeted"] {
        assert_eq!(sum(servers, column), sum(all.iter().copied(), column), "{column} by server");
    }
    let hosts: BTreeSet<&str> = servers.iter().map(|row| &*row["server"]).collect();
    assert_eq!(hosts.len(), 3);
    assert_eq!(servers.len(), 3 * all.len(), "each server in each interval");
    for (row, next) in all.iter().zip(&all[1..]) {
        let gap = real(next, "elapsed_s") - real(next, "interval_s") - real(row, "elapsed_s");
        assert!(gap.abs() < 2e-6, "intervals follow each other: {gap} s");
    }
}

/// The rows of one operation in one phase, in the order of time.
fn ends<'a>(intervals: &'a [Row], op: &str, phase: &str) -> Vec<&'a Row> {
    intervals.iter().filter(|row| row["op"] == op && row["phase"] == phase).collect()
}

fn real(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn real_count(count: u64) -> f64 {
    count as f64
}

fn errors_agree(summary: &[Row], errors: &[Row]) {
    for op in ["read", "bump", "ping"] {
        for segment in ["before", "rejection", "after"] {
            let row = of(summary, segment, op);
            let here = |level: &'static str| {
                errors.iter().filter(move |e| e["op"] == op && e["segment"] == segment && e["level"] == level)
            };
            assert_eq!(sum(here("operation"), "count"), whole(&row["ops_failed"]), "{segment} {op}");
            let rejected =
                here("attempt").filter(|e| e["labels"].split('+').any(|l| l == "SystemOverloadedError"));
            assert_eq!(sum(rejected, "count"), whole(&row["rejected"]), "{segment} {op}");
        }
    }
    for row in errors {
        assert!(real(row, "first_seen_s") <= real(row, "last_seen_s"), "{row:?}");
        assert_eq!(row["code"], "462", "{row:?}");
    }
}

/// What the failpoints say they rejected is what was rejected in the whole run.
fn events_agree(summary: &[Row], events: &[Row]) {
    let change =
        |kind: &str| events.iter().find(|row| row["kind"] == kind && row["subject"] == "rejection").unwrap();
    let (on, off) = (change("overload_on"), change("overload_off"));
    let (switched_on, switched_off) = (real(on, "elapsed_s"), real(off, "elapsed_s"));
    assert!(
        switched_on >= 2.0 && switched_off >= 4.0,
        "a second of warm-up and one more, then two: {on:?} {off:?}"
    );
    let counted: u64 = off["detail"]
        .split("; ")
        .map(|member| whole(member.split_once(": ").unwrap().1.strip_suffix(" commands rejected").unwrap()))
        .sum();
    assert_eq!(counted, whole(&of(summary, "all", "all")["rejected"]), "{}", off["detail"]);
}

fn distributions_agree(summary: &[Row], log: &[u8]) {
    let mut logged: BTreeMap<(String, String, String), Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(line) = entry.unwrap() else { continue };
        let bytes = base64::engine::general_purpose::STANDARD.decode(line.encoded_histogram()).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        let tag = line.tag().unwrap().as_str();
        let [trial, segment, op, measure] = tag.split('/').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(trial, "1");
        let key = (segment.to_owned(), op.to_owned(), measure.to_owned());
        match logged.get_mut(&key) {
            Some(sum) => sum.add(&histogram).unwrap(),
            None => drop(logged.insert(key, histogram)),
        }
    }
    for row in summary.iter().filter(|row| row["segment"] != "all" && row["op"] != "all") {
        let histogram =
            |measure: &str| logged.get(&(row["segment"].clone(), row["op"].clone(), measure.to_owned()));
        let count = |measure: &str| histogram(measure).map_or(0, Histogram::len);
        assert_eq!(count("latency"), whole(&row["ops_ok"]), "{row:?}");
        assert_eq!(count("service"), whole(&row["ops_ok"]), "{row:?}");
        assert_eq!(count("failed_latency"), whole(&row["ops_failed"]), "{row:?}");
        assert_eq!(count("attempt_rejected"), whole(&row["rejected"]), "{row:?}");
        assert_eq!(count("attempt_ok"), whole(&row["attempts"]) - whole(&row["rejected"]), "{row:?}");
        assert_eq!(count("checkout"), whole(&row["attempts"]), "{row:?}");
        let latency = histogram("latency").unwrap();
        assert_eq!(latency.max().to_string(), row["latency_max_us"]);
        if !row["latency_p90_us"].is_empty() {
            assert_eq!(latency.value_at_quantile(0.9).to_string(), row["latency_p90_us"]);
        }
    }
}
