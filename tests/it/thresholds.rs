//! Thresholds against a stub that fails exactly as often as it is told to.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Place, Running, assert_sums, finish, overdrive, run_json, table};

/// 50 operations a second, one at a time, so that of those of a second without retries each seventh fails: 7 of 50.
const PROFILE: &str = r#"
[data]
documents = 0
[load]
arrivals = "even"
rate = "50/s"
max_in_flight = 1
warmup = "0s"
duration = "1s"
[client]
maxPoolSize = 20
maxAdaptiveRetries = 0
[op.ping.run_command]
command = { ping = 1 }
"#;

const SEVENTH_FAILS: &str = "--stub=fail=every:7";

fn place(thresholds: &str) -> Place {
    Place::new(format!("[thresholds]\n{thresholds}\n{PROFILE}"))
}

/// What `run.json` says of the thresholds of a trial: each with its value and whether the trial failed by it.
fn verdicts(json: &Value, trial: usize) -> Vec<(String, Value, bool)> {
    let verdicts = json["trials"][trial]["thresholds"].as_array().unwrap().iter();
    let one = |v: &Value| {
        (v["fail_if"].as_str().unwrap().to_owned(), v["value"].clone(), v["failed"].as_bool().unwrap())
    };
    verdicts.map(one).collect()
}

/// The cells of the lines of a table that begin with this.
fn lines(stdout: &str, first: &str) -> Vec<Vec<String>> {
    let cells =
        |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).filter(|c| !c.is_empty()).collect();
    stdout.lines().filter(|line| line.starts_with(&format!("| {first}"))).map(cells).collect()
}

#[test]
fn what_a_run_must_not_come_to_ends_it_with_code_3() {
    let place = place("fail_if = [\"error_rate > 14%\", 'op.ping.ops_failed >= 7']");
    let more = [
        "--fail-if",
        "error_rate>=14%",
        "--fail-if=latency_p99 > 1m",
        "--fail-if",
        "goodput_ops_per_s < 43/s",
    ];
    let finished = finish(place.run(&[SEVENTH_FAILS]).args(more));
    let directory = finished.assert_code(3).directory();
    assert_sums(directory);
    let wanted = [
        ("error_rate > 14%", json!(0.14), "14.0%", "passed"),
        ("op.ping.ops_failed >= 7", json!(7.0), "7", "FAILED"),
        ("error_rate >= 14%", json!(0.14), "14.0%", "FAILED"),
        // Of 43 operations that succeeded no 99th percentile is known, and what is not known is no pass.
        ("latency_p99 > 1m", json!(null), "no data", "FAILED"),
        ("goodput < 43/s", json!(43.0), "43.0/s", "passed"),
    ];
    let stored = wanted.clone().map(|(text, value, _, word)| (text.to_owned(), value, word == "FAILED"));
    assert_eq!(verdicts(&run_json(directory), 0), stored);
    for (text, _, seen, word) in wanted {
        assert_eq!(lines(&finished.stdout, text), [[text, seen, word]], "{}", finished.stdout);
        let told = format!("threshold crossed in trial 1 (base): {text}, seen {seen}");
        assert_eq!(finished.stderr.contains(&told), word == "FAILED", "{told}: {}", finished.stderr);
    }
    // The whole is not cut, and can be compared with others.
    assert_eq!(run_json(directory)["complete"], true);
}

#[test]
fn a_run_that_keeps_within_its_thresholds_is_as_any() {
    let place = place("fail_if = ['error_rate > 20%']\nabort_when = ['error_rate > 20%']");
    let finished = finish(&mut place.run(&[SEVENTH_FAILS]));
    let directory = finished.assert_code(0).directory();
    assert_eq!(lines(&finished.stdout, "error_rate"), [["error_rate > 20%", "14.0%", "passed"]]);
    assert!(table(directory, "events.csv").iter().all(|row| row["kind"] != "aborted"));
}

#[test]
fn every_trial_of_many_is_checked() {
    let place = place("fail_if = ['error_rate > 1%']");
    let args = [SEVENTH_FAILS, "--vary", "maxAdaptiveRetries=0,2", "--repeat=2"];
    let finished = finish(&mut place.run(&args));
    let json = run_json(finished.assert_code(3).directory());
    let failed: Vec<bool> = (0..4).map(|trial| verdicts(&json, trial)[0].2).collect();
    assert_eq!(failed, [true, false, false, true], "there and back");
    assert!(finished.stdout.contains("Thresholds: 2 of 4 FAILED:"), "{}", finished.stdout);
    for name in ["1: maxAdaptiveRetries=0 (1)", "4: maxAdaptiveRetries=0 (2)"] {
        let rows = lines(&finished.stdout, name);
        assert!(rows.contains(&[name, "error_rate > 1%", "14.0%"].map(str::to_owned).to_vec()), "{rows:?}");
    }
    let first = "threshold crossed in trial 1 (maxAdaptiveRetries=0): error_rate > 1%, seen 14.0%";
    assert!(finished.stderr.contains(first), "{}", finished.stderr);
}

#[test]
fn a_hopeless_trial_is_ended_early_and_the_next_one_runs() {
    let place = place("abort_when = ['error_rate > 50%']");
    // At 10/s no hundred operations are due in that time, which is too few to give up for.
    let args =
        ["--stub=fail=every:1", "--vary=rate=200/s,10/s", "--duration=8s", "--set=load.max_in_flight=100"];
    let finished = finish(&mut place.run(&args));
    let directory = finished.assert_code(3).directory();
    assert_sums(directory);
    let json = run_json(directory);
    let cut: Vec<&Value> = (0..2).map(|trial| &json["trials"][trial]["totals"]["cut"]).collect();
    assert_eq!((cut, &json["complete"]), (vec![&json!(true), &json!(false)], &json!(false)));

    let events = table(directory, "events.csv");
    let aborted: Vec<_> = events.iter().filter(|row| row["kind"] == "aborted").collect();
    let [aborted] = aborted[..] else { panic!("{events:?}") };
    assert_eq!((&*aborted["trial"], &*aborted["phase"]), ("1", "measure"));
    assert_eq!(aborted["subject"], "error_rate > 50%");
    assert_eq!(aborted["detail"], "has held for 5s, last with 100.0%");
    let at: f64 = aborted["elapsed_s"].parse().unwrap();
    assert!((5.0..6.5).contains(&at), "{at}");
    let note = "ended early: error_rate > 50% has held for 5s, last with 100.0%";
    assert!(json["trials"][0]["notes"].as_array().unwrap().contains(&json!(note)), "{json}");
    assert!(finished.stdout.contains(&format!("note: trial 1: {note}")), "{}", finished.stdout);
    assert!(finished.stderr.contains("ending this trial early: error_rate > 50%"), "{}", finished.stderr);
    // What was measured until then is kept, over the time that it took.
    let rows = table(directory, "summary.csv");
    let first = rows.iter().find(|row| row["trial"] == "1" && row["op"] == "all").unwrap();
    let measured: f64 = first["duration_s"].parse().unwrap();
    assert!((5.0..6.5).contains(&measured), "{first:?}");
}

#[test]
fn the_first_reason_for_an_end_wins() {
    let place = place("fail_if = ['goodput < 1000/s']");
    // What the user has cut short is told, but it is the user's end.
    let mut running = Running::start(&mut place.run(&["--stub", "--duration=60s"]));
    running.wait_for("measure");
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.assert_code(130);
    assert!(finished.stderr.contains("threshold crossed in trial 1"), "{}", finished.stderr);
    assert_eq!(lines(&finished.stdout, "goodput")[0][2], "FAILED");
    // A trial that had ended by then had its verdict before.
    let mut running = Running::start(&mut place.run(&["--stub", "--repeat=9"]));
    running.wait_for("threshold crossed in trial 1");
    running.wait_for("measure");
    running.signal(Signal::INT);
    running.finish().assert_code(3);
}

#[test]
fn a_description_has_the_thresholds() {
    let place = place("fail_if = ['latency_p99>50ms']\nabort_when = ['error_rate > 50%']");
    let args = ["profile.toml", "--fail-if=op.ping.goodput < 5/s"];
    for command in [&["check"][..], &["run", "--stub", "--dry-run"]] {
        let finished = finish(overdrive(command.iter().chain(&args)).current_dir(place.path()));
        let part = "thresholds\n  fails if latency_p99 > 50ms\n  fails if op.ping.goodput < 5/s\n  ends early once \
                    error_rate > 50% has held for 5s, 100 operations being due by then\n";
        assert!(finished.assert_code(0).stdout.contains(part), "{}", finished.stdout);
    }
    let json = finish(overdrive(["check", "--json"].iter().chain(&args)).current_dir(place.path()));
    let plan: Value = serde_json::from_str(&json.assert_code(0).stdout).unwrap();
    let wanted = json!({"fail_if": ["latency_p99 > 50ms", "op.ping.goodput < 5/s"], "abort_when": ["error_rate > 50%"]});
    assert_eq!(plan["thresholds"], wanted);
}

#[test]
fn wrong_ones_are_told_before_anything_is_started() {
    let refused = |thresholds: &str, args: &[&str], parts: &[&str]| {
        let place = place(thresholds);
        let finished = finish(place.run(&["--stub"]).args(args));
        finished.assert_code(2);
        assert!(parts.iter().all(|part| finished.stderr.contains(part)), "{parts:?}: {}", finished.stderr);
        assert!(!place.path().join("results").exists());
    };
    let wrong = "fail_if = ['latncy_p99 > 50ms', 'op.pong.goodput < 5/s']\nabort_when = ['error_rate > 5']";
    let meant =
        ["profile.toml:2:13", "`latency_p99`", "profile.toml:2:34", "`ping`", "profile.toml:3:29", "like 2%"];
    refused(wrong, &[], &meant);
    refused("fail_iff = []", &[], &["profile.toml:2:1", "did you mean `fail_if`?"]);
    refused("", &["--fail-if=goodptu < 5/s"], &["--fail-if", "did you mean `goodput`?"]);
    refused("", &["--fail-if=goodput"], &["--fail-if", "METRIC < LIMIT"]);
    refused("", &["--abort-when=op.pong.goodput < 5/s"], &["--abort-when", "did you mean `ping`?"]);
    refused("", &["--set=thresholds.fail_if=goodput < 5/s"], &["--set thresholds.fail_if", "--fail-if"]);
}
