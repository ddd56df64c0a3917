//! A CSV file whose columns are known before its first row.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Error;

/// A file in a run's directory that rows are added to.
pub(crate) struct CsvFile {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl CsvFile {
    /// Opens the file for more rows. A new one gets its header at once; one that an earlier trial began must have the
    /// same.
    pub fn open(path: PathBuf, columns: &[String]) -> Result<Self, Error> {
        let header = line(columns);
        let existing = existing_header(&path)?;
        let file =
            OpenOptions::new().append(true).create(true).open(&path).map_err(|e| Error::file(&path, e))?;
        let mut file = Self { writer: csv::WriterBuilder::new().has_headers(false).from_writer(file), path };
        match existing {
            None => {
                file.row(columns)?;
                file.flush()?;
            }
            Some(theirs) if theirs == header => {}
            Some(_) => return Err(Error::Columns { file: file.path }),
        }
        Ok(file)
    }

    /// Adds a row: a struct, or a struct with what goes into the columns behind its own.
    pub fn row(&mut self, row: impl Serialize) -> Result<(), Error> {
        self.writer.serialize(row).map_err(|e| Error::file(&self.path, e))
    }

    /// Hands every row to the system, so that they outlive this process.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.writer.flush().map_err(|e| Error::file(&self.path, e))
    }
}

/// The columns of a row type: its fields.
pub(crate) fn columns<T: Serialize + Default>() -> Vec<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // A flat struct always has a header, and memory takes every byte.
    let _ = writer.serialize(T::default());
    let text = writer.into_inner().unwrap_or_default();
    let mut reader = csv::Reader::from_reader(&text[..]);
    reader.headers().map(|names| names.iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// Fields as a line of CSV, with its end.
pub(crate) fn line(fields: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    // Memory takes every byte.
    let _ = writer.write_record(fields);
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// The first line of a file, with its end; `None` when there is no file, or nothing in it.
pub(crate) fn existing_header(path: &Path) -> Result<Option<String>, Error> {
    use io::BufRead;
    let file = match File::open(path) {
        Ok(file) if file.metadata().is_ok_and(|m| m.is_file()) => file,
        // What is no file proper has no header to respect.
        Ok(_) => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file(path, e)),
    };
    let mut first = String::new();
    io::BufReader::new(file).read_line(&mut first).map_err(|e| Error::file(path, e))?;
    Ok((!first.is_empty()).then_some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize)]
    struct Row {
        name: &'static str,
        count: Option<u64>,
        share: f64,
    }

    fn names(more: &[&str]) -> Vec<String> {
        columns::<Row>().into_iter().chain(more.iter().map(|&n| n.to_owned())).collect()
    }

    #[test]
    fn rows_may_be_longer_than_their_struct() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let columns = names(&["param_x", "param_y"]);
        let mut file = CsvFile::open(path.clone(), &columns).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "name,count,share,param_x,param_y\n");
        let params = [Some("p,q".to_owned()), None];
        file.row((Row { name: "a", count: None, share: 0.5 }, &params)).unwrap();
        file.row((Row { name: "b", count: Some(0), share: 2.0 }, &params)).unwrap();
        file.flush().unwrap();
        drop(file);

        // A second trial adds to it, but not with other columns.
        let mut file = CsvFile::open(path.clone(), &columns).unwrap();
        file.row((Row { name: "c", count: Some(7), share: 0.0 }, &params)).unwrap();
        file.flush().unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "name,count,share,param_x,param_y\na,,0.5,\"p,q\",\nb,0,2.0,\"p,q\",\nc,7,0.0,\"p,q\",\n"
        );
        let error = CsvFile::open(path, &names(&[])).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Columns { .. }), "{error}");
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_files_name() {
        let full = PathBuf::from("/dev/full");
        if !full.exists() {
            return;
        }
        let error = CsvFile::open(full, &names(&[])).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
    }
}
