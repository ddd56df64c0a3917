//! How stale reads are, while a secondary stands still and while none does.

use std::thread;
use std::time::Duration;

use base64::Engine as _;
use bson::{Document, doc};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use crate::support::{Place, Row, Running, ask, block_on, count, finish, table};
use crate::{alone, shared_lab};

/// A few reads, which need no other server than the primary.
const PROBED: &str = r#"
[data]
collection = "COLLECTION"
documents = 10
[load]
rate = "20/s"
warmup = "1s"
duration = "DURATION"
[client]
maxPoolSize = 10
[staleness]
every = "40ms"
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

fn probed(collection: &str, duration: &str) -> Place {
    Place::new(PROBED.replace("COLLECTION", collection).replace("DURATION", duration))
}

/// How long replication stands still.
const STANDSTILL: Duration = Duration::from_secs(3);

/// Stops a secondary from applying what it is sent, until it is dropped.
struct Standstill(String);

impl Standstill {
    fn of(member: String) -> Self {
        ask(&member, doc! { "configureFailPoint": "rsSyncApplyStop", "mode": "alwaysOn" });
        Self(member)
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        ask(&self.0, doc! { "configureFailPoint": "rsSyncApplyStop", "mode": "off" });
    }
}

fn of_server<'a>(rows: &'a [Row], server: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row["server"] == server && row["phase"] == "measure").collect()
}

fn longest(rows: &[&Row]) -> u64 {
    rows.iter()
        .filter(|row| !row["staleness_max_us"].is_empty())
        .map(|row| count(row, "staleness_max_us"))
        .max()
        .unwrap()
}

/// Heartbeats of runs that have ended.
fn left_behind(member: &str) -> i32 {
    let reply: Document = block_on(async {
        let uri = format!("mongodb://{member}/?directConnection=true&appName=overdrive-test");
        let client = mongodb::Client::with_uri_str(uri).await.unwrap();
        client.database("overdrive").run_command(doc! { "count": "overdrive.heartbeat" }).await.unwrap()
    });
    reply.get_i32("n").unwrap()
}

#[test]
fn a_secondary_that_stands_still_is_stale_and_the_primary_is_not() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let members: Vec<String> = lab.members.iter().map(|member| member.address.to_string()).collect();
    let place = probed("standstill", "7s");
    let mut running = Running::start(&mut place.run(&["--uri", &lab.uri]));
    running.wait_for("measure");
    let standstill = Standstill::of(members[1].clone());
    thread::sleep(STANDSTILL);
    drop(standstill);
    let finished = running.finish();
    let directory = finished.assert_code(0).directory();

    let servers = table(directory, "servers.csv");
    let of = |member: usize| of_server(&servers, &members[member]);
    assert_eq!(longest(&of(0)), 0, "the primary has what it acknowledged");
    // From the first heartbeat that it did not get on, which is at most one period after the standstill began; and it is
    // read once a period, less the moment that a read takes.
    let stood = longest(&of(1));
    assert!((2_700_000..6_000_000).contains(&stood), "{stood}");
    assert!(longest(&of(2)) < stood / 2, "{:?}", of(2));
    for row in of(0) {
        assert!(count(row, "staleness_samples") > 0 && row["staleness_failures"] == "0", "{row:?}");
    }
    // It grows while it lasts.
    let each: Vec<u64> = of(1).iter().map(|row| count(row, "staleness_max_us")).collect();
    assert!(each.windows(2).any(|pair| pair[0] > 0 && pair[1] > pair[0] + 800_000), "{each:?}");

    let rows = table(directory, "staleness.csv");
    let of_role =
        |role: &str| rows.iter().find(|row| row["role"] == role && row["segment"] == "all").unwrap();
    assert_eq!(of_role("primary")["staleness_max_us"], "0");
    assert_eq!(count(of_role("secondary"), "staleness_max_us"), stood);
    let samples: u64 = of(0).iter().map(|row| count(row, "staleness_samples")).sum();
    assert_eq!(count(of_role("primary"), "staleness_samples"), samples);
    assert!(samples > 100, "about 25 a second: {samples}");
    assert!(finished.stdout.contains("How stale reads were"), "{}", finished.stdout);

    let log = std::fs::read(directory.join("latency.hlog")).unwrap();
    let logged = logged(&log, "1/measure/secondary/staleness");
    assert_eq!(logged.iter().map(Histogram::max).max(), Some(stood));
    assert_eq!(left_behind(&members[0]), 0);
}

fn logged(log: &[u8], tag: &str) -> Vec<Histogram<u64>> {
    let histogram = |text: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
    };
    IntervalLogIterator::new(log)
        .filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(line) if line.tag().is_some_and(|t| t.as_str() == tag) => {
                Some(histogram(line.encoded_histogram()))
            }
            _ => None,
        })
        .collect()
}

/// In a lab of its own the primary is killed: whoever does not answer is no sample, and the role goes to another.
#[test]
fn a_member_that_does_not_answer_is_a_failure_and_no_sample() {
    let _alone = block_on(alone());
    let kill = "[[overload]]\nat = \"2s\"\nfor = \"14s\"\nmembers = \"primary\"\nkill = {}\n";
    let place = Place::new(PROBED.replace("COLLECTION", "load").replace("DURATION", "20s") + kill);
    let finished = finish(&mut place.run(&[]));
    let directory = finished.assert_code(0).directory();
    let servers = table(directory, "servers.csv");
    let killed = servers.iter().find(|row| row["role"] == "primary").unwrap()["server"].clone();
    let down: Vec<&Row> = of_server(&servers, &killed)
        .into_iter()
        .filter(|row| (6.0..15.0).contains(&row["elapsed_s"].parse::<f64>().unwrap()))
        .collect();
    assert!(down.len() >= 8, "{down:?}");
    for row in down {
        assert_eq!((&*row["staleness_samples"], &*row["staleness_max_us"]), ("0", ""), "{row:?}");
        assert!(count(row, "staleness_failures") > 0, "{row:?}");
    }
    let roles = table(directory, "staleness.csv");
    assert!(roles.iter().any(|row| row["role"] == "primary" && row["segment"] == "after"), "{roles:?}");
    assert!(finished.stdout.contains("the staleness probe got no answer"), "{}", finished.stdout);
}
