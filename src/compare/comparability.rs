//! Whether sides may be compared: what was done must be the same, but for what is compared.

mod differences;

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde_json::Value;

use self::differences::{Difference, differences, part_of_param, plain};
use super::Error;
use super::side::Side;
use super::trial::Trial;

/// What a trial is made of, beside the driver and its options, which may always differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// Documents, indexes, and where they are.
    Data,
    /// Model, rate or workers, and times.
    Load,
    /// The operations and their weights.
    Operations,
    /// What is done to the servers, and by which mechanism they shed load.
    Overload,
    /// Deadlines and further calls of the application's own.
    Application,
    /// The servers' versions.
    Server,
    /// How attempts are counted, and what else is measured.
    Measuring,
}

/// Options that decide what becomes of a rejected attempt.
const RETRY_OPTIONS: [&str; 4] =
    ["maxAdaptiveRetries", "enableOverloadRetargeting", "retryReads", "retryWrites"];

/// What is to be known of a comparison, when there may be one.
///
/// # Errors
/// When a side is a mixture, or the sides differ in what nobody said they should differ in.
pub fn check(base: &Side, new: &Side, across: &[Part]) -> Result<Vec<String>, Error> {
    uniform(base)?;
    uniform(new)?;
    let (a, b) = (base.first(), new.first());
    let varied: BTreeSet<Part> =
        changed_params(a, b).into_iter().filter_map(part_of_param).chain(across.iter().copied()).collect();
    let (meant, refused): (Vec<_>, Vec<_>) =
        differences(a, b).into_iter().partition(|difference| varied.contains(&difference.part));
    if !refused.is_empty() {
        return Err(refusal(base, new, &refused));
    }
    let mut notes: Vec<String> =
        meant.into_iter().map(|difference| format!("compared across: {}", difference.what)).collect();
    notes.extend(flags(base, new));
    Ok(notes)
}

/// Whether retries differ, by the driver or by the application.
pub fn retries_differ(a: &Trial, b: &Trial) -> bool {
    let keys: BTreeSet<&String> = a.options.keys().chain(b.options.keys()).collect();
    // Of several clients each has its own, under a longer name.
    let is_of_retries = |key: &&&String| RETRY_OPTIONS.contains(&key.rsplit('.').next().unwrap_or_default());
    let backoff = |trial: &Trial| -> Vec<Value> {
        let clients = trial.plan["clients"].as_array().into_iter().flatten();
        clients.chain([&trial.plan]).map(|of| of["backoff"].clone()).collect()
    };
    keys.iter().filter(is_of_retries).any(|&key| a.options.get(key) != b.options.get(key))
        || backoff(a) != backoff(b)
}

/// A side stands for one thing.
fn uniform(side: &Side) -> Result<(), Error> {
    let first = side.first();
    for trial in &side.trials[1..] {
        let mut mixed: Vec<String> = differences(first, trial).into_iter().map(|d| d.what).collect();
        mixed.extend(changed_options(first, trial));
        if first.driver != trial.driver {
            mixed.push(format!("the driver is {} and {}", first.driver, trial.driver));
        }
        if let Some(what) = mixed.first() {
            return Err(Error::asked(format!(
                "'{}' is a mixture, so no one thing to compare: {what} ({}, {}); choose, like DIR:KEY=VALUE",
                side.name,
                first.place(),
                trial.place()
            )));
        }
    }
    Ok(())
}

fn refusal(base: &Side, new: &Side, refused: &[Difference]) -> Error {
    let what: Vec<String> = refused.iter().map(|d| format!("\n  {}", d.what)).collect();
    let parts: BTreeSet<Part> = refused.iter().map(|d| d.part).collect();
    let parts: Vec<String> = parts.into_iter().map(name).collect();
    Error::asked(format!(
        "'{}' and '{}' did not do the same, so their figures cannot be compared:{}\n\
         Compare runs of one profile and load on one kind of server; if this is what you want to compare, say so with \
         --across {}",
        base.name,
        new.name,
        what.concat(),
        parts.join(",")
    ))
}

fn name(part: Part) -> String {
    part.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What may differ, but must be known.
fn flags(base: &Side, new: &Side) -> Vec<String> {
    let (a, b) = (base.first(), new.first());
    let mut flags = Vec::new();
    let options = changed_options(a, b);
    if a.driver != b.driver {
        let also = if options.is_empty() { "their options are equal" } else { "and so do options" };
        flags.push(format!("the driver differs: {} and {}; {also}", a.driver, b.driver));
    }
    if !options.is_empty() {
        flags.push(format!("options differ: {}", options.join(", ")));
    }
    // A stub fails as its script says, as a failpoint does.
    let scripted = |word: &str| matches!(word, "failpoint" | "stub");
    if [a, b].iter().any(|trial| trial.mechanism.split('+').any(scripted)) && retries_differ(a, b) {
        flags.push(
            "these rejections do not depend on load, so more retries always look better here than on a server that is \
             really overloaded"
                .to_owned(),
        );
    }
    for (what, of) in FLAGGED {
        let (ours, theirs) = (every(base, of), every(new, of));
        if ours != theirs {
            flags.push(format!("{what}: {} and {}", list(&ours), list(&theirs)));
        }
    }
    let places = |side: &Side| -> BTreeSet<(String, String)> {
        side.trials.iter().map(|trial| (trial.run_id.clone(), trial.trial.clone())).collect()
    };
    if places(base).intersection(&places(new)).next().is_some() {
        flags
            .push("both sides have trials of the same run and number: are some copies of others?".to_owned());
    }
    flags
}

type Of = fn(&Trial) -> String;

const FLAGGED: [(&str, Of); 4] = [
    ("the profiles are called differently", |trial| plain(&trial.plan["profile"])),
    ("the seeds differ, so keys and arrivals do", |trial| plain(&trial.plan["seed"])),
    ("the load was made by different machines, which shows in times and CPU", |trial| trial.machine.clone()),
    ("the versions of overdrive differ", |trial| trial.tool_version.clone()),
];

fn every(side: &Side, of: Of) -> BTreeSet<String> {
    side.trials.iter().map(of).collect()
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Parameters whose values differ.
fn changed_params<'a>(a: &'a Trial, b: &'a Trial) -> Vec<&'a str> {
    let keys: BTreeSet<&String> = a.params.keys().chain(b.params.keys()).collect();
    keys.into_iter().filter(|key| a.params.get(*key) != b.params.get(*key)).map(String::as_str).collect()
}

/// Options of the connection string whose values differ, the names of what they are on.
fn changed_options(a: &Trial, b: &Trial) -> Vec<String> {
    let keys: BTreeSet<&String> = a.options.keys().chain(b.options.keys()).collect();
    let shown = |value: Option<&String>| value.map_or_else(|| "none".to_owned(), Clone::clone);
    let differ = |key: &&String| a.options.get(*key) != b.options.get(*key) && *key != "replicaSet";
    keys.into_iter()
        .filter(differ)
        .map(|key| format!("{key} is {} and {}", shown(a.options.get(key)), shown(b.options.get(key))))
        .collect()
}

#[cfg(test)]
mod tests;
