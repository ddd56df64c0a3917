use std::collections::HashSet;
use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

mod crash;
mod damage;
mod killed;

pub use crash::disk_changed;

/// Somewhere that fsync costs nothing, if there is such a place.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// What is parked as number so and so.
fn operation(number: u64) -> String {
    format!("op {number}")
}

/// Parks so many more.
fn park(spool: &mut Spool, count: u64) {
    let operations: Vec<String> = (spool.next..spool.next + count).map(operation).collect();
    assert_eq!(spool.park(&operations).unwrap(), operations.len());
}

/// All that would come out, which must be what went in: in order, each once. Its numbers.
fn numbers(spool: &Spool) -> Vec<u64> {
    let parked = spool.oldest::<String>(usize::MAX).unwrap();
    let ids: HashSet<&str> = parked.iter().map(|parked| parked.id.as_str()).collect();
    assert_eq!(ids.len(), parked.len(), "ids are unique");
    let numbers: Vec<u64> = parked.iter().map(|parked| parked.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
    for parked in &parked {
        assert_eq!(parked.operation, operation(parked.number));
    }
    assert_eq!(numbers.len() as u64, spool.backlog());
    numbers
}

/// Takes out so many of the oldest.
fn drain(spool: &mut Spool, count: usize) {
    let parked = spool.oldest::<String>(count).unwrap();
    spool.done(parked.last().unwrap()).unwrap();
}

fn files(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_goes_in_comes_out_until_it_is_done() {
    let dir = scratch();
    let path = dir.path().join("some/spool");
    let mut spool = Spool::open(&path, 1 << 20, 1 << 16).unwrap();
    assert!(numbers(&spool).is_empty());
    park(&mut spool, 5);
    let first = spool.oldest::<String>(2).unwrap();
    assert_eq!(first, spool.oldest::<String>(2).unwrap(), "the same again");
    spool.done(&first[1]).unwrap();
    spool.done(&first[0]).unwrap();
    assert_eq!(numbers(&spool), [2, 3, 4], "an earlier one is done already");
    drop(spool);
    let mut spool = Spool::open(&path, 1 << 20, 1 << 16).unwrap();
    assert_eq!(numbers(&spool), [2, 3, 4]);
    park(&mut spool, 1);
    assert_eq!(numbers(&spool), [2, 3, 4, 5]);
    assert!(spool.oldest::<u64>(1).is_err_and(|e| matches!(e, SpoolError::Json(_))), "they are no numbers");
}

#[test]
fn every_line_is_json() {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1 << 20, 1 << 16).unwrap();
    park(&mut spool, 2);
    let text = fs::read_to_string(dir.path().join("00000000000000000000.ndjson")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["number"], &lines[1]["operation"]), (&1.into(), &"op 1".into()));
}

#[test]
fn segments_begin_when_one_is_long_enough_and_go_when_all_in_them_is_done() {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1 << 20, 1).unwrap();
    for count in [2, 1, 3] {
        park(&mut spool, count);
    }
    let segment = |first: u64| format!("{first:020}.ndjson");
    assert_eq!(files(dir.path()), [segment(0), segment(2), segment(3)]);
    drain(&mut spool, 3);
    assert_eq!(files(dir.path()), [segment(3), "drained.json".to_owned()]);
    drain(&mut spool, 3);
    assert_eq!(files(dir.path()), [segment(6), "drained.json".to_owned()], "the next number is kept");
    assert_eq!((spool.bytes(), spool.backlog()), (0, 0));
}

#[test]
fn a_full_spool_refuses_until_a_segment_is_gone() {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1000, 300).unwrap();
    let operations: Vec<String> = (0..50).map(operation).collect();
    let count = spool.park(&operations).unwrap();
    assert!((5..15).contains(&count), "{count} lines of about 90 bytes");
    assert_eq!(spool.park(&operations[count..]).unwrap(), 0);
    assert!(spool.bytes() <= 1000);
    drain(&mut spool, count - 1);
    assert_eq!(spool.park(&operations[count..]).unwrap(), 0, "space is freed by the file");
    drain(&mut spool, 1);
    assert!(spool.park(&operations[count..]).unwrap() > 0);
}

#[test]
fn nobody_else_can_open_it() {
    let dir = scratch();
    let spool = Spool::open(dir.path(), 1000, 300).unwrap();
    let second = Spool::open(dir.path(), 1000, 300);
    assert!(matches!(second, Err(SpoolError::InUse(path)) if path == dir.path()));
    drop(spool);
    assert!(Spool::open(dir.path(), 1000, 300).is_ok());
}

#[test]
fn after_a_failure_of_the_disk_it_must_be_opened_anew() {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1 << 20, 1 << 16).unwrap();
    park(&mut spool, 2);
    // A file that can only be read stands for a disk that takes nothing.
    spool.active = File::open(dir.path().join("00000000000000000000.ndjson")).unwrap();
    assert!(matches!(spool.park(&["lost"]), Err(SpoolError::Disk { .. })));
    assert!(matches!(spool.park(&["lost"]), Err(SpoolError::Broken(_))));
    assert_eq!(numbers(&spool), [0, 1]);
    drop(spool);
    let mut spool = Spool::open(dir.path(), 1 << 20, 1 << 16).unwrap();
    park(&mut spool, 1);
    assert_eq!(numbers(&spool), [0, 1, 2]);
}

#[derive(Clone, Debug)]
enum Step {
    Park(u64),
    Drain(usize),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u64..6).prop_map(Step::Park),
        3 => (1_usize..8).prop_map(Step::Drain),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn a_spool_is_a_queue(steps in steps(), rotate_bytes in 1_u64..1000) {
        let dir = scratch();
        let open = || Spool::open(dir.path(), 1 << 20, rotate_bytes).unwrap();
        let mut spool = open();
        let mut expected = 0..0;
        for step in steps {
            match step {
                Step::Park(count) => {
                    park(&mut spool, count);
                    expected.end += count;
                }
                Step::Drain(count) if !expected.is_empty() => {
                    drain(&mut spool, count);
                    expected.start = (expected.start + count as u64).min(expected.end);
                }
                Step::Drain(_) => prop_assert!(spool.oldest::<String>(1).unwrap().is_empty()),
                Step::Reopen => {
                    drop(spool);
                    spool = open();
                }
            }
            prop_assert_eq!(numbers(&spool), expected.clone().collect::<Vec<_>>());
            let on_disk: u64 = files(dir.path())
                .iter()
                .filter(|name| name.ends_with(".ndjson"))
                .map(|name| fs::metadata(dir.path().join(name)).unwrap().len())
                .sum();
            prop_assert_eq!(spool.bytes(), on_disk);
        }
    }
}
