//! What the coordinator and a child process say to each other: a line of JSON each, an object with one key that tells what
//! it is. The parent writes [`Request`]s to the child's standard input; the child writes [`Message`]s to its standard output.
//!
//! A child makes one trial's load, with a driver of its own. It prepares no data, puts on no overload and writes no file.
//! `workers/protocol.schema.json` describes the same lines for those who write one in another language.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::plan::load::Phase;
use crate::plan::timeline::segments;
use crate::plan::{Driver, Plan};
use crate::snapshot::{Report, Snapshot, Totals};

/// The version of the protocol, which has to be the same on both sides: a plan that one side understands in part makes
/// another load than was asked for.
pub const PROTOCOL: u32 = 2;

/// What this program's sources are told from others by.
pub const SOURCES: &str = env!("OVERDRIVE_SOURCES");

/// The longest line, without its end.
pub const LONGEST_LINE: usize = 16 << 20;

/// What the parent asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first line: what to do, and where.
    Start(Box<Start>),
    /// The load begins: every offset counts from here.
    Go {
        /// The number of the first operation.
        first: u64,
        /// Where operations are parked; `None` where the plan has no spool.
        #[serde(default)]
        spool: Option<PathBuf>,
    },
    /// Begin nothing more, let what is in flight end, report, finish.
    Stop {},
}

/// Everything a child needs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What to do.
    pub plan: Plan,
    /// The plan's parts as the parent has them: in order, without gaps.
    pub segments: Vec<Part>,
    /// The connection string with every option in it, **with the password**.
    pub uri: String,
}

/// A part of the trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// As in the tables.
    pub name: String,
    /// The phase it is part of.
    pub phase: Phase,
    /// When it starts, in nanoseconds since Go.
    pub start_ns: u64,
    /// When it ends; `None` for the last one, which has no end.
    pub end_ns: Option<u64>,
}

/// It has no password in it.
impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("protocol", &self.protocol)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Start {
    /// What is said to a child that is to carry out a plan.
    pub fn new(plan: &Plan, uri: &str) -> Self {
        let part = |segment: crate::plan::timeline::Segment| Part {
            name: segment.name,
            phase: segment.phase,
            start_ns: segment.start_ns,
            end_ns: (segment.end_ns < u64::MAX).then_some(segment.end_ns),
        };
        Self {
            protocol: PROTOCOL,
            plan: plan.clone(),
            segments: segments(plan).into_iter().map(part).collect(),
            uri: uri.to_owned(),
        }
    }
}

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The first line, before anything that takes time or may fail.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The driver's name.
        driver: String,
        /// The driver's version.
        version: String,
        /// [`SOURCES`] of a child that is this program built with another driver; empty for others, which come with it.
        #[serde(default)]
        sources: String,
    },
    /// Connected, primary known: waiting for Go.
    Ready {},
    /// One interval.
    Snapshot(Box<Snapshot>),
    /// Nothing more is begun.
    Closed {
        /// What the next operation's number would have been.
        next: u64,
    },
    /// The last line.
    Done(Totals),
    /// The last line of a child that could not go on.
    Failed {
        /// Why, without any secret.
        message: String,
    },
    /// There is nothing else to say.
    Alive {},
}

impl Message {
    /// The name of its one key.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Ready {} => "ready",
            Self::Snapshot(_) => "snapshot",
            Self::Closed { .. } => "closed",
            Self::Done(_) => "done",
            Self::Failed { .. } => "failed",
            Self::Alive {} => "alive",
        }
    }
}

impl From<Report> for Message {
    fn from(report: Report) -> Self {
        match report {
            Report::Hello(Driver { name, version }) => {
                Self::Hello { protocol: PROTOCOL, driver: name, version, sources: SOURCES.to_owned() }
            }
            Report::Ready => Self::Ready {},
            Report::Snapshot(snapshot) => Self::Snapshot(snapshot),
            Report::Closed(next) => Self::Closed { next },
            Report::Done(totals) => Self::Done(totals),
        }
    }
}

#[cfg(test)]
mod tests;
