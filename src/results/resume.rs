//! A run that was interrupted, to be gone on with: which of its trials are whole, and its files without the others' rows.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use super::run_json::{PARTIAL, WHOLE};
use super::{Early, Error, RunDirectory, dead_letters};

/// The tables that name a trial in each row.
const TABLES: [&str; 9] = [
    "intervals.csv",
    "servers.csv",
    "events.csv",
    "summary.csv",
    "retries.csv",
    "backoff.csv",
    "errors.csv",
    "recovery.csv",
    "staleness.csv",
];

/// What an earlier start of a run has left.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The run's directory.
    pub directory: RunDirectory,
    /// The profile as it was read then.
    pub profile_text: String,
    /// When the run began.
    pub started: Timestamp,
    /// Of each trial that ran to its end and adds up: its part of run.json.
    pub trials: Vec<Value>,
}

impl Earlier {
    /// Reads what there is, and changes nothing.
    ///
    /// # Errors
    /// When it is no directory of a run that was interrupted between two trials, or during a later one than the first.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refused = |reason: &str| Error::Resume { directory: path.to_owned(), reason: reason.to_owned() };
        if !path.is_dir() {
            return Err(refused("there is no such directory"));
        }
        let stored = [WHOLE, PARTIAL].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
        let Some(stored) = stored else {
            return Err(refused(
                "it holds no trial that ran to its end (neither run.json nor run.partial.json is there): run it anew",
            ));
        };
        let failed = |file: &Path, e: std::io::Error| Error::file(file, e);
        let text = fs::read_to_string(&stored).map_err(|e| failed(&stored, e))?;
        let mut run: Value = serde_json::from_str(&text).map_err(|e| failed(&stored, e.into()))?;
        let started = run["started"].as_str().and_then(|started| started.parse().ok());
        let started = started.ok_or_else(|| refused("run.json does not say when it began"))?;
        let Value::Array(mut trials) = run["trials"].take() else {
            return Err(refused("run.json has no trials"));
        };
        if trials.iter().any(is_by_hand) {
            return Err(refused(
                "knobs were turned in it, so that what it had left to do is in nobody's plan",
            ));
        }
        trials.retain(is_whole);
        if trials.is_empty() {
            return Err(refused("none of its trials ran to its end: run it anew"));
        }
        let Some(id) = run["run_id"].as_str() else { return Err(refused("run.json does not name its run")) };
        let directory = RunDirectory::existing(path, id.to_owned()).map_err(|e| match e.kind() {
            std::io::ErrorKind::WouldBlock => refused("its run still goes on"),
            _ => failed(path, e),
        })?;
        let profile = directory.file("profile.toml");
        let profile_text = fs::read_to_string(&profile).map_err(|e| failed(&profile, e))?;
        Ok(Self { directory, profile_text, started, trials })
    }

    /// Whether one of the trials crossed a threshold.
    pub fn has_crossed(&self) -> bool {
        let failed = |trial: &Value| {
            let mut verdicts = trial["thresholds"].as_array().into_iter().flatten();
            trial["result"] == Early::Aborted.name() || verdicts.any(|verdict| verdict["failed"] == true)
        };
        self.trials.iter().any(failed)
    }

    /// Whether its last start has come to the end of a run.
    pub fn is_finished(&self) -> bool {
        self.directory.file(WHOLE).is_file()
    }

    /// The numbers of the trials that are whole.
    pub fn numbers(&self) -> BTreeSet<u64> {
        self.trials.iter().filter_map(|trial| trial["trial"].as_u64()).collect()
    }

    /// Takes out of the files what others have left, so that those can be run again. Each file is there whole at any time.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn keep_whole_trials(&self) -> Result<(), Error> {
        let whole = self.directory.file(WHOLE);
        // Its presence means that a run has ended.
        if whole.exists() {
            fs::rename(&whole, self.directory.file(PARTIAL)).map_err(|e| Error::file(&whole, e))?;
        }
        let numbers: BTreeSet<String> = self.numbers().iter().map(u64::to_string).collect();
        for name in TABLES {
            self.rewrite(name, |text, out| table(text, out, &numbers))?;
        }
        self.rewrite(dead_letters::FILE, |text, out| lines(text, out, &self.numbers()))?;
        self.rewrite("latency.hlog", |text, out| log(text, out, &numbers))
    }

    fn rewrite(
        &self,
        name: &str,
        write: impl FnOnce(&[u8], &mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let (file, draft) = (self.directory.file(name), self.directory.file(&format!(".{name}.tmp")));
        let failed = |e: std::io::Error| Error::file(&file, e);
        let text = match fs::read(&file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            text => text.map_err(failed)?,
        };
        let mut out = BufWriter::new(File::create(&draft).map_err(failed)?);
        write(&text, &mut out).map_err(failed)?;
        out.into_inner().map_err(|e| failed(e.into_error()))?.sync_all().map_err(failed)?;
        fs::rename(&draft, &file).map_err(failed)
    }
}

/// Whether a knob began or ended it.
fn is_by_hand(trial: &Value) -> bool {
    trial["plan"]["live"] == true || trial["result"] == Early::TakenOver.name()
}

/// Whether it ended as it was meant to: to run a hopeless one again would be as hopeless.
fn is_whole(trial: &Value) -> bool {
    ["complete", Early::Aborted.name()].iter().any(|result| trial["result"] == *result)
}

/// The header and the rows of these trials. A row that a kill has cut off is none.
fn table(text: &[u8], out: impl Write, trials: &BTreeSet<String>) -> std::io::Result<()> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let mut writer = csv::Writer::from_writer(out);
    let header = reader.byte_headers()?.clone();
    let column = header.iter().position(|name| name == b"trial");
    writer.write_byte_record(&header)?;
    for record in reader.byte_records() {
        let record = record?;
        let trial = column.and_then(|column| record.get(column)).and_then(|field| str::from_utf8(field).ok());
        if record.len() == header.len() && trial.is_some_and(|trial| trials.contains(trial)) {
            writer.write_byte_record(&record)?;
        }
    }
    writer.flush()
}

/// The lines of these trials. One that a kill has cut off is none.
fn lines(text: &[u8], mut out: impl Write, trials: &BTreeSet<u64>) -> std::io::Result<()> {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let trial = serde_json::from_slice::<Value>(line).ok().and_then(|line| line["trial"].as_u64());
        if line.ends_with(b"\n") && trial.is_some_and(|trial| trials.contains(&trial)) {
            out.write_all(line)?;
        }
    }
    Ok(())
}

/// Comments, and the lines whose tag begins with one of these trials.
fn log(text: &[u8], mut out: impl Write, trials: &BTreeSet<String>) -> std::io::Result<()> {
    for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let tag = line.strip_prefix(b"Tag=").and_then(|tag| str::from_utf8(tag).ok());
        let keep = match tag.and_then(|tag| tag.split('/').next()) {
            Some(trial) => trials.contains(trial),
            None => true,
        };
        if keep {
            out.write_all(line)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> BTreeSet<String> {
        ["1", "3"].map(str::to_owned).into()
    }

    #[test]
    fn rows_of_other_trials_and_torn_ones_go() {
        let text = "run_id,trial,detail\nr,1,\"a,\nb\"\nr,2,c\nr,3,\nr,3";
        let mut out = Vec::new();
        table(text.as_bytes(), &mut out, &numbers()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "run_id,trial,detail\nr,1,\"a,\nb\"\nr,3,\n");
    }

    #[test]
    fn lines_of_other_trials_and_torn_ones_go() {
        let text =
            "#comment\n\"heading\"\nTag=1/all/find/latency,1,2,3,x\nTag=2/all/find/latency,1,2,3,x\nTag=3/a";
        let mut out = Vec::new();
        log(text.as_bytes(), &mut out, &numbers()).unwrap();
        let left = String::from_utf8(out).unwrap();
        assert_eq!(left, "#comment\n\"heading\"\nTag=1/all/find/latency,1,2,3,x\n");
    }

    #[test]
    fn a_crossed_threshold_is_not_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let crossed = |trial: serde_json::Value| {
            let directory = RunDirectory::existing(place.path(), "r".to_owned()).unwrap();
            Earlier { directory, profile_text: String::new(), started: Timestamp::now(), trials: vec![trial] }
                .has_crossed()
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(!crossed(json(r#"{"result": "complete", "thresholds": [{"failed": false}]}"#)));
        assert!(crossed(json(
            r#"{"result": "complete", "thresholds": [{"failed": false}, {"failed": true}]}"#
        )));
        assert!(crossed(json(r#"{"result": "aborted", "thresholds": []}"#)));
    }

    #[test]
    fn only_trials_that_ended_and_add_up_are_whole() {
        let trial = |result: &str| is_whole(&serde_json::json!({"trial": 1, "result": result}));
        let results = ["complete", "aborted", "cut", "broken", "taken_over"];
        assert_eq!(results.map(trial), [true, true, false, false, false]);
        assert!(!is_whole(&Value::Null));
    }

    #[test]
    fn what_is_no_interrupted_run_is_told() {
        let place = tempfile::tempdir().unwrap();
        let told = |path: &Path| Earlier::read(path).unwrap_err().to_string();
        assert!(told(&place.path().join("none")).contains("no such directory"));
        assert!(told(place.path()).contains("run it anew"), "{}", told(place.path()));
        let write = |trials: serde_json::Value| {
            let run = serde_json::json!({"run_id": "r", "started": "2026-01-01T00:00:00Z", "trials": trials});
            fs::write(place.path().join(WHOLE), run.to_string()).unwrap();
        };
        write(serde_json::json!([{"trial": 1, "result": "cut"}]));
        assert!(told(place.path()).contains("run it anew"));
        write(serde_json::json!([{"trial": 1, "result": "taken_over"}, {"trial": 2, "result": "complete"}]));
        assert!(told(place.path()).contains("knobs"));
        write(serde_json::json!([{"trial": 1, "result": "complete"}]));
        let other = RunDirectory::existing(place.path(), "r".to_owned()).unwrap();
        assert!(told(place.path()).contains("still goes on"));
        drop(other);
        assert!(told(place.path()).contains("profile.toml"));
        fs::write(place.path().join(WHOLE), "{}").unwrap();
        assert!(told(place.path()).contains("when it began"));
        fs::write(place.path().join(WHOLE), "no json").unwrap();
        assert!(told(place.path()).contains("run.json"));
    }
}
