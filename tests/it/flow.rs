//! What the application does about rejection around all its operations, against a stub that takes its time or rejects all.

use std::path::Path;

use crate::support::{Place, Row, assert_sums, count, finish, table, whole};

/// Forty a second for five seconds, in steps that are always the same.
const LOAD: &str = r#"
[data]
documents = 10
[load]
rate = "40/s"
arrivals = "even"
warmup = "1s"
duration = "5s"
[client]
maxPoolSize = 100
maxAdaptiveRetries = 0
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

const REJECTS_ALL: &str = "--stub=fail=every:1";

fn run(flow: &str, stub: &str) -> (Place, Row) {
    let place = Place::new(format!("{LOAD}{flow}"));
    let finished = finish(&mut place.run(&[stub, "--ui", "none"]));
    assert_sums(finished.assert_code(0).directory());
    let row = whole(finished.directory());
    (place, row)
}

fn events(directory: &Path, kind: &str) -> Vec<Row> {
    table(directory, "events.csv").into_iter().filter(|event| event["kind"] == kind).collect()
}

/// How many operations ended for a reason, in all phases.
fn reasons(directory: &Path, kind: &str) -> u64 {
    let rows = table(directory, "errors.csv");
    let of_kind = rows.iter().filter(|row| row["level"] == "operation" && row["kind"] == kind);
    of_kind.map(|row| count(row, "count")).sum()
}

fn all_phases(directory: &Path, column: &str) -> u64 {
    let rows = table(directory, "intervals.csv");
    rows.iter().filter(|row| row["op"] == "all").map(|row| count(row, column)).sum()
}

#[test]
fn late_replies_are_read_in_the_background_and_the_connections_used_again() {
    let timeout =
        |on_timeout: &str| format!("[timeout]\noperation = \"100ms\"\non_timeout = \"{on_timeout}\"\n");
    let created = |place: &Place| -> u64 {
        let rows = table(&place.runs()[0], "servers.csv");
        rows.iter().map(|row| count(row, "connections_created")).sum()
    };
    // Each takes twice as long as anybody waits.
    let (cancelled, row) = run(&timeout("cancel"), "--stub=service=200ms");
    assert_eq!((count(&row, "ops_timed_out"), count(&row, "late_ok")), (200, 0));
    let (read, row) = run(&timeout("read_in_background"), "--stub=service=200ms");
    assert_eq!((count(&row, "ops_timed_out"), count(&row, "late_ok")), (200, 200));
    assert_eq!((count(&row, "attempts"), count(&row, "retries")), (200, 0));
    // From the deadline on it takes as long again, and no less.
    assert!(count(&row, "overshoot_p50_us") >= 99_000, "{}", row["overshoot_p50_us"]);
    let (closed, open) = (created(&cancelled), created(&read));
    assert!(closed >= 200, "each closes its connection, and the next needs another: {closed}");
    assert!(open < closed / 2, "eight are enough, and more only where this machine stalls: {open}");
    for place in [&cancelled, &read] {
        assert!(reasons(&place.runs()[0], "timeout_reply") >= 200);
    }
}

#[test]
fn what_finds_no_place_in_the_queue_is_dropped_and_counted() {
    // One at a time, each for 200 ms: five a second get through, and four wait.
    let flow = "[flow]\nqueue = 4\nwhen_full = \"drop\"\n\
                [flow.limit]\nkind = \"aimd\"\ninitial = 1\nfloor = 1\nceiling = 1\n";
    let (place, row) = run(flow, "--stub=service=200ms");
    let directory = &place.runs()[0];
    assert_eq!(count(&row, "offered"), count(&row, "ops_ok") + count(&row, "ops_dropped"));
    assert!(
        count(&row, "ops_ok") <= 27,
        "25, and one or two that were due before or end after: {}",
        row["ops_ok"]
    );
    assert_eq!(reasons(directory, "queue_full"), all_phases(directory, "ops_dropped"));
    let intervals = table(directory, "intervals.csv");
    let busy: Vec<&Row> =
        intervals.iter().filter(|row| row["op"] == "all" && row["phase"] == "measure").collect();
    assert!(busy.iter().all(|row| count(row, "queue_depth") <= 4 && row["flow_limit"] == "1"));
    assert!(busy.iter().all(|row| count(row, "in_flight") <= 1), "{busy:?}");
}

#[test]
fn a_producer_that_waits_keeps_the_intended_starts() {
    let flow = "[flow]\nqueue = 4\n[flow.limit]\nkind = \"aimd\"\ninitial = 1\nfloor = 1\nceiling = 1\n";
    let (_place, row) = run(flow, "--stub=service=20ms");
    // Fifty a second get through, and forty are due.
    assert_eq!(count(&row, "offered"), count(&row, "ops_ok"));
    assert_eq!(count(&row, "ops_dropped"), 0);
}

#[test]
fn rejections_halve_the_limit_down_to_its_floor() {
    let flow = "[flow.limit]\nkind = \"aimd\"\ninitial = 32\nfloor = 2\nceiling = 64\n";
    let (place, row) = run(flow, REJECTS_ALL);
    let directory = &place.runs()[0];
    assert_eq!(count(&row, "ops_gave_up"), 200);
    let first = &events(directory, "limit_moved")[0]["detail"];
    assert_eq!(first, "32 to 2 operations at once");
    assert_eq!(events(directory, "limit_at_floor").len(), 1, "it stays there, and that is told once");
    let last = table(directory, "intervals.csv").pop().unwrap();
    assert_eq!(last["flow_limit"], "2");
}

#[test]
fn the_drivers_retries_hide_rejections_unless_attempts_are_what_counts() {
    let moved = |signal: &str| {
        let flow = format!(
            "[flow.limit]\nkind = \"aimd\"\ninitial = 8\nfloor = 1\nceiling = 8\nsignal = \"{signal}\"\n"
        );
        // Every tenth command is rejected, and a retry mends it.
        let place = Place::new(LOAD.replace("maxAdaptiveRetries = 0", "maxAdaptiveRetries = 5") + &flow);
        let finished = finish(&mut place.run(&["--stub=fail=every:10", "--ui", "none"]));
        assert_sums(finished.assert_code(0).directory());
        !events(finished.directory(), "limit_moved").is_empty()
    };
    assert_eq!((moved("operation"), moved("attempt")), (false, true));
}

#[test]
fn an_open_breaker_lets_one_probe_through() {
    let flow = "[flow]\nqueue = 64\nwhen_full = \"drop\"\n\
                [flow.breaker]\nthreshold = 0.5\nwindow = \"10s\"\nminimum = 10\ncool_down = \"2s\"\n";
    let (place, row) = run(flow, REJECTS_ALL);
    let directory = &place.runs()[0];
    let changes: Vec<String> =
        events(directory, "breaker").into_iter().map(|event| event["detail"].clone()).collect();
    // Ten are rejected, then nothing is sent but a probe every two seconds, and no probe is served.
    assert_eq!(changes[..3], ["closed to open", "open to half_open", "half_open to open"]);
    let probes = changes.iter().filter(|change| *change == "open to half_open").count() as u64;
    // Those that were under way when it opened had gone before.
    let sent = all_phases(directory, "attempts");
    assert!((10 + probes..=14 + probes).contains(&sent), "{sent} were sent, {probes} of them as probes");
    assert_eq!(reasons(directory, "breaker_open"), all_phases(directory, "ops_dropped"));
    assert_eq!(count(&row, "ops_failed") + count(&row, "ops_dropped"), 200);
}

#[test]
fn a_bucket_of_tokens_pays_for_so_many_retries() {
    let flow = "[flow.backoff]\nkind = \"immediate\"\nmax_attempts = 3\n\
                [flow.budget]\nkind = \"token_bucket\"\ncapacity = 7\n";
    let (place, row) = run(flow, REJECTS_ALL);
    assert_eq!(count(&row, "ops_gave_up"), 200);
    // Nothing succeeds, so that none comes back.
    assert_eq!(all_phases(&place.runs()[0], "app_retries"), 7);
}

#[test]
fn a_throttle_sends_less_and_less_to_servers_that_accept_nothing() {
    let flow = "[flow]\nqueue = 64\nwhen_full = \"drop\"\n[flow.budget]\nkind = \"throttle\"\n";
    let (place, row) = run(flow, REJECTS_ALL);
    let directory = &place.runs()[0];
    // Of n requests of which none was accepted the next is left out with the chance n ÷ (n + 1): about ln n are sent.
    let sent = all_phases(directory, "attempts");
    assert!((1..30).contains(&sent), "{sent}");
    assert_eq!(reasons(directory, "throttled"), all_phases(directory, "ops_dropped"));
    assert_eq!(count(&row, "ops_failed") + count(&row, "ops_dropped"), 200);
}
