//! What the application does about rejection around all its operations, against a stub that takes its time or rejects all.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use bson::{Document, doc};
use overdrive::gate::Gate;
use overdrive::lab::Lab;
use overdrive::plan::{GateSettings, Limit};
use overdrive::stub::{Script, Stub};

use crate::lab_options;
use crate::support::{Place, Row, assert_sums, count, finish, overdrive, table, whole};

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

/// Writes that a server rejects for the first seconds: the breaker opens, and what comes meanwhile is parked.
const PARKED: &str = r#"
[data]
documents = 10
collection = "parked"
[load]
rate = "40/s"
arrivals = "even"
warmup = "1s"
duration = "LOADs"
[client]
maxPoolSize = 100
maxAdaptiveRetries = 0
[flow]
queue = 8
when_full = "spool"
[flow.breaker]
minimum = 5
window = "1s"
cool_down = "1s"
[flow.spool]
drain = "100/s"
[op.add.insert_one]
[op.bump.update_one]
filter = { _id = 0 }
update = { "$inc" = { n = 1 } }
[[overload]]
name = "shed"
at = "1s"
for = "FORs"
[overload.fail_command]
commands = ["insert", "update"]
labels = ["SystemOverloadedError", "RetryableError"]
probability = 1.0
"#;

/// What the servers hold: documents beside the ten, and how often the first was changed.
async fn stored(uri: &str) -> (u64, u64) {
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    let data = client.database("overdrive").collection::<Document>("parked");
    let first = data.find_one(doc! { "_id": 0 }).await.unwrap().unwrap();
    let bumps = first.get("n").and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from))).unwrap_or(0);
    (data.count_documents(doc! {}).await.unwrap() - 10, u64::try_from(bumps).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_parked_is_sent_once_by_the_run_or_later() {
    let lab = Lab::start(&lab_options(), &|_| ()).await.unwrap();
    for (duration, length, left) in [("25", "3", false), ("8", "60", true)] {
        let place = Place::new(PARKED.replace("LOAD", duration).replace("FOR", length));
        let args = ["--uri", lab.uri(), "--allow-faults=fail_command", "--ui", "none"];
        let finished = finish(&mut place.run(&args));
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        let parked = all_phases(directory, "ops_parked");
        assert!(parked > 20, "{parked}");
        assert_eq!(reasons(directory, "breaker_open"), parked);
        let told = &events(directory, "spool")[0]["detail"];
        // The number before each of these words; the rate stands in brackets.
        let number = |word: &str| -> u64 {
            let words: Vec<&str> = told.split([' ', ',']).collect();
            let at = words.iter().position(|&it| it == word).unwrap_or_else(|| panic!("{told}"));
            words[at - 1].parse().unwrap_or_else(|_| panic!("{told}"))
        };
        let (all, drained, backlog) = (number("operations"), number("of"), number("are"));
        assert_eq!((all, drained + backlog), (parked, parked));
        // Each waits for a hundredth of a second, so that no more than a hundred a second can have been sent.
        let rate =
            told.split_once('(').map(|(_, rest)| rest.split('/').next().unwrap().parse::<u64>().unwrap());
        assert!(rate.is_none_or(|rate| rate <= 100) && rate.is_some() == (drained > 0), "{told}");
        assert_eq!(backlog > 0, left, "{told}");
        assert!(finished.stdout.contains(told), "{}", finished.stdout);
        let ok = all_phases(directory, "ops_ok");
        let (inserted, bumped) = stored(lab.uri()).await;
        assert_eq!(inserted + bumped, ok + drained, "each that succeeded, and each that was sent again");
        // Twice, since whoever was interrupted does it again.
        for expected in [backlog, 0] {
            let drained = finish(
                overdrive(["drain", directory.to_str().unwrap(), "--uri", lab.uri()])
                    .current_dir(place.path()),
            );
            let said = format!("{expected} operations sent");
            assert!(drained.assert_code(0).stdout.contains(&said), "{}", drained.stdout);
        }
        let (inserted, bumped) = stored(lab.uri()).await;
        assert_eq!(inserted + bumped, ok + parked);
    }
    lab.stop().await.unwrap();
}

#[test]
fn what_waits_at_the_breaker_when_the_load_ends_was_not_started() {
    let flow = "[flow.breaker]\nminimum = 5\ncool_down = \"1h\"\n";
    let place = Place::new(LOAD.replace("duration = \"5s\"", "duration = \"3s\"\ncooldown = \"1s\"") + flow);
    let finished = finish(&mut place.run(&[REJECTS_ALL, "--ui", "none"]));
    let directory = finished.directory();
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!(count(&row, "offered"), 120);
    assert!(count(&row, "ops_not_started") > 100, "nothing goes once it is open: {row:?}");
}

/// Twice of what the gate before the server lets through, for three seconds, and then a tenth of it: all is repeated until it
/// succeeds.
const THROUGH_A_GATE: &str = r#"
[data]
documents = 0
[load]
stages = [{ for = "3s", rate = "100/s" }, { for = "12s", rate = "5/s" }]
arrivals = "even"
warmup = "0s"
[client]
maxPoolSize = 200
maxAdaptiveRetries = 0
[flow]
queue = 64
[flow.backoff]
kind = "full_jitter"
base = "50ms"
cap = "200ms"
max_attempts = 1000
[op.ping.run_command]
command = { ping = 1 }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn through_a_gate_a_limit_or_a_breaker_spares_rejections() {
    let mut rejections = Vec::new();
    for flow in [
        "",
        "[flow.limit]\nkind = \"aimd\"\ninitial = 8\nceiling = 32\n",
        "[flow.breaker]\nminimum = 5\nwindow = \"1s\"\ncool_down = \"250ms\"\n",
    ] {
        let stub = Stub::start(Script::default()).await.unwrap();
        let burst = Duration::from_millis(200).into();
        let limit = Limit { rate: NonZeroU32::new(50).unwrap(), burst, queue_depth: 0 };
        let settings = GateSettings { requests: Some(limit), ..GateSettings::default() };
        let any = "127.0.0.1:0".parse().unwrap();
        let gate = Gate::start(stub.address().to_string(), any, settings).await.unwrap();
        let place = Place::new(THROUGH_A_GATE.to_owned() + flow);
        let uri = format!("mongodb://{}/?directConnection=true", gate.address());
        let finished = finish(&mut place.run(&["--uri", &uri, "--ui", "none"]));
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        let (sent, rejected) = (all_phases(directory, "attempts"), all_phases(directory, "rejected"));
        assert_eq!(gate.counters().requests.rejected, rejected, "{flow}");
        let row = whole(directory);
        // What is to be repeated while the breaker is open is given up; else all of them are done in the end.
        assert_eq!(count(&row, "ops_ok") + count(&row, "ops_gave_up"), 360, "{flow}");
        assert!(flow.contains("breaker") || count(&row, "ops_ok") == 360, "{flow}");
        assert_eq!(sent - rejected, all_phases(directory, "ops_ok"), "{flow}");
        rejections.push(rejected);
        gate.stop().await;
    }
    let [none, limit, breaker] = rejections[..] else { unreachable!() };
    assert!(none > 360, "more than one for each operation: {none}");
    assert!(
        limit < none / 2 && breaker < none / 2,
        "{limit} with a limit, {breaker} with a breaker, {none} without"
    );
}

/// A thousand a second that are rejected, again and again, for as long as the load goes on.
const HOPELESS: &str = r#"
[data]
documents = 10
[load]
rate = "1000/s"
warmup = "1s"
duration = "12s"
cooldown = "1s"
[client]
maxPoolSize = 100
maxAdaptiveRetries = 0
[flow.backoff]
kind = "fixed"
base = "2s"
max_attempts = 1000
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

#[test]
fn memory_stays_flat_during_rejection_where_the_producer_is_bounded() {
    let growth = |flow: &str| {
        let place = Place::new(HOPELESS.to_owned() + flow);
        let finished = finish(&mut place.run(&["--stub=fail=every:1", "--ui", "none"]));
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        let rows = table(directory, "intervals.csv");
        let measured = rows.iter().filter(|row| row["op"] == "all" && row["phase"] == "measure");
        let memory: Vec<u64> = measured.map(|row| count(row, "rss_bytes")).collect();
        // The first of them still makes connections and the workers there may be.
        memory.last().unwrap().saturating_sub(memory[2])
    };
    let unbounded = growth("");
    for when_full in ["block", "drop", "spool"] {
        let flow = format!(
            "[flow]\nqueue = 64\nwhen_full = \"{when_full}\"\n\
             [flow.limit]\nkind = \"aimd\"\ninitial = 32\nfloor = 1\nceiling = 32\n"
        );
        let bounded = growth(&flow);
        assert!(bounded < unbounded / 4, "{when_full}: {bounded} bytes against {unbounded} without bounds");
    }
}
