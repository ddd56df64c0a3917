//! `shard.jsonl`: what a shard of a load leaves for `overdrive merge`, each interval as the engine told it, one JSON document
//! a line. Tables hold percentiles, which do not add up; this holds all that they are made of.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::run_json::without_uris;
use super::tables::SCHEMA_VERSION;
use super::writer::Batch;
use super::{EndFacts, Error, HostFacts, TrialFacts};
use crate::snapshot::{Event, Totals};

/// Its name in a run's directory.
pub(crate) const FILE: &str = "shard.jsonl";

/// The version of its lines: raised with each change that an older reader would misunderstand.
pub(crate) const PROTOCOL: u32 = 1;

/// How lines of intervals begin: most of a file, and not all readers want them.
const INTERVAL: &[u8] = br#"{"interval":"#;

/// A line. The first is a beginning and the last an end; a shard that was killed has no end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Begin(Box<Begin>),
    Interval(Box<Batch>),
    Event(Event),
    End(Box<End>),
}

/// Who makes which part of what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub protocol: u32,
    pub schema_version: u32,
    pub tool_version: String,
    pub run_id: String,
    pub facts: TrialFacts,
    pub host: HostFacts,
    /// The same for shards on one machine, and tells nothing else of it.
    pub machine: String,
}

/// What is known when the trial has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct End {
    pub totals: Totals,
    pub facts: EndFacts,
}

impl Begin {
    /// Of a trial on this machine.
    pub fn here(run_id: &str, facts: &TrialFacts) -> Self {
        let system = rustix::system::uname();
        let digest = Sha256::digest(system.nodename().to_bytes());
        Self {
            protocol: PROTOCOL,
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: run_id.to_owned(),
            facts: facts.clone(),
            host: HostFacts::detect(),
            machine: digest[..4].iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// The file while it is written.
pub(crate) struct ShardLog {
    path: PathBuf,
    file: File,
}

impl ShardLog {
    /// Begins it.
    pub fn start(path: PathBuf, begin: Begin) -> Result<Self, Error> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|e| Error::file(&path, e))?;
        let mut log = Self { path, file };
        log.write(&Line::Begin(Box::new(begin)))?;
        Ok(log)
    }

    /// Adds a line, which outlives this process.
    pub fn write(&mut self, line: &Line) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::file(&self.path, e);
        let mut text = match line {
            Line::Begin(_) => {
                let mut value = serde_json::to_value(line).map_err(|e| failed(e.into()))?;
                without_uris(&mut value);
                value.to_string().into_bytes()
            }
            _ => serde_json::to_vec(line).map_err(|e| failed(e.into()))?,
        };
        text.push(b'\n');
        self.file.write_all(&text).map_err(failed)
    }
}

/// The file's lines, one after the other: it may be large.
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    number: usize,
}

impl Lines {
    /// From the beginning.
    ///
    /// # Errors
    /// What the system says; or what is wrong with a line, and which one it is.
    pub fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let file = File::open(path).map_err(|e| format!("cannot read '{shown}': {e}"))?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), number: 0 })
    }

    /// The next line that is an interval, or else one that is none.
    pub fn next(&mut self, intervals: bool) -> Result<Option<Line>, String> {
        let mut text = Vec::new();
        loop {
            text.clear();
            self.number += 1;
            let place = |e: &dyn std::fmt::Display| {
                format!("cannot read '{}', line {}: {e}", self.path.display(), self.number)
            };
            if self.reader.read_until(b'\n', &mut text).map_err(|e| place(&e))? == 0 {
                return Ok(None);
            }
            if text.starts_with(INTERVAL) == intervals {
                return serde_json::from_slice(&text).map(Some).map_err(|e| place(&e));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;

    #[test]
    fn what_is_written_can_be_read_back() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(FILE);
        let mut facts = testing::facts(testing::overload_plan());
        facts.options = serde_json::json!([{"value": "mongodb://u:s3cret@h/"}]);
        let mut log = ShardLog::start(path.clone(), Begin::here("r", &facts)).unwrap();
        let snapshot = testing::snapshot(0, 0, [((1, 0), testing::cell(9, 8, 8, 3))], [1, 0, 0]);
        let event = Event { at_ns: -5, kind: "overload_on".to_owned(), ..Event::default() };
        log.write(&Line::Event(event.clone())).unwrap();
        log.write(&Line::Interval(Box::new(Batch { snapshot: snapshot.clone(), servers: Vec::new() })))
            .unwrap();
        log.write(&Line::End(Box::default())).unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        let mut lines = Lines::open(&path).unwrap();
        let Some(Line::Interval(read)) = lines.next(true).unwrap() else { panic!("{text}") };
        assert_eq!(read.snapshot.cells, snapshot.cells);
        assert_eq!((read.snapshot.end_ns, &read.snapshot.open), (snapshot.end_ns, &snapshot.open));
        assert!(lines.next(true).unwrap().is_none());
        let mut lines = Lines::open(&path).unwrap();
        let Some(Line::Begin(begin)) = lines.next(false).unwrap() else { panic!("{text}") };
        assert_eq!((begin.facts.plan, begin.run_id), (facts.plan.clone(), "r".to_owned()));
        let Some(Line::Event(read)) = lines.next(false).unwrap() else { panic!("{text}") };
        assert_eq!(read, event);
        assert!(matches!(lines.next(false).unwrap(), Some(Line::End(_))));

        std::fs::write(&path, "{\"begin\": 5}\n").unwrap();
        let error = Lines::open(&path).unwrap().next(false).unwrap_err();
        assert!(error.contains("shard.jsonl', line 1"), "{error}");
        // Nothing is written over.
        assert!(ShardLog::start(path, Begin::here("r", &facts)).is_err());
    }
}
