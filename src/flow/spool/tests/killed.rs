//! A process that is really killed, at times that nobody chooses.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

/// Where the process to be killed works.
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

fn open(path: &Path) -> Spool {
    Spool::open(path, 1 << 30, 500).unwrap()
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_sure_of() {
    let dir = scratch();
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut sure = (0, 0);
    for round in 1..=20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([&format!("{module}::until_killed"), "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
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
