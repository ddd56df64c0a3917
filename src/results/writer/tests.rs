use super::*;
use crate::results::testing::{self, cell, snapshot};
use crate::results::{HostFacts, RunFacts};
use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, ServerStats, StalenessStats};
use crate::stats::{Latencies, OpStats};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

/// Intervals as (segment, end in seconds, operations), and the number of events.
type Taken = (Vec<(usize, u64, u64)>, usize);

/// Takes intervals only when it is allowed to.
struct Slow {
    gate: Receiver<()>,
    taken: Vec<(usize, u64, u64)>,
    events: usize,
}

impl Sink for Slow {
    type Output = Taken;
    fn interval(&mut self, batch: Batch) -> Result<(), Error> {
        let _ = self.gate.recv();
        let offered = batch.snapshot.cells.values().map(|stats| stats.offered).sum();
        self.taken.push((batch.snapshot.segment, batch.snapshot.end_ns / 1_000_000_000, offered));
        Ok(())
    }
    fn event(&mut self, _: &Event) -> Result<(), Error> {
        self.events += 1;
        Ok(())
    }
    fn abandon(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn finish(self, _: Totals, _: EndFacts) -> Result<Self::Output, Error> {
        Ok((self.taken, self.events))
    }
}

fn batch(second: u64, segment: usize) -> Batch {
    Batch {
        snapshot: snapshot(second, segment, [((segment, 0), cell(1, 0, 0, 0))], [0; 3]),
        servers: Vec::new(),
    }
}

fn slow(length: usize) -> (Sender<()>, Queue<Taken>) {
    let (open, gate) = channel();
    (open, Queue::start(Slow { gate, taken: Vec::new(), events: 0 }, length).unwrap())
}

#[test]
fn a_slow_disk_merges_intervals_and_loses_none() {
    let (gate, mut queue) = slow(2);
    // 1000 intervals against a disk that takes none: 500 in one segment, 500 in the next. This must not wait.
    for second in 0..1000 {
        queue.interval(batch(second, if second < 500 { 1 } else { 2 })).unwrap();
        if second % 100 == 0 {
            queue.event(Event::default()).unwrap();
        }
    }
    assert!(queue.waiting.len() <= 2, "at most one for each segment");
    assert!(queue.merged > 900);
    assert_eq!(queue.missing, Vec::<String>::new());
    drop(gate);
    let (taken, events) = queue.finish(Some((Totals::default(), EndFacts::default()))).unwrap().unwrap();
    assert!(taken.len() < 10, "{taken:?}");
    let in_segment = |wanted| -> u64 { taken.iter().filter(|t| t.0 == wanted).map(|t| t.2).sum() };
    assert_eq!((in_segment(1), in_segment(2), events), (500, 500, 10), "no merge crosses a segment's end");
    assert_eq!(taken.iter().find(|t| t.0 == 2).map(|t| t.1 - t.2), Some(500), "in order");
    assert_eq!(taken.last().map(|t| t.1), Some(1000));
}

#[test]
fn missing_intervals_are_noticed() {
    let (gate, mut queue) = slow(16);
    drop(gate);
    for second in [0, 1, 3, 4] {
        queue.interval(batch(second, 1)).unwrap();
    }
    assert_eq!(queue.missing, ["interval number 3 came where 2 was due"]);
}

struct Full;

impl Sink for Full {
    type Output = ();
    fn interval(&mut self, _: Batch) -> Result<(), Error> {
        let file = Path::new("run/intervals.csv");
        Err(Error::file(file, std::io::Error::from(std::io::ErrorKind::StorageFull)))
    }
    fn event(&mut self, _: &Event) -> Result<(), Error> {
        Ok(())
    }
    fn abandon(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn finish(self, _: Totals, _: EndFacts) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_full_disk_reaches_the_sender_with_the_files_name() {
    let mut queue = Queue::start(Full, 4).unwrap();
    let error = (0..).find_map(|second| queue.interval(batch(second, 1)).err()).unwrap().to_string();
    assert!(error.contains("run/intervals.csv") && error.contains("no storage space"), "{error}");
    // Also when there is nothing more to send but the end.
    let mut queue = Queue::start(Full, 4).unwrap();
    let _ = queue.interval(batch(0, 1));
    let error = queue.finish(Some((Totals::default(), EndFacts::default()))).unwrap_err().to_string();
    assert!(error.contains("run/intervals.csv"), "{error}");
}

fn read(path: PathBuf) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap()
}

fn server(address: &str) -> ServerFacts {
    ServerFacts {
        address: address.to_owned(),
        role: "primary".to_owned(),
        counters: BTreeMap::from([("queue_readers".to_owned(), 7), ("unheard_of".to_owned(), 1)]),
        staleness: None,
    }
}

/// Four seconds of the overload plan: one of warm-up is left out so that it is cut in `before`.
fn write_trial(directory: &RunDirectory, trial: u32) -> Summary {
    let facts = TrialFacts { trial, ..testing::facts(testing::overload_plan()) };
    let mut writer = Writer::start(directory, facts).unwrap();
    let at_go = Event { at_ns: -1_500_000, kind: "overload_on".to_owned(), ..Event::default() };
    writer.event(at_go).unwrap();
    writer.snapshot(snapshot(0, 0, [((0, 0), cell(3, 2, 2, 0))], [1, 0, 0]), vec![server("a:1")]).unwrap();
    writer.snapshot(snapshot(1, 0, [((0, 0), cell(1, 1, 1, 0))], [1, 0, 0]), vec![]).unwrap();
    // Something from the warm-up ends in the measured time: it is in this interval's row, not in the summary.
    let cells = [((0, 0), cell(0, 1, 1, 0)), ((1, 0), cell(4, 4, 4, 1)), ((1, 1), cell(2, 1, 2, 0))];
    let mut busy = snapshot(2, 1, cells, [0, 1, 0]);
    busy.servers.push(ServerStats {
        address: "a:1".to_owned(),
        attempts: 9,
        rejected: 1,
        ..ServerStats::default()
    });
    busy.generator.cpu_ns = 1_900_000_000;
    busy.errors.push(ErrorCount {
        segment: 1,
        operation: 0,
        level: ErrorLevel::Attempt,
        class: ErrorClass {
            kind: "command".to_owned(),
            code: Some(462),
            code_name: "IngressRequestRateLimitExceeded".to_owned(),
            labels: vec!["RetryableError".to_owned(), "SystemOverloadedError".to_owned()],
        },
        count: 1,
        first_ns: 2_500_000_000,
        last_ns: 2_500_000_000,
        example: "rate limit, \"exceeded\"".to_owned(),
    });
    writer.snapshot(busy, vec![server("a:1"), server("b:1")]).unwrap();
    writer.snapshot(snapshot(3, 1, [((1, 1), cell(0, 1, 1, 0))], [0; 3]), vec![]).unwrap();
    let totals = Totals { ended: vec![8, 2, 0], attempts: 12, cut: true, ..Totals::default() };
    writer.finish(totals, EndFacts { notes: vec!["as asked".to_owned()], ..EndFacts::default() }).unwrap()
}

#[test]
fn a_trial_is_written_to_all_files() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let summary = write_trial(&directory, 1);
    assert_eq!(summary.broken, Vec::<String>::new());
    assert_eq!(summary.notes.last().map(String::as_str), Some("as asked"));
    assert_eq!(format!("{:.3}", summary.ended), "2026-01-01T00:00:04.000Z");

    let intervals = read(directory.file("intervals.csv"));
    assert_eq!(intervals.len(), 4 * 3);
    for row in &intervals {
        let number = |name: &str| row[name].parse::<u64>().unwrap();
        let outcomes = ["ok", "failed", "timed_out", "dropped", "parked", "not_started", "in_flight"];
        let outcomes: u64 = outcomes.iter().map(|o| number(&format!("ops_{o}"))).sum();
        assert_eq!(number("open_at_start") + number("offered"), outcomes + number("open_at_end"), "{row:?}");
        assert!(!row.values().any(|v| v.contains("NaN") || v.contains("inf")), "{row:?}");
    }
    let busy = &intervals[6];
    let shown =
        ["timestamp", "elapsed_s", "interval_s", "phase", "segment", "op", "ops_ok", "retries", "in_flight"];
    assert_eq!(
        shown.map(|name| &*busy[name]),
        ["2026-01-01T00:00:03.000Z", "3.0", "1.0", "measure", "before", "read", "5", "1", ""]
    );
    let all = &intervals[8];
    let shown = [
        "op",
        "open_at_start",
        "offered",
        "ops_ok",
        "open_at_end",
        "in_flight",
        "cpu_share",
        "latency_mean_us",
    ];
    assert_eq!(shown.map(|name| &*all[name]), ["all", "1", "6", "6", "1", "1", "1.9", "1000"]);

    let servers = read(directory.file("servers.csv"));
    let shown =
        ["elapsed_s", "server", "role", "attempts", "server_queue_readers", "server_opcounters_query"];
    let servers: Vec<_> = servers.iter().map(|row| shown.map(|name| &*row[name])).collect();
    assert_eq!(
        servers,
        [
            ["1.0", "a:1", "primary", "0", "7", ""],
            ["3.0", "a:1", "primary", "9", "7", ""],
            ["3.0", "b:1", "primary", "0", "7", ""]
        ]
    );

    let events = read(directory.file("events.csv"));
    let shown = ["timestamp", "elapsed_s", "phase", "kind"];
    let events: Vec<_> = events.iter().map(|row| shown.map(|name| &*row[name])).collect();
    assert_eq!(events[0], ["2025-12-31T23:59:59.998Z", "-0.0015", "warmup", "overload_on"]);
    assert_eq!(events[1], ["2026-01-01T00:00:04.000Z", "4.0", "measure", "target_missed"]);

    let rows = read(directory.file("summary.csv"));
    let shown =
        ["segment", "op", "offered", "ops_ok", "duration_s", "param_maxAdaptiveRetries", "param_appName"];
    let rows: Vec<_> = rows.iter().map(|row| shown.map(|name| &*row[name])).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2], ["all", "all", "6", "6", "2.0", "2", ""]);
    assert_eq!(rows[3], ["before", "read", "4", "4", "2.0", "2", ""]);

    let errors = read(directory.file("errors.csv"));
    let shown = ["phase", "segment", "op", "level", "code", "labels", "count", "first_seen_s", "example"];
    assert_eq!(
        shown.map(|name| &*errors[0][name]),
        [
            "measure",
            "before",
            "read",
            "attempt",
            "462",
            "RetryableError+SystemOverloadedError",
            "1",
            "2.5",
            "rate limit, \"exceeded\""
        ]
    );

    let runs = read(root.path().join("runs.csv"));
    let shown = ["run_id", "result", "offered", "params"];
    assert_eq!(
        shown.map(|name| &*runs[0][name]),
        [directory.id(), "cut", "6", r#"{"maxAdaptiveRetries":"2","appName":null}"#]
    );
    assert!(std::fs::metadata(directory.file("latency.hlog")).unwrap().len() > 200);
    assert!(!directory.file("run.json").exists(), "not complete yet");
}

#[test]
fn what_the_staleness_probe_found_is_in_three_files() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let mut plan = testing::plan();
    plan.staleness = Some(crate::plan::Staleness { every: crate::units::Span::seconds(1) });
    let mut writer = Writer::start(&directory, testing::facts(plan)).unwrap();
    let mut times = Latencies::default();
    (0..30).for_each(|ms| times.record_or_none_ns(ms * 1_000_000));
    let by_role = BTreeMap::from([("secondary".to_owned(), times)]);
    let staleness = Some(StalenessStats { by_role, failures: 2 });
    let probed = ServerFacts { staleness, ..server("a:1") };
    writer.snapshot(snapshot(0, 1, [], [0; 3]), vec![probed, server("b:1")]).unwrap();
    let totals = Totals { ended: vec![0; 3], attempts: 0, cut: false, ..Totals::default() };
    let summary = writer.finish(totals, EndFacts::default()).unwrap();
    assert!(summary.notes.iter().any(|note| note.contains("(a:1 2)")), "{:?}", summary.notes);

    let servers = read(directory.file("servers.csv"));
    let cells = |row: &BTreeMap<String, String>| {
        ["p50_us", "max_us", "samples", "failures"].map(|end| row[&format!("staleness_{end}")].clone())
    };
    assert_eq!(cells(&servers[0]), ["14007", "29007", "30", "2"]);
    assert_eq!(cells(&servers[1]), [""; 4]);
    let rows = read(directory.file("staleness.csv"));
    assert_eq!(rows.len(), 1);
    assert_eq!((&*rows[0]["segment"], &*rows[0]["role"]), ("all", "secondary"));
    assert_eq!((&*rows[0]["staleness_samples"], &*rows[0]["staleness_p99_us"]), ("30", ""));
    let log = std::fs::read_to_string(directory.file("latency.hlog")).unwrap();
    assert!(log.contains("Tag=1/measure/secondary/staleness,"), "{log}");
}

#[test]
fn trials_of_a_run_share_its_files() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let trials = [write_trial(&directory, 1), write_trial(&directory, 2)];
    let rows = read(directory.file("summary.csv"));
    assert_eq!(rows.iter().map(|row| &*row["trial"]).collect::<String>(), "111111222222");
    assert_eq!(read(root.path().join("runs.csv")).len(), 2);
    let now = trials[0].ended;
    let host = HostFacts::default();
    let facts = RunFacts {
        started: now,
        ended: now,
        complete: true,
        host,
        earlier: Vec::new(),
        notes: Vec::new(),
        search: None,
        shards: None,
    };
    directory.finish(&facts, &trials).unwrap();
    let files: std::collections::BTreeSet<String> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let wanted = "backoff.csv errors.csv events.csv intervals.csv latency.hlog profile.toml recovery.csv \
                  retries.csv run.json servers.csv summary.csv";
    assert_eq!(files.into_iter().collect::<Vec<_>>().join(" "), wanted);
}

#[test]
fn rows_are_on_disk_before_the_next_interval() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let mut recording = Recording::start(&directory, testing::facts(testing::plan())).unwrap();
    for second in 0..3 {
        recording.interval(Batch { servers: vec![server("a:1")], ..batch(second, 1) }).unwrap();
        let lines = |name| std::fs::read_to_string(directory.file(name)).unwrap().lines().count() as u64;
        assert_eq!((lines("intervals.csv"), lines("servers.csv")), (1 + (second + 1) * 3, 1 + second + 1));
    }
}

#[test]
fn sums_that_do_not_add_up_are_told_and_not_hidden() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let mut writer = Writer::start(&directory, testing::facts(testing::plan())).unwrap();
    writer
        .snapshot(snapshot(0, 1, [((1, 0), OpStats { offered: 5, ..OpStats::default() })], [0; 3]), vec![])
        .unwrap();
    let summary = writer.finish(Totals::default(), EndFacts::default()).unwrap();
    assert_eq!(summary.broken.len(), 2, "{:?}", summary.broken);
    assert_eq!(read(root.path().join("runs.csv"))[0]["result"], "broken");
    assert_eq!(
        read(directory.file("summary.csv")).len(),
        3,
        "the numbers are there for whoever looks for the fault"
    );
}

#[test]
fn a_failed_trial_keeps_its_intervals() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    let mut writer = Writer::start(&directory, testing::facts(testing::plan())).unwrap();
    writer.snapshot(snapshot(0, 1, [((1, 0), cell(2, 2, 2, 0))], [0; 3]), vec![]).unwrap();
    writer.abandon().unwrap();
    assert_eq!(read(directory.file("intervals.csv")).len(), 3);
    assert!(
        std::fs::read_to_string(directory.file("latency.hlog")).unwrap().contains("1/measure/read/latency")
    );
    assert_eq!(read(directory.file("summary.csv")).len(), 0);
}

#[test]
fn trials_with_other_options_are_refused_before_they_start() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "test", None, b"").unwrap();
    write_trial(&directory, 1);
    let mut facts = testing::facts(testing::plan());
    facts.params.pop();
    let error = Writer::start(&directory, facts).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("summary.csv"), "{error}");
}
