//! What a report is about: trials of one kind, from the selections on the command line, and how they compare.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::stored::{Row, State, StoredTrial, selected};
use crate::compare::comparability::{self, Part};
use crate::compare::side::Side;
use crate::compare::trial::Trial;
use crate::compare::{Comparison, DRAWS, Error, Settings, compare};
use crate::metric::Metric;
use crate::results::facts::ALL;
use crate::thresholds::{Condition, Verdict};

/// The difference that does not matter, as `overdrive compare` has it by default.
const NOISE: f64 = 0.02;

/// Trials of one variant out of one selection.
#[derive(Clone, Debug)]
pub struct Group {
    /// What sets it apart from the others.
    pub name: String,
    /// Never empty; in the order of running.
    pub trials: Vec<StoredTrial>,
}

impl Group {
    /// The trials whose figures count: those that ran to their end, or all where none did.
    pub fn counted(&self) -> Vec<&StoredTrial> {
        let whole: Vec<&StoredTrial> =
            self.trials.iter().filter(|trial| trial.state == State::Whole).collect();
        if whole.is_empty() { self.trials.iter().collect() } else { whole }
    }

    /// The trial that stands for how all were run.
    pub fn first(&self) -> &StoredTrial {
        // `gather` makes no group without one.
        &self.trials[0]
    }

    /// Measured segments in order, without `all`; none where there was no overload.
    pub fn segments(&self) -> Vec<String> {
        self.distinct(|row| &row.segment)
    }

    /// Operations in the profile's order, without `all`.
    pub fn operations(&self) -> Vec<String> {
        self.distinct(|row| &row.op)
    }

    fn distinct(&self, of: impl Fn(&Row) -> &String) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for name in self.trials.iter().flat_map(|trial| &trial.summary).map(of) {
            if name != ALL && !distinct.contains(name) {
                distinct.push(name.clone());
            }
        }
        distinct
    }
}

/// Everything that a report shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// Never empty; the first is the baseline.
    pub groups: Vec<Group>,
    /// Trials that did not end as they should, each with what it is called.
    pub warnings: Vec<String>,
    /// What must be known to read the figures, each once.
    pub notes: Vec<String>,
    /// The others against the baseline; `None` when there are none that can be.
    pub comparison: Option<Comparison>,
    /// Why some are not compared.
    pub refused: Vec<String>,
}

/// Reads what the selections take.
///
/// # Errors
/// When one of them takes nothing, or what it takes cannot be read.
pub fn gather(runs: &[String], across: &[Part]) -> Result<Report, Error> {
    let (mut sides, mut notes) = (Vec::new(), Vec::new());
    for text in runs {
        sides.push(selected(text, &mut notes)?);
    }
    let groups = grouped(runs, sides);
    let (comparison, refused) = compared(&groups, across);
    let trials = || groups.iter().flat_map(|group| &group.trials);
    let told = |trial: &StoredTrial| -> Vec<String> {
        let notes = trial.told["notes"].as_array().into_iter().flatten();
        notes.filter_map(|note| note.as_str()).map(str::to_owned).collect()
    };
    let mut seen = BTreeSet::new();
    let notes = notes.into_iter().chain(trials().flat_map(told)).filter(|note| seen.insert(note.clone()));
    let warnings = trials()
        .filter(|trial| trial.state != State::Whole)
        .map(|trial| format!("{} {}", trial.trial.place(), trial.state.words()));
    let warnings = warnings.chain(trials().flat_map(crossed));
    Ok(Report { notes: notes.collect(), warnings: warnings.collect(), groups, comparison, refused })
}

/// The thresholds that a trial failed by.
fn crossed(trial: &StoredTrial) -> Vec<String> {
    let verdicts = trial.told["thresholds"].as_array().into_iter().flatten();
    let failed = verdicts.filter(|verdict| verdict["failed"] == true);
    let verdict = |told: &Value| {
        let condition: Condition = told["fail_if"].as_str()?.parse().ok()?;
        let verdict = Verdict { condition, value: told["value"].as_f64() };
        let (place, seen) = (trial.trial.place(), verdict.seen());
        Some(format!("{place} crossed a threshold: {}, seen {seen}", verdict.condition))
    };
    failed.filter_map(verdict).collect()
}

/// A group for each variant of each selection.
fn grouped(runs: &[String], sides: Vec<Vec<StoredTrial>>) -> Vec<Group> {
    let names = names(runs);
    let mut groups = Vec::new();
    for (name, trials) in names.into_iter().zip(sides) {
        let mut variants: Vec<Group> = Vec::new();
        for trial in trials {
            let variant = &trial.trial.variant;
            match variants.iter_mut().find(|group| group.name == *variant) {
                Some(group) => group.trials.push(trial),
                None => variants.push(Group { name: variant.clone(), trials: vec![trial] }),
            }
        }
        let only = variants.len() == 1;
        for group in &mut variants {
            match (runs.len(), only) {
                (1, _) => {}
                (_, true) => group.name.clone_from(&name),
                (_, false) => group.name = format!("{name}: {}", group.name),
            }
        }
        groups.extend(variants);
    }
    groups
}

/// What selections are called: by the last part of their paths, where that sets them apart.
fn names(runs: &[String]) -> Vec<String> {
    let last = |text: &String| -> String {
        let name = Path::new(text).file_name().map(|name| name.to_string_lossy().into_owned());
        name.filter(|_| !text.contains(',')).unwrap_or_else(|| text.clone())
    };
    let short: Vec<String> = runs.iter().map(last).collect();
    let distinct: BTreeSet<&String> = short.iter().collect();
    if distinct.len() == short.len() { short } else { runs.to_vec() }
}

/// Every other group against the first, by the trials that ran to their end, and why some could not be.
fn compared(groups: &[Group], across: &[Part]) -> (Option<Comparison>, Vec<String>) {
    let side = |group: &Group| -> Option<Side> {
        // What a knob began or ended was in somebody's hand.
        let own = |trial: &&StoredTrial| trial.trial.whole && trial.trial.live == "false";
        let whole = group.trials.iter().filter(own);
        let trials: Vec<Trial> = whole.map(|trial| trial.trial.clone()).collect();
        (!trials.is_empty()).then(|| Side { name: group.name.clone(), trials, notes: Vec::new() })
    };
    let none = |group: &Group| {
        format!("'{}' is not compared: none of its trials ran to its end by itself", group.name)
    };
    let (first, others) = (&groups[0], &groups[1..]);
    if others.is_empty() {
        return (None, Vec::new());
    }
    let Some(base) = side(first) else { return (None, vec![none(first)]) };
    let (mut news, mut refused) = (Vec::new(), Vec::new());
    for group in others {
        match side(group) {
            None => refused.push(none(group)),
            Some(new) => match comparability::check(&base, &new, across) {
                Ok(_) => news.push(new),
                Err(why) => refused.push(why.to_string()),
            },
        }
    }
    if news.is_empty() {
        return (None, refused);
    }
    let settings = Settings {
        metrics: Metric::COMPARED.to_vec(),
        segment: ALL.to_owned(),
        op: ALL.to_owned(),
        noise: NOISE,
        across: across.to_vec(),
        draws: DRAWS,
    };
    match compare(base, news, settings) {
        Ok(comparison) => (Some(comparison), refused),
        Err(why) => {
            refused.push(why.to_string());
            (None, refused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(runs: &[&str]) -> Vec<String> {
        names(&runs.iter().map(|&run| run.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn selections_are_called_by_what_sets_them_apart() {
        assert_eq!(named(&["results/a/", "results/b"]), ["a", "b"]);
        assert_eq!(named(&["x/a", "y/a"]), ["x/a", "y/a"]);
        assert_eq!(named(&["x/a,x/b", "x/*-new"]), ["x/a,x/b", "*-new"]);
        assert_eq!(named(&["x/a:rate=1", "x/a:rate=2"]), ["a:rate=1", "a:rate=2"]);
    }
}
