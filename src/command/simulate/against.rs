//! `--against`: the plans of a run that was measured, and what was measured beside what the model says.

use std::path::Path;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde_json::Value;

use super::trials::{SIMULATED, Wanted};
use crate::client::options;
use crate::command::UsageError;
use crate::compare::trial::{Trial, load, run_json};
use crate::plan::client::OptionSource;
use crate::plan::{Assumptions, OptionSetting, Plan};
use crate::profile::{Overrides, Profile, Source, resolve};
use crate::report::human::{percent, quotient, rate};
use crate::report::stored::Row;
use crate::results::Summary;
use crate::results::facts::{ALL, per_second, title};
use crate::thresholds::Thresholds;
use crate::variants::Variant;

/// Options that the model knows the meaning of.
const KNOWN: [&str; 6] = [
    "maxAdaptiveRetries",
    "enableOverloadRetargeting",
    "readPreference",
    "retryReads",
    "retryWrites",
    "maxPoolSize",
];

/// A run that was measured.
pub struct Measured {
    /// Its profile.
    pub profile: Profile,
    /// Clients, network and servers, as the profile and the command line have them.
    model: Assumptions,
    /// Its trials as run.json tells of them.
    stored: Vec<Value>,
    /// The same as they are compared.
    trials: Vec<Trial>,
    /// Their figures.
    rows: Vec<Row>,
}

impl Measured {
    /// Reads a run. `sets` are those of the command line.
    ///
    /// # Errors
    /// When it is no run, or something else than the model is to be set.
    pub fn read(directory: &Path, sets: &[(String, String)]) -> Result<Self, UsageError> {
        let shown = directory.display();
        let wrong = |why: &dyn std::fmt::Display| UsageError::new(format!("--against {shown}: {why}"));
        if let Some((key, _)) = sets.iter().find(|(key, _)| !key.starts_with("model.")) {
            return Err(wrong(&format!(
                "--set {key}: the run's own plans are simulated, so that only keys of the model can be set, like \
                 model.service_time"
            )));
        }
        let run = run_json(directory).map_err(|error| wrong(&error))?;
        let trials = load(directory).map_err(|error| wrong(&error))?;
        let rows = csv::Reader::from_path(directory.join("summary.csv"))
            .and_then(|mut table| table.deserialize().collect())
            .map_err(|error| wrong(&error))?;
        let file = directory.join("profile.toml");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| wrong(&format!("cannot read '{}': {error}", file.display())))?;
        let stored: Vec<Value> = run["trials"].as_array().cloned().unwrap_or_default();
        let name = stored.first().and_then(|trial| trial["plan"]["profile"].as_str()).unwrap_or("run");
        let source = Source { name: name.to_owned(), shown: file.display().to_string(), text };
        let profile = Profile::read(source, &options::check).map_err(|found| wrong(&found.render(false)))?;
        let overrides = Overrides { sets: sets.to_owned(), ..Overrides::default() };
        let model = resolve(&profile, &overrides, &options::check).map_err(|error| wrong(&error))?.model;
        Ok(Self { profile, model: model.unwrap_or_default(), stored, trials, rows })
    }

    /// Each variant's plan as it was run, on the model.
    ///
    /// # Errors
    /// When one cannot be understood or simulated.
    pub fn wanted(&self) -> Result<Vec<Wanted>, UsageError> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for stored in &self.stored {
            let name = stored["variant"].as_str().unwrap_or_default();
            if wanted.iter().any(|earlier| earlier.variant.name == name) || stored["plan"]["live"] == true {
                continue;
            }
            if stored["driver"] == SIMULATED {
                return Err(UsageError::new(
                    "--against takes a run that was measured, and this one was simulated itself",
                ));
            }
            let plan: Plan = serde_json::from_value(stored["plan"].clone()).map_err(|error| {
                UsageError::new(format!("the plan of variant '{name}' cannot be understood: {error}"))
            })?;
            let text = |key: &str| stored[key].as_str().unwrap_or_default();
            // A driver that is not known is taken for the one of this build.
            let driver = format!("{}:{}", text("driver"), text("driver_version")).parse().ok();
            let client = in_effect(stored);
            let model = Some(self.model.clone());
            let plan = Plan { model, driver, client, thresholds: Thresholds::default(), ..plan };
            let variant = Variant { name: name.to_owned(), settings: varied(stored) };
            wanted.push(Wanted::new(variant, plan, Vec::new())?);
        }
        if wanted.is_empty() {
            return Err(UsageError::new("--against: no trial of this run can be simulated"));
        }
        Ok(wanted)
    }

    /// What was measured beside what was simulated.
    pub fn beside(&self, simulated: &[Summary]) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
        table.set_header([
            "variant",
            "segment",
            "goodput",
            "model",
            "off by",
            "done",
            "model",
            "off by",
            "errors",
            "model",
            "off by",
            "attempts/op",
            "model",
            "off by",
        ]);
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for summary in simulated {
            for segment in &summary.segments {
                let all = segment.all();
                let mean = |of: fn(&Row) -> Option<f64>| self.mean(of, &summary.facts.variant, &segment.name);
                let goodput = per_second(all.stats.outcomes.ok, segment.duration_s);
                let goodputs = (mean(|row| row.goodput_ops_per_s), goodput);
                let done = (mean(|row| row.completed_ops_per_s), all.completed_ops_per_s);
                let errors = (mean(|row| row.error_rate), all.stats.error_rate());
                let attempts = (mean(|row| row.amplification), all.stats.amplification());
                table.add_row([
                    summary.facts.variant.clone(),
                    segment.name.clone(),
                    rate(goodputs.0),
                    rate(goodputs.1),
                    off_by(goodputs),
                    rate(done.0),
                    rate(done.1),
                    off_by(done),
                    percent(errors.0),
                    percent(errors.1),
                    points(errors),
                    quotient(attempts.0),
                    quotient(attempts.1),
                    off_by(attempts),
                ]);
            }
        }
        format!("\nWhat was measured, and what the model says:\n{table}\n")
    }

    /// The mean over a variant's trials of a figure of all operations.
    fn mean(&self, figure: fn(&Row) -> Option<f64>, variant: &str, segment: &str) -> Option<f64> {
        let of = self.trials.iter().filter(|trial| trial.variant == variant && trial.live == "false");
        let values: Vec<f64> = of.filter_map(|trial| figure(self.row(&trial.trial, segment)?)).collect();
        let count = u32::try_from(values.len()).ok().filter(|&count| count > 0)?;
        Some(values.iter().sum::<f64>() / f64::from(count))
    }

    /// The figures of all of a trial's operations in a segment.
    fn row(&self, trial: &str, segment: &str) -> Option<&Row> {
        let mut rows = self.rows.iter().filter(|row| title(&row.client, &row.op) == ALL);
        rows.find(|row| row.trial == trial && row.segment == segment)
    }
}

/// The options of a stored trial that somebody set, wherever, as far as the model knows them.
fn in_effect(stored: &Value) -> Vec<OptionSetting> {
    let options = stored["options"].as_array().into_iter().flatten();
    let set = options.filter(|option| option["from"] != "default");
    set.filter_map(|option| {
        let (name, value) = (option["name"].as_str()?, option["value"].as_str()?);
        KNOWN.contains(&name).then(|| OptionSetting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            from: OptionSource::Set,
        })
    })
    .collect()
}

/// What varied in a stored trial, so that the simulated ones are told apart by the same.
fn varied(stored: &Value) -> Vec<(String, String)> {
    let params = stored["params"].as_object().into_iter().flatten();
    params.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// How far the model is off, as a share of what was measured.
fn off_by((measured, model): (Option<f64>, Option<f64>)) -> String {
    match measured.zip(model).filter(|(measured, _)| *measured > 0.0) {
        Some((measured, model)) => format!("{:+.1}%", (model / measured - 1.0) * 100.0),
        None => "-".to_owned(),
    }
}

/// How far it is off in percentage points.
fn points((measured, model): (Option<f64>, Option<f64>)) -> String {
    match measured.zip(model) {
        Some((measured, model)) => format!("{:+.1}", (model - measured) * 100.0),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_is_off_by_is_told_as_a_share_or_in_points() {
        assert_eq!(off_by((Some(200.0), Some(190.0))), "-5.0%");
        assert_eq!(off_by((Some(0.0), Some(190.0))), "-");
        assert_eq!(off_by((None, Some(1.0))), "-");
        assert_eq!(points((Some(0.5), Some(0.512))), "+1.2");
    }
}
