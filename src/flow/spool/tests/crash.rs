//! A crash at every place where one can come: what the disk holds after each change is kept, every change that makes a file
//! longer is cut at every byte, and a spool is opened on each of these. Recovery itself is interrupted in the same way.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use super::*;

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What must hold after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Promises {
    /// Operations that were said to be parked.
    parked: u64,
    /// Those, and the ones that were about to be.
    at_most_parked: u64,
    /// Operations that were said to be done.
    done: u64,
    /// Those, and the ones that were about to be.
    at_most_done: u64,
}

struct Trace {
    directory: PathBuf,
    promises: Promises,
    states: Vec<(Files, Promises)>,
}

thread_local! {
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
}

/// Called after every change to the disk.
pub fn disk_changed() {
    TRACE.with_borrow_mut(|trace| {
        if let Some(trace) = trace {
            trace.states.push((contents(&trace.directory), trace.promises));
        }
    });
}

fn contents(directory: &Path) -> Files {
    files(directory).into_iter().map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect()
}

fn promise(change: impl FnOnce(&mut Promises)) {
    TRACE.with_borrow_mut(|trace| change(&mut trace.as_mut().unwrap().promises));
}

/// All states that a crash may leave while something is done to a spool.
fn crashes(directory: &Path, promises: Promises, act: impl FnOnce()) -> Vec<(Files, Promises)> {
    let states = vec![(contents(directory), promises)];
    TRACE.set(Some(Trace { directory: directory.to_owned(), promises, states }));
    act();
    let Trace { mut states, promises, .. } = TRACE.take().unwrap();
    states.push((contents(directory), promises));
    states.windows(2).flat_map(|pair| between(&pair[0].0, &pair[1].0, pair[1].1)).collect()
}

/// The states on the way from one to the next, both included.
fn between(before: &Files, after: &Files, promises: Promises) -> Vec<(Files, Promises)> {
    let mut states = vec![before.clone()];
    let changed: Vec<&String> =
        after.iter().filter(|(name, text)| before.get(*name) != Some(text)).map(|(name, _)| name).collect();
    let gone = before.keys().filter(|name| !after.contains_key(*name)).count();
    assert!(changed.len() <= 1 && gone <= 1, "one change at a time");
    if let [name] = changed[..] {
        let (new, old) = (&after[name], before.get(name).map_or(&[][..], Vec::as_slice));
        // Else it is a rename, a removal or a cut, which happens or does not.
        if gone == 0 && new.starts_with(old) {
            for length in old.len()..new.len() {
                let mut state = before.clone();
                state.insert(name.clone(), new[..length].to_vec());
                states.push(state);
            }
        }
    }
    states.push(after.clone());
    states.into_iter().map(|state| (state, promises)).collect()
}

const MAX: u64 = 1 << 20;
/// Two or three lines.
const ROTATE: u64 = 250;

fn open(path: &Path) -> Spool {
    Spool::open(path, MAX, ROTATE).unwrap()
}

fn parks(spool: &mut Spool, count: u64) {
    promise(|promises| promises.at_most_parked += count);
    park(spool, count);
    promise(|promises| promises.parked += count);
}

fn drains(spool: &mut Spool, count: usize) {
    promise(|promises| promises.at_most_done += count as u64);
    drain(spool, count);
    promise(|promises| promises.done += count as u64);
}

/// A life with batches of several sizes, rotation while parking and while draining, and a change of process.
fn life(path: &Path) {
    let mut spool = open(path);
    for (park, drain) in [(1, 0), (2, 0), (1, 2), (2, 0), (3, 3), (0, 4), (1, 1), (2, 0), (4, 1)] {
        if park > 0 {
            parks(&mut spool, park);
        }
        if drain > 0 {
            drains(&mut spool, drain);
        }
    }
    drop(spool);
    let mut spool = open(path);
    parks(&mut spool, 2);
    drains(&mut spool, 6);
    parks(&mut spool, 1);
}

/// Opens what a crash left, and checks that everything promised holds and that life goes on. The states that a crash leaves
/// while it is being opened.
fn check(state: &Files, promises: Promises) -> Vec<(Files, Promises)> {
    let dir = scratch();
    for (name, text) in state {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let crashes = crashes(dir.path(), promises, || drop(open(dir.path())));

    let mut spool = open(dir.path());
    let found = spool.drained.number..spool.next;
    let end = spool.segments.get(1).map_or(spool.next, |second| second.first);
    assert!(end > found.start || spool.bytes() == 0, "files that nobody needs are gone");
    assert_eq!(numbers(&spool), found.clone().collect::<Vec<_>>());
    assert!((promises.done..=promises.at_most_done).contains(&found.start), "{found:?} {promises:?}");
    assert!((promises.parked..=promises.at_most_parked).contains(&found.end), "{found:?} {promises:?}");

    park(&mut spool, 3);
    drain(&mut spool, 1);
    drop(spool);
    let mut spool = open(dir.path());
    assert_eq!(numbers(&spool), (found.start + 1..found.end + 3).collect::<Vec<_>>());
    drain(&mut spool, usize::MAX);
    drop(spool);
    let spool = open(dir.path());
    assert_eq!((spool.next, spool.backlog(), spool.bytes()), (found.end + 3, 0, 0));
    crashes
}

#[test]
fn a_crash_loses_nothing_that_was_promised_and_doubles_nothing() {
    let dir = scratch();
    let path = dir.path().to_owned();
    let mut todo = crashes(&path, Promises::default(), || life(&path));
    let first = todo.len();
    let mut seen = HashSet::new();
    while let Some((state, promises)) = todo.pop() {
        if seen.insert((state.clone(), promises)) {
            todo.extend(check(&state, promises));
        }
    }
    // 20 lines of some 90 bytes, and five of `drained.json`.
    assert!(first > 1500 && seen.len() > 1500, "{first} and {} states", seen.len());
}
