//! The columns that a report shows, whatever version wrote them: one that is missing is a figure that is not known.

use std::path::Path;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::compare::Error;
use crate::results::facts::title;

/// Of `summary.csv`. What is `None` was not known, or there was too little for it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub struct Row {
    pub run_id: String,
    pub trial: String,
    pub variant: String,
    pub repeat: String,
    pub segment: String,
    pub client: String,
    /// With the client's name where there are several, as everywhere here.
    pub op: String,
    pub driver: String,
    pub driver_version: String,
    pub server_version: String,
    pub mechanism: String,
    pub model: String,
    #[serde(deserialize_with = "figure")]
    pub duration_s: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub ops_ok: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub ops_failed: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub ops_timed_out: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub offered_ops_per_s: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub goodput_ops_per_s: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub completed_ops_per_s: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub error_rate: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub loss_rate: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub retries: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub amplification: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_mean_us: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_p50_us: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_p90_us: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_p99_us: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_p99_9_us: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub latency_max_us: Option<f64>,
}

impl Row {
    /// Retries ÷ operations that ended; `None` when none did.
    pub fn retries_per_op(&self) -> Option<f64> {
        let ended: f64 = [self.ops_ok, self.ops_failed, self.ops_timed_out].into_iter().flatten().sum();
        self.retries.filter(|_| ended > 0.0).map(|retries| retries / ended)
    }
}

/// Of `intervals.csv`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub struct Interval {
    #[serde(default)]
    pub run_id: String,
    pub trial: String,
    #[serde(default)]
    pub variant: String,
    #[serde(deserialize_with = "number")]
    pub elapsed_s: f64,
    #[serde(deserialize_with = "number")]
    pub interval_s: f64,
    pub phase: String,
    pub segment: String,
    #[serde(default)]
    pub client: String,
    pub op: String,
    #[serde(deserialize_with = "number")]
    pub offered: f64,
    #[serde(deserialize_with = "number")]
    pub ops_ok: f64,
    #[serde(deserialize_with = "number")]
    pub attempts: f64,
    #[serde(default, deserialize_with = "figure")]
    pub rejected: Option<f64>,
}

/// Of `retries.csv`: operations that took so many retries.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub struct Retries {
    pub trial: String,
    pub segment: String,
    #[serde(default)]
    pub client: String,
    pub op: String,
    pub retries: u32,
    pub ops_ok: u64,
    pub ops_failed: u64,
}

/// Of `errors.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub struct CommonError {
    pub trial: String,
    pub phase: String,
    #[serde(default)]
    pub client: String,
    pub op: String,
    pub level: String,
    pub kind: String,
    pub code: Option<i32>,
    pub code_name: String,
    pub count: u64,
    pub example: String,
}

impl CommonError {
    /// Whether operations of the measured time ended with it.
    pub fn is_measured_outcome(&self) -> bool {
        self.phase == "measure" && self.level == "operation"
    }
}

/// Of `recovery.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub struct Recovery {
    pub trial: String,
    pub overload: String,
    #[serde(default, deserialize_with = "figure")]
    pub goodput_before_ops_per_s: Option<f64>,
    #[serde(default, deserialize_with = "figure")]
    pub goodput_during_ops_per_s: Option<f64>,
    #[serde(default, deserialize_with = "figure")]
    pub goodput_after_ops_per_s: Option<f64>,
    #[serde(default)]
    pub recovered: String,
    #[serde(default, deserialize_with = "figure")]
    pub time_to_recover_s: Option<f64>,
}

/// Of `events.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Event {
    pub trial: String,
    #[serde(deserialize_with = "number")]
    pub elapsed_s: f64,
    pub kind: String,
    pub subject: String,
}

impl Event {
    pub fn is_of_an_overload(&self) -> bool {
        self.kind == "overload_on" || self.kind == "overload_off"
    }
}

/// A row of a table that may be one client's.
pub(super) trait OfClient {
    /// Its column `client`, and its column `op`, which gets the client's name where there are several.
    fn columns(&mut self) -> (&str, &mut String);
}

macro_rules! of_client {
    ($($row:ty),*) => {$(
        impl OfClient for $row {
            fn columns(&mut self) -> (&str, &mut String) {
                (&self.client, &mut self.op)
            }
        }
    )*};
}

of_client!(Row, Interval, Retries, CommonError);

/// The same of a table whose rows are of operations.
pub(super) fn read_titled<T: DeserializeOwned + OfClient>(
    directory: &Path,
    name: &str,
    cut: bool,
    wanted: impl Fn(&T) -> bool,
) -> Result<Vec<T>, Error> {
    read_with(directory, name, cut, |row: &mut T| {
        let (client, op) = row.columns();
        *op = title(client, op);
        wanted(row)
    })
}

/// Those rows of a table that are wanted; none of a table that is not there. `cut` allows for a last line that is not
/// whole.
pub(super) fn read<T: DeserializeOwned>(
    directory: &Path,
    name: &str,
    cut: bool,
    wanted: impl Fn(&T) -> bool,
) -> Result<Vec<T>, Error> {
    read_with(directory, name, cut, |row: &mut T| wanted(row))
}

/// The same of those that are wanted as they are made then.
fn read_with<T: DeserializeOwned>(
    directory: &Path,
    name: &str,
    cut: bool,
    mut wanted: impl FnMut(&mut T) -> bool,
) -> Result<Vec<T>, Error> {
    let path = directory.join(name);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut reader = csv::Reader::from_path(&path).map_err(|e| Error::file(&path, e))?;
    let mut rows = Vec::new();
    let mut records = reader.deserialize().peekable();
    while let Some(record) = records.next() {
        match record {
            Ok(mut row) => rows.extend(wanted(&mut row).then_some(row)),
            Err(_) if cut && records.peek().is_none() => {}
            Err(error) => return Err(Error::file(&path, error)),
        }
    }
    Ok(rows)
}

/// A figure, or nothing; what is no number has no place on an axis.
fn figure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(from)? {
        Some(value) if !value.is_finite() => Err(D::Error::custom(format!("{value} is no figure"))),
        value => Ok(value),
    }
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    figure(from)?.ok_or_else(|| D::Error::custom("a figure is missing"))
}
