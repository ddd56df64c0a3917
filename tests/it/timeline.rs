//! Faults on a run's timeline: what they do to a load, and that nothing of them is left.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc};
use overdrive::client::merge::resolve_options;
use overdrive::client::options;
use overdrive::client::uri::Uri;
use overdrive::cluster::Cluster;
use overdrive::interrupts::Interrupts;
use overdrive::plan::Plan;
use overdrive::profile::{Overrides, Profile, Source, resolve};
use overdrive::progress::Progress;
use overdrive::results::TrialFacts;
use overdrive::snapshot::{Event, Preparing, Snapshot};
use overdrive::trial::{self, Keeping, Setup};
use overdrive::variants;
use rustix::process::Signal;

use crate::support::{
    Finished, Place, Row, Running, ask, assert_sums, block_on, count, finish, overdrive, table, whole,
};
use crate::{SharedLab, alone, shared_lab};

/// Reads and a few updates at 100/s.
const LOAD: &str = r#"
[data]
database = "overdrive_timeline"
collection = "COLLECTION"
documents = 100
[load]
rate = "100/s"
warmup = "500ms"
duration = "4s"
cooldown = "15s"
[client]
maxPoolSize = 200
[op.read.find_one]
weight = 4
filter = { _id = { "^Key" = "uniform" } }
[op.bump.update_one]
filter = { _id = { "^Key" = "uniform" } }
update = { "$inc" = { n = 1 } }
"#;

/// What changes something on servers that outlive the run, from the beginning to the end.
const LASTING: &str = r#"
[[overload]]
at = "-500ms"
for = "1h"
tickets = { read = 17, write = 16 }
[[overload]]
at = "-500ms"
for = "1h"
latency_event = { documents = 500, size = 10 }
[[overload]]
at = "-500ms"
for = "1h"
fail_command = { commands = ["find"], probability = 0.1 }
"#;

const ALLOWED: &str = "--allow-faults=tickets,latency_event,fail_command,step_down,hold_tickets";

fn place(collection: &str, overloads: &str) -> Place {
    Place::new(LOAD.replace("COLLECTION", collection) + overloads)
}

/// A run in a lab of its own.
fn in_a_lab(overloads: &str, args: &[&str]) -> (Place, Finished) {
    let _alone = block_on(alone());
    let place = place("load", overloads);
    let finished = finish(&mut place.run(args));
    (place, finished)
}

fn events<'a>(rows: &'a [Row], subject: &str) -> Vec<&'a str> {
    rows.iter().filter(|row| row["subject"] == subject).map(|row| row["kind"].as_str()).collect()
}

/// The first number in what is said of each member.
fn numbers(detail: &str) -> Vec<u64> {
    let lines = detail.split("; ").map(|line| line.split_once(": ").unwrap().1);
    lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_limit_rejects_what_is_beyond_it_and_gate_and_client_count_alike() {
    let limit = r#"
[[overload]]
name = "limit"
at = "-500ms"
for = "1h"
limit_requests = { rate = "50/s", burst = "100ms" }
"#;
    let (_place, finished) = in_a_lab(limit, &[]);
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!(row["mechanism"], "gate");
    assert!(!finished.stdout.contains("do not depend on load"), "{}", finished.stdout);

    let rows = table(directory, "intervals.csv");
    let all = || rows.iter().filter(|row| row["op"] == "all");
    let of = |column| all().map(|row| count(row, column)).sum::<u64>();
    let servers = table(directory, "servers.csv");
    // The last word of each gate.
    let last = |column: &str| -> u64 {
        let addresses: std::collections::BTreeSet<&str> = servers.iter().map(|row| &*row["server"]).collect();
        let last = |address: &str| servers.iter().rfind(|row| row["server"] == address).unwrap();
        addresses.iter().map(|address| count(last(address), column)).sum()
    };
    let events = table(directory, "events.csv");
    let off = events.iter().find(|row| row["kind"] == "overload_off").unwrap();
    // The client's goodbye to each server may be rejected, too, and is no attempt.
    let goodbyes = last("server_admissions_rejected") - of("rejected");
    assert!(goodbyes <= 3, "{goodbyes}");
    let said = numbers(&off["detail"]).iter().sum::<u64>() - of("rejected");
    assert!(said <= 3, "{said}");
    // All but what came before the gates were told.
    let counted = last("server_admissions_attempted");
    let on =
        events.iter().find(|row| row["kind"] == "overload_on").unwrap()["elapsed_s"].parse::<f64>().unwrap();
    let before: u64 = all()
        .filter(|row| row["elapsed_s"].parse::<f64>().unwrap() < on + 1.0)
        .map(|row| count(row, "attempts"))
        .sum();
    assert!(
        counted <= of("attempts") + 3 && counted + before >= of("attempts"),
        "{counted} of {}",
        of("attempts")
    );
    let served = u32::try_from(last("server_admissions_successful")).unwrap();
    let seconds: f64 = all().next_back().unwrap()["elapsed_s"].parse().unwrap();
    // The bucket's five tokens, what has refilled, and what the client said after its last interval.
    assert!(f64::from(served) <= 50.0 * (seconds + 1.0) + 5.0, "{served} in {seconds} s");
    // Half of the load is beyond the limit, and with two retries most of it meets it again.
    assert!(count(&row, "ops_gave_up") > 50 && count(&row, "rejected") > 200, "{row:?}");
}

#[test]
fn processes_hang_die_and_step_down_and_the_run_goes_on() {
    let faults = r#"
[[overload]]
at = "1s"
for = "1s"
members = "primary"
stall = {}
[[overload]]
at = "4s"
for = "4s"
step_down = {}
[[overload]]
at = "10s"
for = "1s"
members = "primary"
kill = {}
[[overload]]
at = "1s"
for = "12s"
limit_connections = { rate = "50/s" }
[[overload]]
at = "15s"
for = "2s"
members = [0]
hold_tickets = { count = 3, hold = "50ms" }
"#;
    let (_place, finished) = in_a_lab(faults, &["--duration", "20s", "--rate", "50/s"]);
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let events_seen = table(directory, "events.csv");
    for subject in ["stall", "step_down", "kill", "limit_connections", "hold_tickets"] {
        assert_eq!(
            events(&events_seen, subject),
            ["overload_on", "overload_off"],
            "{subject}: {events_seen:?}"
        );
    }
    let said = |subject: &str| {
        let off = events_seen.iter().find(|row| row["subject"] == subject && row["kind"] == "overload_off");
        off.unwrap()["detail"].clone()
    };
    assert!(said("kill").contains("started again"), "{}", said("kill"));
    assert!(said("hold_tickets").contains("3 tickets held at a time"), "{}", said("hold_tickets"));
    assert!(numbers(&said("limit_connections")).len() == 3);
    // Two heads have fallen; who is next is the set's affair.
    assert!(
        events_seen.iter().filter(|row| row["kind"] == "primary_changed").count() >= 2,
        "{events_seen:?}"
    );
    let row = whole(directory);
    // What was due while the primary hung for a second waited for it, to the end of it.
    let segments = table(directory, "summary.csv");
    let hung = segments.iter().find(|row| row["op"] == "all" && row["segment"].contains("stall")).unwrap();
    assert!(count(hung, "latency_max_us") > 800_000, "{hung:?}");
    // All succeed in the end: the driver waits for a primary, and no retry is used up by a server that is gone.
    assert!(count(&row, "ops_ok") > count(&row, "offered") * 9 / 10, "{row:?}");
    assert_eq!(row["mechanism"], "gate");
}

/// What the faults of [`LASTING`] change, as a member tells it.
fn state(lab: &SharedLab, number: usize) -> Vec<Bson> {
    let address = lab.members[number].address;
    let status = ask(address, doc! { "serverStatus": 1 });
    let tickets = status.get_document("wiredTiger").unwrap().get_document("concurrentTransactions").unwrap();
    let total = |side| tickets.get_document(side).unwrap().get("totalTickets").unwrap().clone();
    let point = ask(address, doc! { "getParameter": 1, "failpoint.failCommand": 1 });
    let mode = point.get_document("failpoint.failCommand").unwrap().get("mode").unwrap().clone();
    vec![total("read"), total("write"), mode]
}

fn states(lab: &SharedLab) -> Vec<Vec<Bson>> {
    (0..lab.members.len()).map(|number| state(lab, number)).collect()
}

/// How many documents there are, and how many entries of the journal.
fn left(lab: &SharedLab, collection: &str) -> (i64, i64) {
    block_on(async {
        let client = mongodb::Client::with_uri_str(&lab.uri).await.unwrap();
        let count = async |database: &str, name: &str| {
            let found: Document =
                client.database(database).run_command(doc! { "count": name }).await.unwrap();
            found.get("n").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64())).unwrap()
        };
        (count("overdrive_timeline", collection).await, count("overdrive", "overdrive.faults").await)
    })
}

fn put_on(lab: &SharedLab, before: &[Vec<Bson>]) {
    for (now, before) in states(lab).iter().zip(before) {
        assert_eq!(now[..2], [Bson::Int32(17), Bson::Int32(16)], "{now:?}");
        assert_ne!(now[2], before[2], "the failpoint is on");
    }
}

#[test]
fn whatever_ends_a_run_its_faults_end_with_it() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let before = states(lab);
    for signal in [None, Some(Signal::INT), Some(Signal::TERM)] {
        let collection = format!("ended_by_{}", signal.map_or(0, Signal::as_raw));
        let place = place(&collection, LASTING);
        let length = if signal.is_some() { "10m" } else { "2s" };
        let mut running = Running::start(&mut place.run(&["--uri", &lab.uri, ALLOWED, "--duration", length]));
        for _ in 0..3 {
            running.wait_for("overload_on");
        }
        put_on(lab, &before);
        running.wait_for("tickets+latency_event+fail_command offered");
        signal.into_iter().for_each(|signal| running.signal(signal));
        let finished = running.finish();
        finished.assert_code(if signal.is_some() { 130 } else { 0 });
        assert_eq!(states(lab), before, "{signal:?}");
        assert_eq!(left(lab, &collection), (100, 0), "{signal:?}: neither documents nor entries are left");
        let events = table(finished.directory(), "events.csv");
        let event =
            events.iter().find(|row| row["kind"] == "overload_off" && row["subject"] == "latency_event");
        assert_eq!(numbers(&event.unwrap()["detail"]), [500]);
    }
}

#[test]
fn a_killed_run_is_restored_by_hand() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let before = states(lab);
    let place = place("killed_and_restored", LASTING);
    let mut running = Running::start(&mut place.run(&["--uri", &lab.uri, ALLOWED, "--duration", "10m"]));
    running.wait_for("tickets+latency_event+fail_command offered");
    let restore = || finish(&mut overdrive(["restore", "--uri", &lab.uri]));
    // What a living run needs stays.
    let refused = restore();
    assert!(
        refused.assert_code(1).stderr.contains(&format!("process {}", running.id())),
        "{}",
        refused.stderr
    );
    put_on(lab, &before);
    running.signal(Signal::KILL);
    running.finish();
    put_on(lab, &before);
    let restored = restore();
    restored.assert_code(0);
    // Two faults on each of three members, and the documents.
    assert_eq!(restored.stderr.lines().count(), 7, "{}", restored.stderr);
    assert_eq!(restored.stdout, "Everything is set right.\n");
    assert_eq!(states(lab), before);
    assert_eq!(left(lab, "killed_and_restored"), (100, 0));
    assert_eq!(restore().assert_code(0).stdout, "Nothing of overdrive's is on.\n");
}

#[test]
fn a_latency_event_takes_its_own_documents_away_and_no_others() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    // Keys that are documents themselves, before and after the event's own in the servers' order.
    for (i, field) in ["a", "overdrive_event_of_mine", "z"].iter().enumerate() {
        let text = LOAD.replace("COLLECTION", &format!("event_keys_{i}")).replace(
            "documents = 100",
            &format!(
                "documents = 100\ndocument = {{ _id = {{ {field} = {{ \"^Key\" = \"sequential\" }} }} }}"
            ),
        );
        let place = Place::new(
            text + "[[overload]]\nat = \"0s\"\nfor = \"1s\"\nlatency_event = { documents = 300 }\n",
        );
        let args = ["--uri", &lab.uri, "--allow-faults=latency_event", "--duration=2s"];
        let finished = finish(&mut place.run(&args));
        let events = table(finished.assert_code(0).directory(), "events.csv");
        let off = events.iter().find(|row| row["kind"] == "overload_off").unwrap();
        assert_eq!(numbers(&off["detail"]), [300], "{field}");
        assert_eq!(left(lab, &format!("event_keys_{i}")), (100, 0), "{field}: the load's own documents stay");
    }
}

#[test]
fn stepping_down_can_be_undone_whoever_is_primary() {
    let _alone = block_on(alone());
    let lab = shared_lab();
    let overload = "[[overload]]\nat = \"0s\"\nfor = \"1h\"\nstep_down = {}\n";
    let place = place("stepped_down", overload);
    let args = ["--uri", &lab.uri, "--allow-faults=step_down", "--duration=10m"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("overload_on");
    let hello = || ask(lab.members[0].address, doc! { "hello": 1 });
    assert!(!hello().get_bool("isWritablePrimary").unwrap());
    running.signal(Signal::KILL);
    running.finish();
    // The member with the highest priority, which is made primary again before anybody undoes anything.
    ask(lab.members[0].address, doc! { "replSetFreeze": 0 });
    let since = std::time::Instant::now();
    while !hello().get_bool("isWritablePrimary").unwrap() {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", hello());
        std::thread::sleep(Duration::from_millis(200));
    }
    let restored = finish(&mut overdrive(["restore", "--uri", &lab.uri]));
    assert!(restored.assert_code(0).stderr.contains("undid step_down"), "{}", restored.stderr);
    assert_eq!(left(lab, "stepped_down").1, 0);
}

#[test]
fn what_servers_cannot_do_is_told_before_anything_is_done() {
    let lab = shared_lab();
    let overload = |fault: &str| format!("[[overload]]\nat = \"0s\"\nfor = \"1s\"\n{fault}\n");
    for (fault, parts) in [
        ("limit_requests = { rate = 5 }", ["6.0.5", "8.2"]),
        ("limit_requests = { rate = 5, mechanism = \"gate\" }", ["only the lab", "--uri"]),
        ("limit_connections = { rate = 5, mechanism = \"native\" }", ["6.0.5", "8.2"]),
        ("stall = {}", ["stall", "connection string"]),
        ("kill = {}", ["kill", "connection string"]),
    ] {
        let place = place("cannot", &overload(fault));
        let kind = fault.split(' ').next().unwrap();
        let finished = finish(&mut place.run(&["--uri", &lab.uri, &format!("--allow-faults={kind}")]));
        // What can be told from the arguments alone is a mistake in them.
        finished.assert_code(if parts[1] == "connection string" { 2 } else { 1 });
        let last = finished.stderr.lines().last().unwrap();
        assert!(parts.iter().all(|part| last.contains(part)) && last.contains(kind), "{fault}: {last}");
        assert!(!place.path().join("results").exists());
    }
    let refused = finish(&mut overdrive(["restore"]));
    assert!(refused.assert_code(2).stderr.contains("--uri"), "{}", refused.stderr);
}

/// Whoever shows progress, and fails at it.
struct Panicking;

impl Progress for Panicking {
    fn note(&mut self, _: &str) {}
    fn found(&mut self, _: &Cluster) {}
    fn preparing(&mut self, _: Preparing) {}
    fn started(&mut self, _: &TrialFacts, _: &Path) {}
    fn taken_over(&mut self, _: &TrialFacts, _: Duration) {}
    fn snapshot(&mut self, _: &Plan, _: &Snapshot) {}

    fn event(&mut self, event: &Event) {
        // The others are on, or on their way.
        assert!(event.kind != "overload_on" || event.subject != "fail_command", "this is a test");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_undoes_faults_like_any_other_end() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let before = tokio::task::block_in_place(|| states(lab));
    let text = LOAD.replace("COLLECTION", "panicked") + LASTING;
    let source = Source { name: "panic".to_owned(), shown: "panic".to_owned(), text: text.clone() };
    let profile = Profile::read(source, &options::check).unwrap();
    let plan = resolve(&profile, &Overrides::default(), &options::check).unwrap();
    let out = tempfile::tempdir().unwrap();
    let uri = Uri::parse(&lab.uri).unwrap();
    let setup = Setup {
        clients: Vec::new(),
        target: resolve_options(&uri, &plan.client, Some("overdrive-panics"), &plan.driver()).unwrap(),
        plan: Arc::new(plan),
        place: variants::Place::ONLY,
        variant: "base".to_owned(),
        params: Vec::new(),
        knobs: Vec::new(),
        keeping: Arc::new(Keeping::new(out.path().to_owned(), None, text)),
        notes: Vec::new(),
        lab: None,
        stub: None,
    };
    let result = trial::run(setup, &mut Panicking, &mut Interrupts::listen().unwrap(), None).await;
    let error = result.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("overdrive itself failed"), "{error:#}");
    tokio::task::block_in_place(|| {
        assert_eq!(states(lab), before);
        assert_eq!(left(lab, "panicked"), (100, 0));
    });
}
