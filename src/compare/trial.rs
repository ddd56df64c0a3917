//! A trial as its run's directory tells of it: the tables for numbers, run.json for what was done.

mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use serde_json::Value;

use self::table::Table;
use super::Error;
use crate::metric::Metric;
use crate::results::facts::ALL;
use crate::results::run_json::{PARTIAL, WHOLE};
use crate::results::tables::SCHEMA_VERSION;
use crate::stub;

/// A trial that was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its run's directory.
    pub directory: PathBuf,
    /// Its run.
    pub run_id: String,
    /// Its number in the run.
    pub trial: String,
    /// The variant's name.
    pub variant: String,
    /// Which of the variant's trials it is.
    pub repeat: String,
    /// The driver's name and version.
    pub driver: String,
    /// The servers' versions; of a stub how it answers, too, since that is what there is to it.
    pub server: String,
    /// What shed load, if something did.
    pub mechanism: String,
    /// Whether its load was closed: workers that start an operation when the last one has ended.
    pub closed: bool,
    /// What was varied or set, with its value; `None` where it was taken away.
    pub params: BTreeMap<String, Option<String>>,
    /// Connection-string options in effect, the driver's defaults among them.
    pub options: BTreeMap<String, String>,
    /// All of the plan.
    pub plan: Value,
    /// The machine that made the load.
    pub machine: String,
    /// The version of overdrive.
    pub tool_version: String,
    /// Whether it ran to its end, which for a live one is when a knob was turned, and its sums added up.
    pub whole: bool,
    /// `true` when a knob began or ended it, else `false`: how long it ran, and after what, was in somebody's hand.
    pub live: &'static str,
    /// By segment and operation.
    pub figures: Vec<Figures>,
}

/// The metrics of one segment and operation, or of one interval of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The segment's name.
    pub segment: String,
    /// The operation's name.
    pub op: String,
    /// In the order of [`Metric::COMPARED`].
    values: Vec<Option<f64>>,
}

impl Figures {
    /// A metric's value; `None` where there was too little for one.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        Metric::COMPARED.iter().position(|&m| m == metric).and_then(|place| self.values[place])
    }
}

/// Every trial of a run.
///
/// # Errors
/// When the directory is none of a run that ended, or a file in it cannot be read.
pub fn load(directory: &Path) -> Result<Vec<Trial>, Error> {
    let run = run_json(directory)?;
    let table = Table::open(&directory.join("summary.csv"))?;
    let mut trials: Vec<Trial> = Vec::new();
    for row in &table.rows {
        let (number, figures) = (table.text(row, "trial"), table.figures(row)?);
        match trials.iter_mut().find(|trial| trial.trial == number) {
            // The run was killed before it took note of this one.
            None if !is_complete(directory) && told(&run, number).is_none() => {}
            Some(trial) => trial.figures.push(figures),
            None => trials.push(Trial { figures: vec![figures], ..begin(directory, &run, &table, row)? }),
        }
    }
    if trials.is_empty() {
        return Err(Error::stored(format!(
            "'{}' has no rows: its run measured nothing",
            table.path.display()
        )));
    }
    Ok(trials)
}

/// Whether this is the directory of a run that ended.
pub fn is_complete(directory: &Path) -> bool {
    directory.join(WHOLE).is_file()
}

/// Whether it is one of a run that ended, or that brought trials to their end before it was killed.
pub fn is_kept(directory: &Path) -> bool {
    is_complete(directory) || directory.join(PARTIAL).is_file()
}

/// `run.json`, or what a run that was killed has left of it.
///
/// # Errors
/// When there is none, or it cannot be understood.
pub(crate) fn run_json(directory: &Path) -> Result<Value, Error> {
    let path = directory.join(if is_complete(directory) { WHOLE } else { PARTIAL });
    if !path.is_file() {
        return Err(Error::asked(no_run(directory)));
    }
    let text = fs::read_to_string(&path).map_err(|e| Error::file(&path, e))?;
    let run: Value = serde_json::from_str(&text).map_err(|e| Error::file(&path, e))?;
    match run["schema_version"].as_u64() {
        Some(version) if version <= u64::from(SCHEMA_VERSION) => Ok(run),
        Some(version) => Err(Error::stored(format!(
            "'{}' was written by a newer overdrive (schema version {version}; this one knows {SCHEMA_VERSION}): \
             compare with that one",
            path.display()
        ))),
        None => Err(Error::stored(format!("'{}' has no schema_version: it is no run's", path.display()))),
    }
}

/// Why a directory is not the one that was meant, and what to give instead.
fn no_run(directory: &Path) -> String {
    let shown = directory.display();
    if directory.join("intervals.csv").exists() {
        return format!("'{shown}' has no run.json: its run was killed before its end; leave it out");
    }
    let runs = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    if runs.map(|entry| entry.path()).any(|path| is_complete(&path)) {
        format!(
            "'{shown}' holds runs, but is none: give one of them, or all as trials of one side: '{shown}/*'"
        )
    } else {
        format!("'{shown}' has no run.json: it is no run's directory")
    }
}

fn told<'a>(run: &'a Value, number: &str) -> Option<&'a Value> {
    let mut trials = run["trials"].as_array().into_iter().flatten();
    trials.find(|trial| trial["trial"].as_u64().is_some_and(|n| number.parse() == Ok(n)))
}

/// A trial without figures, from its first row.
fn begin(directory: &Path, run: &Value, table: &Table, row: &StringRecord) -> Result<Trial, Error> {
    let text = |column: &str| table.text(row, column).to_owned();
    let number = text("trial");
    let stored = told(run, &number).ok_or_else(|| {
        Error::stored(format!("'{}' knows nothing of trial {number}", directory.join("run.json").display()))
    })?;
    let taken_over = stored["result"] == "taken_over";
    let live = taken_over || stored["plan"]["live"] == true;
    let host = &run["host"];
    let part = |key: &str| match &host[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut params = table.params(row);
    let knobs = stored["knobs"].as_object().filter(|_| live).into_iter().flatten();
    params.extend(knobs.filter_map(|(name, value)| Some((name.clone(), Some(value.as_str()?.to_owned())))));
    Ok(Trial {
        directory: directory.to_owned(),
        run_id: text("run_id"),
        trial: number,
        variant: text("variant"),
        repeat: text("repeat"),
        driver: format!("{} {}", text("driver"), text("driver_version")),
        server: server(stored, text("server_version")),
        mechanism: text("mechanism"),
        closed: is_closed(&text("model"), &stored["plan"]),
        options: options(stored, &params),
        params,
        plan: stored["plan"].clone(),
        machine: format!("{} × {} ({})", part("cores"), part("cpu_model"), part("arch")),
        tool_version: run["tool_version"].as_str().unwrap_or_default().to_owned(),
        whole: (taken_over || stored["totals"]["cut"] != true)
            && stored["broken"].as_array().is_none_or(Vec::is_empty),
        live: if live { "true" } else { "false" },
        figures: Vec::new(),
    })
}

impl Trial {
    /// Whether the operations of this name wait for others to end: those of one of several clients by its own model.
    pub fn is_closed(&self, op: &str) -> bool {
        let mut clients = self.plan["clients"].as_array().into_iter().flatten();
        let own = op.split_once('/').and_then(|(name, _)| clients.find(|client| client["name"] == name));
        own.map_or(self.closed, |client| client["model"]["closed"].is_object())
    }
}

/// Whether operations wait for others to end, be it those of one of several clients: the servers have to do with all of them.
fn is_closed(model: &str, plan: &Value) -> bool {
    let mut clients = plan["clients"].as_array().into_iter().flatten();
    model == "closed" || clients.any(|client| client["model"]["closed"].is_object())
}

fn server(stored: &Value, version: String) -> String {
    let mut notes = stored["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match notes.find_map(|note| note.strip_prefix(stub::NOTE)) {
        Some(how) => format!("{version} that answers {how}"),
        None => version,
    }
}

/// Options in effect. overdrive's own name for each run's connections is none that anybody chose.
fn options(stored: &Value, params: &BTreeMap<String, Option<String>>) -> BTreeMap<String, String> {
    let mut options: BTreeMap<String, String> = in_effect(&stored["options"])
        .into_iter()
        .filter(|(_, option)| option["from"] != "overdrive")
        .filter_map(|(name, option)| Some((name, option["value"].as_str()?.to_owned())))
        .collect();
    // The tables' word counts where the two differ; what is no connection-string option is an option of the run.
    options.extend(params.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))));
    options
}

/// The options of a trial as run.json has them, each with its name: of several clients as it is set.
pub fn in_effect(stored: &Value) -> Vec<(String, &Value)> {
    if let Some(clients) = stored.as_object() {
        let of_client = |(client, own): (&String, _)| {
            let own = in_effect(own).into_iter();
            own.map(|(name, option)| (format!("clients.{client}.client.{name}"), option)).collect::<Vec<_>>()
        };
        return clients.iter().flat_map(of_client).collect();
    }
    let options = stored.as_array().into_iter().flatten();
    options.filter_map(|option| Some((option["name"].as_str()?.to_owned(), option))).collect()
}

impl Trial {
    /// What to call it in a message.
    pub fn place(&self) -> String {
        format!("trial {} of '{}'", self.trial, self.directory.display())
    }

    /// A metric of a segment and an operation.
    pub fn value(&self, metric: Metric, segment: &str, op: &str) -> Option<f64> {
        let figures = self.figures.iter().find(|figures| figures.segment == segment && figures.op == op);
        figures.and_then(|figures| figures.value(metric))
    }

    /// The measured intervals of an operation in a segment, or in all of them, in order; none where nobody kept them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn intervals(&self, segment: &str, op: &str) -> Result<Vec<Figures>, Error> {
        let path = self.directory.join("intervals.csv");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let table = Table::open(&path)?;
        let ours = table.rows.iter().filter(|row| {
            table.text(row, "trial") == self.trial
                && table.text(row, "phase") == "measure"
                && table.op(row) == op
                && (segment == ALL || table.text(row, "segment") == segment)
        });
        ours.map(|row| table.figures(row)).collect()
    }
}
