//! What a trial must come to, and what it must not.
//!
//! ```text
//!  [thresholds], --fail-if, --abort-when ──condition──▶ Thresholds, in the plan
//!                                                          │
//!  Snapshot, each interval ──▶ Hopeless ◀── abort_when ────┤
//!                                 └─▶ the trial ends early │
//!  Summary, at its end ──▶ evaluate ◀── fail_if ───────────┘
//!                             └─▶ Verdicts
//! ```
//!
//! A [`Condition`] by itself neither allows nor forbids anything: it can be asked what its figure is in a summary, and
//! whether it holds there.

mod condition;
pub mod hopeless;
mod verdict;

use serde::{Deserialize, Serialize};

pub use condition::{ALL, Comparison, Condition, Mistake};
pub use hopeless::Hopeless;
pub use verdict::{Verdict, evaluate};

/// The thresholds of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The trial fails if one of these holds at its end, or if it has no such figure.
    pub fail_if: Vec<Condition>,
    /// It is ended early, and fails, once one of these has held for a while.
    pub abort_when: Vec<Condition>,
}

impl Thresholds {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Condition> {
        self.fail_if.iter().chain(&self.abort_when)
    }
}
