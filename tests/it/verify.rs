//! What `verify` says of the driver that this build has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use overdrive::client::version::DRIVER_VERSION;
use overdrive::lab::Lab;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Running, finish, overdrive};
use crate::{alone, lab_options, shared_lab};

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

#[tokio::test(flavor = "multi_thread")]
async fn the_known_faults_of_the_driver_are_found_and_no_others() {
    let _alone = alone().await;
    let start = Instant::now();
    // Its end is waited for longer than a usual command's.
    let output = tokio::task::block_in_place(|| overdrive(["verify", "--format", "json"]).output().unwrap());
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
    // A standalone server, 8.0's bulkWrite, and a method and an option that the driver does not have.
    for name in of("untestable") {
        let seen = text(by_name[&name], "seen");
        // And what a busy machine does not show.
        let known = [
            "topologies single",
            "server 8.0",
            "Collection::bulk_write",
            "no option socketTimeoutMS",
            "timers are up to",
        ];
        assert!(known.iter().any(|reason| seen.contains(reason)), "{name}: {seen}");
    }
    assert!(of("holds").len() > 120, "{report:#}");
    let backoff = by_name["backoff is uniform up to its bound"];
    assert!(
        backoff["verdict"] != "holds"
            || text(backoff, "seen").contains("fits jitter·min(10 s, 100 ms·2^attempt)")
    );
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

/// What is left on a lab: databases of verify's, entries of faults, members whose failpoint is on.
async fn left(lab: &Lab) -> (Vec<String>, u64, usize) {
    let client = mongodb::Client::with_uri_str(lab.uri()).await.unwrap();
    let databases = client.list_database_names().await.unwrap();
    let databases = databases.into_iter().filter(|name| name.starts_with("overdrive_verify")).collect();
    let faults = client.database("overdrive").collection::<Document>("overdrive.faults");
    let entries = faults.count_documents(doc! {}).await.unwrap();
    let mut on = 0;
    for address in lab.addresses() {
        let uri = format!("mongodb://{address}/?directConnection=true");
        let admin = mongodb::Client::with_uri_str(uri).await.unwrap().database("admin");
        let reply = admin.run_command(doc! { "getParameter": 1, "failpoint.failCommand": 1 }).await.unwrap();
        let mode = reply.get_document("failpoint.failCommand").unwrap().get("mode").cloned();
        on += usize::from(!matches!(mode, Some(Bson::Int32(0) | Bson::Int64(0))));
    }
    (databases, entries, on)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_on_a_deployment_however_it_ends() {
    let lab = Lab::start(&lab_options(), &|_| {}).await.unwrap();
    let args = ["verify", "--uri", lab.uri(), "--allow-faults", "fail_command"];
    let interrupted = |signal| {
        let mut run = Running::start(&mut overdrive(args));
        run.wait_for("Rules of retries");
        // By then commands are being rejected.
        std::thread::sleep(Duration::from_secs(2));
        run.signal(signal);
        run.finish()
    };
    tokio::task::block_in_place(|| interrupted(Signal::TERM)).assert_code(130);
    assert_eq!(left(&lab).await, (Vec::new(), 0, 0));

    tokio::task::block_in_place(|| interrupted(Signal::KILL));
    let (databases, entries, _) = left(&lab).await;
    assert_eq!(entries, 3, "it had no time to cross anything out");
    // Which rule it was at depends on its waits: nothing may have been written yet.
    assert!(databases.len() <= 1, "{databases:?}");
    let restored = tokio::task::block_in_place(|| finish(&mut overdrive(["restore", "--uri", lab.uri()])));
    restored.assert_code(0);
    let (_, entries, on) = left(&lab).await;
    assert_eq!((entries, on), (0, 0), "{}", restored.stderr);
    lab.stop().await.unwrap();
}
