//! What is done to the servers, and when.

use serde::{Deserialize, Serialize};

use super::gate::{Generation, Limit};
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
    /// A limit on requests: the server's own (from 8.2 on), or that of the lab's gates.
    LimitRequests(LimitRequests),
    /// A limit on new connections, likewise.
    LimitConnections(LimitConnections),
    /// The server's own failpoint: rejects a share of the commands, whatever the load.
    FailCommand(FailCommand),
    /// Fewer operations than usual at a time inside the storage engine.
    Tickets(Tickets),
    /// Operations of overdrive's own that occupy the storage engine.
    HoldTickets(HoldTickets),
    /// Many documents in the collection under query, which makes every scan of it slow; they go away at the end.
    LatencyEvent(LatencyEvent),
    /// The server's process is stopped, and goes on at the end.
    Stall {},
    /// The server's process is killed, and started again at the end.
    Kill {},
    /// The primary gives up its office, and does not stand for it until the end.
    StepDown {},
}

impl Fault {
    /// The kind as profiles and `--allow-faults` spell it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LimitRequests(_) => "limit_requests",
            Self::LimitConnections(_) => "limit_connections",
            Self::FailCommand(_) => "fail_command",
            Self::Tickets(_) => "tickets",
            Self::HoldTickets(_) => "hold_tickets",
            Self::LatencyEvent(_) => "latency_event",
            Self::Stall {} => "stall",
            Self::Kill {} => "kill",
            Self::StepDown {} => "step_down",
        }
    }

    /// Whether it hits connections of one application name alone.
    pub const fn goes_by_name(&self) -> bool {
        matches!(self, Self::FailCommand(_))
    }

    /// Whether it takes the lab, since it is done to processes.
    pub const fn needs_lab(&self) -> bool {
        matches!(self, Self::Stall {} | Self::Kill {})
    }

    /// Whether gates do it where the servers cannot.
    pub const fn takes_gates(&self) -> bool {
        matches!(self, Self::LimitRequests(_) | Self::LimitConnections(_))
    }

    /// Whether it is of the primary by its nature, so that there are no members to choose.
    pub const fn is_of_the_primary(&self) -> bool {
        matches!(self, Self::LatencyEvent(_) | Self::StepDown {})
    }

    /// Whether what it rejects, if anything, depends on how much load there is.
    pub const fn depends_on_load(&self) -> bool {
        !matches!(self, Self::FailCommand(_))
    }
}

/// Whether a member cannot have faults of both kinds on at a time: it has one of each kind alone, and whose process is
/// stopped or killed can neither be told of another nor keep one.
pub fn exclude_each_other(one: &str, other: &str) -> bool {
    const OF_THE_PROCESS: [&str; 2] = ["stall", "kill"];
    const OF_THE_SERVER: [&str; 4] = ["fail_command", "tickets", "hold_tickets", "step_down"];
    let (process, server) = (|kind| OF_THE_PROCESS.contains(&kind), |kind| OF_THE_SERVER.contains(&kind));
    one == other || process(one) && (process(other) || server(other)) || process(other) && server(one)
}

/// What sheds load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The server's own limiter.
    Native,
    /// A gate before each member of the lab.
    Gate,
    /// The server's own failpoint, which does not depend on load.
    Failpoint,
}

impl Mechanism {
    /// As files have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Gate => "gate",
            Self::Failpoint => "failpoint",
        }
    }
}

/// A token bucket before every request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRequests {
    /// Its size.
    #[serde(flatten)]
    pub limit: Limit,
    /// What is to shed; without it the servers' own limiter where there is one, else the gates.
    pub mechanism: Option<Mechanism>,
    /// What clients are told to base their backoff on, in milliseconds; `None` leaves that to them.
    pub base_backoff_ms: Option<i64>,
    /// Off, rejections lack the label `RetryableError`.
    pub allow_retries: bool,
    /// Whose rejections a gate copies.
    pub generation: Generation,
    /// The code of a gate's rejections.
    pub code: i32,
    /// The labels of a gate's rejections, instead of the generation's.
    pub labels: Option<Vec<String>>,
}

/// A token bucket before every new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitConnections {
    /// Its size.
    #[serde(flatten)]
    pub limit: Limit,
    /// What is to shed; without it the servers' own limiter where there is one, else the gates.
    pub mechanism: Option<Mechanism>,
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

/// The fewest tickets that a server takes.
pub const FEWEST_TICKETS: u32 = 5;
/// More would be no limit.
pub const MOST_TICKETS: u32 = 100_000;
/// The most tickets that are occupied: each takes a connection of its own.
pub const MOST_HELD: u32 = 1000;
/// The longest time that a ticket is held at a time: what is under way when the run ends goes on that long.
pub const LONGEST_HOLD: Span = Span::seconds(5);
/// The most documents of a latency event.
pub const MOST_EXTRA: u64 = 100_000_000;
/// The most bytes in each of them; a document must stay below 16 MB.
pub const LARGEST_EXTRA: u32 = 1_000_000;

/// How many operations the storage engine takes at a time; at least one of the two is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tickets {
    /// Reads.
    pub read: Option<u32>,
    /// Writes.
    pub write: Option<u32>,
}

/// Operations that hold tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldTickets {
    /// How many tickets are held.
    pub count: u32,
    /// How long each is held at a time, before it is given back and taken again.
    pub hold: Span,
}

/// Documents that are inserted at the start and deleted at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyEvent {
    /// How many.
    pub documents: u64,
    /// Bytes of text in each.
    pub size: u32,
}
