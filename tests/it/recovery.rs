//! What came of an overload: how much got through before, during and after it, and when all was well again.

use crate::support::{Finished, Place, Row, block_on, finish, run_json, table};
use crate::{alone, shared_lab};

/// The gates of a lab shed all but 30 of 150 reads a second for four seconds, and the driver tries each once.
const SHED: &str = r#"
[data]
documents = 100
[load]
rate = "150/s"
warmup = "2s"
duration = "14s"
[client]
maxPoolSize = 100
maxAdaptiveRetries = 0
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
[[overload]]
name = "shed"
at = "4s"
for = "4s"
limit_requests = { rate = "30/s", burst = "100ms" }
"#;

/// Three finds at a time that take 20 ms each are 150 a second: enough for what is asked for at first, and too few later.
const OUTGROWN: &str = r#"
[data]
collection = "outgrown"
documents = 1
[load]
stages = [{ for = "5s", rate = "40/s" }, { for = "5s", rate = "400/s" }]
max_in_flight = 3
warmup = "1s"
cooldown = "10s"
[client]
maxPoolSize = 10
[op.slow.find_one]
filter = { "$where" = "sleep(20) || true" }
[[overload]]
name = "rejection"
at = "3s"
for = "2s"
fail_command = { commands = ["find"], probability = 0.3 }
"#;

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// A run that saw recovery. A machine that stands still for a moment makes a second a bad one, and there are not many: the
/// load is tried again, since no accident makes seconds good.
fn recovered() -> (Place, Finished) {
    for _ in 0..3 {
        let place = Place::new(SHED);
        let finished = finish(&mut place.run(&[]));
        let rows = table(finished.assert_code(0).directory(), "recovery.csv");
        if rows.iter().all(|row| row["recovered"] == "yes") {
            return (place, finished);
        }
        eprintln!("again: {rows:?}");
    }
    panic!("it never recovers");
}

#[test]
fn a_limit_that_goes_away_is_recovered_from() {
    let _alone = block_on(alone());
    let (_place, finished) = recovered();
    let directory = finished.directory();
    let rows = table(directory, "recovery.csv");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&*row["overload"], &*row["kind"]), ("shed", "limit_requests"));
    assert_eq!((number(row, "on_s"), number(row, "off_s")), (6.0, 10.0));
    let of = |when: &str| number(row, &format!("goodput_{when}_ops_per_s"));
    // Reads go to one member; what its bucket held and the moment until the limit is on come on top of the limit.
    assert!((15.0..70.0).contains(&of("during")), "{row:?}");
    assert!(of("before") > 80.0 && of("after") > 80.0, "{row:?}");
    let told = &run_json(directory)["trials"][0]["recovery"][0];
    assert_eq!((&told["overload"], &told["recovered"]), (&"shed".into(), &true.into()));
    assert_eq!(told["time_to_recover_s"], number(row, "time_to_recover_s"));
    assert!(finished.stdout.contains("What came of each overload"), "{}", finished.stdout);
}

#[test]
fn more_load_than_there_is_room_for_does_not_recover() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let place = Place::new(OUTGROWN);
    let finished = finish(&mut place.run(&["--uri", &lab.uri, "--allow-faults=fail_command"]));
    let rows = table(finished.assert_code(0).directory(), "recovery.csv");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&*row["recovered"], &*row["time_to_recover_s"]), ("no", ""), "{row:?}");
    assert!(number(row, "goodput_after_ops_per_s") > number(row, "goodput_before_ops_per_s"), "{row:?}");
    assert!(number(row, "latency_p50_before_us") >= 20_000.0, "{row:?}");
    assert!(finished.stdout.contains("did not recover"), "{}", finished.stdout);
}
