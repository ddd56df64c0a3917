//! What goes wrong around a run: no server, no disk, no reader, servers that hang or die, people who lose patience.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, doc};
use overdrive::lab::{Lab, mongod};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::lab::{GONE_LIMIT, Leavings};
use crate::support::{
    Finished, Place, Row, Running, ask, assert_sums, block_on, count, finish, outcomes, overdrive, run_json,
    runs_in, send, table, whole,
};
use crate::{SharedLab, alone, lab_options, shared_lab};

/// Reads at 100/s for 2 s; each test in a collection of its own.
const READS: &str = r#"
[data]
collection = "COLLECTION"
documents = 100
[load]
rate = "100/s"
warmup = "500ms"
duration = "2s"
cooldown = "5s"
[client]
maxPoolSize = 300
[op.find.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

/// Every second read is rejected, from the beginning to the end.
const SHED: &str = r#"
[[overload]]
name = "shed"
at = "0s"
for = "1h"
fail_command = { commands = ["find"], probability = 0.5 }
"#;

fn reads(collection: &str) -> Place {
    Place::new(READS.replace("COLLECTION", collection))
}

fn shed(collection: &str) -> Place {
    Place::new(READS.replace("COLLECTION", collection) + SHED)
}

/// The shared lab, while nobody else loads it or puts faults on it.
fn healthy() -> (&'static SharedLab, impl Drop) {
    let alone = block_on(alone());
    (shared_lab(), alone)
}

#[test]
fn no_server_is_told_soon_and_leaves_no_run() {
    let place = reads("nobody");
    let started = Instant::now();
    let uri = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=1000";
    let finished = finish(&mut place.run(&["--uri", uri]));
    finished.assert_code(1);
    assert!(finished.stderr.contains("no primary answers at mongodb://127.0.0.1:1"), "{}", finished.stderr);
    assert!(started.elapsed() < Duration::from_secs(15), "the driver's own patience is 30 s");
    assert!(finished.stdout.is_empty() && finished.directory.is_none());
    assert!(!place.path().join("results").exists());
}

#[test]
fn ctrl_c_while_nobody_answers() {
    let place = reads("nobody");
    let mut running = Running::start(&mut place.run(&["--uri", "mongodb://127.0.0.1:1/"]));
    let started = Instant::now();
    running.wait_for("still looking for a primary at 127.0.0.1:1; the driver gives up after 30s");
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.assert_code(1);
    assert!(finished.stderr.contains("nothing was measured"), "{}", finished.stderr);
    assert!(started.elapsed() < Duration::from_secs(15), "the driver's own patience is 30 s");
    assert!(!place.path().join("results").exists());
}

#[test]
fn a_standalone_server_will_do() {
    let server = Standalone::start();
    let place = Place::new(READS.replace("COLLECTION", "load") + "[op.insert.insert_one]\n");
    let uri = format!("mongodb://127.0.0.1:{}/", server.port);
    let finished = finish(&mut place.run(&["--uri", &uri]));
    let directory = finished.assert_code(0).directory();
    let found = format!("a standalone server, version {}, at 127.0.0.1:{}", server.version, server.port);
    assert!(finished.stderr.contains(&found), "{}", finished.stderr);
    assert_sums(directory);
    assert!(count(&whole(directory), "ops_ok") > 100);
    // What both sides know of it stands in one row.
    for row in table(directory, "servers.csv") {
        assert_eq!(row["server"], format!("127.0.0.1:{}", server.port));
        assert!(!row["attempts"].is_empty() && !row["server_network_requests"].is_empty(), "{row:?}");
    }
    assert!(table(directory, "servers.csv").iter().any(|row| row["role"] == "standalone"));
}

/// A server that is no replica set.
struct Standalone {
    child: Child,
    version: String,
    port: u16,
    _data: TempDir,
}

impl Standalone {
    fn start() -> Self {
        let program = block_on(mongod::find(None, &|_| {})).unwrap();
        let data = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program.path)
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--port", &port.to_string(), "--dbpath"])
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, version: program.version, port, _data: data };
        ask(format!("127.0.0.1:{port}"), doc! { "ping": 1 });
        server
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn every_operation_fails() {
    let (lab, _alone) = healthy();
    let text = READS.replace("COLLECTION", "all_fail");
    let text = text.split("[op.").next().unwrap().to_owned()
        + "[op.nonsense.run_command]\ncommand = { frobnicate = 1 }\n";
    let place = Place::new(text);
    let finished = finish(&mut place.run(&["--uri", &lab.uri]));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    let failed = count(&row, "ops_failed");
    // 200 are expected; a Poisson number is hardly ever 5 deviations off.
    assert!((130..270).contains(&failed), "{failed}");
    assert_eq!((count(&row, "ops_ok"), count(&row, "ops_gave_up")), (0, 0));
    assert_eq!(row["error_rate"].parse(), Ok(1.0));
    assert_eq!(row["loss_rate"].parse(), Ok(1.0));
    assert_eq!(row["goodput_ops_per_s"].parse(), Ok(0.0));
    for column in row.keys().filter(|name| name.starts_with("latency_") || name.starts_with("service_")) {
        assert_eq!(row[column], "", "{column} is of successes");
    }
    assert_ne!(row["failed_latency_p50_us"], "");
    // Commands that the server does not know are not retried: each is one attempt.
    assert_eq!(count(&row, "attempts"), failed);
    let errors = table(directory, "errors.csv");
    for level in ["attempt", "operation"] {
        let measured = errors.iter().filter(|row| row["phase"] == "measure" && row["level"] == level);
        let measured: Vec<&Row> = measured.collect();
        assert_eq!(measured.len(), 1, "{errors:?}");
        assert_eq!((&*measured[0]["code"], &*measured[0]["code_name"]), ("59", "CommandNotFound"));
        assert_eq!(count(measured[0], "count"), failed);
        assert!(measured[0]["example"].contains("frobnicate"), "{:?}", measured[0]);
    }
}

#[test]
fn no_operation_at_all_and_a_single_one() {
    let (lab, _alone) = healthy();
    // The first of even arrivals is due at once, random ones have time.
    for (arrivals, wanted) in [("poisson", 0), ("even", 1)] {
        let place = reads("few");
        let arrivals = format!("load.arrivals={arrivals}");
        let args = ["--uri", &lab.uri, "--warmup", "0s", "--set", &arrivals, "--rate", "0.01/s"];
        let finished = finish(&mut place.run(&args));
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        let row = whole(directory);
        assert_eq!((count(&row, "offered"), count(&row, "ops_ok")), (wanted, wanted), "{arrivals}");
        for column in row.keys().filter(|name| name.contains("_p50_") || name.contains("_p99_")) {
            assert_eq!(row[column], "", "{column} of {wanted}");
        }
        assert_eq!(row["latency_max_us"].is_empty(), wanted == 0);
        assert_eq!(row["error_rate"], if wanted == 0 { "" } else { "0.0" });
        for name in ["retries.csv", "backoff.csv", "errors.csv", "servers.csv", "events.csv"] {
            table(directory, name);
        }
        assert!(finished.stdout.contains("Results: "), "{}", finished.stdout);
    }
}

#[test]
fn the_first_signal_ends_the_load_and_keeps_what_was_measured() {
    let (lab, _alone) = healthy();
    // All signals at once: the runs do not know of each other.
    let signals = [("interrupted", Signal::INT), ("terminated", Signal::TERM), ("quitted", Signal::QUIT)];
    let mut runs: Vec<_> = signals
        .iter()
        .map(|(collection, _)| {
            let place = reads(collection);
            let running = Running::start(&mut place.run(&["--uri", &lab.uri, "--duration", "10m"]));
            (place, running)
        })
        .collect();
    for ((_, signal), (_, running)) in signals.iter().zip(&mut runs) {
        running.wait_for("measure");
        running.wait_for("measure");
        running.signal(*signal);
    }
    for (place, running) in runs {
        let asked = Instant::now();
        let finished = running.finish();
        let directory = finished.assert_code(130).directory();
        assert!(asked.elapsed() < Duration::from_secs(20), "draining is bounded");
        assert_sums(directory);
        assert!(finished.stdout.contains("the run was cut"), "{}", finished.stdout);
        let json = run_json(directory);
        assert_eq!((&json["cut"], &json["complete"]), (&true.into(), &false.into()));
        let row = whole(directory);
        let seconds: f64 = row["duration_s"].parse().unwrap();
        assert!(
            (1.0..60.0).contains(&seconds),
            "rates are over what ran, not over what was planned: {seconds}"
        );
        let offered: f64 = row["offered_ops_per_s"].parse().unwrap();
        assert!((50.0..150.0).contains(&offered), "{offered}");
        assert_eq!(table(&place.path().join("results"), "runs.csv")[0]["result"], "cut");
    }
}

#[test]
fn the_second_signal_leaves_at_once_and_turns_the_fault_off() {
    let (lab, _alone) = healthy();
    // Naps that outlast the time that operations under way are given.
    let naps = "[op.nap.run_command]\ndatabase = \"admin\"\n\
                command = { sleep = 1, millis = 12000, lock = \"none\" }\n";
    let place = Place::new(READS.replace("COLLECTION", "left_at_once") + naps + SHED);
    let args = ["--uri", &lab.uri, "--allow-faults=fail_command", "--duration=10m", "--rate=20/s"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("overload_on");
    assert_eq!(faults(lab), 3);
    running.wait_for(" shed ");
    let asked = Instant::now();
    running.signal(Signal::INT);
    running.wait_for("stopping");
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.assert_code(1);
    assert!(asked.elapsed() < Duration::from_secs(5), "the naps were waited for: {:?}", asked.elapsed());
    assert_eq!(faults(lab), 0);
    assert!(finished.stderr.contains("left at once, as asked"), "{}", finished.stderr);
    let directory = finished.directory();
    assert!(!directory.join("run.json").exists(), "it is not whole");
    assert!(!table(directory, "intervals.csv").is_empty(), "but what was written stays");
}

/// At how many members the failpoint is on.
fn faults(lab: &SharedLab) -> usize {
    let command = || doc! { "getParameter": 1, "failpoint.failCommand": 1 };
    let on = |reply: &Document| {
        reply.get_document("failpoint.failCommand").unwrap().get_i32("mode").unwrap_or(1) != 0
    };
    lab.members.iter().filter(|member| on(&ask(member.address, command()))).count()
}

#[test]
fn a_killed_run_loses_an_interval_at_most_and_its_fault_is_undone_by_the_next() {
    let (lab, _alone) = healthy();
    let place = shed("killed");
    let args = ["--uri", &lab.uri, "--allow-faults=fail_command", "--duration=10m"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("overload_on");
    for _ in 0..3 {
        running.wait_for(" shed ");
    }
    // Nobody undoes what a living run needs.
    let next = reads("after_killed");
    let refused = finish(&mut next.run(&["--uri", &lab.uri]));
    let owner = format!("process {}", running.id());
    assert!(refused.assert_code(1).stderr.contains(&owner), "{}", refused.stderr);
    assert_eq!(faults(lab), 3);

    running.signal(Signal::KILL);
    let finished = running.finish();
    assert_eq!(finished.status.code(), None);
    let directory = finished.directory();
    assert!(!directory.join("run.json").exists());
    assert!(!place.path().join("results/runs.csv").exists());
    // Of two rows an interval, one for all: what was told on screen is in the file, but maybe the last.
    let told = finished.stderr.lines().filter(|line| line.contains("in flight")).count();
    let intervals = table(directory, "intervals.csv").iter().filter(|row| row["op"] == "all").count();
    assert!(intervals + 1 >= told && told >= 4, "{intervals} intervals of {told}");
    table(directory, "servers.csv");
    assert_eq!(table(directory, "events.csv")[0]["kind"], "overload_on");
    assert_eq!(table(directory, "summary.csv"), Vec::<Row>::new());

    assert_eq!(faults(lab), 3, "nobody could undo it");
    let finished = finish(&mut next.run(&["--uri", &lab.uri]));
    finished.assert_code(0);
    assert_eq!(finished.stderr.matches("undid fail_command").count(), 3, "{}", finished.stderr);
    assert_eq!(faults(lab), 0);
    assert_eq!(count(&whole(finished.directory()), "rejected"), 0);
}

#[test]
fn an_overload_that_outlasts_the_load_ends_with_it() {
    let (lab, _alone) = healthy();
    let place = shed("outlasting");
    let finished = finish(&mut place.run(&["--uri", &lab.uri, "--allow-faults=fail_command"]));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    assert_eq!(faults(lab), 0);
    let events = table(directory, "events.csv");
    let mine: Vec<_> = events.iter().filter(|event| event["subject"] == "shed").collect();
    assert_eq!(mine.iter().map(|event| &*event["kind"]).collect::<Vec<_>>(), ["overload_on", "overload_off"]);
    // The primary's own count of what it rejected is our count of rejected attempts, in all phases.
    let said: u64 = mine[1]["detail"]
        .split("; ")
        .map(|line| line.split_once(": ").unwrap().1.split(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let rows = table(directory, "intervals.csv");
    let rejected: u64 = rows.iter().filter(|row| row["op"] == "all").map(|row| count(row, "rejected")).sum();
    assert_eq!(said, rejected);
    assert!(said > 50, "half of 200 and their retries");
}

#[test]
fn a_member_that_is_not_there_is_told_before_the_load() {
    let (lab, _alone) = healthy();
    let text = READS.replace("COLLECTION", "no_member") + SHED;
    let place = Place::new(text.replace("[[overload]]", "[[overload]]\nmembers = [0, 3]"));
    let finished = finish(&mut place.run(&["--uri", &lab.uri, "--allow-faults=fail_command"]));
    finished.assert_code(1);
    assert!(finished.stderr.contains("there is no member 3, the last of 3 is 2"), "{}", finished.stderr);
    assert!(!place.path().join("results").exists());
}

#[test]
fn faults_on_others_servers_need_leave() {
    let place = shed("no_leave");
    let finished = finish(&mut place.run(&["--uri", "mongodb://127.0.0.1:1/"]));
    finished.assert_code(2);
    assert!(finished.stderr.contains("--allow-faults=fail_command"), "{}", finished.stderr);
    assert!(!place.path().join("results").exists());
}

#[test]
fn documents_that_share_a_key_are_not_taken_for_stored() {
    let (lab, _alone) = healthy();
    let choose = r#"{ "^Choose" = ["a", "b", "c"] }"#;
    for (id, there) in [("5", "1 of 100"), (choose, "3 of 100")] {
        let document = format!("documents = 100\ndocument = {{ _id = {id}, n = 0 }}");
        let place =
            Place::new(READS.replace("COLLECTION", "same_keys").replace("documents = 100", &document));
        let finished = finish(&mut place.run(&["--uri", &lab.uri]));
        finished.assert_code(1);
        for part in [there, "overdrive.same_keys", "data.document", "sequential"] {
            assert!(finished.stderr.contains(part), "no '{part}' in {}", finished.stderr);
        }
        assert!(!place.path().join("results").exists());
    }
}

#[test]
fn a_secondary_by_itself_is_told_with_the_way_out() {
    let (lab, _alone) = healthy();
    let is_secondary =
        |address: &std::net::SocketAddr| ask(address, doc! { "hello": 1 }).get_bool("secondary").unwrap();
    let secondary = lab.members.iter().map(|member| member.address).find(is_secondary).unwrap();
    let place = reads("secondary");
    let finished =
        finish(&mut place.run(&["--uri", &format!("mongodb://{secondary}/?directConnection=true")]));
    for part in ["a secondary", "directConnection", "replicaSet=overdrive"] {
        assert!(finished.assert_code(1).stderr.contains(part), "no '{part}' in {}", finished.stderr);
    }
}

#[test]
fn documents_of_others_are_left_alone() {
    let (lab, _alone) = healthy();
    let collection = "somebody_elses";
    let address = lab.members[0].address;
    let in_theirs = |command: Document| {
        block_on(async {
            let uri = format!("mongodb://{address}/?directConnection=true");
            let client = mongodb::Client::with_uri_str(uri).await.unwrap();
            client.database("overdrive").run_command(command).await.unwrap()
        })
    };
    in_theirs(doc! { "insert": collection, "documents": [{ "_id": "mine", "n": 1 }] });
    let place = reads(collection);
    let finished = finish(&mut place.run(&["--uri", &lab.uri]));
    finished.assert_code(1);
    for part in ["overdrive.somebody_elses holds documents", "--set data.collection=NAME"] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
    assert!(!place.path().join("results").exists());
    let found = in_theirs(doc! { "find": collection, "filter": {} });
    let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(batch, &vec![doc! { "_id": "mine", "n": 1 }.into()]);
    let markers = in_theirs(doc! { "count": "overdrive.markers", "query": { "_id": collection } });
    assert_eq!(markers.get_i32("n").unwrap(), 0);
}

#[test]
fn places_that_cannot_be_written() {
    let (lab, _alone) = healthy();
    let place = reads("no_place");
    fs::write(place.path().join("file"), "precious").unwrap();
    for out in ["file", "file/below", "/proc/overdrive", "/dev/full"] {
        let finished = finish(&mut place.run(&["--uri", &lab.uri, "--out", out]));
        finished.assert_code(1);
        assert!(finished.stderr.contains(&format!("'{out}'")), "{}", finished.stderr);
        assert_eq!(finished.stderr.matches("os error").count(), 1, "told once: {}", finished.stderr);
        assert!(finished.stderr.contains("--out DIR") && finished.stdout.is_empty());
    }
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "precious");
}

#[test]
fn a_full_disk_ends_the_run_and_says_so() {
    let (lab, _alone) = healthy();
    let place = reads("full_disk");
    // A page for each of the nine files, and one more: enough for a few seconds.
    let Some(disk) = SmallDisk::mount(&place.path().join("disk"), "40k") else {
        eprintln!("not tested: this user may not mount a small file system");
        return;
    };
    let out = disk.0.to_str().unwrap();
    let finished = finish(&mut place.run(&["--uri", &lab.uri, "--out", out, "--duration", "10m"]));
    finished.assert_code(1);
    assert!(
        finished.stderr.contains("No space left") && finished.stderr.contains(out),
        "{}",
        finished.stderr
    );
    assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    let run = runs_in(&disk.0).pop().unwrap();
    assert!(!run.join("run.json").exists());
    assert!(fs::read_to_string(run.join("intervals.csv")).unwrap().lines().count() > 1);
}

/// A file system of its own, as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(at).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}

#[test]
fn nobody_reads_what_is_written() {
    let (lab, _alone) = healthy();
    let deaf = || Stdio::from(std::io::pipe().unwrap().1);
    let (one, other, both) = (reads("no_stdout"), reads("no_stderr"), reads("no_output"));
    let args = ["--uri", lab.uri.as_str()];
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "exec \"$0\" run profile.toml --uri \"$1\" >&- 2>&-",
        crate::support::PROGRAM,
        &lab.uri,
    ]);
    let runs = [
        Running::start(one.run(&args).stdout(deaf())),
        Running::start(other.run(&args).stderr(deaf())),
        Running::start(shell.current_dir(both.path())),
    ];
    // A lab without a server that could be started wants to say so.
    let unheard = Running::start(overdrive(["lab", "--mongod", "/dev/null"]).stderr(deaf()));
    let finished: Vec<Finished> = runs.into_iter().map(Running::finish).collect();
    for (finished, place) in finished.iter().zip([&one, &other, &both]) {
        finished.assert_code(0);
        assert_eq!(place.runs().len(), 1);
        assert_sums(finished.directory());
    }
    assert!(finished[0].stderr.contains("measure"), "{}", finished[0].stderr);
    assert!(finished[1].stdout.contains("Results: "), "{}", finished[1].stdout);
    unheard.finish().assert_code(2);
}

#[test]
fn two_runs_in_the_same_second() {
    let (lab, _alone) = healthy();
    let (one, other) = (reads("twin_a"), reads("twin_b"));
    let out = one.path().join("results");
    let out = out.to_str().unwrap();
    let runs = [&one, &other].map(|place| Running::start(&mut place.run(&["--uri", &lab.uri, "--out", out])));
    for running in runs {
        running.finish().assert_code(0);
    }
    let directories = one.runs();
    assert_eq!(directories.len(), 2, "{directories:?}");
    directories.iter().for_each(|directory| assert_sums(directory));
    let mut ids: Vec<String> =
        table(Path::new(out), "runs.csv").into_iter().map(|row| row["run_id"].clone()).collect();
    ids.sort_unstable();
    let mut names: Vec<&str> =
        directories.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ids);
}

#[test]
fn a_signal_before_the_load_leaves_nothing() {
    // While the data is loaded.
    let (lab, _alone) = healthy();
    let place = reads("long_data");
    let mut running = Running::start(&mut place.run(&["--uri", &lab.uri, "--set", "data.documents=5000000"]));
    running.wait_for("data: ");
    running.signal(Signal::INT);
    // While a lab starts, which it does by itself.
    let nowhere = reads("nowhere");
    let mut starting = Running::start(&mut nowhere.run(&[]));
    starting.wait_for("Starting a lab");
    starting.signal(Signal::INT);
    for (running, place) in [(running, &place), (starting, &nowhere)] {
        let asked = Instant::now();
        let finished = running.finish();
        finished.assert_code(1);
        assert!(asked.elapsed() < Duration::from_secs(20));
        assert!(finished.stderr.contains("nothing was measured, nothing is kept"), "{}", finished.stderr);
        assert!(finished.stdout.is_empty() && !place.path().join("results").exists());
    }
}

#[test]
fn a_killed_run_leaves_no_lab() {
    let place = reads("in_its_own_lab");
    let mut running = Running::start(&mut place.run(&["--duration", "10m"]));
    running.wait_for("measure");
    let left = Leavings::of_program(running.id());
    running.signal(Signal::KILL);
    let finished = running.finish();
    left.assert_gone(GONE_LIMIT);
    assert!(!table(finished.directory(), "intervals.csv").is_empty());
}

/// The lab of the tests that stop and kill members: one of them at a time.
fn rough() -> MutexGuard<'static, Lab> {
    static ROUGH: OnceLock<Mutex<Lab>> = OnceLock::new();
    let lab = ROUGH.get_or_init(|| Mutex::new(block_on(Lab::start(&lab_options(), &|_| {})).unwrap()));
    let lab = lab.lock().unwrap_or_else(PoisonError::into_inner);
    wait_until_healthy(&lab);
    lab
}

fn wait_until_healthy(lab: &Lab) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let hellos: Vec<Document> =
            lab.members().iter().map(|member| ask(member.address, doc! { "hello": 1 })).collect();
        let are = |role: &str| hellos.iter().filter(|hello| hello.get_bool(role).unwrap()).count();
        if are("isWritablePrimary") == 1 && are("secondary") == 2 {
            return;
        }
        assert!(Instant::now() < deadline, "the lab does not recover: {hellos:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Members that are stopped, until this is dropped.
struct Stopped(Vec<u32>);

impl Stopped {
    fn all(lab: &Lab) -> Self {
        let pids = lab.pids();
        pids.iter().for_each(|&pid| send(pid, Signal::STOP));
        Self(pids)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.iter().for_each(|&pid| send(pid, Signal::CONT));
    }
}

/// A stall of 2 s at 100/s delays 200 operations, by 1 s on average, however few the driver was given meanwhile.
#[test]
fn a_stall_is_seen_in_full_by_those_who_were_due_in_it() {
    let lab = rough();
    let place = reads("stalled");
    let args = ["--uri", lab.uri(), "--duration", "6s", "--set", "load.max_in_flight=10"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("measure");
    let stopped = Stopped::all(&lab);
    thread::sleep(Duration::from_secs(2));
    drop(stopped);
    let finished = running.finish();
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    // 600 are expected, stall or not: 5 deviations are 122.
    let offered = count(&row, "offered");
    assert!((478..722).contains(&offered), "{offered}");
    assert!(count(&row, "latency_max_us") >= 1_800_000, "{}", row["latency_max_us"]);
    // A third of the operations waited up to 2 s, so a tenth waited for more than 1.4 s.
    assert!(count(&row, "latency_p90_us") >= 1_000_000, "{}", row["latency_p90_us"]);
    // All waiting together is rate × 2 s × 2 s ÷ 2 = 200 s; less what Poisson gave, more what catching up took.
    let waited = count(&row, "latency_mean_us") * count(&row, "ops_ok") / 1_000_000;
    assert!((120..800).contains(&waited), "{waited} s");
    // The driver had ten of them: the time in it knows next to nothing of the stall.
    assert!(count(&row, "service_max_us") >= 1_500_000, "{}", row["service_max_us"]);
    assert!(count(&row, "service_p90_us") < 500_000, "{}", row["service_p90_us"]);

    let rows = table(directory, "intervals.csv");
    let all: Vec<&Row> = rows.iter().filter(|row| row["op"] == "all").collect();
    let most_open = all.iter().map(|row| count(row, "open_at_end")).max().unwrap();
    assert!(most_open >= 80, "after the first of two seconds 100 should wait: {most_open}");
    let silent = all.iter().filter(|row| row["phase"] == "measure" && count(row, "ops_ok") < 20).count();
    assert!(silent >= 1, "no second is without answers");
    let measured = all.iter().filter(|row| row["phase"] == "measure" && row["interval_s"].starts_with('1'));
    assert!(measured.clone().count() >= 2);
    measured.for_each(|row| assert!(count(row, "offered") > 40, "due all the same: {row:?}"));
    assert!(table(directory, "events.csv").iter().any(|event| event["kind"] == "behind"));
    assert!(table(directory, "servers.csv").iter().any(|row| row["role"] == "unreachable"));
}

#[test]
fn when_everything_hangs_time_goes_on_and_ctrl_c_is_heard() {
    let lab = rough();
    let place = reads("hanging");
    let args = ["--uri", lab.uri(), "--duration", "10m", "--set", "load.max_in_flight=20"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("measure");
    let stopped = Stopped::all(&lab);
    for _ in 0..4 {
        running.wait_for("measure");
    }
    let asked = Instant::now();
    running.signal(Signal::INT);
    let finished = running.finish();
    let took = asked.elapsed();
    drop(stopped);
    let directory = finished.assert_code(130).directory();
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!(count(&row, "ops_in_flight"), 20, "all that were allowed: {row:?}");
    // 3 s and more at 100/s, of which 20 were given to the driver.
    assert!(count(&row, "ops_not_started") > 150, "{row:?}");
    assert_eq!(run_json(directory)["cut"], true);
    assert_eq!(table(&place.path().join("results"), "runs.csv")[0]["result"], "cut");
    // Each second of the silence has its row, and more are open in each than in the one before.
    let rows = table(directory, "intervals.csv");
    let measured = rows.iter().filter(|row| row["op"] == "all" && row["phase"] == "measure");
    let silent: Vec<&Row> = measured.skip_while(|row| count(row, "ops_ok") > 0).collect();
    assert!(silent.len() >= 3, "{rows:?}");
    // But for the parts of a second around the signal.
    let due: Vec<&&Row> = silent.iter().filter(|row| count(row, "offered") > 50).collect();
    assert!(due.len() >= 3, "{silent:?}");
    for pair in due.windows(2) {
        assert!(count(pair[1], "open_at_end") > count(pair[0], "open_at_end") + 40, "{pair:?}");
        let gap = pair[1]["elapsed_s"].parse::<f64>().unwrap() - pair[0]["elapsed_s"].parse::<f64>().unwrap();
        assert!((0.5..2.5).contains(&gap), "{gap} s between rows");
    }
}

#[test]
fn the_primary_is_killed() {
    let lab = rough();
    let place = reads("beheaded");
    // Impatient, so that operations of the time without a primary fail.
    let args = ["--uri", lab.uri(), "--duration", "8s", "--set", "serverSelectionTimeoutMS=500"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("measure");
    let is_primary = |index: &usize| {
        ask(lab.members()[*index].address, doc! { "hello": 1 }).get_bool("isWritablePrimary").unwrap()
    };
    let old = (0..3).find(is_primary).unwrap();
    send(lab.pids()[old], Signal::KILL);
    thread::sleep(Duration::from_secs(2));
    // By itself the set would take 10 s and more.
    let heir = lab.members()[(old + 1) % 3].address;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !block_on(step_up(heir)) {
        assert!(Instant::now() < deadline, "no election is won");
        thread::sleep(Duration::from_millis(100));
    }
    let finished = running.finish();
    let gone = lab.members()[old].address;
    block_on(lab.restart(old)).unwrap();
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!(row["duration_s"].parse(), Ok(8.0));
    let offered = count(&row, "offered");
    assert!((659..941).contains(&offered), "800 and 5 deviations: {offered}");
    assert_eq!(outcomes(&row), count(&row, "ops_ok") + count(&row, "ops_failed"), "nothing was cut: {row:?}");
    // Who was due in the 1.5 s before the last half second without a primary gave up looking for one.
    assert!(count(&row, "ops_failed") > 50, "{row:?}");
    assert!(count(&row, "ops_ok") > 200, "{row:?}");
    let errors = table(directory, "errors.csv");
    let counted = errors.iter().filter(|row| row["level"] == "operation" && row["phase"] == "measure");
    assert_eq!(counted.map(|row| count(row, "count")).sum::<u64>(), count(&row, "ops_failed"));
    assert!(errors.iter().any(|row| row["kind"] == "server_selection"), "{errors:?}");
    // The workers live on.
    let rows = table(directory, "intervals.csv");
    let last = rows.iter().rfind(|row| row["op"] == "all" && row["phase"] == "measure").unwrap();
    assert!(count(last, "ops_ok") > 30, "{last:?}");
    let end: f64 = rows.last().unwrap()["elapsed_s"].parse().unwrap();
    assert!((8.5..20.0).contains(&end), "{end}");
    let events = table(directory, "events.csv");
    let changed: Vec<&Row> = events.iter().filter(|event| event["kind"] == "primary_changed").collect();
    assert!(!changed.is_empty(), "{events:?}");
    assert_eq!(changed[0]["subject"], heir.to_string());
    assert!(changed[0]["detail"].contains(&gone.to_string()), "{changed:?}");
}

async fn step_up(address: std::net::SocketAddr) -> bool {
    let uri = format!("mongodb://{address}/?directConnection=true");
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    client.database("admin").run_command(doc! { "replSetStepUp": 1 }).await.is_ok()
}

/// The number of a member that is a secondary.
fn secondary(lab: &Lab) -> usize {
    let hello = |index: &usize| ask(lab.members()[*index].address, doc! { "hello": 1 });
    (0..3).find(|index| hello(index).get_bool("secondary").unwrap()).unwrap()
}

/// The load that was to be seen under it is worth nothing more, but what was measured before it stays.
#[test]
fn an_overload_that_cannot_be_put_on_ends_the_load() {
    let lab = rough();
    let place = shed("cannot_be_put_on");
    let set = "overload.shed.at=2s";
    let args = ["--uri", lab.uri(), "--allow-faults=fail_command", "--duration=10m", "--set", set];
    let victim = secondary(&lab);
    let address = lab.members()[victim].address;
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("warmup");
    send(lab.pids()[victim], Signal::KILL);
    let finished = running.finish();
    block_on(lab.restart(victim)).unwrap();
    finished.assert_code(1);
    let last = finished.stderr.lines().last().unwrap();
    assert!(last.contains("'shed'") && last.contains(&address.to_string()), "{}", finished.stderr);
    let directory = finished.directory();
    assert_sums(directory);
    let json = run_json(directory);
    assert_eq!((&json["cut"], &json["complete"]), (&true.into(), &false.into()));
    assert!(json["notes"][0].as_str().unwrap().contains(&address.to_string()), "{json}");
    assert!(count(&whole(directory), "ops_ok") > 100);
}

/// A fault that cannot be undone, since its member is dead: the run has failed, and keeps what it has.
#[test]
fn a_member_dies_with_a_fault_on() {
    let lab = rough();
    let place = shed("dies_with_fault");
    let args = ["--uri", lab.uri(), "--allow-faults=fail_command", "--set", "overload.shed.for=1s"];
    let mut running = Running::start(&mut place.run(&args));
    running.wait_for("overload_on");
    let is_secondary = |index: &usize| {
        ask(lab.members()[*index].address, doc! { "hello": 1 }).get_bool("secondary").unwrap()
    };
    let victim = (0..3).find(is_secondary).unwrap();
    let address = lab.members()[victim].address;
    send(lab.pids()[victim], Signal::KILL);
    let finished = running.finish();
    block_on(lab.restart(victim)).unwrap();
    wait_until_healthy(&lab);
    finished.assert_code(1);
    let last = finished.stderr.lines().last().unwrap();
    assert!(last.contains("'shed'") && last.contains(&address.to_string()), "{}", finished.stderr);
    let directory = finished.directory();
    assert_sums(directory);
    assert_eq!(run_json(directory)["complete"], false);
    assert!(finished.stdout.contains("Results: "), "{}", finished.stdout);
    let events = table(directory, "events.csv");
    let off = events.iter().find(|event| event["kind"] == "overload_off").unwrap();
    assert!(off["detail"].contains(&address.to_string()), "{events:?}");

    // It stayed written down, so the next start sees to it, if only to be sure.
    let finished = finish(&mut reads("after_death").run(&["--uri", lab.uri()]));
    assert!(
        finished.assert_code(0).stderr.contains(&format!("{address}: undid fail_command")),
        "{}",
        finished.stderr
    );
}
