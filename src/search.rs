//! The search for the largest rate that a deployment holds: which rate is tried next, from what is known so far. A pure
//! function of the history, so that it can be tested without any load.
//!
//! ```text
//!  first ──holds──▶ double, until one fails ──▶ bisect ──narrow──▶ confirm ──holds──▶ found
//!    └──fails──▶ halve, until one holds ──────────▲                   └──fails──▶ bisect below, confirming
//!
//!  after each failure: the lowest rate that held, until it holds again (baseline)
//! ```
//!
//! A failure says something about its rate only where the deployment was seen to be well just before: what fails after a
//! failure may do so because the deployment still suffers from that one. So those that fail on the way down are tried once
//! more when something has held, if they still matter.

mod findings;

use serde::Serialize;

pub use findings::{Findings, Step};

/// Two rates of which the lower one holds and the higher one fails are near enough if their quotient is no larger.
pub const NEAR: f64 = 1.05;

/// The lowest rate tried, as a share of the first one: six times halved.
pub const FLOOR: f64 = 1.0 / 64.0;

/// How many trials in a row at a rate that held before may fail until the deployment is given up.
pub const PATIENCE: usize = 6;

/// How many confirmations there are at most.
pub const MOST_CONFIRMATIONS: usize = 8;

/// What a trial of a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To learn whether this rate holds.
    Step,
    /// To learn whether the deployment is back.
    Baseline,
    /// To learn whether a rate holds for longer.
    Confirm,
}

impl Role {
    /// As files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Baseline => "baseline",
            Self::Confirm => "confirm",
        }
    }
}

/// A trial that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// What it was for.
    pub role: Role,
    /// Operations per second.
    pub rate: f64,
    /// Whether all conditions held.
    pub held: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A trial at so many operations per second.
    Try(Role, f64),
    /// Nothing.
    End(Ending),
}

/// How a search ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A rate was confirmed.
    Found,
    /// Rates held, and none of them for the time of a confirmation.
    NoneConfirmed,
    /// No rate held down to the lowest.
    NoneHeld,
    /// After a failure the deployment did not come back. What was known by then stands.
    NeverBack,
}

/// A search that begins at `first` and goes no higher than `ceiling`, both in operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The first rate tried.
    pub first: f64,
    /// The highest one; not below the first.
    pub ceiling: f64,
}

/// What trials have shown so far, in operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// The smallest rate that failed on a deployment that was well.
    pub failed: Option<f64>,
    /// The largest rate below it that held.
    pub held: Option<f64>,
    /// The smallest rate that held.
    pub lowest: Option<f64>,
    /// The largest rate below the smallest that failed that held for the time of a confirmation.
    pub confirmed: Option<f64>,
}

impl Known {
    /// From everything that was tried.
    pub fn of(history: &[Tried]) -> Self {
        let well_before = |i: usize| i.checked_sub(1).is_none_or(|before| history[before].held);
        let counts =
            |&(i, tried): &(usize, &Tried)| tried.role != Role::Baseline && !tried.held && well_before(i);
        let failed = history.iter().enumerate().filter(counts).map(|(_, t)| t.rate).min_by(f64::total_cmp);
        let held = history.iter().filter(|t| t.held && failed.is_none_or(|failed| t.rate < failed));
        let confirmed = held.clone().filter(|t| t.role == Role::Confirm);
        Self {
            failed,
            held: held.clone().map(|t| t.rate).max_by(f64::total_cmp),
            lowest: held.map(|t| t.rate).min_by(f64::total_cmp),
            confirmed: confirmed.map(|t| t.rate).max_by(f64::total_cmp),
        }
    }
}

impl Search {
    /// What to do after all this; always the same after the same.
    pub fn next(&self, history: &[Tried]) -> Next {
        let known = Known::of(history);
        let wanted = self.wanted(&known, history);
        let (Next::Try(..), Some(lowest), Some(Tried { held: false, .. })) =
            (wanted, known.lowest, history.last())
        else {
            return wanted;
        };
        let waited = history.iter().rev().take_while(|tried| tried.role == Role::Baseline).count();
        if waited < PATIENCE { Next::Try(Role::Baseline, lowest) } else { Next::End(Ending::NeverBack) }
    }

    /// What is to be learnt next from a deployment that is well.
    fn wanted(&self, known: &Known, history: &[Tried]) -> Next {
        let Some(held) = known.held else { return self.lower(history) };
        let confirmations = history.iter().filter(|tried| tried.role == Role::Confirm).count();
        let between =
            |low: f64| known.failed.filter(|failed| failed / low > NEAR).map(|high| middle(low, high));
        if confirmations == 0 {
            return match (known.failed, between(held)) {
                (None, _) if held < self.ceiling => Next::Try(Role::Step, (held * 2.0).min(self.ceiling)),
                (_, Some(middle)) => Next::Try(Role::Step, middle),
                _ => Next::Try(Role::Confirm, held),
            };
        }
        match (known.confirmed, between(known.confirmed.unwrap_or(held))) {
            (Some(_), None) => Next::End(Ending::Found),
            (Some(_), _) if confirmations >= MOST_CONFIRMATIONS => Next::End(Ending::Found),
            (None, _) if confirmations >= MOST_CONFIRMATIONS => Next::End(Ending::NoneConfirmed),
            (_, Some(middle)) => Next::Try(Role::Confirm, middle),
            (None, None) => Next::Try(Role::Confirm, held),
        }
    }

    /// Where nothing has held below what fails: the first rate, then half of the lowest so far.
    fn lower(&self, history: &[Tried]) -> Next {
        let Some(lowest) = history.iter().map(|tried| tried.rate).min_by(f64::total_cmp) else {
            return Next::Try(Role::Step, self.first);
        };
        let next = rounded(lowest / 2.0);
        let confirmed_none = history.iter().any(|tried| tried.role == Role::Confirm);
        // Each halving may have been rounded down.
        match next < self.first * FLOOR * 0.9 {
            true if confirmed_none => Next::End(Ending::NoneConfirmed),
            true => Next::End(Ending::NoneHeld),
            false => Next::Try(Role::Step, next),
        }
    }
}

/// The middle of two rates that are not near, by their quotient.
fn middle(low: f64, high: f64) -> f64 {
    rounded((low * high).sqrt())
}

/// To three digits: more say nothing, and names should be short.
fn rounded(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}

#[cfg(test)]
mod tests;
