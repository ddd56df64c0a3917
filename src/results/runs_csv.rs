//! `runs.csv` beside the runs' directories: one row per trial, from any number of processes and versions.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::Error;
use super::csv_file::{columns, line};
use super::tables::RunsRow;

/// The list's name, beside the runs.
pub(crate) const RUNS: &str = "runs.csv";

/// No header is anywhere near as long, in whatever version.
const LONGEST_HEADER: u64 = 1 << 16;

/// Adds a row under the file's lock. Columns are only ever added at the end, so an older or newer version's file gets a
/// row of as many fields as it has columns.
pub(crate) fn append(root: &Path, row: &RunsRow) -> Result<(), Error> {
    let path = root.join(RUNS);
    let failed = |e| Error::file(&path, e);
    // A pipe that nobody reads would hold this up, and a device has no end.
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(Error::NoFile { file: path });
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
    // Let go of when the file is closed, whatever happens.
    flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;

    let header = header(&file).map_err(failed)?;
    let ours = columns::<RunsRow>();
    let mut addition = String::new();
    let mut fields = record(row);
    match header.trim_end() {
        "" => addition.push_str(&line(&ours)),
        header => {
            let theirs: Vec<&str> = header.split(',').collect();
            if ours.iter().zip(&theirs).any(|(our, their)| our != their) {
                return Err(Error::Columns { file: path });
            }
            fields.resize(theirs.len(), String::new());
            // A writer that was killed may have left half a line, which must not swallow this one.
            if !ends_a_line(&mut file).map_err(failed)? {
                addition.push('\n');
            }
        }
    }
    addition.push_str(&line(&fields));
    file.write_all(addition.as_bytes()).map_err(failed)
}

/// The first line; empty when there is nothing yet. The file as a whole may be large, and is not read.
fn header(file: &File) -> io::Result<String> {
    let mut first = String::new();
    BufReader::new(file.take(LONGEST_HEADER)).read_line(&mut first)?;
    Ok(first)
}

/// Whether the last byte ends a line. What is written goes to the end wherever this leaves the place to read at.
fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The row's fields as text.
fn record(row: &RunsRow) -> Vec<String> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    // Memory takes every byte.
    let _ = writer.serialize(row);
    let text = writer.into_inner().unwrap_or_default();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&text[..]);
    let first = reader.records().next();
    first.and_then(Result::ok).map(|r| r.iter().map(str::to_owned).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn row(run_id: &str) -> RunsRow {
        RunsRow { run_id: run_id.to_owned(), params: r#"{"a":"1,2"}"#.to_owned(), ..RunsRow::default() }
    }

    fn ids(root: &Path) -> Vec<String> {
        let mut reader = csv::Reader::from_path(root.join("runs.csv")).unwrap();
        reader.deserialize().map(|row: Result<RunsRow, _>| row.unwrap().run_id).collect()
    }

    #[test]
    fn many_writers_leave_one_header_and_all_rows() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for i in 0..20 {
                let root = root.path();
                scope.spawn(move || append(root, &row(&format!("r{i}"))).unwrap());
            }
        });
        let mut ids = ids(root.path());
        ids.sort();
        let mut wanted: Vec<String> = (0..20).map(|i| format!("r{i}")).collect();
        wanted.sort();
        assert_eq!(ids, wanted);
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs.csv");
        let refused = || append(root.path(), &row("a")).unwrap_err().to_string();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(refused().contains("runs.csv' is no regular file"), "{}", refused());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(refused().contains("--out DIR"), "{}", refused());
        // A link to a file is as good as one.
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(root.path().join("elsewhere.csv"), &path).unwrap();
        append(root.path(), &row("a")).unwrap();
        append(root.path(), &row("b")).unwrap();
        assert_eq!(ids(root.path()), ["a", "b"]);
    }

    #[test]
    fn files_of_other_versions_stay_readable() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs.csv");
        let ours = columns::<RunsRow>().join(",");

        fs::write(&path, format!("{ours},from_the_future\n")).unwrap();
        append(root.path(), &row("a")).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("\"{\"\"a\"\":\"\"1,2\"\"}\",,false,\n"));

        fs::write(&path, "schema_version,run_id\n1,old\n1,ha").unwrap();
        append(root.path(), &row("b")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "schema_version,run_id\n1,old\n1,ha\n0,b\n");

        fs::write(&path, "something,else\n").unwrap();
        let error = append(root.path(), &row("c")).unwrap_err().to_string();
        assert!(error.contains("runs.csv") && error.contains("--out DIR"), "{error}");
    }
}
