//! What `verify` says of the driver that this build has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use overdrive::client::version::DRIVER_VERSION;
use serde_json::Value;

use crate::shared_lab;
use crate::support::{finish, overdrive};

/// Known faults of 3.9.1, by what breaks of them; all else holds or cannot be seen on a lab of 6.0.
const BROKEN: [&str; 8] = [
    "backoff is capped after many retries",
    "baseBackoffMS of any type is survived",
    "NoWritesPerformed chooses the error returned",
    "create is retried",
    "drop is retried",
    "dropDatabase is retried",
    "client-backpressure-options: maxAdaptiveRetries with invalid value causes a warning",
    "client-backpressure-options: enableOverloadRetargeting with invalid value causes a warning",
];

#[test]
fn the_known_faults_of_the_driver_are_found_and_no_others() {
    let start = Instant::now();
    // Its own end is waited for longer than a usual command's.
    let output = overdrive(["verify", "--format", "json"]).output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["driver"], format!("rust:{DRIVER_VERSION}"));
    let rules = report["rules"].as_array().unwrap();
    let text = |rule: &Value, field: &str| rule[field].as_str().unwrap().to_owned();
    let by_name: BTreeMap<String, &Value> = rules.iter().map(|rule| (text(rule, "rule"), rule)).collect();
    assert_eq!(by_name.len(), rules.len(), "no two rules have one name");
    for rule in rules {
        assert!(!text(rule, "source").is_empty() && !text(rule, "seen").is_empty(), "{rule}");
    }
    if DRIVER_VERSION != "3.9.1" {
        return;
    }
    let of = |verdict: &str| -> Vec<String> {
        by_name.iter().filter(|(_, rule)| rule["verdict"] == verdict).map(|(name, _)| name.clone()).collect()
    };
    let mut broken = BROKEN.map(str::to_owned);
    broken.sort();
    assert_eq!(of("broken"), broken, "{report:#}");
    // A standalone server, 8.0's bulkWrite, and a method that the driver does not have.
    for name in of("untestable") {
        let seen = text(by_name[&name], "seen");
        let known = ["topologies single", "server 8.0", "Collection::bulk_write"];
        assert!(known.iter().any(|reason| seen.contains(reason)), "{name}: {seen}");
    }
    assert!(of("holds").len() > 120, "{report:#}");
    assert!(text(by_name["backoff is uniform up to its bound"], "seen").contains("ms·2^attempt"));
}

#[test]
fn what_it_needs_is_told_before_anything_is_done() {
    let lab = shared_lab();
    for (args, part) in [
        (&["--driver", "pymongo:4.18.0"][..], "cannot be checked"),
        (&["--driver", "3.3.99"], "overdrive driver build rust:3.3.99"),
        (&["--uri", &lab.uri], "--allow-faults=fail_command"),
        (&["--uri", &lab.uri, "--mongod", "/bin/true"], "leave one of them out"),
        (&["--allow-faults", "kill"], "invalid value 'kill'"),
    ] {
        let finished = finish(&mut overdrive(["verify"].iter().chain(args)));
        finished.assert_code(2);
        assert!(finished.stderr.contains(part), "{args:?}: {}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    }
}
