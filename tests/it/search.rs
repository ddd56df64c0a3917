//! The search for the largest rate, against stubs and gates whose capacity is known.

use std::num::NonZeroU32;
use std::time::Duration;

use overdrive::gate::Gate;
use overdrive::plan::{GateSettings, Limit};
use overdrive::stub::{Script, Stub};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::alone;
use crate::support::{Place, Row, Running, assert_sums, count, finish, run_json, table};

/// Four connections, so that a stub that takes 20 ms for each command does 200 a second.
const PROFILE: &str = r#"
[data]
documents = 0
[load]
arrivals = "even"
rate = "50/s"
warmup = "300ms"
duration = "1200ms"
[client]
maxPoolSize = 4
minPoolSize = 4
maxAdaptiveRetries = 0
[op.ping.run_command]
command = { ping = 1 }
"#;

const SERVICE: &str = "--stub=service=20ms";

fn rate(row: &Row) -> f64 {
    row["target_ops_per_s"].parse().unwrap()
}

#[test]
fn the_capacity_of_a_server_that_is_known_is_found() {
    let place = Place::new(PROFILE);
    let args = [SERVICE, "--find-max", "latency_p50 < 60ms", "--find-max=error_rate<1%", "--confirm-for=2s"];
    let finished = finish(&mut place.run(&args));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);

    let json = run_json(directory);
    let search = &json["search"];
    assert_eq!(search["find_max"], json!(["latency_p50 < 60ms", "error_rate < 1%"]));
    assert_eq!((&search["ending"], &search["confirm_s"]), (&json!("found"), &json!(2.0)));
    let found = search["confirmed_ops_per_s"].as_f64().unwrap();
    let failed = search["failed_ops_per_s"].as_f64().unwrap();
    // A machine that is busy finds less, but none finds more than there is.
    assert!((100.0..=215.0).contains(&found) && found < failed && failed <= 260.0, "{search}");
    assert_eq!((&json["complete"], &json["notes"]), (&json!(true), &json!([])));

    // Each row is a trial, whose figures are those of its summary.
    let rows = table(directory, "search.csv");
    let summary = table(directory, "summary.csv");
    assert_eq!(json["trials"].as_array().unwrap().len(), rows.len());
    for (row, trial) in rows.iter().zip(1_u64..) {
        assert_eq!(count(row, "trial"), trial);
        let wanted = |s: &&Row| s["trial"] == row["trial"] && s["segment"] == "all" && s["op"] == "all";
        let whole = summary.iter().find(wanted).unwrap();
        for column in
            ["variant", "duration_s", "offered", "goodput_ops_per_s", "error_rate", "latency_p50_us"]
        {
            assert_eq!(row[column], whole[column], "{column}");
        }
        assert_eq!(
            (&row["variant"], &whole["param_rate"]),
            (&format!("rate={}/s", rate(row)), &format!("{}/s", rate(row)))
        );
        let figures: Value = serde_json::from_str(&row["figures"]).unwrap();
        assert_eq!(figures["latency_p50 < 60ms"].as_f64(), row["latency_p50_us"].parse().ok());
        assert_eq!(row["held"] == "true", row["reason"].is_empty());
    }
    // After a failure comes the lowest rate that held, and only then.
    for pair in rows.windows(2) {
        let after_failure = pair[0]["held"] == "false";
        assert_eq!(pair[1]["role"] == "baseline", after_failure, "{pair:?}");
        assert!(!after_failure || rate(&pair[1]) <= 50.0, "{pair:?}");
    }
    let last = rows.last().unwrap();
    assert_eq!(rows[0]["target_ops_per_s"], "50.0");
    // What was confirmed stands when a confirmation of more fails after it, as it does where the machine stumbles.
    assert!(last["held"] == "true" || (last["role"] == "confirm" && rate(last) > found), "{last:?}");
    let confirmed = rows.iter().find(|row| row["role"] == "confirm" && row["held"] == "true").unwrap();
    assert_eq!(confirmed["duration_s"], "2.0");

    assert!(
        finished.stdout.contains(&format!("held:    {found}/s, confirmed for 2s")),
        "{}",
        finished.stdout
    );
    assert!(finished.stdout.contains(&format!("failed:  {failed}/s (")), "{}", finished.stdout);
    for told in [
        "step 1: 50/s for 1s200ms",
        "50/s holds: latency_p50 < 60ms, seen 2",
        "/s fails: ",
        "is the deployment back? 50/s",
        "confirming ",
    ] {
        assert!(finished.stderr.contains(told), "{told}: {}", finished.stderr);
    }
    assert!(!directory.join("run.partial.json").exists());
}

#[test]
fn where_nothing_holds_the_exit_code_is_3() {
    let place = Place::new(PROFILE);
    let args = [
        "--stub=fail=every:2",
        "--find-max=error_rate < 1%",
        "--duration=200ms",
        "--warmup=0",
        "--rate=640/s",
    ];
    let finished = finish(&mut place.run(&args));
    let directory = finished.assert_code(3).directory();
    let rates: Vec<f64> = table(directory, "search.csv").iter().map(rate).collect();
    assert_eq!(rates, [640.0, 320.0, 160.0, 80.0, 40.0, 20.0, 10.0]);
    let json = run_json(directory);
    assert_eq!(
        (&json["search"]["ending"], &json["search"]["held_ops_per_s"]),
        (&json!("none_held"), &json!(null))
    );
    assert!(finished.stdout.contains("held:    none"), "{}", finished.stdout);
}

#[test]
fn a_load_that_cannot_be_made_is_not_held_and_said_to_be_the_generators_limit() {
    let place = Place::new(PROFILE);
    // One operation at a time, so that the stub gets 200 a second at most, and each that it gets succeeds.
    let args = [
        "--stub=service=5ms",
        "--set=load.max_in_flight=1",
        "--find-max=error_rate < 1%",
        "--duration=600ms",
        "--rate=80/s",
        "--confirm-for=1s",
    ];
    let finished = finish(&mut place.run(&args));
    let search = run_json(finished.assert_code(0).directory())["search"].clone();
    let found = search["confirmed_ops_per_s"].as_f64().unwrap();
    assert!((40.0..=230.0).contains(&found), "{search}");
    let why = search["generator"].as_str().unwrap();
    assert!(why.contains("not kept up with") && why.contains("max_in_flight = 1"), "{search}");
    assert!(finished.stdout.contains("may be the limit of the load generator"), "{}", finished.stdout);
}

#[test]
fn an_interrupted_search_keeps_what_it_has_found() {
    let place = Place::new(PROFILE);
    let mut running =
        Running::start(&mut place.run(&[SERVICE, "--find-max=latency_p50 < 60ms", "--duration=2s"]));
    running.wait_for("step 2: 100/s");
    running.wait_for("measure");
    running.signal(Signal::INT);
    let finished = running.finish();
    let directory = finished.assert_code(130).directory();
    let rows = table(directory, "search.csv");
    let told: Vec<_> = rows.iter().map(|row| (&*row["trial"], &*row["held"])).collect();
    assert_eq!(told, [("1", "true")], "the trial that was cut short says nothing");
    let json = run_json(directory);
    let search = &json["search"];
    assert_eq!((&search["ending"], &search["held_ops_per_s"]), (&json!(null), &json!(50.0)));
    assert_eq!((&json["complete"], json["trials"].as_array().unwrap().len()), (&json!(false), 2));
    assert!(finished.stdout.contains("held:    50/s, NOT CONFIRMED for 1m"), "{}", finished.stdout);
}

#[test]
fn a_dry_run_says_what_would_be_searched() {
    let staged =
        PROFILE.replace("rate = \"50/s\"", "stages = [{ for = \"4s\", from = \"70/s\", to = \"900/s\" }]");
    let place = Place::new(staged.replace("duration = \"1200ms\"", ""));
    let finished = finish(&mut place.run(&["--stub", "--find-max=latency_p99 < 5ms", "--dry-run"]));
    let stdout = &finished.assert_code(0).stdout;
    for part in [
        "search: the largest rate that holds latency_p99 < 5ms",
        "from 70/s, doubled until a step of 4s fails",
        "confirmed for 1m",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(!place.path().join("results").exists());
}

#[test]
fn what_cannot_be_searched_is_told_before_anything_starts() {
    let place = Place::new(PROFILE);
    for (args, part) in [
        (&["--vary=w=1,majority"][..], "run a search for each value"),
        (&["--repeat=2"], "run it several times"),
        (&["--resume=results"], "run it anew"),
        (&["--workers=4"], "this one is closed"),
        (&["--set=workers=4"], "this one is closed"),
        (&["--confirm-for=0"], "--confirm-for must be longer than 0"),
        (
            &["--find-max=op.pong.goodput > 5/s"],
            "--find-max 'op.pong.goodput > 5/s': there is no operation `pong`",
        ),
        (&["--find-max=segment.after.goodput > 5/s"], "there is no segment `after`"),
        (&["--find-max=goodput"], "METRIC < LIMIT"),
    ] {
        let finished = finish(place.run(&["--stub", "--find-max=error_rate < 1%"]).args(args));
        assert!(finished.assert_code(2).stderr.contains(part), "{args:?}: {}", finished.stderr);
        assert!(!place.path().join("results").exists());
    }
    let alone = finish(&mut place.run(&["--stub", "--confirm-for=5s"]));
    assert!(alone.assert_code(2).stderr.contains("--find-max"), "{}", alone.stderr);
}

/// A stub behind a gate that lets so many requests a second through, and a connection string for both.
async fn gated(rate: u32) -> (Gate, Stub, String) {
    let stub = Stub::start(Script::default()).await.unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let gate = Gate::start(stub.address().to_string(), any, limit(rate)).await.unwrap();
    let uri = format!("mongodb://{}/?directConnection=true", gate.address());
    (gate, stub, uri)
}

fn limit(rate: u32) -> GateSettings {
    let burst = Duration::from_millis(100).into();
    let limit = Limit { rate: NonZeroU32::new(rate).unwrap(), burst, queue_depth: 0 };
    GateSettings { requests: Some(limit), ..GateSettings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_limiter_lets_through_is_found() {
    let _alone = alone().await;
    let (_gate, _stub, uri) = gated(300).await;
    let place = Place::new(PROFILE);
    let args = ["--uri", &uri, "--find-max=error_rate < 1%", "--rate=100/s", "--set=maxPoolSize=50"];
    let args = [&args[..], &["--duration=1500ms", "--confirm-for=3s"]].concat();
    let finished = tokio::task::block_in_place(|| finish(&mut place.run(&args)));
    let search = run_json(finished.assert_code(0).directory())["search"].clone();
    // A bucket that is full at the start lets thirty more through; one that runs over, on a machine that stands still,
    // fewer.
    let found = search["confirmed_ops_per_s"].as_f64().unwrap();
    assert!((120.0..=330.0).contains(&found), "{search}");
    assert!(search["failed_because"].as_str().unwrap().starts_with("error_rate < 1%, seen "), "{search}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_does_not_come_back_is_told_with_what_is_known() {
    let (gate, _stub, uri) = gated(300).await;
    let place = Place::new(PROFILE);
    let args = ["--uri", &uri, "--find-max=error_rate < 1%", "--rate=50/s", "--duration=400ms"];
    let finished = tokio::task::block_in_place(|| {
        let mut running = Running::start(place.run(&args).arg("--set=maxPoolSize=50"));
        // The overload is over then, and the servers have become a tenth of what they were.
        running.wait_for("/s fails: ");
        gate.configure(limit(10)).unwrap();
        running.finish()
    });
    let directory = finished.assert_code(3).directory();
    let rows = table(directory, "search.csv");
    let (before, waited) = rows.split_at(rows.len() - 6);
    assert!(
        waited.iter().all(|row| (&*row["role"], &*row["held"], rate(row)) == ("baseline", "false", 50.0))
    );
    assert_eq!(before.last().unwrap()["role"], "step");
    let search = run_json(directory)["search"].clone();
    assert_eq!((&search["ending"], &search["confirmed_ops_per_s"]), (&json!("never_back"), &json!(null)));
    assert!(search["held_ops_per_s"].as_f64().unwrap() >= 50.0, "{search}");
    let failed = format!(
        "did not come back after {}/s: at 50/s, which had held before, 6 trials",
        rate(before.last().unwrap())
    );
    assert!(finished.stdout.contains(&failed), "{failed}: {}", finished.stdout);
    assert!(finished.stdout.contains("NOT CONFIRMED"), "{}", finished.stdout);
}
