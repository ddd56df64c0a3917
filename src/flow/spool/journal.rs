//! The files of a spool, and what is left of them after a crash.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::disk::Directory;
use super::line::{self, Line};
use super::{Parked, SpoolError, disk};

/// A file of lines.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The number of the first operation that is, or would be, in it.
    pub first: u64,
    /// The length of its lines.
    pub bytes: u64,
}

/// A place between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the operation that follows.
    pub number: u64,
    /// The first number of the segment that it is in.
    pub segment: u64,
    /// The bytes of that segment before it.
    pub offset: u64,
}

/// What was found in a directory, in order.
#[derive(Debug)]
pub struct Found {
    /// Never empty.
    pub segments: VecDeque<Segment>,
    /// The last of them, open for appending.
    pub active: File,
    /// The number of the next operation to be parked.
    pub next: u64,
    /// The oldest operation that is not done.
    pub drained: Position,
}

const SUFFIX: &str = ".ndjson";
const NUMBER_DIGITS: usize = 20;

impl Segment {
    /// Its place in a spool's directory. Names in their order are segments in theirs.
    pub fn path(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{:0NUMBER_DIGITS$}{SUFFIX}", self.first))
    }

    /// Reads operations from a position on, until there are `most` of them in all.
    pub fn read<T: DeserializeOwned>(
        &self,
        directory: &Path,
        from: Position,
        most: usize,
        parked: &mut Vec<Parked<T>>,
    ) -> Result<(), SpoolError> {
        let path = self.path(directory);
        let mut file = BufReader::new(File::open(&path).map_err(SpoolError::disk(&path))?);
        file.seek(SeekFrom::Start(from.offset)).map_err(SpoolError::disk(&path))?;
        let mut at = from;
        while at.offset < self.bytes && parked.len() < most {
            let text = next_line(&mut file).map_err(SpoolError::disk(&path))?;
            let damaged = || SpoolError::Damaged { path: path.clone(), line: at.number - self.first + 1 };
            let json = line::checked(&text).ok_or_else(damaged)?;
            let Line { id, number, operation, .. } = serde_json::from_slice::<Line<T>>(json)?;
            if number != at.number {
                return Err(damaged());
            }
            at = Position { number: number + 1, offset: at.offset + text.len() as u64, ..at };
            parked.push(Parked { number, id, operation, next: at });
        }
        Ok(())
    }
}

/// Reads a spool's files, cuts off what a crash left unfinished, and begins the first segment if there is none.
pub fn recover(path: &Path, directory: &Directory) -> Result<Found, SpoolError> {
    let drained = read_drained(path)?;
    let firsts = segments(path).map_err(SpoolError::disk(path))?;
    let oldest = firsts.first().copied().unwrap_or(drained);
    let mut scan = Scan::new(oldest, drained);
    for first in &firsts {
        scan.segment(path, *first)?;
    }
    scan.check()?;
    // A segment goes only after the word that its operations are done.
    if !(oldest..=scan.next).contains(&drained) {
        return Err(SpoolError::Damaged { path: path.join(DRAINED), line: 1 });
    }
    let active = match scan.segments.back() {
        Some(last) => {
            let file = last.path(path);
            // Whole lines that were not yet on the disk are kept, so they are to be there before they are relied on.
            disk::reopen(&file)
                .and_then(|active| disk::cut(&active, last.bytes).map(|()| active))
                .map_err(SpoolError::disk(&file))?
        }
        None => {
            let segment = Segment { first: scan.next, bytes: 0 };
            scan.segments.push_back(segment);
            let file = segment.path(path);
            disk::create(directory, &file).map_err(SpoolError::disk(&file))?
        }
    };
    let end = scan.segments.back().map_or(scan.drained, |last| Position {
        number: scan.next,
        segment: last.first,
        offset: last.bytes,
    });
    let drained = if scan.drained.number < scan.next { scan.drained } else { end };
    Ok(Found { segments: scan.segments, active, next: scan.next, drained })
}

/// A walk through all lines, up to the first that does not go on where the one before ended.
struct Scan {
    segments: VecDeque<Segment>,
    /// The number that is to come.
    next: u64,
    /// Operations below this number were on the disk once, as a batch was written only after that.
    written: u64,
    /// Where it does not go on: the file, and the line from 1.
    stopped: Option<(PathBuf, u64)>,
    drained: Position,
}

impl Scan {
    const fn new(oldest: u64, drained: u64) -> Self {
        let drained = Position { number: drained, segment: oldest, offset: 0 };
        Self { segments: VecDeque::new(), next: oldest, written: oldest, stopped: None, drained }
    }

    fn segment(&mut self, directory: &Path, first: u64) -> Result<(), SpoolError> {
        let mut segment = Segment { first, bytes: 0 };
        let path = segment.path(directory);
        if let Some(before) = self.segments.back() {
            // This one was begun only when the one before was whole.
            let missing =
                (self.next != first).then(|| (before.path(directory), self.next - before.first + 1));
            if let Some((path, line)) = self.stopped.take().or(missing) {
                return Err(SpoolError::Damaged { path, line });
            }
        }
        let mut file = BufReader::new(File::open(&path).map_err(SpoolError::disk(&path))?);
        for line in 1.. {
            let text = next_line(&mut file).map_err(SpoolError::disk(&path))?;
            if text.is_empty() {
                break;
            }
            let parsed = line::checked(&text).and_then(|json| serde_json::from_slice(json).ok());
            let number = parsed.map(|Line::<IgnoredAny> { number, batch, .. }| {
                self.written = self.written.max(batch);
                number
            });
            if number != Some(self.next) {
                self.stopped.get_or_insert((path.clone(), line));
            }
            if self.stopped.is_none() {
                if self.next == self.drained.number {
                    self.drained = Position { segment: first, offset: segment.bytes, ..self.drained };
                }
                self.next += 1;
                segment.bytes += text.len() as u64;
            }
        }
        self.segments.push_back(segment);
        Ok(())
    }

    /// In the last segment, a crash takes only what was not yet on the disk: nothing that a batch was written after.
    fn check(&mut self) -> Result<(), SpoolError> {
        match self.stopped.take() {
            Some((path, line)) if self.next < self.written => Err(SpoolError::Damaged { path, line }),
            _ => Ok(()),
        }
    }
}

/// The next line, its end included; empty at the end of the file.
fn next_line(file: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.read_until(b'\n', &mut text)?;
    Ok(text)
}

/// The first numbers of the segments, in order. Other files are nobody's business.
fn segments(path: &Path) -> io::Result<Vec<u64>> {
    let mut firsts = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        let digits = digits.filter(|digits| digits.len() == NUMBER_DIGITS);
        firsts.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
    }
    firsts.sort_unstable();
    Ok(firsts)
}

const DRAINED: &str = "drained.json";
const DRAFT: &str = "drained.json.new";

/// What stands in `drained.json`.
#[derive(Serialize, Deserialize)]
struct Drained {
    /// Operations below this number are done.
    drained: u64,
}

fn read_drained(directory: &Path) -> Result<u64, SpoolError> {
    let path = directory.join(DRAINED);
    let text = match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text.map_err(SpoolError::disk(&path))?,
    };
    let parsed = line::checked(&text).and_then(|json| serde_json::from_slice(json).ok());
    parsed.map(|Drained { drained }| drained).ok_or(SpoolError::Damaged { path, line: 1 })
}

/// Puts it on the disk that operations below a number are done.
pub fn write_drained(path: &Path, directory: &Directory, drained: u64) -> Result<(), SpoolError> {
    let text = line::seal(&Drained { drained })?;
    disk::replace(directory, &path.join(DRAINED), &path.join(DRAFT), &text)
        .map_err(SpoolError::disk(&path.join(DRAINED)))
}
