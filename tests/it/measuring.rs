//! The measuring rules, held against a server that is known: what must come out is worked out beforehand, and the
//! server has counted, too.
//!
//! A machine that is busy makes everything later, never earlier, and changes no count. So counts and lower bounds hold
//! anywhere; upper bounds are wider where the machine has shown itself slow, and get several chances.

mod calibrating;
mod counting;
mod timing;

use std::path::Path;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use crate::support::{Place, Row, assert_sums, finish, run_json, table};

/// A run against a stub that succeeded; `arguments` may say more.
#[track_caller]
fn run(profile: &str, script: &str, arguments: &[&str]) -> Place {
    let place = Place::new(profile);
    let stub = format!("--stub={script}");
    let finished = finish(&mut place.run(&[&[&stub, "--ui", "none"], arguments].concat()));
    finished.assert_code(0);
    assert_sums(finished.directory());
    place
}

/// The one run that was made there.
#[track_caller]
fn results(place: &Place) -> std::path::PathBuf {
    place.runs().pop().expect("a run")
}

/// What the stub itself has counted: commands served and failed.
#[track_caller]
fn counted(directory: &Path) -> (u64, u64) {
    let events = table(directory, "events.csv");
    let event = events.iter().find(|event| event["kind"] == "stub_counted").expect("the stub's count");
    let numbers: Vec<u64> = event["detail"].split(' ').filter_map(|word| word.parse().ok()).collect();
    let [served, failed, _aside] = numbers[..] else { panic!("{event:?}") };
    (served, failed)
}

/// All attempts of a run, warm-up and cool-down included.
fn attempts(directory: &Path) -> u64 {
    run_json(directory)["trials"][0]["totals"]["attempts"].as_u64().unwrap()
}

/// A time in a row, in milliseconds.
#[track_caller]
fn ms(row: &Row, column: &str) -> f64 {
    let us: f64 = row[column].parse().unwrap_or_else(|_| panic!("{column} is '{}'", row[column]));
    us / 1000.0
}

/// A distribution of the measured time, all operations together, in microseconds.
fn measured(directory: &Path, measure: &str) -> Histogram<u64> {
    let mut sum = Histogram::new(3).unwrap();
    let log = std::fs::read(directory.join("latency.hlog")).unwrap();
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(line) = entry.unwrap() else { continue };
        let tag = line.tag().unwrap().as_str().to_owned();
        if tag.starts_with("1/measure/") && tag.ends_with(&format!("/{measure}")) {
            let bytes = base64::engine::general_purpose::STANDARD.decode(line.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            sum.add(&histogram).unwrap();
        }
    }
    sum
}

/// How many took longer than this.
fn above(histogram: &Histogram<u64>, ms: u64) -> u64 {
    histogram.count_between(ms * 1000, u64::MAX)
}

#[test]
fn a_bulk_of_inserts_is_one_command_for_a_stub_as_well() {
    let profile = "[data]\ndocuments = 10\n[load]\nrate = \"40/s\"\nwarmup = \"0s\"\nduration = \"2s\"\n\
                   [op.batch.insert_many]\ncount = 10\n";
    let place = run(profile, "service=1ms", &[]);
    let directory = results(&place);
    let intervals = table(&directory, "intervals.csv");
    let all = intervals.iter().filter(|row| row["op"] == "all");
    let ended: u64 = all.map(|row| row["ops_ok"].parse::<u64>().unwrap()).sum();
    assert!(ended > 60, "80 are due: {ended}");
    assert_eq!((counted(&directory), attempts(&directory)), ((ended, 0), ended));
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
