//! `run.json`: everything that is no table. It is written last, so a directory that has it is complete.

use std::fs::{self, File};
use std::io::Write;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::facts::{Scope, reasons_known};
use super::figures::Breakdown;
use super::summary::{SegmentSummary, Summary};
use super::tables::SCHEMA_VERSION;
use super::{Early, Error, HostFacts, RunDirectory};
use crate::plan::Plan;
use crate::thresholds::{Verdict, evaluate};

/// The document of a run that has ended.
pub(crate) const WHOLE: &str = "run.json";

/// The same of a run that goes on, with the trials that have ended.
pub(crate) const PARTIAL: &str = "run.partial.json";

/// What is known of a run when all its trials have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Whether every trial that was planned ran to its end.
    pub complete: bool,
    /// The machine that made the load.
    pub host: HostFacts,
    /// What people must know of the run as a whole.
    pub notes: Vec<String>,
    /// The documents of trials that an earlier start of the run has brought to their end.
    pub earlier: Vec<Value>,
    /// What a search has come to; `None` when it was none.
    pub search: Option<Value>,
    /// The shards that it was merged of; `None` when it was made by one process.
    pub shards: Option<Value>,
}

impl RunDirectory {
    /// Writes `run.json`, as the last thing of a run: under another name first, so that it is there whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&self, facts: &RunFacts, trials: &[Summary]) -> Result<(), Error> {
        self.write_run(WHOLE, facts, trials)?;
        match fs::remove_file(self.file(PARTIAL)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&self.file(PARTIAL), e)),
            _ => Ok(()),
        }
    }

    /// Writes what there is of a run that goes on, so that a later start can go on where this one ends, whatever ends it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, facts: &RunFacts, trials: &[Summary]) -> Result<(), Error> {
        self.write_run(PARTIAL, facts, trials)
    }

    fn write_run(&self, name: &str, facts: &RunFacts, trials: &[Summary]) -> Result<(), Error> {
        let (file, draft) = (self.file(name), self.file(".run.json.tmp"));
        let failed = |e| Error::file(&file, e);
        let mut text =
            serde_json::to_vec_pretty(&run(self.id(), facts, trials)).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        let mut out = File::create(&draft).map_err(failed)?;
        out.write_all(&text).and_then(|()| out.sync_all()).map_err(failed)?;
        fs::rename(&draft, &file).map_err(failed)
    }
}

/// The document.
fn run(id: &str, facts: &RunFacts, trials: &[Summary]) -> Value {
    let cut = trials.iter().any(|trial| trial.totals.cut && trial.early != Some(Early::TakenOver));
    let mut run = json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": id,
        "tool": env!("CARGO_PKG_NAME"),
        "tool_version": env!("CARGO_PKG_VERSION"),
        "started": format!("{:.3}", facts.started),
        "ended": format!("{:.3}", facts.ended),
        "complete": facts.complete && !cut,
        "cut": cut,
        "ok": trials.iter().all(|trial| trial.broken.is_empty()),
        "host": facts.host,
        "trials": facts.earlier.iter().cloned().chain(trials.iter().map(trial)).collect::<Vec<_>>(),
        "notes": facts.notes,
        "search": facts.search,
        "shards": facts.shards,
    });
    without_uris(&mut run);
    run
}

fn trial(summary: &Summary) -> Value {
    let facts = &summary.facts;
    let params: Map<_, _> = facts.params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let knobs: Map<_, _> = facts.knobs.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let names = (0..facts.plan.operations.len()).map(|i| Scope::Operation(i).title(&facts.plan));
    let ended: Map<_, _> = names.zip(summary.totals.ended.iter().map(|&n| json!(n))).collect();
    json!({
        "trial": facts.trial,
        "variant": facts.variant,
        "repeat": facts.repeat,
        "started": format!("{:.3}", facts.go),
        "ended": format!("{:.3}", summary.ended),
        "driver": facts.driver.name,
        "driver_version": facts.driver.version,
        "server_versions": facts.server_versions,
        "mechanism": facts.mechanism,
        "params": params,
        "knobs": knobs,
        "result": summary.result(),
        "options": facts.options,
        "plan": facts.plan,
        "segments": summary.segments.iter().map(|s| segment(s, &facts.plan)).collect::<Vec<_>>(),
        "recovery": summary.recoveries,
        "thresholds": evaluate(summary).iter().map(verdict).collect::<Vec<_>>(),
        "totals": {"ended": ended, "attempts": summary.totals.attempts, "cut": summary.totals.cut},
        "checks": summary.checks,
        "broken": summary.broken,
        "notes": summary.notes,
    })
}

/// The value is in the unit of the metric's column.
fn verdict(verdict: &Verdict) -> Value {
    json!({"fail_if": verdict.condition, "value": verdict.value, "failed": verdict.failed()})
}

/// The parts of the mean, which no table has.
fn segment(segment: &SegmentSummary, plan: &Plan) -> Value {
    let told_apart = reasons_known(plan);
    let mean =
        segment.operations.iter().map(|o| (o.name.clone(), json!(Breakdown::of(&o.stats, told_apart))));
    json!({
        "segment": segment.name,
        "duration_s": segment.duration_s,
        "mean_per_op": mean.collect::<Map<_, _>>(),
    })
}

/// Nobody should hand us a connection string. Should it happen all the same, it must not end up in a file that people
/// share: it may hold a password.
pub(crate) fn without_uris(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("mongodb://") || text.contains("mongodb+srv://") => {
            "(a connection string was here)".clone_into(text);
        }
        Value::Array(values) => values.iter_mut().for_each(without_uris),
        Value::Object(values) => values.values_mut().for_each(without_uris),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
