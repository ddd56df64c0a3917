//! What no crash of a process leaves is found out, and never taken for one.

use super::*;

/// A spool's files after batches of two and three in a first segment and one of one in a second.
fn written() -> TempDir {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1 << 20, 200).unwrap();
    park(&mut spool, 1);
    park(&mut spool, 3);
    park(&mut spool, 1);
    dir
}

const FIRST: &str = "00000000000000000000.ndjson";
const SECOND: &str = "00000000000000000004.ndjson";

/// The numbers that come out after the lines of a file have been changed, or the damage that is found.
fn after(name: &str, change: impl FnOnce(&mut Vec<String>)) -> Result<Vec<u64>, (String, u64)> {
    let dir = written();
    let path = dir.path().join(name);
    let mut lines: Vec<String> =
        fs::read_to_string(&path).unwrap().split_inclusive('\n').map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.concat()).unwrap();
    let before = fs::read(&path).unwrap();
    match Spool::open(dir.path(), 1 << 20, 200) {
        Ok(spool) => Ok(numbers(&spool)),
        Err(SpoolError::Damaged { path: damaged, line }) => {
            assert_eq!(fs::read(&path).unwrap(), before, "nothing is changed");
            Err((damaged.file_name().unwrap().to_str().unwrap().to_owned(), line))
        }
        Err(other) => panic!("{other}"),
    }
}

fn damage(name: &str, line: u64) -> Result<Vec<u64>, (String, u64)> {
    Err((name.to_owned(), line))
}

#[test]
fn what_was_on_the_disk_must_still_be_there() {
    let spoil = |line: &mut String| *line = line.replace("op", "up");
    assert_eq!(after(FIRST, |_| ()), Ok(vec![0, 1, 2, 3, 4]));
    assert_eq!(after(FIRST, |lines| spoil(&mut lines[0])), damage(FIRST, 1));
    assert_eq!(after(FIRST, |lines| spoil(&mut lines[3])), damage(FIRST, 4));
    assert_eq!(after(FIRST, |lines| drop(lines.remove(2))), damage(FIRST, 3));
    assert_eq!(after(FIRST, |lines| drop(lines.pop())), damage(FIRST, 4), "the second file begins later");
    assert_eq!(after(FIRST, |lines| lines.push("{}\n".to_owned())), damage(FIRST, 5));
}

#[test]
fn a_line_that_was_there_before_is_not_taken_again() {
    let again = |lines: &mut Vec<String>| lines.push(lines[0].clone());
    assert_eq!(after(SECOND, again), Ok(vec![0, 1, 2, 3, 4]));
}

/// When a machine loses its power, pages of the last batch may be missing before others that are there.
#[test]
fn a_hole_in_the_last_batch_ends_the_journal_and_one_before_it_is_damage() {
    let dir = scratch();
    let mut spool = Spool::open(dir.path(), 1 << 20, 1 << 16).unwrap();
    park(&mut spool, 2);
    park(&mut spool, 3);
    drop(spool);
    let path = dir.path().join(FIRST);
    let whole = fs::read_to_string(&path).unwrap();
    let without = |number: usize| {
        let zeroes = |line: &str| line.replace(|c| c != '\n', "\0");
        let lines = whole.split_inclusive('\n').enumerate();
        let text: String =
            lines.map(|(n, line)| if n == number { zeroes(line) } else { line.to_owned() }).collect();
        fs::write(&path, text).unwrap();
        Spool::open(dir.path(), 1 << 20, 1 << 16).map(|spool| numbers(&spool))
    };
    assert!(matches!(without(1), Err(SpoolError::Damaged { line: 2, .. })));
    assert_eq!(without(3).unwrap(), [0, 1, 2]);
    assert_eq!(without(2).unwrap(), [0, 1]);
}

#[test]
fn what_is_done_must_go_with_what_is_there() {
    let dir = written();
    let sealed = |drained: u64| line::seal(&serde_json::json!({ "drained": drained })).unwrap();
    let with = |text: &[u8]| {
        fs::write(dir.path().join("drained.json"), text).unwrap();
        Spool::open(dir.path(), 1 << 20, 200).map(|spool| numbers(&spool))
    };
    let damaged =
        |result| matches!(result, Err(SpoolError::Damaged { path, .. }) if path.ends_with("drained.json"));
    assert_eq!(with(&sealed(3)).unwrap(), [3, 4]);
    assert!(damaged(with(&sealed(6))), "more than was parked");
    assert!(damaged(with(b"{\"drained\":1}\n")), "no checksum");
    fs::remove_file(dir.path().join(FIRST)).unwrap();
    assert!(damaged(with(&sealed(3))), "operation 3 is missing");
    assert_eq!(with(&sealed(4)).unwrap(), [4]);
}

#[test]
fn other_files_are_nobodys_business() {
    let dir = written();
    fs::write(dir.path().join("notes.ndjson"), "not mine").unwrap();
    fs::write(dir.path().join("7.ndjson"), "nor this").unwrap();
    assert_eq!(numbers(&Spool::open(dir.path(), 1 << 20, 200).unwrap()), [0, 1, 2, 3, 4]);
    assert!(dir.path().join("notes.ndjson").exists());
}
