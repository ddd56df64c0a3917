//! Processes of their own: one that is really killed, at times that nobody chooses, and one whose disk ends within a batch.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

/// Where such a process works.
const DIRECTORY: &str = "OVERDRIVE_TEST_SPOOL";

/// Parks three and takes out one, again and again, and says after each what is sure.
#[test]
#[ignore = "a process to be killed, which another test starts"]
fn until_killed() {
    let Ok(path) = std::env::var(DIRECTORY) else { return };
    let mut spool = open(Path::new(&path));
    loop {
        park(&mut spool, 3);
        println!("sure {} {}", spool.next, spool.drained.number);
        drain(&mut spool, 2);
        println!("sure {} {}", spool.next, spool.drained.number);
    }
}

/// One of the ignored tests in a process of its own, where files end after 10 or 20 KiB, as the shell's blocks are.
fn process(test: &str, directory: &Path) -> Command {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = Command::new("sh");
    // The limit's signal is ignored, so that the write fails instead.
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 20; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("{module}::{test}"), "--exact", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory);
    command
}

fn open(path: &Path) -> Spool {
    Spool::open(path, 1 << 30, 500).unwrap()
}

/// Parks until the disk takes no more.
#[test]
#[ignore = "a process with a short disk, which another test starts"]
fn until_full() {
    let Ok(path) = std::env::var(DIRECTORY) else { return };
    let open = || Spool::open(Path::new(&path), 1 << 30, 1 << 20).unwrap();
    let mut spool = open();
    let batch = |spool: &Spool| (spool.next..spool.next + 60).map(operation).collect::<Vec<_>>();
    while spool.park(&batch(&spool)).is_ok() {}
    assert!(matches!(spool.park(&["more"]), Err(SpoolError::Broken(_))));
    let parked: Vec<u64> = (0..spool.next).collect();
    assert!(!parked.is_empty());
    drop(spool);
    assert_eq!(numbers(&open()), parked, "no part of the batch that failed is there");
}

#[test]
fn a_batch_that_does_not_fit_on_the_disk_leaves_nothing() {
    let dir = scratch();
    let output = process("until_full", dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!files(dir.path()).is_empty(), "it did something");
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_sure_of() {
    let dir = scratch();
    let mut sure = (0, 0);
    for round in 1..=20 {
        let mut child = process("until_killed", dir.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said = |line: &String| {
            let (_, numbers) = line.split_once("sure ")?;
            let (next, drained) = numbers.split_once(' ')?;
            Some((next.parse::<u64>().ok()?, drained.parse::<u64>().ok()?))
        };
        let some = lines.by_ref().filter_map(|line| said(&line)).nth(round).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        sure = lines.filter_map(|line| said(&line)).last().unwrap_or(some);

        let spool = open(dir.path());
        numbers(&spool);
        let (next, drained) = (spool.next, spool.drained.number);
        assert!((sure.0..=sure.0 + 3).contains(&next), "{next} {sure:?}");
        assert!((sure.1..=sure.1 + 2).contains(&drained), "{drained} {sure:?}");
    }
    assert!(sure.0 > 0);
}
