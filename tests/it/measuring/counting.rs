//! Errors and retries: as many as the script has, to the last one.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use overdrive::profile::shipped;

use super::{as_f64, attempts, counted, results, run};
use crate::support::{Place, Row, assert_sums, count, finish, overdrive, run_json, table, whole};

/// One attempt each is what each of these takes from a server that does not reject.
const THREE_KINDS: &str = r#"
[data]
documents = 0
[client]
maxPoolSize = 50
[op.ping.run_command]
command = { ping = 1 }
[op.read.find_one]
filter = { _id = 1 }
[op.bump.update_one]
filter = { _id = 1 }
update = { "$inc" = { n = 1 } }
[load]
warmup = "0s"
cooldown = "60s"
"#;

/// 100 operations in the measured time, due every 20 ms; then as many as it takes for the last of them to end. One at a
/// time, so that their order is the stub's, too, however slow the machine is.
fn hundred() -> String {
    format!("{THREE_KINDS}rate = 50\narrivals = \"even\"\nmax_in_flight = 1\nduration = \"2s\"\n")
}

/// Of one row: offered, ok, failed, gave up, attempts, retries, rejected.
#[track_caller]
fn counts(row: &Row) -> [u64; 7] {
    ["offered", "ops_ok", "ops_failed", "ops_gave_up", "attempts", "retries", "rejected"]
        .map(|column| count(row, column))
}

/// By number of retries: ok, failed and gave up, all operations together.
fn by_retries(directory: &Path) -> Vec<[u64; 4]> {
    let rows = table(directory, "retries.csv");
    let rows = rows.iter().filter(|row| row["segment"] == "all" && row["op"] == "all");
    rows.map(|row| ["retries", "ops_ok", "ops_failed", "ops_gave_up"].map(|c| count(row, c))).collect()
}

/// The stub has seen every attempt, and failed each k-th.
#[track_caller]
fn assert_counted(directory: &Path, k: u64) {
    let all = attempts(directory);
    assert_eq!(counted(directory), (all - all / k, all / k));
}

#[test]
fn without_retries_each_seventh_operation_fails() {
    // 100 operations are 100 attempts; the 7th, 14th … 98th fail: 14.
    let place = run(&hundred(), "fail=every:7", &["--set", "maxAdaptiveRetries=0"]);
    let directory = results(&place);
    let row = whole(&directory);
    assert_eq!(counts(&row), [100, 86, 14, 14, 100, 0, 14]);
    assert_eq!((row["error_rate"].as_str(), row["loss_rate"].as_str()), ("0.14", "0.14"));
    assert_eq!((row["server_version"].as_str(), row["mechanism"].as_str()), ("stub", "stub"));
    assert_eq!(by_retries(&directory), [[0, 86, 14, 14]]);
    assert_counted(&directory, 7);
    let notes = run_json(&directory)["trials"][0]["notes"].to_string();
    assert!(notes.contains("the server was a stub") && notes.contains("fail=every:7"), "{notes}");
}

#[test]
fn what_does_not_say_that_it_may_be_retried_is_not() {
    let scripts = ["fail=every:7,labels=SystemOverloadedError", "fail=every:7,labels=none,code=11600"];
    let places = thread::scope(|scope| {
        let start = |script| {
            scope.spawn(move || {
                run(
                    &hundred(),
                    script,
                    &[
                        "--set",
                        "maxAdaptiveRetries=5",
                        "--set",
                        "retryReads=false",
                        "--set",
                        "retryWrites=false",
                    ],
                )
            })
        };
        scripts.map(start).map(|run| run.join().unwrap())
    });
    let [overloaded, plain] = places.map(|place| {
        let directory = results(&place);
        assert_eq!(by_retries(&directory), [[0, 86, 14, 0]]);
        assert_counted(&directory, 7);
        for level in ["attempt", "operation"] {
            let errors = table(&directory, "errors.csv");
            let measured = errors.iter().filter(|e| e["level"] == level && e["phase"] == "measure");
            assert_eq!(measured.map(|e| count(e, "count")).sum::<u64>(), 14, "{level}");
        }
        let class = table(&directory, "errors.csv").swap_remove(0);
        (counts(&whole(&directory)), class["code"].clone(), class["labels"].clone())
    });
    // Nobody gives up what may not be tried again; rejected is what an overloaded server says it is.
    assert_eq!(
        overloaded,
        ([100, 86, 14, 0, 100, 0, 14], "462".to_owned(), "SystemOverloadedError".to_owned())
    );
    assert_eq!(plain, ([100, 86, 14, 0, 100, 0, 0], "11600".to_owned(), String::new()));
}

#[test]
fn one_at_a_time_each_failure_is_one_retry_that_succeeds() {
    // A single worker: attempts come one after the other, so the one after a failed fourth is a first, and succeeds.
    // Of N attempts that end with a success, N − ⌊N/4⌋ = M are operations, so the first M operations take
    // M + ⌊(M − 1)/3⌋ attempts.
    let profile = format!("{THREE_KINDS}model = \"closed\"\nworkers = 1\nduration = \"2s\"\n");
    thread::scope(|scope| {
        for retries in ["2", "5", "unset"] {
            let profile = &profile;
            scope.spawn(move || {
                let set = format!("maxAdaptiveRetries={retries}");
                let place = run(profile, "fail=every:4", &["--set", &set]);
                let directory = results(&place);
                let row = whole(&directory);
                let m = count(&row, "offered");
                let retried = (m - 1) / 3;
                assert!(retried > 0, "{m} operations are too few");
                assert_eq!(counts(&row), [m, m, 0, 0, m + retried, retried, retried], "{set}");
                assert_eq!(by_retries(&directory), [[0, m - retried, 0, 0], [1, retried, 0, 0]], "{set}");
                assert_counted(&directory, 4);
            });
        }
    });
}

#[test]
fn when_everything_fails_each_operation_takes_all_its_attempts_and_gives_up() {
    let profile = format!("{THREE_KINDS}rate = 10\narrivals = \"even\"\nduration = \"1s\"\n");
    thread::scope(|scope| {
        for n in [0, 2, 5] {
            let profile = &profile;
            scope.spawn(move || {
                let place = run(profile, "fail=every:1", &["--set", &format!("maxAdaptiveRetries={n}")]);
                let directory = results(&place);
                let row = whole(&directory);
                assert_eq!(counts(&row), [10, 0, 10, 10, 10 * (n + 1), 10 * n, 10 * (n + 1)]);
                assert_eq!(row["amplification"].parse::<f64>().unwrap(), as_f64(n + 1));
                assert_eq!(by_retries(&directory), [[n, 0, 10, 10]]);
                assert_eq!(counted(&directory).0, 0, "nothing was served");
                // The backoffs before a command's retries: each operation had each of them once.
                let backoff = table(&directory, "backoff.csv");
                let rows = backoff.iter().filter(|row| row["op"] == "all");
                let waits: Vec<_> = rows.map(|row| [count(row, "retry"), count(row, "count")]).collect();
                assert_eq!(waits, (1..=n).map(|retry| [retry, 10]).collect::<Vec<_>>());
            });
        }
    });
}

#[test]
fn failures_by_chance_follow_it_and_every_one_is_accounted_for() {
    // Each attempt fails with probability 1/2, so of operations with up to two retries 1/8 give up, and they take
    // 1 + 1/2 + 1/4 attempts. Binomial, 500 operations: four standard deviations are 30 operations that give up, and
    // 4·√(500·0.6875) = 74 attempts (their number is 1, 2, 3 with 1/2, 1/4, 1/4: variance 0.6875).
    let profile = format!("{THREE_KINDS}rate = 125\narrivals = \"even\"\nduration = \"4s\"\n");
    let place = run(&profile, "fail=0.5", &["--set", "maxAdaptiveRetries=2"]);
    let directory = results(&place);
    let [offered, ok, failed, gave_up, attempts, retries, rejected] = counts(&whole(&directory));
    assert_eq!(offered, 500);
    assert_eq!((ok + failed, gave_up), (500, failed));
    assert_eq!(
        (attempts, rejected),
        (500 + retries, retries + gave_up),
        "a rejection is retried or given up"
    );
    assert_eq!(attempts - rejected, ok, "what was served is what succeeded");
    assert!(gave_up.abs_diff(62) <= 30, "{gave_up} of 62.5");
    assert!(attempts.abs_diff(875) <= 74, "{attempts} of 875");
}

#[test]
fn every_shipped_profile_runs_against_a_stub() {
    let waiting = Mutex::new(shipped::list().map(|(name, _)| name));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    let Some(name) = next else { return };
                    runs_against_a_stub(name);
                }
            });
        }
    });
}

fn runs_against_a_stub(name: &str) {
    let place = Place::new("");
    let documents = "data.documents=1000";
    let mut command = overdrive(["run", name, "--stub", "--ui", "none", "--warmup", "200ms"]);
    // Of several clients each says that for itself.
    if name != "critical-and-batch" {
        command.args(["--rate", "100"]);
    }
    // Deadlines are for servers that are overloaded, and here two runs share the processors.
    command.args(["--duration", "1s", "--set", documents, "--set", "timeout.operation=unset"]);
    command.current_dir(place.path());
    let finished = finish(&mut command);
    finished.assert_code(0);
    let directory = finished.directory();
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!((row["server_version"].as_str(), row["mechanism"].as_str()), ("stub", ""), "{name}");
    assert_eq!((count(&row, "ops_ok"), count(&row, "ops_failed")), (count(&row, "offered"), 0), "{name}");
    assert_eq!(counted(directory), (attempts(directory), 0), "{name}: the stub counts as overdrive does");
    let text = std::fs::read_to_string(directory.join("profile.toml")).unwrap();
    let left_out = finished.stderr.matches("was left out").count();
    assert_eq!(left_out, text.matches("[[overload]]").count(), "{name}: {}", finished.stderr);
}
