//! Trials as they are selected on the command line.

use std::path::PathBuf;

use super::{StoredTrial, run, trials};
use crate::compare::Error;
use crate::compare::selection::parse;
use crate::compare::side::chosen;
use crate::compare::trial::{Trial, is_complete};

/// The trials that one text selects, each once, as for `overdrive compare`, but whole or not. What is to be known of their
/// runs is added to the notes.
///
/// # Errors
/// When it takes nothing, or what it takes cannot be read.
pub fn selected(text: &str, notes: &mut Vec<String>) -> Result<Vec<StoredTrial>, Error> {
    let mut wanted: Vec<Trial> = Vec::new();
    for selection in parse(text)? {
        let mut found = Vec::new();
        for place in selection.places()? {
            match trials(&place.path) {
                Ok(there) => found.extend(there),
                // What a pattern finds need not be a run; what somebody names has to be.
                Err(why) if place.by_pattern && !is_complete(&place.path) => {
                    notes.push(format!("left out: {why}"));
                }
                Err(why) => return Err(why),
            }
        }
        wanted.extend(chosen(&selection, found)?);
    }
    if wanted.is_empty() {
        return Err(Error::asked(format!(
            "'{text}' has no trial: give the directory of a run, like those that `overdrive run` makes in \
             results/"
        )));
    }
    let mut all = Vec::new();
    for same_run in by_directory(wanted) {
        let run = run(&same_run[0].directory.clone(), same_run)?;
        notes.extend(run.notes);
        all.extend(run.trials);
    }
    Ok(all)
}

/// Trials of one directory together, each once, however often its directory was named; never an empty list.
fn by_directory(trials: Vec<Trial>) -> Vec<Vec<Trial>> {
    let mut runs: Vec<(PathBuf, Vec<Trial>)> = Vec::new();
    for trial in trials {
        let directory = trial.directory.canonicalize().unwrap_or_else(|_| trial.directory.clone());
        match runs.iter_mut().find(|(other, _)| *other == directory) {
            Some((_, same)) if same.iter().any(|other| other.trial == trial.trial) => {}
            Some((_, same)) => same.push(trial),
            None => runs.push((directory, vec![trial])),
        }
    }
    runs.into_iter().map(|(_, trials)| trials).collect()
}
