//! A mongod's log: one file that the keeper looks into, and cuts before it fills the disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// failCommand logs 600 bytes per command it rejects, and no verbosity silences it.
const LIMIT: u64 = 8 << 20;
/// Of each line, how much is worth showing.
const LINE: usize = 600;
/// Of each sort of line, how many.
const LINES: usize = 3;

/// A log file.
#[derive(Clone, Debug)]
pub struct Log(PathBuf);

impl Log {
    /// The log at `path`; nothing is created yet.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens it for the process that logs. Appending, so that it can be cut meanwhile.
    pub fn create(&self) -> io::Result<File> {
        File::options().create(true).append(true).open(&self.0)
    }

    /// Whether the text was logged since the last cut.
    pub fn contains(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// Empties it when it has grown too long. What cannot be cut now will be at the next try.
    pub fn cut(&self) {
        if fs::metadata(&self.0).is_ok_and(|log| log.len() > LIMIT) {
            self.clear().ok();
        }
    }

    /// Empties it.
    pub fn clear(&self) -> io::Result<()> {
        File::options().write(true).open(&self.0)?.set_len(0)
    }

    /// What a person needs of it who wants to know why the process ended.
    pub fn last_words(&self) -> String {
        last_words(&self.text())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.0).unwrap_or_default()).into_owned()
    }
}

/// The last errors, or without any the last lines: a mongod that gives up says why and then shuts down at length.
fn last_words(log: &str) -> String {
    let is_error = |line: &&str| line.contains(r#""s":"E""#) || line.contains(r#""s":"F""#);
    let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors: Vec<_> = lines.iter().copied().filter(is_error).collect();
    let chosen = if errors.is_empty() { lines } else { errors };
    let from = chosen.len().saturating_sub(LINES);
    let shortened: Vec<String> =
        chosen[from..].iter().map(|line| line.chars().take(LINE).collect()).collect();
    shortened.join("\n")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn errors_come_before_the_last_lines() {
        assert_eq!(last_words("a\nb\n\nc\nd\n"), "b\nc\nd");
        assert_eq!(last_words("a\n{\"s\":\"E\",\"msg\":\"why\"}\nb\nc\n"), "{\"s\":\"E\",\"msg\":\"why\"}");
        assert_eq!(last_words(""), "");
        assert_eq!(last_words(&"é".repeat(LINE * 2)), "é".repeat(LINE));
    }

    #[test]
    fn a_long_log_is_cut_while_it_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::at(directory.path().join("log"));
        let mut writer = log.create().unwrap();
        writer.write_all(b"short\n").unwrap();
        log.cut();
        assert!(log.contains("short"));
        writer.write_all(&vec![b'x'; usize::try_from(LIMIT).unwrap()]).unwrap();
        log.cut();
        writer.write_all(b"after\n").unwrap();
        assert_eq!(fs::read(log.path()).unwrap(), b"after\n");
    }
}
