//! Other versions of the driver: overdrive built with each, loading in a child process, beside each other in one run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, thread};

use overdrive::client::version::DRIVER_VERSION;
use overdrive::engine::schedule::Schedule;
use overdrive::lab::Lab;
use overdrive::operation::Workload;
use overdrive::plan::{Model, Plan};
use rustix::process::Signal;

use crate::support::{
    Place, Row, Running, assert_sums, block_on, count, finish, overdrive, run_json, send, table,
};
use crate::{alone, lab_options, shared_lab};

/// The last one without retries, the first with them, and the last one before the exponent changed.
const VERSIONS: [&str; 3] = ["3.5.2", "3.6.0", "3.8.2"];

/// Every find is rejected, so that every operation makes all its retries.
const ALL_REJECTED: &str = r#"
[data]
documents = 100
[load]
rate = "60/s"
warmup = "1s"
duration = "6s"
arrivals = "even"
[client]
maxPoolSize = 200
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
[[overload]]
name = "shed"
at = "-1s"
for = "60s"
[overload.fail_command]
commands = ["find"]
code = 462
labels = ["SystemOverloadedError", "RetryableError"]
probability = 1.0
"#;

/// A load that outlives what a test does to it.
const STEADY: &str = r#"
[data]
documents = 100
[load]
rate = "50/s"
warmup = "1s"
duration = "60s"
[client]
maxPoolSize = 20
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

/// Where the drivers of these tests are kept; they are built once.
fn drivers() -> &'static Path {
    static DRIVERS: OnceLock<PathBuf> = OnceLock::new();
    DRIVERS.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drivers");
        let built = overdrive(["driver", "build", "--debug"].iter().chain(&VERSIONS))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("OVERDRIVE_DRIVERS", &home)
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        home
    })
}

/// `run profile.toml` with the drivers of these tests at hand.
fn run_with_drivers(place: &Place, args: &[&str]) -> Command {
    let mut command = place.run(args);
    command.env("OVERDRIVE_DRIVERS", drivers());
    command
}

/// The sum of a column over the whole of a trial, warm-up and cool-down included.
fn sum(directory: &Path, trial: &str, column: &str) -> u64 {
    let rows = table(directory, "intervals.csv");
    rows.iter().filter(|row| row["trial"] == trial && row["op"] == "all").map(|row| count(row, column)).sum()
}

#[test]
fn versions_of_the_driver_back_off_as_they_are_known_to() {
    let place = Place::new(ALL_REJECTED);
    let drivers = format!("driver={},{DRIVER_VERSION}", VERSIONS.join(","));
    let vary = ["--vary", &drivers, "--set", "maxAdaptiveRetries=3", "--ui", "none"];
    let finished = finish(&mut run_with_drivers(&place, &vary));
    finished.assert_code(0);
    let directory = finished.directory();
    assert_sums(directory);
    let trials: Vec<Row> = table(directory, "summary.csv")
        .into_iter()
        .filter(|row| row["segment"] == "all" && row["op"] == "all")
        .collect();
    let told: Vec<&str> = trials.iter().map(|row| &*row["driver_version"]).collect();
    assert_eq!(told, [&VERSIONS[..], &[DRIVER_VERSION]].concat());

    // Every rejection that a server has counted was some attempt's.
    let events = table(directory, "events.csv");
    for (trial, row) in ["1", "2", "3", "4"].into_iter().zip(&trials) {
        let off =
            events.iter().find(|event| event["trial"] == trial && event["kind"] == "overload_off").unwrap();
        let rejected = off["detail"].split(' ').zip(off["detail"].split(' ').skip(1));
        let rejected: u64 = rejected
            .filter(|(_, what)| what.starts_with("commands"))
            .map(|(count, _)| count.parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum(directory, trial, "rejected"), rejected, "{}", row["driver_version"]);
        let each = if row["driver_version"] == "3.5.2" { 0 } else { 3 };
        assert_eq!(count(row, "retries"), each * count(row, "offered"), "{}", row["driver_version"]);
        assert_eq!(count(row, "ops_failed"), count(row, "offered"));
    }
    // The first did not know the option, and was not given it.
    assert!(run_json(directory).to_string().contains("driver 3.5.2 does not know it"));

    let pauses = table(directory, "backoff.csv");
    let mean = |trial: &str, retry: &str| -> f64 {
        let row =
            pauses.iter().find(|row| row["trial"] == trial && row["retry"] == retry && row["op"] == "all");
        row.unwrap()["backoff_mean_us"].parse::<f64>().unwrap() / 1000.0
    };
    assert!(!pauses.iter().any(|row| row["trial"] == "1"), "no retries, no backoff");
    // Full jitter: half of the longest pause, which is 100 ms times 2 to the power of the retry, or of the one before
    // it. Of 360 pauses the mean is off by 3 % of itself now and then; a slow machine only ever makes pauses longer.
    for (trial, first) in [("2", 50.0), ("3", 50.0), ("4", 100.0)] {
        for (retry, factor) in [("1", 1.0), ("2", 2.0), ("3", 4.0)] {
            let (seen, meant) = (mean(trial, retry), first * factor);
            assert!(seen > 0.88 * meant, "trial {trial}, retry {retry}: {seen} ms, not {meant}");
        }
    }
    for retry in ["1", "2", "3"] {
        let doubled = mean("4", retry) / mean("3", retry);
        assert!((1.5..2.4).contains(&doubled), "retry {retry}: 3.9 pauses {doubled} times as long as 3.8");
        let same = mean("3", retry) / mean("2", retry);
        assert!((0.8..1.25).contains(&same), "retry {retry}: 3.8 pauses {same} times as long as 3.6");
    }
}

#[test]
fn a_driver_that_is_not_there_is_told_with_the_way_to_it() {
    let place = Place::new(STEADY);
    for (args, part) in [
        (&["--driver", "3.4.1"][..], "overdrive driver build rust:3.4.1"),
        (&["--vary", "driver=3.9.1,pymongo:4.0.0"], "overdrive driver build pymongo:4.0.0"),
        (&["--driver", "node:7.2.0"], "no driver 'node'"),
        (&["--set", "driver=3.9"], "'3.9' is no version"),
    ] {
        let finished =
            finish(place.run(&[args, &["--dry-run"]].concat()).env("OVERDRIVE_DRIVERS", place.path()));
        finished.assert_code(2);
        assert!(finished.stderr.contains(part), "{args:?}: {}", finished.stderr);
    }
    let listed = finish(overdrive(["driver", "list"]).env("OVERDRIVE_DRIVERS", place.path()));
    assert_eq!(listed.assert_code(0).stdout, format!("rust:{DRIVER_VERSION}\n"));
}

/// The process that a run has started to make its load.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok();
    let found = |id: u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.ends_with(b"\0child\0").then_some(id)
    };
    // Whichever thread has started it.
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).ok()?;
    let more = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    children
        .into_iter()
        .chain(more)
        .find_map(|ids| ids.split_whitespace().find_map(|id| found(id.parse().ok()?)))
}

#[test]
fn a_child_that_dies_ends_its_trial_and_leaves_the_others_whole() {
    // Another's fault keeps a run from beginning.
    let _alone = block_on(alone());
    let lab = shared_lab();
    let place = Place::new(STEADY.replace("60s", "2s"));
    // The second trial's.
    let matrix = ["--uri", &lab.uri, "--driver", DRIVER_VERSION, "--repeat", "3", "--ui", "lines"];
    let mut run = Running::start(&mut place.run(&matrix));
    run.wait_for("trial 2 of 3");
    run.wait_for("warmup");
    send(child_of(run.id()).expect("a child"), Signal::KILL);
    let finished = run.finish();
    finished.assert_code(1);
    assert!(
        finished.stderr.contains(&format!("driver rust:{DRIVER_VERSION}: its process ended too early")),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("signal: 9"), "{}", finished.stderr);
    let trials = run_json(finished.directory())["trials"].as_array().unwrap().len();
    assert_eq!(trials, 1, "the first is whole");
    assert!(finished.stdout.contains("Trial 1"), "{}", finished.stdout);
    // And what is left can be run.
    let resumed = ["--resume", finished.directory().to_str().unwrap()];
    finish(&mut place.run(&[&matrix[..], &resumed].concat())).assert_code(0);
    assert_sums(finished.directory());
}

#[test]
fn a_child_ends_with_its_parent() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let place = Place::new(STEADY);
    let mut run =
        Running::start(&mut place.run(&["--uri", &lab.uri, "--driver", DRIVER_VERSION, "--ui", "lines"]));
    run.wait_for("measure");
    let child = child_of(run.id()).expect("a child");
    run.signal(Signal::KILL);
    let gone = || !Path::new(&format!("/proc/{child}")).exists();
    for _ in 0..1000 {
        if gone() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the child outlives its parent");
}

/// The last PyMongo without overload retries, and the first whose pauses are those of the Rust driver's 3.9.
const PYMONGO: [&str; 2] = ["pymongo:4.16.0", "pymongo:4.18.0"];

/// Where these are kept; they are installed once.
pub fn pymongo() -> &'static Path {
    static PYMONGO_THERE: OnceLock<PathBuf> = OnceLock::new();
    PYMONGO_THERE.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pymongo");
        let mut build = overdrive(["driver", "build"].iter().chain(&PYMONGO));
        let built = build.env("OVERDRIVE_DRIVERS", &home).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        home
    })
}

#[test]
fn the_same_profile_is_the_same_load_with_another_driver() {
    let place = Place::new(include_str!("../../profiles/mixed.toml"));
    let drivers = format!("driver={DRIVER_VERSION},{}", PYMONGO.join(","));
    let args = ["--vary", &drivers, "--rate", "200/s", "--duration", "5s", "--warmup", "1s", "--ui", "none"];
    let finished = finish(place.run(&args).env("OVERDRIVE_DRIVERS", pymongo()));
    finished.assert_code(0);
    let directory = finished.directory();
    assert_sums(directory);
    let rows = table(directory, "summary.csv");
    let of = |trial: &str| -> Vec<(String, u64, u64, u64)> {
        let rows = rows.iter().filter(|row| row["trial"] == trial && row["segment"] == "all");
        rows.map(|row| {
            (row["op"].clone(), count(row, "offered"), count(row, "commands"), count(row, "ops_ok"))
        })
        .collect()
    };
    let rust = of("1");
    assert!(rust.len() > 5 && rust.iter().all(|(_, offered, _, ok)| offered == ok), "{rust:?}");
    assert_eq!(of("2"), rust);
    assert_eq!(of("3"), rust);
    // And so the drivers can be held against each other.
    let compared = finish(&mut overdrive(["compare", directory.to_str().unwrap()]));
    assert!(compared.assert_code(0).stdout.contains("pymongo:4.18.0"), "{}", compared.stdout);
    // What would differ if it were left to the drivers is the same, and the results say who has decided it.
    for trial in run_json(directory)["trials"].as_array().unwrap() {
        let options = trial["options"].as_array().unwrap();
        let timeout = options.iter().find(|option| option["name"] == "connectTimeoutMS").unwrap();
        let decided = if trial["driver"] == "rust" { "default" } else { "overdrive" };
        assert_eq!((timeout["value"].as_str(), timeout["from"].as_str()), (Some("10000"), Some(decided)));
    }
}

#[test]
fn pymongo_retries_as_its_versions_are_known_to() {
    let place = Place::new(ALL_REJECTED);
    let drivers = format!("driver={}", PYMONGO.join(","));
    let args = ["--vary", &drivers, "--set", "maxAdaptiveRetries=3", "--ui", "none"];
    let finished = finish(place.run(&args).env("OVERDRIVE_DRIVERS", pymongo()));
    finished.assert_code(0);
    let directory = finished.directory();
    assert_sums(directory);
    let rows = table(directory, "summary.csv");
    for (trial, each) in [("1", 0), ("2", 3)] {
        let row = rows
            .iter()
            .find(|row| row["trial"] == trial && row["segment"] == "all" && row["op"] == "all")
            .unwrap();
        assert_eq!(count(row, "retries"), each * count(row, "offered"), "trial {trial}");
        assert_eq!(count(row, "rejected"), count(row, "attempts"), "trial {trial}");
        assert_eq!(count(row, "ops_failed"), count(row, "offered"), "trial {trial}");
    }
    // Full jitter below 100 ms times 2 to the power of the retry; a slow machine only ever makes pauses longer.
    let pauses = table(directory, "backoff.csv");
    for (retry, meant) in [("1", 100.0), ("2", 200.0), ("3", 400.0)] {
        let of_retry = |row: &&Row| row["trial"] == "2" && row["retry"] == retry && row["op"] == "all";
        let mean = &pauses.iter().find(of_retry).unwrap()["backoff_mean_us"];
        let mean = mean.parse::<f64>().unwrap() / 1000.0;
        assert!(mean > 0.88 * meant, "retry {retry}: {mean} ms, not {meant}");
    }
}

/// The worker draws for itself, and must come to what the Rust side comes to.
#[test]
fn the_worker_renders_the_same_operations_at_the_same_times() {
    let place = Place::new(include_str!("../../profiles/mixed.toml"));
    let checked = finish(overdrive(["check", "profile.toml", "--json"]).current_dir(place.path()));
    let plan: Plan = serde_json::from_str(&checked.assert_code(0).stdout).unwrap();
    fs::write(place.path().join("plan.json"), &checked.stdout).unwrap();
    let python = pymongo().join("pymongo-4.18.0/bin/python");
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/pymongo");
    let worker = worker.to_str().unwrap();
    let rendered = Command::new(python)
        .args(["-B", worker, "--render", "plan.json", "500"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let (_, mix) = Workload::new(&plan);
    let Model::Open { stages, arrivals, .. } = &plan.load.model else { panic!("an open load") };
    let mut due = Schedule::new(plan.load.warmup, stages, *arrivals, plan.seed);
    for (n, line) in String::from_utf8(rendered.stdout).unwrap().lines().enumerate() {
        let theirs: serde_json::Value = serde_json::from_str(line).unwrap();
        let ours = due.next().unwrap();
        let operation = &plan.operations[mix.at(ours.n).operation].name;
        assert_eq!(theirs["n"].as_u64(), Some(n as u64));
        assert_eq!(theirs["operation"], operation.as_str(), "operation {n}");
        assert_eq!(theirs["due_ns"].as_u64(), Some(ours.at_ns), "operation {n}");
    }
}

/// The worker's own tests, with both versions: what it draws, counts and says, alone and against a replica set.
#[tokio::test(flavor = "multi_thread")]
async fn the_workers_own_tests_pass() {
    let lab = Lab::start(&lab_options(), &|_| ()).await.unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/pymongo/tests");
    for driver in PYMONGO {
        let python = pymongo().join(driver.replace(':', "-")).join("bin/python");
        for file in ["test_known_answers.py", "test_recording.py", "test_deployment.py"] {
            let ran = Command::new(&python)
                .args(["-B", file])
                .current_dir(&tests)
                .env("OVERDRIVE_WORKER_URI", lab.uri())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{driver}: {file}: {said}");
            eprintln!("{driver}: {file}: {}", said.lines().last().unwrap_or_default());
        }
    }
    lab.stop().await.unwrap();
}
