//! Several trials in one run: what varies, how often, in which order, and what is kept of it.

use rustix::process::Signal;

use crate::support::{Place, Running, assert_sums, count, finish, overdrive, run_json, table};

const PROFILE: &str = r#"
[data]
documents = 0
[load]
arrivals = "even"
rate = "100/s"
warmup = "100ms"
duration = "1s"
[client]
maxPoolSize = 20
[op.ping.run_command]
command = { ping = 1 }
"#;

#[test]
fn every_combination_is_run_there_and_back() {
    let place = Place::new(PROFILE);
    let args = ["--stub", "--vary", "maxAdaptiveRetries=0,2", "--vary", "rate=50/s,100/s", "--repeat=2"];
    let finished = finish(&mut place.run(&args));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let rows = table(directory, "summary.csv");
    let all: Vec<_> = rows.iter().filter(|row| row["op"] == "all" && row["segment"] == "all").collect();
    let told: Vec<String> = all
        .iter()
        .map(|row| {
            let columns = ["trial", "repeat", "param_maxAdaptiveRetries", "param_rate", "offered"];
            columns.map(|column| row[column].as_str()).join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "1 1 0 50/s 50",
            "2 1 0 100/s 100",
            "3 1 2 50/s 50",
            "4 1 2 100/s 100",
            "5 2 2 100/s 100",
            "6 2 2 50/s 50",
            "7 2 0 100/s 100",
            "8 2 0 50/s 50",
        ]
    );
    assert_eq!(all[0]["variant"], "maxAdaptiveRetries=0 rate=50/s");
    let json = run_json(directory);
    assert_eq!((json["trials"].as_array().unwrap().len(), &json["complete"]), (8, &true.into()));
    assert_eq!(table(&place.path().join("results"), "runs.csv").len(), 8);
    // One header each, whatever the number of trials, and a line for each on screen.
    let intervals = table(directory, "intervals.csv");
    assert!((1..=8).all(|trial| intervals.iter().any(|row| row["trial"] == trial.to_string())));
    assert!(intervals.iter().all(|row| row["trial"] != "trial"));
    assert!(
        finished.stderr.contains("trial 3 of 8: maxAdaptiveRetries=2 rate=50/s (repeat 1)"),
        "{}",
        finished.stderr
    );
    assert!(finished.stdout.contains("8: maxAdaptiveRetries=0 rate=50/s (2)"), "{}", finished.stdout);
}

#[test]
fn an_interrupted_run_keeps_the_trials_before() {
    let place = Place::new(PROFILE);
    let args = ["--stub", "--vary", "maxAdaptiveRetries=0,2,3", "--repeat=9", "--duration=2s"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("trial 2 of 27");
    running.wait_for("measure");
    running.signal(Signal::INT);
    let finished = running.finish();
    let directory = finished.assert_code(130).directory();
    let json = run_json(directory);
    let trials = json["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &json["complete"]), (2, &false.into()));
    let cut: Vec<_> = trials.iter().map(|trial| trial["totals"]["cut"].as_bool().unwrap()).collect();
    assert_eq!(cut, [false, true]);
    let runs = table(&place.path().join("results"), "runs.csv");
    assert_eq!(runs.iter().map(|row| row["result"].as_str()).collect::<Vec<_>>(), ["complete", "cut"]);
    let rows = table(directory, "summary.csv");
    let first = rows.iter().find(|row| row["trial"] == "1" && row["op"] == "all").unwrap();
    assert_eq!(count(first, "offered"), 200);
}

#[test]
fn an_end_between_two_trials_keeps_the_first_and_says_so() {
    let place = Place::new(PROFILE);
    let mut running = Running::start(&mut place.run(&["--stub", "--vary", "maxAdaptiveRetries=0,2,3"]));
    running.wait_for("trial 2 of 3");
    running.signal(Signal::INT);
    let finished = running.finish();
    let json = run_json(finished.assert_code(130).directory());
    assert!(json["trials"].as_array().unwrap().len() < 3, "{json}");
    assert_eq!(json["complete"], false);
    assert!(json["notes"].to_string().contains("of 3 trials ran"), "{}", json["notes"]);
}

#[test]
fn what_cannot_vary_is_told_before_anything_starts() {
    for (vary, parts) in [
        ("maxAdaptiveRetrys=0,2", ["maxAdaptiveRetries", "--vary"]),
        ("maxAdaptiveRetries=0,many", ["many", "--vary maxAdaptiveRetries"]),
        ("maxAdaptiveRetries=2,2", ["twice", "--vary"]),
        ("op.pong.weight=1,2", ["op.ping.weight", "--vary"]),
    ] {
        let place = Place::new(PROFILE);
        let finished = finish(&mut place.run(&["--stub", "--vary", vary]));
        finished.assert_code(2);
        assert!(parts.iter().all(|part| finished.stderr.contains(part)), "{vary}: {}", finished.stderr);
        assert!(!place.path().join("results").exists());
    }
    let dry =
        finish(&mut overdrive(["run", "--vary", "maxAdaptiveRetries=0,2", "--repeat", "2", "--dry-run"]));
    assert!(dry.assert_code(0).stdout.contains("4 trials, about"), "{}", dry.stdout);
}

/// That the directory holds each of four trials once, and the whole run.
#[track_caller]
fn assert_whole(directory: &std::path::Path) {
    assert_sums(directory);
    let json = run_json(directory);
    let numbers: Vec<_> =
        json["trials"].as_array().unwrap().iter().map(|t| t["trial"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(
        (&json["complete"], &json["cut"], &json["notes"]),
        (&true.into(), &false.into(), &serde_json::json!([]))
    );
    assert!(!directory.join("run.partial.json").exists());
    let rows = table(directory, "summary.csv");
    let all: Vec<_> = rows.iter().filter(|row| row["op"] == "all" && row["segment"] == "all").collect();
    let told: Vec<_> =
        all.iter().map(|row| (&*row["trial"], &*row["variant"], count(row, "offered"))).collect();
    let (slow, fast) = ("rate=50/s", "rate=100/s");
    assert_eq!(told, [("1", slow, 100), ("2", fast, 200), ("3", fast, 200), ("4", slow, 100)]);
    // What the interrupted trial had left is gone: time never runs back.
    let intervals = table(directory, "intervals.csv");
    for trial in ["1", "2", "3", "4"] {
        let times = intervals.iter().filter(|row| row["trial"] == trial && row["op"] == "all");
        let times: Vec<f64> = times.map(|row| row["elapsed_s"].parse().unwrap()).collect();
        assert!(times.len() > 2 && times.is_sorted_by(|a, b| a < b), "trial {trial}: {times:?}");
    }
}

#[test]
fn an_interrupted_run_is_gone_on_with() {
    let place = Place::new(PROFILE);
    let args = ["--stub", "--vary", "rate=50/s,100/s", "--repeat=2", "--duration=2s"];
    let resume = |directory: &std::path::Path, args: &[&str]| {
        let directory = directory.to_str().unwrap();
        finish(&mut place.run(&[args, &["--resume", directory]].concat()))
    };

    // Ctrl-C in the third trial.
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("trial 3 of 4");
    running.wait_for("measure");
    running.signal(Signal::INT);
    let finished = running.finish();
    let directory = finished.assert_code(130).directory().to_owned();
    for (other, part) in [
        (&["--stub", "--vary", "rate=50/s,200/s", "--repeat=2", "--duration=2s"][..], "trial 2"),
        (&["--stub", "--vary", "rate=50/s,100/s", "--repeat=2", "--duration=3s"], "`load` differs"),
        (
            &["--stub", "--vary", "rate=50/s,100/s", "--repeat=2", "--duration=2s", "--set", "w=1"],
            "`w` was not set",
        ),
        (&["--stub", "--duration=2s"], "a run of one trial"),
    ] {
        let refused = resume(&directory, other);
        assert!(refused.assert_code(2).stderr.contains(part), "{other:?}: {}", refused.stderr);
    }
    let before = table(&directory, "intervals.csv").len();
    let whole = resume(&directory, &args);
    assert_eq!(whole.assert_code(0).directory(), directory);
    assert!(
        whole.stderr.contains("trial 3 of 4") && !whole.stderr.contains("trial 2 of 4"),
        "{}",
        whole.stderr
    );
    assert_whole(&directory);
    assert!(table(&directory, "intervals.csv").len() > before);
    let again = resume(&directory, &args);
    assert!(again.assert_code(0).stderr.contains("all 4 trials"), "{}", again.stderr);

    // Killed in the second trial.
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("trial 2 of 4");
    running.wait_for("measure");
    running.signal(Signal::KILL);
    running.finish();
    let directory = place.runs().into_iter().find(|directory| !directory.join("run.json").exists()).unwrap();
    assert!(directory.join("run.partial.json").exists());
    let at = directory.to_str().unwrap();
    let first = finish(&mut overdrive(["compare", at, &format!("{at}:trial=1")]));
    assert!(first.assert_code(0).stdout.contains("goodput"), "what had ended can be read: {}", first.stderr);
    // A start that does not get as far as load takes nothing away.
    let before = std::fs::read(directory.join("intervals.csv")).unwrap();
    let nobody = ["--uri", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300"];
    let unreachable = resume(&directory, &[&args[1..], &nobody].concat());
    assert!(!unreachable.status.success());
    assert_eq!(std::fs::read(directory.join("intervals.csv")).unwrap(), before);
    resume(&directory, &args).assert_code(0);
    assert_whole(&directory);

    let nothing = resume(&place.path().join("results"), &args);
    assert!(nothing.assert_code(2).stderr.contains("run it anew"), "{}", nothing.stderr);
}
