//! A run's directory and everything in it.
//!
//! ```text
//! results/<UTC>-<profile>[-<label>]-<4 hex>/     one run: all trials of one invocation
//!   profile.toml                                  byte for byte
//!   intervals.csv servers.csv events.csv latency.hlog   grow while a trial runs, flushed every interval
//!   summary.csv retries.csv backoff.csv errors.csv recovery.csv   get their rows when a trial ends
//!   staleness.csv                                 so does this, if there is a staleness probe
//!   shard.jsonl                                   grows, too: of a shard, what `overdrive merge` makes all of these of
//!   search.csv                                    a row when a trial of a search ends
//!   run.partial.json                              while a run of several trials goes on: those that have ended
//!   run.json                                      written last: its presence means complete
//! results/runs.csv                                one row per trial of any run
//! ```

pub mod accumulated;
pub(crate) mod checks;
pub(crate) mod csv_file;
mod dead_letters;
mod end_tables;
pub(crate) mod facts;
pub mod figures;
pub(crate) mod hlog;
mod host;
pub(crate) mod intervals;
pub(crate) mod notes;
pub(crate) mod recording;
pub mod recovery;
pub mod resume;
pub mod run_json;
pub(crate) mod runs_csv;
pub mod scope;
pub mod search;
mod servers;
pub(crate) mod shard_log;
pub mod staleness;
pub mod summary;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod trial_rows;
pub(crate) mod writer;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::document::Random;

pub use facts::{Early, EndFacts, TrialFacts};
pub use host::HostFacts;
pub use notes::SATURATED_SHARE;
pub use recovery::{BEHIND, Recovery};
pub use run_json::RunFacts;
pub use summary::Summary;
pub use writer::Writer;

/// How often another name is tried when a run's directory exists already.
const NAMES_TRIED: usize = 100;

/// The longest part of a directory's name that comes from a profile's or label's text.
const LONGEST_PART: usize = 40;

/// Why results could not be written. The messages are whole: no field is a `source`, which would be printed again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no place for the run.
    #[error("cannot make a directory for the results in '{}': {reason}; choose another place with --out DIR", place.display())]
    Directory {
        /// The directory that was to hold the run's.
        place: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file could not be written: the disk is full, or someone took the directory away.
    #[error("cannot write '{}': {reason}{}", file.display(), way_out(reason))]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file that rows are to be added to has other columns.
    #[error("'{}' has other columns than this version writes: move it away, or choose another place with --out DIR", file.display())]
    Columns {
        /// The file.
        file: PathBuf,
    },
    /// What rows are to be added to is a device, a pipe or a directory.
    #[error("'{}' is no regular file: move it away, or choose another place with --out DIR", file.display())]
    NoFile {
        /// What is there instead.
        file: PathBuf,
    },
    /// An earlier run cannot be gone on with.
    #[error("cannot go on with '{}': {reason}", directory.display())]
    Resume {
        /// The run's directory.
        directory: PathBuf,
        /// Why.
        reason: String,
    },
    /// The writing thread ended without a word, which only a panic in it can do.
    #[error("the thread that writes the results died")]
    Thread,
}

impl Error {
    fn file(file: &Path, reason: impl Into<io::Error>) -> Self {
        Self::File { file: file.to_owned(), reason: reason.into() }
    }
}

/// What to do about a file that cannot be written, where that is known.
fn way_out(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room there, or choose another place with --out DIR"
        }
        _ => "",
    }
}

/// The directory of one run, which nobody else writes to as long as this is there.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    id: String,
    _lock: Arc<File>,
}

impl RunDirectory {
    /// Makes `<root>/<UTC>-<profile>[-<label>]-<4 hex>/` with the profile's text in it. To be called when the run really
    /// begins: a run without a server leaves nothing behind.
    ///
    /// # Errors
    /// When the place cannot be written to.
    pub fn create(
        root: &Path,
        profile: &str,
        label: Option<&str>,
        profile_text: &[u8],
    ) -> Result<Self, Error> {
        let stem = stem(Timestamp::now(), profile, label);
        let names = (0..NAMES_TRIED).map(|_| format!("{stem}-{:04x}", rand::random::<u16>()));
        Self::claim(root, names)?.with_profile(profile_text)
    }

    /// The same for a run that can be made again to the byte: its name has the time `go` that it begins at by its own clock,
    /// and its hexadecimals are drawn from a seed that is `same` for the same run. So it has the same name in any empty
    /// place, and another one beside itself.
    ///
    /// # Errors
    /// When the place cannot be written to.
    pub fn create_again(
        root: &Path,
        go: Timestamp,
        profile: &str,
        label: Option<&str>,
        profile_text: &[u8],
        same: &str,
    ) -> Result<Self, Error> {
        let stem = stem(go, profile, label);
        let digest = Sha256::digest(same);
        let mut random =
            Random::new(digest.iter().take(8).fold(0, |seed, &byte| seed << 8 | u64::from(byte)));
        let names = (0..NAMES_TRIED).map(|_| format!("{stem}-{:04x}", random.below(1 << 16)));
        Self::claim(root, names)?.with_profile(profile_text)
    }

    fn with_profile(self, profile_text: &[u8]) -> Result<Self, Error> {
        let directory = self;
        let file = directory.file("profile.toml");
        fs::write(&file, profile_text).map_err(|e| Error::file(&file, e))?;
        Ok(directory)
    }

    /// The directory of an earlier run, if it is there and nobody writes to it.
    fn existing(path: &Path, id: String) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let lock = File::open(&path)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK.into()),
            _ => Ok(Self { path, id, _lock: Arc::new(lock) }),
        }
    }

    /// Takes the first of the names that nobody else has: making a directory is atomic, so it is the lock.
    fn claim(root: &Path, names: impl Iterator<Item = String>) -> Result<Self, Error> {
        let failed = |reason| Error::Directory { place: root.to_owned(), reason };
        if fs::metadata(root).is_ok_and(|found| !found.is_dir()) {
            return Err(failed(rustix::io::Errno::NOTDIR.into()));
        }
        fs::create_dir_all(root).map_err(failed)?;
        for id in names {
            let path = root.join(&id);
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = File::open(&path).map_err(failed)?;
                    // Where there are no locks, nobody can be kept out.
                    let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
                    return Ok(Self { path, id, _lock: Arc::new(lock) });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the directory's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A file in it.
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The directory that holds this and other runs.
    fn root(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// A run's name without its random end.
fn stem(now: Timestamp, profile: &str, label: Option<&str>) -> String {
    let mut stem = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    for part in [Some(profile), label].into_iter().flatten().map(sanitized).filter(|part| !part.is_empty()) {
        stem.push('-');
        stem.push_str(&part);
    }
    stem
}

/// Text as part of a directory's name, on any file system and without quoting in any shell.
pub(crate) fn sanitized(text: &str) -> String {
    let mut clean = String::new();
    for c in text.chars().take(LONGEST_PART) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' || c == '.' => clean.push(c),
            _ if clean.ends_with('-') => {}
            _ => clean.push('-'),
        }
    }
    clean.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_made_of_time_profile_and_label() {
        let now: Timestamp = "2026-03-04T05:06:07.89Z".parse().unwrap();
        assert_eq!(stem(now, "shed", None), "20260304T050607Z-shed");
        assert_eq!(stem(now, "shed", Some("before / after ä!")), "20260304T050607Z-shed-before-after");
        assert_eq!(stem(now, "../../etc", Some("…")), "20260304T050607Z-etc");
        assert_eq!(sanitized(&"x".repeat(500)).len(), LONGEST_PART);
    }

    #[test]
    fn runs_of_the_same_second_do_not_collide() {
        let root = tempfile::tempdir().unwrap();
        let names = || ["a-0001", "a-0002", "a-0003"].map(str::to_owned).into_iter();
        let ids: Vec<String> =
            (0..3).map(|_| RunDirectory::claim(root.path(), names()).unwrap().id).collect();
        assert_eq!(ids, ["a-0001", "a-0002", "a-0003"]);
        assert!(RunDirectory::claim(root.path(), names()).is_err(), "no name is left");

        let many: BTreeSet<String> = std::thread::scope(|scope| {
            let one = || RunDirectory::create(root.path(), "p", None, b"").unwrap().id;
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(many.len(), 16);
    }

    #[test]
    fn the_profile_is_kept_byte_for_byte() {
        let root = tempfile::tempdir().unwrap();
        let text = b"a = 1\r\n# \xc3\xa4\n\n";
        let run = RunDirectory::create(&root.path().join("new/results"), "p", Some("l"), text).unwrap();
        assert_eq!(fs::read(run.file("profile.toml")).unwrap(), text);
        assert_eq!(run.path().file_name().unwrap().to_str(), Some(run.id()));
        assert!(!run.file("run.json").exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named_with_the_way_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = RunDirectory::create(file.path(), "p", None, b"").unwrap_err().to_string();
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
        assert!(error.contains("--out DIR"), "{error}");
    }
}
