//! A journal on disk of operations that are to be sent later.
//!
//! A spool is a directory, locked by whoever has it open. In it are *segments*, files of one JSON object a line, each with a
//! checksum and named by the number of the first operation in them, and `drained.json`, which says up to where operations
//! have been taken out. A batch of operations is written at once and on the disk (fsync) before it counts as parked. The
//! next segment is begun only when the one before is on the disk, and a segment is removed when `drained.json` is on the
//! disk that no longer needs it. So a process that is killed at any time leaves a journal whose numbers have no gap and no
//! double, with at most an unfinished batch at its end: of that, the next one to open the spool keeps the whole lines from
//! the front and cuts off the rest.
//!
//! Every line carries an id that no other operation has, in any spool. An operation may come out again after a crash
//! between its sending and the word that it was sent ([`Spool::done`]): its id lets a write be applied once.

mod disk;
mod journal;
mod line;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use disk::Directory;
use journal::{Position, Segment};
use line::Line;

/// Why a spool does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process has it, or this one has it already.
    #[error("the spool {} is in use", .0.display())]
    InUse(PathBuf),
    /// A file is not as any crash could have left it. Nothing has been changed.
    #[error("{}: from line {line} on it is not as a crash leaves it", path.display())]
    Damaged {
        /// The file; `drained.json` when it does not go with the segments.
        path: PathBuf,
        /// The first line that is wrong, from 1; one past the last when lines are missing at its end.
        line: u64,
    },
    /// The disk does not do what it should.
    #[error("{}: {reason}", path.display())]
    Disk {
        /// What it was about.
        path: PathBuf,
        /// The system's word.
        reason: io::Error,
    },
    /// An operation cannot be written as JSON, or one that was parked is not of the kind that is asked for.
    #[error("a parked operation cannot be had as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An earlier failure of the disk left it unknown what is on it: the spool must be opened anew.
    #[error("the spool {} failed before, and must be opened anew", .0.display())]
    Broken(PathBuf),
}

impl SpoolError {
    fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Disk { path: path.to_owned(), reason }
    }
}

/// An operation that was parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked<T> {
    /// Its place in the spool: one more than that of the operation parked before it.
    pub number: u64,
    /// What no other operation in any spool has; the same whenever this one is read.
    pub id: String,
    /// What was parked.
    pub operation: T,
    /// What follows it.
    next: Position,
}

/// A journal that is open for writing and reading. Everything blocks until the disk has done it.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    /// Locked until it is dropped.
    directory: Directory,
    max_bytes: u64,
    rotate_bytes: u64,
    /// Random, so that ids of different spools, and of operations that a crash took the numbers of, differ.
    name: u64,
    /// Never empty; the last one is written to.
    segments: VecDeque<Segment>,
    active: File,
    /// The number of the next operation to be parked.
    next: u64,
    /// The oldest operation that is not done.
    drained: Position,
    broken: bool,
}

impl Spool {
    /// Opens a spool, which is made if there is none, and brings it in order after a crash. Bytes as in
    /// [`SpoolPlan`](crate::plan::SpoolPlan). Reads all that is in it.
    ///
    /// # Errors
    /// [`SpoolError::InUse`], [`SpoolError::Damaged`] or [`SpoolError::Disk`].
    pub fn open(path: &Path, max_bytes: u64, rotate_bytes: u64) -> Result<Self, SpoolError> {
        let directory = Directory::lock(path).map_err(|reason| match reason.kind() {
            io::ErrorKind::WouldBlock => SpoolError::InUse(path.to_owned()),
            _ => SpoolError::Disk { path: path.to_owned(), reason },
        })?;
        let found = journal::recover(path, &directory)?;
        let mut spool = Self {
            path: path.to_owned(),
            directory,
            max_bytes,
            rotate_bytes,
            name: rand::random(),
            segments: found.segments,
            active: found.active,
            next: found.next,
            drained: found.drained,
            broken: false,
        };
        // A crash may have come between the word that operations are done and the removal of their segments.
        spool.guarded(Self::remove_done)?;
        Ok(spool)
    }

    /// Parks operations, as many of them from the front as there is room for: how many. Those are on the disk, and come out
    /// again in this order.
    ///
    /// # Errors
    /// [`SpoolError::Json`] or [`SpoolError::Disk`]: then none of them is parked. [`SpoolError::Broken`].
    pub fn park<T: Serialize>(&mut self, operations: &[T]) -> Result<usize, SpoolError> {
        let (mut text, mut count, batch) = (Vec::new(), 0, self.next);
        for (number, operation) in (batch..).zip(operations) {
            let id = format!("{:016x}-{number}", self.name);
            let sealed = line::seal(&Line { id, number, batch, operation })?;
            if self.bytes() + (text.len() + sealed.len()) as u64 > self.max_bytes {
                break;
            }
            text.extend(sealed);
            count += 1;
        }
        if count > 0 {
            self.guarded(|spool| spool.write(&text))?;
            self.next += count as u64;
        }
        Ok(count)
    }

    /// The oldest operations that are not done, at most so many; the same again until [`Spool::done`] is told. Empty when
    /// there are none.
    ///
    /// # Errors
    /// [`SpoolError::Disk`]; [`SpoolError::Damaged`] when somebody else has written to the files; [`SpoolError::Json`].
    pub fn oldest<T: DeserializeOwned>(&self, most: usize) -> Result<Vec<Parked<T>>, SpoolError> {
        let mut parked = Vec::new();
        let later = |segment: &&Segment| segment.first >= self.drained.segment;
        for segment in self.segments.iter().filter(later) {
            let at = if segment.first == self.drained.segment {
                self.drained
            } else {
                Position { number: segment.first, segment: segment.first, offset: 0 }
            };
            segment.read(&self.path, at, most, &mut parked)?;
        }
        Ok(parked)
    }

    /// Says that an operation and all before it need not come out again. When this returns, they will not, and files with
    /// nothing else in them are gone.
    ///
    /// # Errors
    /// [`SpoolError::Disk`] or [`SpoolError::Broken`].
    pub fn done<T>(&mut self, last: &Parked<T>) -> Result<(), SpoolError> {
        if last.number < self.drained.number {
            return Ok(());
        }
        self.guarded(|spool| {
            journal::write_drained(&spool.path, &spool.directory, last.next.number)?;
            spool.drained = last.next;
            spool.remove_done()
        })
    }

    /// Operations that are parked and not done.
    pub const fn backlog(&self) -> u64 {
        self.next - self.drained.number
    }

    /// Bytes of all segments, those of operations that are done and not yet removed included.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Does something to the disk, after whose failure nothing more is done to it.
    fn guarded(&mut self, act: impl FnOnce(&mut Self) -> Result<(), SpoolError>) -> Result<(), SpoolError> {
        if self.broken {
            return Err(SpoolError::Broken(self.path.clone()));
        }
        let result = act(self);
        self.broken = result.is_err();
        result
    }

    /// Appends whole lines, to a new segment if the last one is long enough.
    fn write(&mut self, text: &[u8]) -> Result<(), SpoolError> {
        if self.active_bytes() >= self.rotate_bytes.max(1) {
            self.begin_segment()?;
        }
        let kept = self.active_bytes();
        if let Err(reason) = disk::append(&mut self.active, text) {
            // Lines of a batch that failed must not turn up when the spool is opened again.
            let _ = disk::cut(&self.active, kept);
            return Err(SpoolError::Disk { path: self.path.clone(), reason });
        }
        if let Some(segment) = self.segments.back_mut() {
            segment.bytes += text.len() as u64;
        }
        Ok(())
    }

    fn active_bytes(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.bytes)
    }

    fn begin_segment(&mut self) -> Result<(), SpoolError> {
        let segment = Segment { first: self.next, bytes: 0 };
        self.active = disk::create(&self.directory, &segment.path(&self.path))
            .map_err(SpoolError::disk(&segment.path(&self.path)))?;
        self.segments.push_back(segment);
        Ok(())
    }

    /// Removes segments without an operation that is still to come out, the oldest first.
    fn remove_done(&mut self) -> Result<(), SpoolError> {
        while let Some(&oldest) = self.segments.front() {
            let end = self.segments.get(1).map_or(self.next, |following| following.first);
            if oldest.bytes == 0 || end > self.drained.number {
                break;
            }
            if self.segments.len() == 1 {
                // Its name keeps the number that comes next.
                self.begin_segment()?;
            }
            disk::remove(&self.directory, &oldest.path(&self.path))
                .map_err(SpoolError::disk(&oldest.path(&self.path)))?;
            self.segments.pop_front();
            self.drained = self.drained.max(Position { number: end, segment: end, offset: 0 });
        }
        Ok(())
    }
}
