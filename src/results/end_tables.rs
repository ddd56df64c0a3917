//! The tables that a trial adds to when it ends. They are opened when it starts: a place that cannot be written to, or
//! trials with different options, should be found before the load is made, not after.

use super::accumulated::Accumulated;
use super::csv_file::{CsvFile, columns};
use super::tables::{BackoffRow, ErrorRow, RecoveryRow, RetriesRow, StalenessRow, SummaryRow};
use super::{Error, RunDirectory, Summary, TrialFacts, trial_rows};

/// `summary.csv`, `retries.csv`, `backoff.csv`, `errors.csv`, `recovery.csv`, and `staleness.csv` with a probe.
pub(crate) struct EndTables {
    summary: CsvFile,
    retries: CsvFile,
    backoff: CsvFile,
    errors: CsvFile,
    recovery: CsvFile,
    staleness: Option<CsvFile>,
}

impl EndTables {
    /// Opens them all.
    pub fn open(directory: &RunDirectory, facts: &TrialFacts) -> Result<Self, Error> {
        let mut with_params = columns::<SummaryRow>();
        let staleness = facts
            .plan
            .staleness
            .map(|_| CsvFile::open(directory.file("staleness.csv"), &columns::<StalenessRow<'_>>()));
        with_params.extend(trial_rows::param_columns(&facts.params));
        Ok(Self {
            summary: CsvFile::open(directory.file("summary.csv"), &with_params)?,
            retries: CsvFile::open(directory.file("retries.csv"), &columns::<RetriesRow<'_>>())?,
            backoff: CsvFile::open(directory.file("backoff.csv"), &columns::<BackoffRow<'_>>())?,
            errors: CsvFile::open(directory.file("errors.csv"), &columns::<ErrorRow<'_>>())?,
            recovery: CsvFile::open(directory.file("recovery.csv"), &columns::<RecoveryRow<'_>>())?,
            staleness: staleness.transpose()?,
        })
    }

    /// Adds a trial's rows.
    pub fn write(mut self, summary: &Summary, sums: &Accumulated) -> Result<(), Error> {
        let params: Vec<Option<&str>> = summary.facts.params.iter().map(|(_, v)| v.as_deref()).collect();
        for row in trial_rows::summary(summary) {
            self.summary.row((row, &params))?;
        }
        self.summary.flush()?;
        for row in trial_rows::retries(summary) {
            self.retries.row(row)?;
        }
        self.retries.flush()?;
        for row in trial_rows::backoff(summary) {
            self.backoff.row(row)?;
        }
        self.backoff.flush()?;
        for row in trial_rows::errors(summary, sums) {
            self.errors.row(row)?;
        }
        self.errors.flush()?;
        for row in trial_rows::recovery(summary) {
            self.recovery.row(row)?;
        }
        self.recovery.flush()?;
        let Some(mut staleness) = self.staleness else { return Ok(()) };
        for row in trial_rows::staleness(summary) {
            staleness.row(row)?;
        }
        staleness.flush()
    }
}
