//! `runs.csv` beside the runs' directories: one row per trial, from any number of processes and versions.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::Error;
use super::csv_file::{columns, line};
use super::tables::RunsRow;

/// Adds a row under the file's lock. Columns are only ever added at the end, so an older or newer version's file gets a
/// row of as many fields as it has columns.
pub(crate) fn append(root: &Path, row: &RunsRow) -> Result<(), Error> {
    let path = root.join("runs.csv");
    let failed = |e| Error::file(&path, e);
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
    // Let go of when the file is closed, whatever happens.
    flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;

    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let ours = columns::<RunsRow>();
    let mut addition = String::new();
    let mut fields = record(row);
    match text.lines().next() {
        None => addition.push_str(&line(&ours)),
        Some(header) => {
            let theirs: Vec<&str> = header.split(',').collect();
            if ours.iter().zip(&theirs).any(|(our, their)| our != their) {
                return Err(Error::Columns { file: path });
            }
            fields.resize(theirs.len(), String::new());
            // A writer that was killed may have left half a line, which must not swallow this one.
            if !text.ends_with('\n') {
                addition.push('\n');
            }
        }
    }
    addition.push_str(&line(&fields));
    file.write_all(addition.as_bytes()).map_err(failed)
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
    fn files_of_other_versions_stay_readable() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs.csv");
        let ours = columns::<RunsRow>().join(",");

        fs::write(&path, format!("{ours},from_the_future\n")).unwrap();
        append(root.path(), &row("a")).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("\"{\"\"a\"\":\"\"1,2\"\"}\",,\n"));

        fs::write(&path, "schema_version,run_id\n1,old\n1,ha").unwrap();
        append(root.path(), &row("b")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "schema_version,run_id\n1,old\n1,ha\n0,b\n");

        fs::write(&path, "something,else\n").unwrap();
        let error = append(root.path(), &row("c")).unwrap_err().to_string();
        assert!(error.contains("runs.csv") && error.contains("--out DIR"), "{error}");
    }
}
