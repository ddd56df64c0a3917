//! A side of a comparison: trials of one kind, from one directory or several.

use std::collections::BTreeSet;

use super::Error;
use super::selection::{Place, Selection, parse};
use super::trial::{Trial, is_kept, load};
use crate::metric::Metric;

/// Trials that stand for one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What it is called: as on the command line, or what sets it apart.
    pub name: String,
    /// Never empty.
    pub trials: Vec<Trial>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Gets at something of a trial.
type Get = fn(&Trial) -> &str;

/// What may tell trials apart beside parameters: names and how to get at them.
const KEYS: [(&str, Get); 5] = [
    ("driver", |trial| &trial.driver),
    ("variant", |trial| &trial.variant),
    ("trial", |trial| &trial.trial),
    ("repeat", |trial| &trial.repeat),
    (LIVE, |trial| trial.live),
];

/// Whether a knob began or ended a trial.
const LIVE: &str = "live";

/// How a parameter that was taken away is written.
const UNSET: &str = "unset";

impl Side {
    /// Reads the trials that a text selects.
    ///
    /// # Errors
    /// When a directory is none of a run, something in it cannot be read, or no trial is left.
    pub fn load(text: &str) -> Result<Self, Error> {
        let mut side = Self { name: text.to_owned(), trials: Vec::new(), notes: Vec::new() };
        for selection in parse(text)? {
            let mut found = Vec::new();
            for place in selection.places()? {
                found.extend(side.whole_trials(&place)?);
            }
            if !selection.wanted.iter().any(|(key, _)| [LIVE, "trial"].contains(&key.as_str())) {
                side.leave_out_live(&mut found);
            }
            side.trials.extend(chosen(&selection, found)?);
        }
        if side.trials.is_empty() {
            let why = side.notes.join("; ");
            return Err(Error::asked(format!("'{text}' has no trial to compare: {why}")));
        }
        side.leave_out_repeated();
        Ok(side)
    }

    /// The trials of a run that ended as they were meant to.
    fn whole_trials(&mut self, Place { path, by_pattern }: &Place) -> Result<Vec<Trial>, Error> {
        if *by_pattern && !is_kept(path) {
            self.notes.push(format!(
                "'{}' has no run.json and is left out: it is no run that ended",
                path.display()
            ));
            return Ok(Vec::new());
        }
        let (whole, cut): (Vec<_>, Vec<_>) = load(path)?.into_iter().partition(|trial| trial.whole);
        self.notes.extend(cut.iter().map(|trial| {
            format!("{} is left out: it was cut short, or its numbers do not add up", trial.place())
        }));
        Ok(whole)
    }

    /// Trials that somebody made by hand, unless they were asked for.
    fn leave_out_live(&mut self, found: &mut Vec<Trial>) {
        let before = found.len();
        found.retain(|trial| trial.live == "false");
        let left_out = before - found.len();
        if left_out > 0 {
            self.notes.push(format!(
                "{left_out} live trials are left out, which a knob began or ended: DIR:{LIVE}=true takes them"
            ));
        }
    }

    /// A trial counts once, however often its directory was named.
    fn leave_out_repeated(&mut self) {
        let mut seen = BTreeSet::new();
        self.trials.retain(|trial| {
            let directory = trial.directory.canonicalize().unwrap_or_else(|_| trial.directory.clone());
            seen.insert((directory, trial.trial.clone()))
        });
    }

    /// The trial that stands for how all were run.
    pub fn first(&self) -> &Trial {
        // `load` and `across` leave no side without one.
        &self.trials[0]
    }

    /// A metric's value in each trial that has one.
    pub fn values(&self, metric: Metric, segment: &str, op: &str) -> Vec<f64> {
        self.trials.iter().filter_map(|trial| trial.value(metric, segment, op)).collect()
    }

    /// The sides within this one, told apart by the one thing in which its trials differ, the earliest first.
    ///
    /// # Errors
    /// When they differ in nothing, or in several things.
    pub fn across(self) -> Result<Vec<Self>, Error> {
        let mut varying = self.varying();
        let name = &self.name;
        let key = match (varying.pop(), varying.is_empty()) {
            (Some(key), true) => key,
            (None, _) => {
                return Err(Error::asked(format!(
                    "all trials of '{name}' have the same driver and options, so there is nothing to compare within: \
                     give a second side"
                )));
            }
            (Some(last), false) => {
                let value = setting(self.first(), &last).unwrap_or_default();
                let all = varying.join(", ");
                // Conditions are joined by commas.
                let joint = if name.contains(':') { ',' } else { ':' };
                return Err(Error::asked(format!(
                    "the trials of '{name}' differ in {all} and {last}: choose among them until one is left, like \
                     '{name}{joint}{last}={value}', or give two sides"
                )));
            }
        };
        let mut sides: Vec<Self> = Vec::new();
        for trial in self.trials {
            let name = format!("{key}={}", setting(&trial, &key).unwrap_or_default());
            match sides.iter_mut().find(|side| side.name == name) {
                Some(side) => side.trials.push(trial),
                None => sides.push(Self { name, trials: vec![trial], notes: Vec::new() }),
            }
        }
        sides[0].notes = self.notes;
        Ok(sides)
    }

    /// What trials differ in: parameters, and the driver.
    fn varying(&self) -> Vec<String> {
        let params = self.trials.iter().flat_map(|trial| trial.params.keys().map(String::as_str));
        let keys: BTreeSet<&str> = params.chain(["driver"]).collect();
        let differs = |key: &&str| {
            let first = setting(self.first(), key);
            self.trials.iter().any(|trial| setting(trial, key) != first)
        };
        keys.into_iter().filter(differs).map(str::to_owned).collect()
    }
}

/// What a trial has under a name; `unset` where a parameter was taken away, or was never given.
fn setting(trial: &Trial, key: &str) -> Option<String> {
    if let Some((_, of)) = KEYS.iter().find(|(name, _)| *name == key) {
        return Some(of(trial).to_owned());
    }
    match trial.params.get(key) {
        Some(value) => Some(value.clone().unwrap_or_else(|| UNSET.to_owned())),
        None => trial.options.get(key).cloned(),
    }
}

/// Those of the trials that a selection wants.
pub(crate) fn chosen(selection: &Selection, trials: Vec<Trial>) -> Result<Vec<Trial>, Error> {
    let mut left = trials;
    for (key, value) in &selection.wanted {
        let before: BTreeSet<String> = left.iter().filter_map(|trial| setting(trial, key)).collect();
        let place = &selection.place;
        if before.is_empty() && !left.is_empty() {
            let names: BTreeSet<&str> =
                left.iter().flat_map(|t| t.params.keys().map(String::as_str)).collect();
            let names: Vec<&str> = names.into_iter().chain(KEYS.map(|(name, _)| name)).collect();
            return Err(Error::asked(format!(
                "the trials of '{place}' have nothing called {key}: there are {}",
                names.join(", ")
            )));
        }
        left.retain(|trial| matches(trial, key, value));
        if left.is_empty() && !before.is_empty() {
            let values: Vec<&str> = before.iter().map(String::as_str).collect();
            return Err(Error::asked(format!(
                "no trial of '{place}' has {key}={value}: there are {}",
                values.join(", ")
            )));
        }
    }
    Ok(left)
}

/// Drivers may be named by their version alone, and an option that nobody set by the driver's default.
fn matches(trial: &Trial, key: &str, value: &str) -> bool {
    let is = |found: &str| found == value || (key == "driver" && found.split(' ').any(|word| word == value));
    setting(trial, key).is_some_and(|found| is(&found)) || trial.options.get(key).is_some_and(|v| v == value)
}

#[cfg(test)]
pub(crate) mod tests;
