//! What is asked for on the command line, in the profile and in the connection string is what a run has, and its results
//! say who asked.

use std::collections::BTreeMap;

use bson::{Document, doc};
use overdrive::profile::shipped;

use crate::running::{Program, Results, members, whole};
use crate::{alone, shared_lab};

/// A profile of pings and cursors, with options of its own.
const PROFILE: &str = r#"
[data]
collection = "options"
documents = 40
[data.document]
_id = { "^Key" = "sequential" }
text = { "^String" = { length = 20 } }
[load]
rate = 40
warmup = "0s"
duration = "1s"
[client]
maxPoolSize = 20
readPreference = "primaryPreferred"
readPreferenceTags = ["rack:7", ""]
maxAdaptiveRetries = 3
retryReads = false
[op.ping.run_command]
command = { ping = 1 }
[op.walk.find]
batch_size = 10
"#;

/// The program beside a profile called options.toml.
fn program() -> Program {
    let program = Program::new();
    std::fs::write(program.place().join("options.toml"), PROFILE).unwrap();
    program
}

/// Value and source of each option that run.json tells of.
fn options(results: &Results) -> BTreeMap<String, (String, String)> {
    let run = results.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let options = run["trials"][0]["options"].as_array().unwrap();
    options.iter().map(|o| (text(&o["name"]), (text(&o["value"]), text(&o["from"])))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_decided_an_option_is_told_and_the_stronger_one_wins() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let uri = format!(
        "{}&maxPoolSize=7&retryReads=true&retryWrites=false&appName=a%20name%26more%3D%C3%A4&heartbeatFrequencyMS=2000",
        lab.uri
    );
    let sets = [
        "--set",
        "retryreads=true",
        "--set",
        "maxIdleTimeMS=60000",
        "--set",
        "compressors=zlib",
        "--set",
        "heartbeatFrequencyMS=3000",
    ];
    let results = program().run(&uri, &[&["options.toml"][..], &sets].concat());
    let options = options(&results);
    let is = |name: &str, value: &str, from: &str| {
        assert_eq!(options[name], (value.to_owned(), from.to_owned()), "{name}");
    };
    is("retryReads", "true", "set");
    is("maxIdleTimeMS", "60000", "set");
    is("heartbeatFrequencyMS", "3000", "set");
    is("maxPoolSize", "20", "profile");
    is("maxAdaptiveRetries", "3", "profile");
    is("retryWrites", "false", "uri");
    is("appName", "a name&more=ä", "uri");
    is("maxConnecting", "2", "default");
    is("enableOverloadRetargeting", "false", "default");
    let summary = results.table("summary.csv");
    for (column, value) in [
        ("param_retryReads", "true"),
        ("param_maxPoolSize", "20"),
        ("param_compressors", "zlib"),
        ("param_readPreferenceTags", "rack:7;"),
    ] {
        assert!(summary.iter().all(|row| row[column] == value), "{column}");
    }
    assert_eq!(summary[0]["param_retryWrites"], "false", "the connection string sets it");
    for name in ["param_maxConnecting", "param_replicaSet", "param_appName"] {
        assert!(!summary[0].contains_key(name), "{name}: nobody set it, or it says where and not how");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unset_is_the_drivers_again_and_an_empty_column() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let uri = format!("{}&maxPoolSize=7", lab.uri);
    let sets = ["--set", "maxPoolSize=unset", "--set", "maxAdaptiveRetries=unset"];
    let results = program().run(&uri, &[&["options.toml"][..], &sets].concat());
    let options = options(&results);
    assert_eq!(options["maxPoolSize"], ("10".to_owned(), "default".to_owned()));
    assert_eq!(options["maxAdaptiveRetries"], ("2".to_owned(), "default".to_owned()));
    assert_eq!(options["appName"], ("overdrive".to_owned(), "overdrive".to_owned()));
    for row in results.table("summary.csv") {
        assert_eq!((&*row["param_maxPoolSize"], &*row["param_maxAdaptiveRetries"]), ("", ""));
        assert_eq!(row["param_retryReads"], "false");
    }
    let params = &results.json()["trials"][0]["params"];
    assert!(params["maxPoolSize"].is_null() && params["retryReads"] == "false", "{params}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_compressor_works_and_is_told() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let program = program();
    for compressor in ["zstd", "zlib", "snappy", "zstd,zlib,snappy"] {
        let set = format!("compressors={compressor}");
        let results = program.run(&lab.uri, &["options.toml", "--set", &set]);
        assert_eq!(options(&results)["compressors"], (compressor.to_owned(), "set".to_owned()));
        let summary = results.table("summary.csv");
        let all = summary.iter().find(|row| row["op"] == "all").unwrap();
        assert!(whole(&all["ops_ok"]) > 0 && all["ops_ok"] == all["offered"], "{compressor}");
        assert_eq!(all["param_compressors"], compressor);
    }
    let runs = std::fs::read_to_string(program.place().join("results/runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 5, "a heading and a line for each:\n{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn light_counting_leaves_empty_what_it_does_not_know() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let results = program().run(&lab.uri, &["options.toml", "--attempts", "light"]);
    let summary = results.table("summary.csv");
    let of = |op: &str| summary.iter().find(|row| row["segment"] == "all" && row["op"] == op).unwrap();
    let (ping, walk, all) = (of("ping"), of("walk"), of("all"));
    assert_eq!((&ping["commands"], &*ping["retries"]), (&ping["ops_ok"], "0"), "one command a call");
    assert_eq!(
        whole(&walk["attempts"]),
        5 * whole(&walk["ops_ok"]),
        "40 documents, ten a batch, and one that is empty"
    );
    for row in [walk, all] {
        for column in ["commands", "retries", "amplification", "backoff_mean_us"] {
            assert_eq!(row[column], "", "{} {column}", row["op"]);
        }
    }
    for row in [ping, walk, all] {
        for column in ["rejected", "retargeted", "attempt_rejected_p50_us"] {
            assert_eq!(row[column], "", "{} {column}", row["op"]);
        }
    }
    assert!(results.table("retries.csv").iter().all(|row| row["op"] == "ping"));
    let checks = results.json()["trials"][0]["checks"].clone();
    assert!(checks.as_array().unwrap().iter().all(|check| check["ok"] == true), "{checks}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_seed_is_another_load() {
    let program = program();
    let plan = |more: &[&str]| -> serde_json::Value {
        let text = program.stdout(&[&["check", "options.toml", "--json"][..], more].concat());
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(plan(&[]), plan(&["--seed", "42"]));
    assert_eq!(plan(&["--seed", "7"])["seed"], 7);
    // The seed decides documents and arrivals: Poisson arrivals of the same rate come in other numbers.
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let (primary, _) = members(lab).await;
    let stored = primary.database("overdrive").collection::<Document>("options");
    let mut seen = Vec::new();
    for seed in ["42", "42", "7"] {
        let results = program.run(&lab.uri, &["options.toml", "--seed", seed]);
        let offered: Vec<String> =
            results.table("summary.csv").iter().map(|row| row["offered"].clone()).collect();
        let document = stored.find_one(doc! { "_id": 3 }).await.unwrap().unwrap();
        seen.push((offered, document.get_str("text").unwrap().to_owned()));
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0].0, seen[2].0);
    assert_ne!(seen[0].1, seen[2].1);
}

#[test]
fn looking_touches_neither_servers_nor_files() {
    let program = program();
    // Nobody listens there, and a run would wait half a minute for it.
    let nowhere = ["--uri", "mongodb://127.0.0.1:1"];
    let planned = program.stdout(&[&["run", "options.toml", "--dry-run"][..], &nowhere].concat());
    let checked = program.stdout(&["check", "options.toml"]);
    // A dry run knows where it would go, so it tells all options there; the rest is the same.
    for line in checked.lines().filter(|line| !line.contains("readPreferenceTags")) {
        assert!(planned.lines().any(|planned| planned == line), "no '{line}' in {planned}");
    }
    for line in ["127.0.0.1:1", "appName = overdrive  (from overdrive)", "maxConnecting = 2  (from default)"]
    {
        assert!(planned.lines().any(|planned| planned.trim() == line), "no '{line}' in {planned}");
    }
    assert!(checked.contains("maxAdaptiveRetries") && checked.contains("walk"), "{checked}");
    let listed = program.stdout(&["profiles"]);
    for (name, description) in shipped::list() {
        assert!(listed.lines().any(|line| line.starts_with(name) && line.ends_with(&description)), "{name}");
        program.stdout(&["check", name]);
    }
    assert_eq!(listed.lines().count(), shipped::list().count());
    let left: Vec<_> =
        std::fs::read_dir(program.place()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["options.toml"]);
}
