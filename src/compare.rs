//! What differs between runs, in words that the data can bear.
//!
//! ```text
//!  text ──selection──▶ directories ──trial──▶ Trials ──side──▶ Sides ──comparability──▶ notes, or a refusal
//!                                                               │
//!           per metric: medians, ratio, interval, p-value ◀─────┘
//!                                  │ Holm's correction over everything compared
//!                                  ▼
//!                    verdict ──▶ Comparison ──output──▶ table, markdown, csv, json
//! ```
//!
//! Trials are what is counted: the seconds of one trial resemble each other, so they say how sure its own figures are, and
//! nothing of how much the next trial differs.

pub mod comparability;
pub mod output;
pub mod row;
mod seconds;
pub mod selection;
pub mod side;
pub mod statistics;
pub mod trial;
pub mod verdict;

use std::fmt::Display;
use std::path::Path;

use self::comparability::Part;
use self::row::{Row, decide, rows};
use self::side::Side;
use self::verdict::{FEWEST_TRIALS, Verdict};
use crate::metric::Metric;
use crate::results::facts::{ALL, is_of_client};

/// How often trials are drawn anew for an interval, where nobody wants otherwise.
pub const DRAWS: usize = 10_000;

/// Why runs cannot be compared. The messages are whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for makes no sense: to be mended on the command line.
    #[error("{0}")]
    Asked(String),
    /// What is stored cannot be read.
    #[error("{0}")]
    Stored(String),
}

impl Error {
    pub(crate) fn asked(what: impl Into<String>) -> Self {
        Self::Asked(what.into())
    }

    pub(crate) fn stored(what: impl Into<String>) -> Self {
        Self::Stored(what.into())
    }

    pub(crate) fn file(path: &Path, reason: impl Display) -> Self {
        Self::Stored(format!("cannot read '{}': {reason}; leave its run out", path.display()))
    }
}

/// What is compared, and how strictly.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// In the order in which they are shown; more of them take more trials.
    pub metrics: Vec<Metric>,
    /// The segment of the measured time; `all` for the whole.
    pub segment: String,
    /// The operation; `all` for all together.
    pub op: String,
    /// The relative difference that does not matter: 0.02 is 2 %.
    pub noise: f64,
    /// In what else the sides may differ.
    pub across: Vec<Part>,
    /// How often trials are drawn anew for an interval.
    pub draws: usize,
}

/// A new side against the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The new side.
    pub new: Side,
    /// A row per metric.
    pub rows: Vec<Row>,
    /// What must be known to read them.
    pub notes: Vec<String>,
}

/// Everything that was compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What all others are held against.
    pub base: Side,
    /// The others.
    pub pairs: Vec<Pair>,
    /// How.
    pub settings: Settings,
}

impl Comparison {
    /// Whether anything got worse.
    pub fn has_regression(&self) -> bool {
        self.rows().any(|row| row.verdict == Verdict::Worse)
    }

    /// Whether anything was compared in earnest: else no regression says nothing.
    pub fn decides_anything(&self) -> bool {
        let open = [Verdict::NotEnoughData, Verdict::NoVerdict];
        self.rows().any(|row| !open.contains(&row.verdict))
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.pairs.iter().flat_map(|pair| &pair.rows)
    }
}

/// Compares each new side with the base.
///
/// # Errors
/// When the sides did not do the same, lack the segment or operation, or the seconds of a trial cannot be read.
pub fn compare(base: Side, news: Vec<Side>, settings: Settings) -> Result<Comparison, Error> {
    let mut pairs = Vec::new();
    for new in news {
        exists(&base, &settings)?;
        exists(&new, &settings)?;
        let mut notes = comparability::check(&base, &new, &settings.across)?;
        let rows = rows(&base, &new, &settings)?;
        notes.extend(limits(&base, &new));
        notes.extend(of_clients(&base, &settings));
        pairs.push(Pair { new, rows, notes });
    }
    decide(pairs.iter_mut().flat_map(|pair| &mut pair.rows).collect(), settings.noise);
    for pair in &mut pairs {
        pair.notes.extend(survivors(&pair.rows));
    }
    Ok(Comparison { base, pairs, settings })
}

/// Latencies are those of successful operations, and where more succeed, they are of others, maybe of slower ones.
fn survivors(rows: &[Row]) -> Option<String> {
    let errors = rows.iter().find(|row| row.metric == Metric::ErrorRate)?;
    matches!(errors.verdict, Verdict::Better | Verdict::Worse).then(|| {
        "error rates differ, so latencies and service times, which are those of successful operations, are not of the same \
         operations"
            .to_owned()
    })
}

/// Whether a side has the segment and the operation at all.
fn exists(side: &Side, settings: &Settings) -> Result<(), Error> {
    let figures = &side.first().figures;
    if figures.iter().any(|f| f.segment == settings.segment && f.op == settings.op) {
        return Ok(());
    }
    let mut segments: Vec<&str> = figures.iter().map(|f| f.segment.as_str()).collect();
    let mut ops: Vec<&str> = figures.iter().map(|f| f.op.as_str()).collect();
    segments.dedup();
    ops.sort_unstable();
    ops.dedup();
    Err(Error::asked(format!(
        "'{}' has no operation {} in a segment {}: there are the segments {} and the operations {}",
        side.name,
        settings.op,
        settings.segment,
        segments.join(", "),
        ops.join(", ")
    )))
}

/// Where several clients' figures are one: what one of them gained another may have lost.
fn of_clients(base: &Side, settings: &Settings) -> Option<String> {
    let each = base.first().figures.iter().filter(|f| f.segment == settings.segment && is_of_client(&f.op));
    let each: Vec<String> = each.map(|figures| format!("--op {}", figures.op)).collect();
    (settings.op == ALL && !each.is_empty()).then(|| {
        format!(
            "these are the figures of all clients together, which hide what one took from another: {} compares one",
            each.join(" or ")
        )
    })
}

/// What the load's model and the number of trials leave open.
fn limits(base: &Side, new: &Side) -> Vec<String> {
    let mut limits = Vec::new();
    if base.first().closed || new.first().closed {
        limits.push("closed: latency omits waiting for a worker".to_owned());
    }
    match base.trials.len().min(new.trials.len()) {
        1 if one_each(base, new) => limits.push(format!(
            "one trial a side: the intervals are weaker, since they come of the seconds within a trial (corrected for \
             autocorrelation, segment by segment) and know nothing of how trials differ; no verdict rests on them, but on \
             {FEWEST_TRIALS} trials a side and more"
        )),
        n if n < FEWEST_TRIALS => limits.push(format!(
            "{} against {} trials: these figures only describe what was measured; a verdict takes {FEWEST_TRIALS} a side \
             and more",
            base.trials.len(),
            new.trials.len()
        )),
        _ => {}
    }
    limits
}

pub(crate) fn one_each(base: &Side, new: &Side) -> bool {
    base.trials.len() == 1 && new.trials.len() == 1
}

#[cfg(test)]
mod tests;
