//! One load made by four processes, and what `merge` makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Bson, Document, doc};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use jiff::{SignedDuration, Timestamp};

use crate::support::{
    Finished, Place, Row, Running, assert_sums, block_on, count, finish, overdrive, run_json, table, whole,
};
use crate::{alone, shared_lab};

const SHARDS: usize = 4;

/// Half of the work takes keys or numbers that nobody had, and a third of the finds is rejected for two seconds. (A
/// retryable write would make the server run a find of its own, which the overload fails.)
const PROFILE: &str = r#"
[data]
collection = "shards"
documents = 200
[load]
rate = "400/s"
warmup = "1s"
duration = "4s"
[client]
maxPoolSize = 20
retryWrites = false
maxAdaptiveRetries = 2
[op.read.find_one]
weight = 2
filter = { _id = { "^Key" = "zipfian" } }
[op.add.insert_one]
[op.note.insert_many]
count = 2
document = { _id = { "^Join" = ["note", { "^Inc" = {} }] } }
[[overload]]
name = "shed"
at = "1s"
for = "2s"
members = "all"
fail_command = { commands = ["find"], probability = 0.33 }
[thresholds]
fail_if = ["offered < 300/s"]
"#;

/// Columns that are counts in every table that has them.
const COUNTS: [&str; 20] = [
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
    "app_retries",
    "rejected",
    "retargeted",
    "connections_created",
    "connections_closed",
    "count",
    "pool_clears",
];

fn in_seconds(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).as_second().to_string()
}

/// Starts one.
fn shard(place: &Place, shard: &str, start_at: &str) -> std::process::Command {
    let uri = &shared_lab().uri;
    place.run(&["--uri", uri, "--allow-faults=fail_command", "--shard", shard, "--start-at", start_at])
}

/// The directory that a run named as its own.
fn named(finished: &Finished, place: &Place) -> PathBuf {
    let line = finished.stdout.lines().find_map(|line| line.strip_prefix("Results: "));
    place.path().join(line.unwrap_or_else(|| panic!("{}", finished.stdout)))
}

/// Sums of counts by the values of these columns.
fn sums(directories: &[PathBuf], name: &str, keys: &[&str]) -> BTreeMap<Vec<String>, BTreeMap<String, u64>> {
    let mut sums: BTreeMap<Vec<String>, BTreeMap<String, u64>> = BTreeMap::new();
    for row in directories.iter().flat_map(|directory| table(directory, name)) {
        let key = keys.iter().map(|&key| row[key].clone()).collect();
        let sum = sums.entry(key).or_default();
        for (column, value) in &row {
            if COUNTS.contains(&column.as_str()) && !keys.contains(&column.as_str()) && !value.is_empty() {
                *sum.entry(column.clone()).or_default() += value.parse::<u64>().unwrap();
            }
        }
    }
    sums
}

/// A pool of one measure of the measured time, made of the logs alone.
fn pooled(directories: &[PathBuf], op: &str, measure: &str) -> Histogram<u64> {
    let mut pool = Histogram::<u64>::new(3).unwrap();
    for directory in directories {
        let text = fs::read(directory.join("latency.hlog")).unwrap();
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(line) = entry.unwrap() else { continue };
            let tag = line.tag().unwrap().as_str().to_owned();
            let [_, segment, of, what] = tag.split('/').collect::<Vec<_>>()[..] else { panic!("{tag}") };
            if ["warmup", "cooldown"].contains(&segment) || what != measure || (op != "all" && of != op) {
                continue;
            }
            let bytes = STANDARD.decode(line.encoded_histogram()).unwrap();
            pool.add(Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]).unwrap()).unwrap();
        }
    }
    pool
}

/// Every number of `row` that stands for a percentile, against a pool.
fn assert_percentiles(row: &Row, prefix: &str, pool: &Histogram<u64>) {
    for (column, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let beyond = (1.0 - quantile) * f64::from(u32::try_from(pool.len()).unwrap());
        let wanted = if beyond < 10.0 { String::new() } else { pool.value_at_quantile(quantile).to_string() };
        assert_eq!(row[&format!("{prefix}_{column}_us")], wanted, "{prefix} {column} of {}", row["op"]);
    }
    assert_eq!(row[&format!("{prefix}_max_us")], pool.max().to_string());
}

/// Ids of documents that no data load stored.
fn added() -> Vec<Bson> {
    block_on(async {
        let client = mongodb::Client::with_uri_str(&shared_lab().uri).await.unwrap();
        let data = client.database("overdrive").collection::<Document>("shards");
        let mut found = data.find(doc! {}).projection(doc! { "_id": 1 }).await.unwrap();
        let mut ids = Vec::new();
        while found.advance().await.unwrap() {
            ids.push(found.deserialize_current().unwrap().remove("_id").unwrap());
        }
        ids.retain(|id| id.as_i32().is_none_or(|key| key >= 200));
        ids
    })
}

#[test]
fn four_shards_merged_are_the_whole() {
    let _alone = block_on(alone());
    let place = Place::new(PROFILE);
    // Whatever it takes to start, it is there when the clock begins to count.
    shared_lab();
    let start_at = in_seconds(10);
    // The first is not the first to come: the others wait for its data.
    let running: Vec<Running> = (0..SHARDS)
        .rev()
        .map(|index| Running::start(&mut shard(&place, &format!("{index}/{SHARDS}"), &start_at)))
        .collect();
    let mut shards: Vec<(PathBuf, Finished)> = running
        .into_iter()
        .rev()
        .map(|running| {
            let finished = running.finish();
            // A quarter of the load is below the threshold, which is of the whole.
            finished.assert_code(0);
            (named(&finished, &place), finished)
        })
        .collect();
    let directories: Vec<PathBuf> = shards.iter().map(|(directory, _)| directory.clone()).collect();

    let listed: Vec<&str> = directories.iter().rev().map(|d| d.to_str().unwrap()).collect();
    let mut merging =
        overdrive(["merge"].iter().chain(&listed).chain(&["--out", "merged", "--label", "all"]));
    let merged = finish(merging.current_dir(place.path()));
    merged.assert_code(0);
    assert!(merged.stdout.contains("| offered < 300/s |"), "{}", merged.stdout);
    let merged = named(&merged, &place);

    assert_sums(&merged);
    assert_counts(&directories, &merged);
    for row in table(&merged, "summary.csv").iter().filter(|row| row["segment"] == "all") {
        assert_percentiles(row, "latency", &pooled(&directories, &row["op"], "latency"));
        assert_percentiles(row, "service", &pooled(&directories, &row["op"], "service"));
    }
    assert_eq!(
        pooled(&directories, "all", "checkout"),
        pooled(std::slice::from_ref(&merged), "all", "checkout"),
        "logs can be merged again"
    );
    assert_one_did_for_all(&directories, &merged);
    assert_ids(&merged);
    assert_reads_as_any_run(&place, &merged);

    // One that is missing, or there twice, is told.
    let told = |args: &[&str]| {
        let mut merging = overdrive(["merge"].iter().chain(args));
        let finished = finish(merging.current_dir(place.path()));
        finished.assert_code(2);
        finished.stderr
    };
    assert!(told(&listed[1..]).contains("of 4 shards 3/4 is missing"));
    assert!(told(&[&listed[..], &listed[..1]].concat()).contains("shard 3/4 is there twice"));
    let (_, first) = shards.swap_remove(0);
    assert!(first.stdout.contains("this is shard 0/4"), "{}", first.stdout);
}

/// In every table the counts of the whole are the sums of its parts'.
fn assert_counts(directories: &[PathBuf], merged: &Path) {
    let tables: [(&str, &[&str]); 6] = [
        ("summary.csv", &["segment", "op"]),
        ("retries.csv", &["segment", "op", "retries"]),
        ("backoff.csv", &["op", "retry"]),
        ("errors.csv", &["phase", "segment", "op", "level", "kind", "code", "labels"]),
        ("intervals.csv", &["segment", "op"]),
        ("servers.csv", &["phase", "server"]),
    ];
    for (name, keys) in tables {
        let (parts, whole) = (sums(directories, name, keys), sums(&[merged.to_owned()], name, keys));
        assert!(!whole.is_empty(), "{name}");
        assert_eq!(parts, whole, "{name}");
    }
    // While all are there, they are there at the same seconds.
    let measured = |directories: &[PathBuf]| {
        let mut sums = sums(directories, "intervals.csv", &["phase", "elapsed_s", "op"]);
        sums.retain(|key, _| key[0] == "measure");
        sums
    };
    assert_eq!(measured(directories), measured(&[merged.to_owned()]));
}

/// The first shard alone has prepared the data, put the overload on and asked the servers.
fn assert_one_did_for_all(directories: &[PathBuf], merged: &Path) {
    for (index, directory) in directories.iter().enumerate() {
        let events = table(directory, "events.csv");
        let on = events.iter().filter(|row| row["kind"].starts_with("overload_")).count();
        assert_eq!(on, if index == 0 { 2 } else { 0 }, "{events:?}");
        let roles: BTreeSet<String> =
            table(directory, "servers.csv").iter().map(|row| row["role"].clone()).collect();
        assert_eq!(roles.contains("primary"), index == 0, "{roles:?}");
        // What it put on met all of them.
        assert!(count(&whole(directory), "rejected") > 0);
        let segments: Vec<String> = run_json(directory)["trials"][0]["segments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|segment| segment["segment"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(segments, ["all", "before", "shed", "after"]);
        let offered = count(&whole(directory), "offered");
        assert!((300..500).contains(&offered), "a quarter of 1600: {offered}");
    }
    let events = table(merged, "events.csv");
    let on = events.iter().find(|row| row["kind"] == "overload_on").unwrap();
    assert_eq!((on["subject"].as_str(), on["detail"].split(':').next()), ("shed", Some("shard 0/4")));
    let told = run_json(merged);
    assert_eq!(told["trials"][0]["plan"]["load"]["model"]["open"]["stages"][0]["from"], "400/s");
    assert_eq!(told["trials"][0]["mechanism"], "failpoint");
    assert_eq!(told["shards"].as_array().unwrap().len(), SHARDS);
    assert_eq!(table(merged, "recovery.csv").len(), 1);
}

/// What was inserted is there, each id once, and nothing was inserted twice.
fn assert_ids(merged: &Path) {
    let intervals = table(merged, "intervals.csv");
    let sum = |op: &str, column: &str| -> u64 {
        intervals.iter().filter(|row| row["op"] == op).map(|row| count(row, column)).sum()
    };
    let errors = table(merged, "errors.csv");
    assert!(errors.iter().all(|row| row["code"] != "11000"), "{errors:?}");
    let ids = added();
    let keys: Vec<i32> = ids.iter().filter_map(Bson::as_i32).collect();
    let (added, noted) = (keys.len() as u64, (ids.len() - keys.len()) as u64);
    // What a busy machine has still under way at the end may be there or not.
    let may_be = |op: &str| sum(op, "ops_ok")..=sum(op, "ops_ok") + sum(op, "ops_in_flight");
    assert!(may_be("add").contains(&added), "{added}");
    assert!(may_be("note").contains(&noted.div_ceil(2)), "{noted}");
    // All four took their turns.
    let turns: BTreeSet<i32> = keys.iter().map(|key| (key - 200) % 4).collect();
    assert_eq!(turns, BTreeSet::from([0, 1, 2, 3]));
}

fn assert_reads_as_any_run(place: &Place, merged: &Path) {
    let run = merged.to_str().unwrap();
    for args in [
        &["report", run, "-o", "report.html"][..],
        &["report", run, "--markdown"],
        &["export", run, "--format", "benchfmt"],
        &["export", run, "--format", "hgrm", "--op", "read", "--segment", "before"],
        &["compare", run, run],
    ] {
        finish(overdrive(args).current_dir(place.path())).assert_code(0);
    }
}

#[test]
fn a_shard_waits_for_the_data_no_longer_than_until_the_start() {
    let _alone = block_on(alone());
    let place = Place::new(PROFILE.replace("\"shards\"", "\"shards_alone\""));
    shared_lab();
    let finished = finish(&mut shard(&place, "1/2", &in_seconds(4)));
    finished.assert_code(1);
    for part in
        ["shard 1/2 waits for the data in overdrive.shards_alone", "has not begun to prepare", "--start-at"]
    {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
    assert_eq!(place.runs(), [] as [PathBuf; 0], "nothing is left");
}

#[test]
fn what_no_shard_can_do_is_told_before_anything_is_done() {
    let place = Place::new(PROFILE);
    let later = in_seconds(60);
    let refused = |args: &[&str]| {
        let finished = finish(&mut place.run(args));
        finished.assert_code(2);
        finished.stderr
    };
    let uri = ["--uri", "mongodb://127.0.0.1:1", "--allow-faults=fail_command"];
    let with = |args: &[&str]| refused(&[&uri[..], args].concat());
    let at = |shard: &'static str| ["--shard", shard, "--start-at", later.as_str()];
    assert!(with(&at("4/4")).contains("0/4 to 3/4"));
    assert!(with(&at("/4")).contains("JOB_COMPLETION_INDEX"));
    assert!(with(&["--shard", "0/4"]).contains("--start-at"));
    assert!(with(&["--shard", "0/4", "--start-at", "2026-01-01T00:00:00Z"]).contains(" ago"));
    assert!(with(&["--start-at", &later]).contains("--shard"));
    assert!(with(&[&at("0/4")[..], &["--workers", "3"]].concat()).contains("workers = 3"));
    assert!(with(&[&at("0/4")[..], &["--repeat", "2"]].concat()).contains("begin a trial together"));
    assert!(with(&[&at("0/4")[..], &["--find-max", "error_rate < 1%"]].concat()).contains("--find-max"));
    assert!(refused(&at("0/4")).contains("overdrive lab"));
    assert!(refused(&[&at("0/4")[..], &["--stub"]].concat()).contains("stub"));
    // A pod of an Indexed Job knows its number.
    let args = [&uri[..], &at("/4"), &["--dry-run"]].concat();
    let finished = finish(place.run(&args).env("JOB_COMPLETION_INDEX", "2"));
    finished.assert_code(0);
    assert!(finished.stdout.contains("this is shard 2/4"), "{}", finished.stdout);
    assert!(finished.stdout.contains("100/s"), "{}", finished.stdout);
}

#[test]
fn one_shard_merged_is_itself_to_the_last_digit() {
    // A stub has no overloads.
    let place = Place::new(PROFILE);
    let args =
        ["--stub=service=1ms,fail=every:7", "--shard", "0/1", "--duration", "3s", "--set", "rate=300/s"];
    let finished = finish(&mut place.run(&args));
    let alone = finished.assert_code(3).directory().to_owned();
    let mut merging = overdrive(["merge", alone.to_str().unwrap(), "--out", "merged"]);
    let merged = finish(merging.current_dir(place.path()));
    let merged = named(merged.assert_code(3), &place);
    for name in [
        "summary.csv",
        "intervals.csv",
        "retries.csv",
        "backoff.csv",
        "errors.csv",
        "recovery.csv",
        "servers.csv",
        "latency.hlog",
        "profile.toml",
    ] {
        let text = |directory: &Path| {
            let id = directory.file_name().unwrap().to_str().unwrap();
            fs::read_to_string(directory.join(name)).unwrap().replace(id, "RUN")
        };
        assert_eq!(text(&merged), text(&alone), "{name}");
    }
}
