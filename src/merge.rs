//! The shards of one load, made one run.
//!
//! ```text
//!  shard.jsonl of each ──belonging──▶ what they are parts of
//!       └──intervals──▶ the same second of all of them ──▶ the files that any run has
//! ```
//!
//! Nothing is made of tables: what each shard's engine told is added up, and goes the way that a run's own goes. So
//! percentiles are those of all operations together, and every sum is checked again.

mod belonging;
mod intervals;
mod joined;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::compare::Error;
use crate::results::recording::Recording;
use crate::results::writer::Sink;
use crate::results::{RunDirectory, Summary};
use belonging::Stored;
use intervals::Intervals;

/// How the note of a shard begins that says what it is.
pub const NOTE: &str = "this is shard ";

/// Makes a run of all shards of a load, in a directory of its own under `out`.
///
/// # Errors
/// When they do not belong together, one is missing, or a file cannot be read or written; then no directory is left.
pub fn merge(
    directories: &[PathBuf],
    out: &Path,
    label: Option<&str>,
) -> Result<(RunDirectory, Summary), Error> {
    let (shards, plan) = belonging::load(directories)?;
    let first = &shards[0];
    let written = |e: crate::results::Error| Error::stored(e.to_string());
    let directory = RunDirectory::create(out, &plan.profile, label, &first.profile).map_err(written)?;
    let facts = joined::facts(&shards, plan);
    match run(&shards, &directory, facts) {
        Ok(summary) => Ok((directory, summary)),
        Err(error) => {
            // It would pass for a run that was killed. The error tells more than what may befall this.
            let _ = std::fs::remove_dir_all(directory.path());
            Err(error)
        }
    }
}

fn run(
    shards: &[Stored],
    directory: &RunDirectory,
    facts: crate::results::TrialFacts,
) -> Result<Summary, Error> {
    let written = |e: crate::results::Error| Error::stored(e.to_string());
    let mut recording = Recording::start(directory, facts).map_err(written)?;
    for event in joined::events(shards) {
        recording.event(&event).map_err(written)?;
    }
    let mut intervals = Intervals::open(shards)?;
    while let Some(batch) = intervals.next()? {
        recording.interval(batch).map_err(written)?;
    }
    let mut end = joined::end(shards);
    end.notes.extend(intervals.notes());
    let summary = recording.finish(joined::totals(shards), end).map_err(written)?;
    let facts = joined::run_facts(shards, &summary);
    directory.finish(&facts, std::slice::from_ref(&summary)).map_err(written)?;
    Ok(summary)
}
