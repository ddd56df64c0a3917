//! `dead_letters.ndjson`: items of bulks that no server takes, one JSON object a line, for people to mend and send again. It
//! is there when there are some.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::Error;
use super::facts::{TrialFacts, signed_seconds};
use super::scope::Scope;
use crate::snapshot::{DeadLetter, DeadLetters};

/// The file's name.
pub(crate) const FILE: &str = "dead_letters.ndjson";

/// The file of one trial's.
pub(crate) struct DeadLetterFile {
    path: PathBuf,
    file: Option<File>,
    kept: u64,
    left_out: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    trial: u32,
    variant: &'a str,
    elapsed_s: f64,
    client: &'a str,
    op: &'a str,
    #[serde(flatten)]
    letter: Told<'a>,
}

/// What a line has of a letter as it is.
#[derive(Serialize)]
struct Told<'a> {
    n: u64,
    item: u64,
    calls: u32,
    code: Option<i32>,
    code_name: &'a str,
    message: &'a str,
    unclear_before: bool,
    write: &'a serde_json::Value,
}

impl DeadLetterFile {
    /// Nothing is made before there is a letter.
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None, kept: 0, left_out: 0 }
    }

    /// Adds an interval's.
    pub fn add(&mut self, facts: &TrialFacts, letters: &DeadLetters) -> Result<(), Error> {
        self.left_out += letters.left_out;
        self.kept += letters.letters.len() as u64;
        let lines: Vec<u8> = letters.letters.iter().flat_map(|letter| line(facts, letter)).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let failed = |e| Error::file(&self.path, e);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                none.insert(OpenOptions::new().append(true).create(true).open(&self.path).map_err(failed)?)
            }
        };
        // In one piece, so that lines are whole whatever happens between two intervals.
        file.write_all(&lines).map_err(failed)
    }

    /// What people read of them under the trial's numbers.
    pub fn note(&self) -> Option<String> {
        let beyond = match self.left_out {
            0 => String::new(),
            more => format!(" ({more} more were beyond what is kept of a second)"),
        };
        (self.kept + self.left_out > 0)
            .then(|| format!("{} items that no server takes are in {FILE}{beyond}", self.kept))
    }
}

fn line(facts: &TrialFacts, letter: &DeadLetter) -> Vec<u8> {
    let (scope, plan) = (Scope::Operation(letter.operation), &facts.plan);
    let line = Line {
        trial: facts.trial,
        variant: &facts.variant,
        elapsed_s: signed_seconds(i64::try_from(letter.at_ns).unwrap_or(i64::MAX)),
        client: scope.client(plan),
        op: scope.op(plan),
        letter: Told {
            n: letter.n,
            item: letter.item,
            calls: letter.calls,
            code: letter.code,
            code_name: &letter.code_name,
            message: &letter.message,
            unclear_before: letter.unclear_before,
            write: &letter.write,
        },
    };
    // Nothing in it can fail to be JSON: its keys are text.
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    line.push(b'\n');
    line
}
