//! Trials as a run's directory tells of them, with the rows of its tables that a report shows. Also of runs that were cut
//! short or killed: what they left is shown as what it is.

mod distributions;
mod rows;
mod selected;

use std::collections::BTreeMap;
use std::path::Path;

use hdrhistogram::Histogram;
use serde_json::Value;

pub use self::rows::{CommonError, Interval, Recovery, Retries, Row};
pub use self::selected::selected;

use self::rows::{Event, read, read_titled};
use crate::compare::Error;
use crate::compare::trial::{self, Trial, is_complete, is_kept, run_json};
use crate::results::facts::ALL;

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it was meant to.
    Whole,
    /// It was stopped before its time.
    Cut,
    /// Its sums do not add up, which is a fault of overdrive's.
    Broken,
    /// There is no run.json: its run was killed, or goes on.
    Killed,
}

impl State {
    /// What has to be known of such a trial; empty of a whole one.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Cut => "was cut short: its figures are of the time that it ran",
            Self::Broken => "does not add up, which is a fault of overdrive's: do not use its figures",
            Self::Killed => {
                "has no run.json: its run was killed, or goes on, and the last seconds may be missing"
            }
        }
    }
}

/// When an overload was on, in seconds since Go.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// The overload's name.
    pub name: String,
    /// When the servers had been told.
    pub on_s: f64,
    /// When it had been taken back; infinite when it never was.
    pub off_s: f64,
}

/// By segment and operation as tags of `latency.hlog` spell them.
pub type Distributions = BTreeMap<(String, String), Histogram<u64>>;

/// A trial, with what its tables say of it.
#[derive(Clone, Debug)]
pub struct StoredTrial {
    /// What it was run with.
    pub trial: Trial,
    /// How it ended.
    pub state: State,
    /// `summary.csv`; empty when the trial had not ended.
    pub summary: Vec<Row>,
    /// `intervals.csv`, all operations together.
    pub intervals: Vec<Interval>,
    /// `retries.csv`.
    pub retries: Vec<Retries>,
    /// What operations ended with in the measured time, of `errors.csv`.
    pub errors: Vec<CommonError>,
    /// `recovery.csv`.
    pub recoveries: Vec<Recovery>,
    /// When overloads were on, by `events.csv`.
    pub overloads: Vec<Band>,
    /// Latencies of the measured time, of `latency.hlog`; empty without one.
    pub latencies: Distributions,
    /// Its part of run.json; null when there is none.
    pub told: Value,
}

impl StoredTrial {
    /// The figures of a segment and an operation.
    pub fn row(&self, segment: &str, op: &str) -> Option<&Row> {
        self.summary.iter().find(|row| row.segment == segment && row.op == op)
    }

    /// Latencies of an operation, or of `all`, in a segment, or in `all`; `None` where nothing was kept.
    pub fn distribution(&self, segment: &str, op: &str) -> Option<Histogram<u64>> {
        distributions::merged(&self.latencies, segment, op)
    }
}

/// Every trial of a run, whole or not, without the tables that only reports want.
///
/// # Errors
/// When the directory is none of a run, or what tells its trials cannot be read.
pub fn trials(directory: &Path) -> Result<Vec<Trial>, Error> {
    if is_complete(directory) || !directory.join("intervals.csv").exists() {
        return trial::load(directory);
    }
    // Those that had ended before the run was killed are whole.
    let mut trials = if is_kept(directory) { trial::load(directory)? } else { Vec::new() };
    for row in read_titled::<Row>(directory, "summary.csv", true, |row| row.segment == ALL && row.op == ALL)?
    {
        if !trials.iter().any(|trial| trial.trial == row.trial) {
            trials.push(killed(directory, &row));
        }
    }
    for of in read_titled::<Interval>(directory, "intervals.csv", true, |of| of.op == ALL)? {
        if !trials.iter().any(|trial| trial.trial == of.trial) {
            let Interval { run_id, trial, variant, .. } = of;
            trials.push(killed(directory, &Row { run_id, trial, variant, ..Row::default() }));
        }
    }
    if trials.is_empty() {
        return Err(Error::stored(format!(
            "'{}' has no run.json and no whole row: its run was killed before it measured anything; leave it out",
            directory.display()
        )));
    }
    Ok(trials)
}

/// A trial of a run that was killed, as far as a row knows it.
fn killed(directory: &Path, row: &Row) -> Trial {
    Trial {
        live: "false",
        directory: directory.to_owned(),
        run_id: row.run_id.clone(),
        trial: row.trial.clone(),
        variant: row.variant.clone(),
        repeat: row.repeat.clone(),
        driver: format!("{} {}", row.driver, row.driver_version).trim().to_owned(),
        server: row.server_version.clone(),
        mechanism: row.mechanism.clone(),
        closed: ["closed", "mixed"].contains(&row.model.as_str()),
        params: BTreeMap::new(),
        options: BTreeMap::new(),
        plan: Value::Null,
        machine: String::new(),
        tool_version: String::new(),
        whole: false,
        figures: Vec::new(),
    }
}

/// A run as a whole.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Those of its trials that were asked for.
    pub trials: Vec<StoredTrial>,
    /// What must be known of it.
    pub notes: Vec<String>,
}

/// Reads the tables of these trials of one run.
///
/// # Errors
/// When a table cannot be read. One that is not there is no error: what it would have told is left out.
pub fn run(directory: &Path, trials: Vec<Trial>) -> Result<StoredRun, Error> {
    let run = if is_kept(directory) { run_json(directory)? } else { Value::Null };
    // The last line of what was killed may be a part of one.
    let killed = !is_complete(directory);
    let summary = read_titled::<Row>(directory, "summary.csv", killed, |_| true)?;
    let intervals = read_titled::<Interval>(directory, "intervals.csv", killed, |of| of.op == ALL)?;
    let retries = read_titled::<Retries>(directory, "retries.csv", killed, |_| true)?;
    let errors =
        read_titled::<CommonError>(directory, "errors.csv", killed, CommonError::is_measured_outcome)?;
    let recoveries = read::<Recovery>(directory, "recovery.csv", killed, |_| true)?;
    let events = read::<Event>(directory, "events.csv", killed, Event::is_of_an_overload)?;
    let mut latencies = distributions::read(directory, &intervals, killed)?;
    let trials = trials.into_iter().map(|trial| {
        let number = trial.trial.clone();
        let told = told(&run, &number);
        StoredTrial {
            state: state(&told),
            summary: of(&summary, &number, |row| &row.trial),
            intervals: of(&intervals, &number, |row| &row.trial),
            retries: of(&retries, &number, |row| &row.trial),
            errors: of(&errors, &number, |row| &row.trial),
            recoveries: of(&recoveries, &number, |row| &row.trial),
            overloads: bands(events.iter().filter(|event| event.trial == number)),
            latencies: latencies.remove(&number).unwrap_or_default(),
            told,
            trial,
        }
    });
    Ok(StoredRun { trials: trials.collect(), notes: notes(directory, &run) })
}

fn of<T: Clone>(rows: &[T], trial: &str, number: impl Fn(&T) -> &String) -> Vec<T> {
    rows.iter().filter(|row| number(row) == trial).cloned().collect()
}

fn told(run: &Value, trial: &str) -> Value {
    let mut trials = run["trials"].as_array().into_iter().flatten();
    trials
        .find(|told| told["trial"].as_u64().is_some_and(|number| number.to_string() == trial))
        .cloned()
        .unwrap_or_default()
}

fn state(told: &Value) -> State {
    if told.is_null() {
        State::Killed
    } else if told["broken"].as_array().is_some_and(|broken| !broken.is_empty()) {
        State::Broken
    } else if told["totals"]["cut"] == true {
        State::Cut
    } else {
        State::Whole
    }
}

fn notes(directory: &Path, run: &Value) -> Vec<String> {
    let mut notes: Vec<String> =
        run["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if run["complete"] == false {
        notes.push(format!(
            "the run '{}' is not complete: not every trial that was planned ran to its end",
            directory.display()
        ));
    }
    notes
}

/// When overloads were on. One that was never taken back was on to the end.
fn bands<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for event in events {
        if event.kind == "overload_on" {
            bands.push(Band { name: event.subject.clone(), on_s: event.elapsed_s, off_s: f64::INFINITY });
        } else if let Some(band) =
            bands.iter_mut().find(|band| band.name == event.subject && band.off_s.is_infinite())
        {
            band.off_s = event.elapsed_s;
        }
    }
    bands
}

#[cfg(test)]
mod tests;
