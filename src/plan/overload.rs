//! What is done to the servers, and when.

use serde::{Deserialize, Serialize};

use crate::units::{Offset, Span};

/// One entry of the overload timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// Its name in files and on screen; unique in the plan.
    pub name: String,
    /// When it starts, from the start of the measured time; a negative one falls in the warm-up.
    pub at: Offset,
    /// How long it lasts; above zero.
    #[serde(rename = "for")]
    pub length: Span,
    /// Whom it hits.
    pub members: Members,
    /// What it does.
    pub fault: Fault,
}

impl Overload {
    /// Whether there is a time at which both are on.
    pub fn may_meet(&self, other: &Self) -> bool {
        let span = |o: &Self| {
            let length = i64::try_from(o.length.duration().as_nanos()).unwrap_or(i64::MAX);
            (o.at.nanos(), o.at.nanos().saturating_add(length))
        };
        let ((on, off), (other_on, other_off)) = (span(self), span(other));
        on < other_off && other_on < off
    }
}

/// Members of the replica set, as they stand when the overload starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    /// Every member.
    All,
    /// The primary at that time.
    Primary,
    /// Every secondary at that time.
    Secondaries,
    /// By position in the sorted list of members, from 0.
    Numbers(Vec<usize>),
}

impl Members {
    /// Whether a member may be among both. The primary may be any number.
    pub fn may_meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Primary, Self::Secondaries) | (Self::Secondaries, Self::Primary) => false,
            (Self::Numbers(these), Self::Numbers(those)) => these.iter().any(|number| those.contains(number)),
            _ => true,
        }
    }
}

/// The ways to push a server past its limit. The names are those of profiles and of `--allow-faults`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The server's own failpoint: rejects a share of the commands, whatever the load.
    FailCommand(FailCommand),
}

impl Fault {
    /// The kind as profiles and `--allow-faults` spell it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::FailCommand(_) => "fail_command",
        }
    }

    /// Whether it hits connections of one application name alone.
    pub const fn goes_by_name(&self) -> bool {
        match self {
            Self::FailCommand(_) => true,
        }
    }

    /// Whether what it rejects depends on how much load there is.
    pub const fn depends_on_load(&self) -> bool {
        match self {
            Self::FailCommand(_) => false,
        }
    }
}

/// Rejection by the server's `failCommand` failpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailCommand {
    /// Command names; never empty.
    pub commands: Vec<String>,
    /// The chance that a matching command is rejected, above 0 and at most 1.
    pub probability: f64,
    /// The error code of the rejection.
    pub code: i32,
    /// Its labels; may be empty.
    pub labels: Vec<String>,
}
