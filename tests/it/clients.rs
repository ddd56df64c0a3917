//! Several clients in one run: what each says is what it does, and every table knows whose figures are whose.

use std::collections::BTreeMap;
use std::fs;

use bson::doc;

use crate::support::{Place, Row, assert_sums, block_on, count, finish, overdrive, run_json, table};
use crate::{alone, shared_lab};

/// The server rejects every read, whoever makes it; each client repeats them as often as it says. Both insert into the same
/// collection, documents whose `_id`s are numbers.
const TWO: &str = r#"
[data]
database = "overdrive_clients"
documents = 100
[load]
arrivals = "even"
warmup = "1s"
duration = "3s"
cooldown = "10s"
[client]
maxPoolSize = 50
maxAdaptiveRetries = 2
[clients.critical.load]
rate = "40/s"
[clients.critical.op.read.count]
filter = { _id = { "^Key" = "uniform" } }
[clients.critical.op.new.insert_one]
[clients.batch.load]
rate = "30/s"
[clients.batch.client]
maxAdaptiveRetries = 0
[clients.batch.flow.limit]
kind = "aimd"
[clients.batch.op.read.count]
filter = { _id = { "^Key" = "uniform" } }
[clients.batch.op.new.insert_many]
count = 3
[[overload]]
name = "shed"
at = "-1s"
for = "1h"
members = "primary"
fail_command = { commands = ["aggregate"], probability = 1 }
"#;

/// Columns that add up over operations and clients.
const SUMS: [&str; 9] = [
    "offered",
    "ops_ok",
    "ops_failed",
    "ops_gave_up",
    "calls",
    "commands",
    "attempts",
    "retries",
    "rejected",
];

fn sums(rows: &[&Row]) -> [u64; SUMS.len()] {
    SUMS.map(|column| rows.iter().map(|row| count(row, column)).sum())
}

/// Each client's row is the sum of its operations', and that of all the sum of the clients'. The rows given differ in nothing
/// else.
fn assert_adds_up(rows: &[&Row]) {
    let of = |client: &str, wanted: &dyn Fn(&str) -> bool| -> Vec<&Row> {
        rows.iter().copied().filter(|row| row["client"] == client && wanted(&row["op"])).collect()
    };
    let wholes: Vec<&Row> = ["critical", "batch"]
        .into_iter()
        .flat_map(|client| {
            let whole = of(client, &|op| op == "all");
            assert_eq!(sums(&of(client, &|op| op != "all")), sums(&whole), "{client}");
            whole
        })
        .collect();
    let all = of("all", &|op| op == "all");
    assert_eq!((wholes.len(), all.len()), (2, 1));
    assert_eq!(sums(&wholes), sums(&all));
}

/// In groups of equal values of some columns.
fn grouped<'a>(rows: &'a [Row], by: &[&str]) -> Vec<Vec<&'a Row>> {
    let mut groups: BTreeMap<Vec<&str>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(by.iter().map(|&column| row[column].as_str()).collect()).or_default().push(row);
    }
    groups.into_values().collect()
}

#[test]
fn each_client_does_what_it_says_and_tables_tell_them_apart() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let place = Place::new(TWO);
    let vary = "clients.batch.client.maxAdaptiveRetries=0,1";
    let args = ["--uri", &lab.uri, "--ui", "lines", "--allow-faults=fail_command", "--vary", vary];
    let finished = finish(&mut place.run(&args));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);

    let summary = table(directory, "summary.csv");
    let of = |trial: &str, client: &str, op: &str| {
        let is = |row: &&Row| {
            row["trial"] == trial && row["segment"] == "all" && row["client"] == client && row["op"] == op
        };
        summary.iter().find(is).unwrap_or_else(|| panic!("no row of {client}/{op}"))
    };
    for (trial, retries) in [("1", 0), ("2", 1)] {
        // Each read is repeated until its client has no retry left.
        for (client, repeats) in [("critical", 2), ("batch", retries)] {
            let read = of(trial, client, "read");
            let calls = count(read, "calls");
            assert!(calls > 30 && count(read, "ops_gave_up") == calls, "{read:?}");
            assert_eq!(count(read, "attempts"), calls * (1 + repeats), "trial {trial}, {client}");
            assert_eq!(count(read, "retries"), calls * repeats, "trial {trial}, {client}");
            let new = of(trial, client, "new");
            assert_eq!((count(new, "ops_failed"), count(new, "retries")), (0, 0), "{client}");
        }
        let param = "param_clients.batch.client.maxAdaptiveRetries";
        assert_eq!(of(trial, "critical", "all")[param], retries.to_string());
        let target = |client: &str, op: &str| of(trial, client, op)["target_ops_per_s"].clone();
        assert_eq!(
            [
                target("critical", "read"),
                target("critical", "all"),
                target("batch", "all"),
                target("all", "all")
            ],
            ["20.0", "40.0", "30.0", "70.0"]
        );
    }
    grouped(&summary, &["trial", "segment"]).iter().for_each(|rows| assert_adds_up(rows));
    let intervals = table(directory, "intervals.csv");
    grouped(&intervals, &["trial", "elapsed_s"]).iter().for_each(|rows| assert_adds_up(rows));
    // What restrains a client is in its own rows.
    for row in &intervals {
        assert_eq!(!row["flow_limit"].is_empty(), row["client"] == "batch" && row["op"] == "all", "{row:?}");
        assert_eq!(!row["cpu_share"].is_empty(), row["client"] == "all", "{row:?}");
    }

    // The failpoint counted each attempt of both, in the warm-up and the cool-down, too.
    let events = table(directory, "events.csv");
    for trial in ["1", "2"] {
        let off = events.iter().find(|row| row["trial"] == trial && row["kind"] == "overload_off").unwrap();
        let counted: u64 = off["detail"].split(' ').filter_map(|word| word.parse::<u64>().ok()).sum();
        let attempts = |row: &&Row| row["trial"] == trial && row["client"] == "all";
        let rejected: u64 = intervals.iter().filter(attempts).map(|row| count(row, "rejected")).sum();
        assert_eq!(rejected, counted, "{}", off["detail"]);
    }
    every_document_is_there(&lab.uri, &intervals);
    let retries = table(directory, "retries.csv");
    let most = |client: &str| {
        let ours = retries.iter().filter(|row| row["client"] == client && row["op"] == "read");
        ours.map(|row| count(row, "retries")).max()
    };
    assert_eq!((most("critical"), most("batch")), (Some(2), Some(1)));
    let errors = table(directory, "errors.csv");
    let whose: Vec<_> = errors.iter().map(|row| (&*row["client"], &*row["op"])).collect();
    assert!(
        whose.iter().all(|&(client, op)| ["critical", "batch"].contains(&client) && op == "read"),
        "{whose:?}"
    );
    let log = fs::read_to_string(directory.join("latency.hlog")).unwrap();
    assert!(log.contains("/critical.new/latency") && log.contains("/batch.new/latency"), "{log}");
    let run = run_json(directory);
    assert_eq!(run["trials"][0]["totals"]["ended"].as_object().unwrap().len(), 4);
    let options = run["trials"][0]["options"]["critical"].as_array().unwrap();
    assert!(options.iter().any(|o| o["name"] == "maxAdaptiveRetries" && o["value"] == "2"), "{options:?}");
    assert!(finished.stderr.contains(" critical  offered") && finished.stderr.contains(" all       offered"));
    readers_know_them(&place, directory.to_str().unwrap());
}

/// No document of one client had the `_id` of another's.
fn every_document_is_there(uri: &str, intervals: &[Row]) {
    let inserted = |client: &str| -> u64 {
        let last = intervals.iter().filter(|row| row["trial"] == "2");
        let ours = last.filter(|row| row["client"] == client && row["op"] == "new");
        ours.map(|row| count(row, "ops_ok")).sum()
    };
    let there = block_on(async {
        let client = mongodb::Client::with_uri_str(uri).await.unwrap();
        let data = client.database("overdrive_clients").collection::<bson::Document>("load");
        data.count_documents(doc! {}).await.unwrap()
    });
    // Each trial begins with the same data.
    assert_eq!(there, 100 + inserted("critical") + 3 * inserted("batch"));
}

/// What reads runs names a client's operations as screens do.
fn readers_know_them(place: &Place, run: &str) {
    let told = |args: &[&str]| {
        let finished = finish(overdrive(args).current_dir(place.path()));
        finished.assert_code(0);
        finished.stdout
    };
    let compared = told(&["compare", run, "--op", "batch/read"]);
    assert!(compared.contains("operation batch/read") && compared.contains("retries/op"), "{compared}");
    let exported = told(&["export", run, "--format", "benchfmt", "--op", "critical/all", "--segment", "all"]);
    assert_eq!(exported.matches("/client=critical/op=all/segment=all").count(), 2, "{exported}");
    let percentiles =
        told(&["export", &format!("{run}:trial=1"), "--format", "hgrm", "--op", "critical/new"]);
    assert!(percentiles.contains("TotalCount"), "{percentiles}");
    let report = told(&["report", run, "--markdown"]);
    assert!(report.contains("critical/read") && report.contains("batch/all"), "{report}");
}

#[test]
fn what_several_clients_cannot_is_told_before_anything_runs() {
    let place = Place::new(TWO);
    let told = |args: &[&str]| {
        let finished = finish(&mut place.run(&[&["--uri", "mongodb://127.0.0.1:1"], args].concat()));
        finished.assert_code(2);
        finished.stderr
    };
    let soon = (jiff::Timestamp::now().as_second() + 120).to_string();
    for (args, part) in [
        (
            &["--set", "clients.bulk.load.rate=5/s"][..],
            "there is no client `bulk`; there are critical, batch",
        ),
        (&["--set", "clients.batch.client.maxAdaptiveRetires=5"], "maxAdaptiveRetries"),
        (&["--rate", "5/s"], "set clients.critical.load.rate or clients.batch.load.rate"),
        (&["--set", "clients.batch.load.duration=5s"], "set load.duration"),
        (&["--set", "clients.batch.flow.when_full=spool"], "several clients cannot spool"),
        (&["--driver", "3.9.1"], "several clients make their load in one process"),
        (&["--find-max", "error_rate < 1%"], "--vary clients.critical.load.rate=100/s,200/s"),
        (&["--shard", "0/2", "--start-at", &soon], "several clients are not divided yet"),
        (&["--fail-if", "op.read.error_rate > 1%"], "client.NAME.op.read"),
        (&["--set", "clients.batch.client.srvMaxHosts=2"], "client batch: "),
    ] {
        let stderr = told(args);
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    let simulated = finish(overdrive(["simulate", "profile.toml"]).current_dir(place.path()));
    assert!(simulated.assert_code(2).stderr.contains("several clients are not simulated yet"));
    assert!(place.runs().is_empty(), "nothing ran");
}
