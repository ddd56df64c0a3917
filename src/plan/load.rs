//! How much load, in which shape, for how long.

use serde::{Deserialize, Serialize};

use crate::units::{Rate, Span};

/// The most workers of the closed model.
pub const MOST_WORKERS: u32 = 100_000;

/// The load of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Who decides when the next operation starts.
    pub model: Model,
    /// Load that runs before anything is measured, at the first stage's starting rate.
    pub warmup: Span,
    /// The measured part; above zero. In the open model it is the sum of the stages.
    pub duration: Span,
    /// How long the load may go on after `duration` while measured operations are still under way.
    pub cooldown: Span,
}

/// Who decides when the next operation starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Operations are due when the arrival process says so, whatever the server does.
    Open {
        /// At least one; their lengths sum to the load's duration.
        stages: Vec<Stage>,
        /// How arrivals are spread.
        arrivals: Arrivals,
        /// The most operations under way at once.
        max_in_flight: u32,
    },
    /// Each worker starts its next operation when the previous one has ended.
    Closed {
        /// How many; at least one.
        workers: u32,
    },
}

/// A stretch of the measured time; the rate goes from `from` to `to` in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its length; above zero.
    #[serde(rename = "for")]
    pub length: Span,
    /// The rate at its start.
    pub from: Rate,
    /// The rate at its end.
    pub to: Rate,
}

/// How arrivals are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent arrivals: exponential gaps, as many users make them.
    #[default]
    Poisson,
    /// Equal gaps.
    Even,
}

/// A part of a trial; an operation belongs to the one its intended start falls in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before anything counts: pools fill, caches warm.
    Warmup,
    /// The same where a trial takes over from another one while the load goes on: operations of that one still end.
    Transition,
    /// What the results are about.
    Measure,
    /// The load goes on so that the last measured operations meet the same servers as the first.
    Cooldown,
}

impl Phase {
    /// The name used in files and on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warmup",
            Self::Transition => "transition",
            Self::Measure => "measure",
            Self::Cooldown => "cooldown",
        }
    }
}
