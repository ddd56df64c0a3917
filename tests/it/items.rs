//! The items of bulk inserts through rejections: what was rejected goes again, what is there twice goes to a file.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Document, doc};
use serde_json::Value;

use crate::drivers::pymongo;
use crate::support::{Place, assert_sums, block_on, count, finish, table};
use crate::{alone, shared_lab};

/// Each insert brings five of four hundred keys, of which the first fifty are taken: in the end most are.
const PROFILE: &str = r#"
[data]
collection = "items"
documents = 50
[load]
rate = "40/s"
warmup = "1s"
duration = "5s"
[client]
maxPoolSize = 50
maxAdaptiveRetries = 0
retryWrites = false
[flow.backoff]
kind = "immediate"
max_attempts = 40
[op.heap.insert_many]
count = 5
ordered = false
document = { _id = { "^Int" = { min = 0, max = 399 } } }
[op.chain.insert_many]
count = 5
document = { _id = { "^Int" = { min = 0, max = 399 } } }
[[overload]]
name = "shed"
at = "1s"
for = "3s"
members = "primary"
fail_command = { commands = ["insert"], probability = 0.5 }
"#;

#[test]
fn only_what_was_rejected_goes_again_and_the_hopeless_go_to_a_file() {
    with_driver("rust");
}

#[test]
fn pymongo_goes_item_by_item_as_well() {
    with_driver("pymongo:4.18.0");
}

fn with_driver(driver: &str) {
    let _alone = block_on(alone());
    let place = Place::new(PROFILE);
    let args = ["--uri", &shared_lab().uri, "--allow-faults", "fail_command", "--ui", "none"];
    let mut command = place.run(&args);
    if driver != "rust" {
        command.args(["--driver", driver]).env("OVERDRIVE_DRIVERS", pymongo());
    }
    let finished = finish(&mut command);
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);

    let text = std::fs::read_to_string(directory.join("dead_letters.ndjson")).unwrap();
    let letters: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |op: &str| letters.iter().filter(|letter| letter["op"] == op).collect::<Vec<_>>();
    let intervals = table(directory, "intervals.csv");
    let mut written = 50;
    for op in ["heap", "chain"] {
        let sum = |column: &str| -> u64 {
            intervals.iter().filter(|row| row["op"] == op).map(|row| count(row, column)).sum()
        };
        let mut lost: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for letter in of(op) {
            let items = lost.entry(letter["n"].as_u64().unwrap()).or_default();
            assert!(items.insert(letter["item"].as_u64().unwrap()), "twice: {letter}");
        }
        // An operation failed if one of its items did, and went again although others did.
        assert_eq!((sum("ops_failed"), sum("ops_gave_up")), (lost.len() as u64, 0), "{op}");
        assert!(sum("app_retries") > 0, "{op}");
        written += 5 * (sum("ops_ok") + sum("ops_failed")) - of(op).len() as u64;
        if op == "chain" {
            for items in lost.values() {
                let first = *items.first().unwrap();
                assert!(items.iter().copied().eq(first..5), "all behind the first: {items:?}");
            }
        }
    }
    let there: BTreeSet<i64> = block_on(async {
        let client = mongodb::Client::with_uri_str(&shared_lab().uri).await.unwrap();
        let data = client.database("overdrive").collection::<Document>("items");
        let keys = data.distinct("_id", doc! {}).await.unwrap();
        keys.iter().map(|key| i64::from(key.as_i32().unwrap())).collect()
    });
    assert_eq!(there.len() as u64, written);
    for letter in &letters {
        let key = letter["write"]["insertOne"]["document"]["_id"].as_i64().unwrap();
        match letter["code"].as_i64() {
            Some(code) => {
                assert_eq!((code, letter["code_name"].as_str()), (11000, Some("DuplicateKey")));
                assert!(there.contains(&key), "{letter}");
            }
            None => assert_eq!((&letter["op"], &letter["message"]), (&"chain".into(), &"".into())),
        }
        assert_eq!(letter["unclear_before"], false);
    }
    let told = format!("{} items that no server takes are in dead_letters.ndjson", letters.len());
    assert!(finished.stdout.contains(&told), "{}", finished.stdout);
}
