use std::fs;

use super::*;
use crate::plan::{Load, Model, Plan, Shard};
use crate::results::testing;
use crate::results::writer::Batch;
use crate::results::{EndFacts, TrialFacts};
use crate::snapshot::{Event, Snapshot, Totals};
use crate::units::Span;

const SECOND: u64 = 1_000_000_000;

fn shard(index: u32, count: u32) -> Shard {
    Shard { index, count, start_at: Some("2026-01-01T00:00:00Z".parse().unwrap()) }
}

/// 4 s at 100/s, without a warm-up.
fn whole() -> Plan {
    testing::plan_with_stages(&[(4, 100.0, 100.0)])
}

/// What a shard of a load leaves that ran for these intervals. Each is as long as it says, in seconds, and `ok` operations
/// of the first kind succeeded in it.
struct Made {
    facts: TrialFacts,
    intervals: Vec<(u64, u64)>,
    profile: &'static str,
    complete: bool,
}

impl Made {
    fn new(index: u32, count: u32) -> Self {
        let facts = testing::facts(whole().divided(shard(index, count)).unwrap());
        Self { facts, intervals: vec![(1, 10); 5], profile: "p", complete: true }
    }

    fn keep(&self, out: &Path) -> PathBuf {
        let directory = RunDirectory::create(out, "test", None, self.profile.as_bytes()).unwrap();
        let mut recording = Recording::start(&directory, self.facts.clone()).unwrap();
        let event =
            Event { at_ns: 5, kind: "behind".to_owned(), detail: "a while".to_owned(), ..Event::default() };
        recording.event(&event).unwrap();
        let (mut start_s, mut ended) = (0, 0);
        for (sequence, &(length_s, ok)) in (0..).zip(&self.intervals) {
            let segment = if start_s < 4 { 1 } else { 2 };
            let cell = testing::cell(ok, ok, ok, 0);
            let snapshot = Snapshot {
                sequence,
                start_ns: start_s * SECOND,
                end_ns: (start_s + length_s) * SECOND,
                ..testing::snapshot(0, segment, [((segment, 0), cell)], [0; 3])
            };
            recording.interval(Batch { snapshot, servers: Vec::new() }).unwrap();
            start_s += length_s;
            ended += ok;
        }
        if self.complete {
            let totals =
                Totals { ended: vec![ended, 0, 0], attempts: ended, cut: false, ..Totals::default() };
            let notes = vec!["for all".to_owned(), format!("{NOTE}something")];
            let summary = recording.finish(totals, EndFacts { notes, ..EndFacts::default() }).unwrap();
            assert_eq!(summary.broken, Vec::<String>::new());
            directory.finish(&run_facts(), &[summary]).unwrap();
        }
        directory.path().to_owned()
    }
}

fn run_facts() -> crate::results::RunFacts {
    crate::results::RunFacts {
        started: "2026-01-01T00:00:00Z".parse().unwrap(),
        ended: "2026-01-01T00:00:05Z".parse().unwrap(),
        complete: true,
        host: crate::results::HostFacts::default(),
        notes: Vec::new(),
        earlier: Vec::new(),
        search: None,
        shards: None,
    }
}

fn refused(made: &[Made]) -> String {
    let place = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = made.iter().map(|made| made.keep(place.path())).collect();
    let out = place.path().join("merged");
    let Err(Error::Asked(what)) = merge(&directories, &out, None) else { panic!("it was not refused") };
    assert!(!out.exists(), "nothing was made");
    what
}

#[test]
fn shards_become_one_run_that_adds_up() {
    let place = tempfile::tempdir().unwrap();
    // The second's disk was slow: two of its seconds are one interval. The third was done earlier.
    let uneven = Made { intervals: vec![(1, 7), (2, 20), (1, 5), (1, 3)], ..Made::new(1, 3) };
    let short = Made { intervals: vec![(1, 1), (1, 1), (1, 1), (1, 1)], ..Made::new(2, 3) };
    let made = [uneven, Made::new(0, 3), short];
    let directories: Vec<PathBuf> = made.iter().map(|made| made.keep(place.path())).collect();
    let (directory, summary) = merge(&directories, &place.path().join("merged"), Some("l")).unwrap();

    assert_eq!(summary.broken, Vec::<String>::new());
    assert_eq!(summary.facts.plan, whole());
    assert_eq!(summary.overall().stats.outcomes.ok, 40 + 32 + 4);
    assert_eq!(summary.overall().stats.latency.count(), 76);
    assert!(summary.notes.contains(&"for all".to_owned()), "{:?}", summary.notes);
    assert!(!summary.notes.iter().any(|note| note.contains(NOTE)), "{:?}", summary.notes);
    let text = fs::read_to_string(directory.path().join("intervals.csv")).unwrap();
    let mut intervals = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        intervals.deserialize().map(Result::unwrap).collect();
    let all: Vec<_> = rows
        .iter()
        .filter(|row| row["op"] == "all")
        .map(|row| [&row["elapsed_s"], &row["interval_s"], &row["ops_ok"]].map(String::as_str).join(" "))
        .collect();
    assert_eq!(all, ["1.0 1.0 18", "3.0 2.0 42", "4.0 1.0 16", "5.0 1.0 13"]);
    let events = fs::read_to_string(directory.path().join("events.csv")).unwrap();
    for index in 0..3 {
        assert!(events.contains(&format!("shard {index}/3: a while")), "{events}");
    }
    let run: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.path().join("run.json")).unwrap()).unwrap();
    assert_eq!(run["shards"].as_array().unwrap().len(), 3);
    assert_eq!((&run["shards"][1]["shard"], &run["complete"]), (&1.into(), &true.into()));
    assert!(!directory.path().join("shard.jsonl").exists(), "it is no shard itself");
}

#[test]
fn each_shard_is_there_once() {
    let made = |indexes: &[u32]| refused(&indexes.iter().map(|&i| Made::new(i, 4)).collect::<Vec<_>>());
    assert!(made(&[0, 1, 3]).contains("of 4 shards 2/4 is missing"), "{}", made(&[0, 1, 3]));
    assert!(made(&[2]).contains("0/4, 1/4, 3/4 are missing"), "{}", made(&[2]));
    let twice = made(&[0, 1, 2, 3, 1]);
    assert!(twice.contains("shard 1/4 is there twice") && twice.contains("leave one"), "{twice}");
}

#[test]
fn shards_of_different_loads_are_told_apart() {
    let with = |change: &dyn Fn(&mut Made)| {
        let mut other = Made::new(1, 2);
        change(&mut other);
        refused(&[Made::new(0, 2), other])
    };
    type Change<'a> = &'a dyn Fn(&mut Made);
    let mistakes: [(Change<'_>, &str); 8] = [
        (&|made| made.profile = "another", "their profiles differ"),
        (&|made| *made = Made::new(1, 3), "they are of 2 and of 3 shards"),
        (&|made| made.facts.driver.version = "3.5.2".to_owned(), "rust 3.9.1 and rust 3.5.2"),
        (&|made| made.facts.variant = "rate=5/s".to_owned(), "other options were set"),
        (&|made| made.facts.plan.seed = 7, "`seed` differs"),
        (&|made| made.facts.plan.shard = Some(Shard { start_at: None, ..shard(1, 2) }), "they began at 2026"),
        (&|made| made.complete = false, "did not come to its end"),
        (
            &|made| {
                let Model::Open { max_in_flight, .. } = &mut made.facts.plan.load.model else { return };
                *max_in_flight -= 1;
                made.facts.plan.load = Load { cooldown: Span::seconds(5), ..made.facts.plan.load.clone() };
            },
            "do not sum to one",
        ),
    ];
    for (change, part) in mistakes {
        let told = with(change);
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn what_is_no_shard_is_told() {
    let place = tempfile::tempdir().unwrap();
    let told = |path: PathBuf| merge(&[path], place.path(), None).map(|_| ()).unwrap_err().to_string();
    assert!(told(place.path().join("none")).contains("is no directory"));
    assert!(told(place.path().to_owned()).contains("has no shard.jsonl"));
    fs::write(place.path().join("shard.jsonl"), "nonsense\n").unwrap();
    assert!(told(place.path().to_owned()).contains("shard.jsonl', line 1"));
    let newer = r#"{"begin":{"protocol":99,"tool_version":"9.9.9","other":1}}"#;
    fs::write(place.path().join("shard.jsonl"), newer).unwrap();
    assert!(told(place.path().to_owned()).contains("overdrive 9.9.9"), "{}", told(place.path().to_owned()));
    fs::write(place.path().join("shard.jsonl"), "").unwrap();
    assert!(told(place.path().to_owned()).contains("does not begin"));
}
