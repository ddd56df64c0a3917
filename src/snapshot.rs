//! What everyone who shows or stores something gets from the engine: data only, no way back.
//!
//! A snapshot is the delta of one interval. Intervals end exactly at whole seconds and at segments' borders, follow each
//! other without gaps, and add up to the trial; only the last one ends when the trial does.

mod beside;
mod cells;
mod dead_letters;
mod folding;
mod merge;
mod starving;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use dead_letters::{DeadLetter, DeadLetters, MOST_TOLD};
pub use folding::Folding;

use crate::plan::{Driver, Plan};
use crate::stats::{Latencies, OpStats};

/// Everything the engine says, in this order: Hello, Ready, then snapshots from Go on (and Closed once among the last of
/// them), Done.
/// Any of them may be followed by the end of the channel, when the engine's future returns its error.
#[derive(Clone, Debug)]
pub enum Report {
    /// Who will do the work.
    Hello(Driver),
    /// Connected, primary known: waiting for Go.
    Ready,
    /// One interval.
    Snapshot(Box<Snapshot>),
    /// Nothing more is begun: this would have been the next operation's number.
    Closed(u64),
    /// Nothing follows.
    Done(Totals),
}

/// How far the data load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// Documents stored so far.
    pub stored: u64,
    /// Documents wanted.
    pub wanted: u64,
}

/// One interval. All offsets are nanoseconds since Go.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// 0, 1, 2 … without gaps.
    pub sequence: u64,
    /// Where the interval starts: the end of the one before it.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// The segment (an index into the plan's segments) the interval itself lies in.
    pub segment: usize,
    /// What ended, started or was due in the interval, by (segment of the operation's intended start, operation).
    /// Operation numbers are positions in the plan. Pairs where nothing happened are left out.
    #[serde(with = "cells")]
    pub cells: BTreeMap<(usize, usize), OpStats>,
    /// Operations without an outcome at the interval's end, by operation; as long as the plan's operations.
    pub open: Vec<u64>,
    /// What the client saw of each server, in the order they were first seen; servers are never forgotten.
    pub servers: Vec<ServerStats>,
    /// Errors, by class.
    pub errors: Vec<ErrorCount>,
    /// Commands outside any operation, by name.
    pub orphans: BTreeMap<String, u64>,
    /// How the load generator itself fares.
    pub generator: Generator,
    /// How what the application does about rejection stands at the interval's end.
    #[serde(default)]
    pub flow: FlowState,
    /// What has happened to that in the interval.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Items of bulks that no server takes, found in the interval.
    #[serde(default, skip_serializing_if = "DeadLetters::is_empty")]
    pub dead_letters: DeadLetters,
    /// How each of several clients stands; empty for one, which is all there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientState>,
}

impl Snapshot {
    /// How what applications do about rejection stands, with two spaces before each part and each client's name before its
    /// own; empty where nothing is done.
    pub fn flow_in_words(&self, plan: &Plan) -> String {
        let each =
            plan.clients.iter().zip(&self.clients).map(|(group, state)| (group, state.flow.to_string()));
        let told = each.filter(|(_, flow)| !flow.is_empty());
        let clients: String = told.map(|(group, flow)| format!("  {}:{flow}", group.name)).collect();
        format!("{}{clients}", self.flow)
    }
}

/// How one of several clients stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientState {
    /// Its part of the load generator; processors and memory are those of all together.
    pub generator: Generator,
    /// What its application does about rejection.
    pub flow: FlowState,
    /// How many connections its pool has that gave none to anyone; see [`Snapshot::starving`].
    #[serde(default)]
    pub starving: Option<u64>,
}

/// How what the application does about rejection stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowState {
    /// Operations that may be under way at once; `None` without a limit.
    pub limit: Option<u32>,
    /// `closed`, `open` or `half_open`; `None` without a breaker.
    pub breaker: Option<String>,
    /// Operations that wait in the producer's queue; `None` without one.
    pub queued: Option<u64>,
    /// Operations in the spool; `None` without one.
    pub spooled: Option<u64>,
}

/// Each part that is there, with two spaces before it.
impl fmt::Display for FlowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(limit) = self.limit {
            write!(f, "  limit {limit}")?;
        }
        if let Some(queued) = self.queued {
            write!(f, "  queue {queued}")?;
        }
        if let Some(spooled) = self.spooled {
            write!(f, "  spool {spooled}")?;
        }
        self.breaker.iter().try_for_each(|breaker| write!(f, "  breaker {breaker}"))
    }
}

/// What the client saw of one server in an interval.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStats {
    /// host:port.
    pub address: String,
    /// Attempts that ended.
    pub attempts: u64,
    /// Of them: rejected.
    pub rejected: u64,
    /// Of them: came from a rejection elsewhere.
    pub retargeted: u64,
    /// Waits for a connection.
    pub checkout: Latencies,
    /// Pool events.
    pub pool: PoolCounts,
    /// Connections open at the interval's end.
    pub connections_open: u64,
}

/// What happened to a connection pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolCounts {
    /// Connections created.
    pub created: u64,
    /// Closed because the pool had been cleared since they were made.
    pub closed_stale: u64,
    /// Closed after lying idle too long.
    pub closed_idle: u64,
    /// Closed after an error.
    pub closed_error: u64,
    /// Closed because an operation was given up while its command was on the wire.
    pub closed_dropped: u64,
    /// Closed with the pool.
    pub closed_pool_closed: u64,
    /// Times the pool was cleared.
    pub clears: u64,
}

impl PoolCounts {
    /// Connections that are open, when these are counts since the client was made.
    pub const fn open(&self) -> u64 {
        self.created.saturating_sub(self.closed())
    }

    /// What happened since an earlier count.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            created: self.created - earlier.created,
            closed_stale: self.closed_stale - earlier.closed_stale,
            closed_idle: self.closed_idle - earlier.closed_idle,
            closed_error: self.closed_error - earlier.closed_error,
            closed_dropped: self.closed_dropped - earlier.closed_dropped,
            closed_pool_closed: self.closed_pool_closed - earlier.closed_pool_closed,
            clears: self.clears - earlier.clears,
        }
    }
}

/// What went wrong, without the particulars: memory does not grow with error texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ErrorClass {
    /// The driver's kind of error in snake case (`command`, `io`, `server_selection` …).
    pub kind: String,
    /// The server's code, where it gave one.
    pub code: Option<i32>,
    /// The server's name for the code; may be empty.
    pub code_name: String,
    /// Sorted.
    pub labels: Vec<String>,
}

/// Whether an error ended an attempt or an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorLevel {
    /// One try failed; the driver may have tried again.
    Attempt,
    /// The application saw it.
    Operation,
}

/// Errors of one class in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The segment of the operation's intended start.
    pub segment: usize,
    /// The operation's position in the plan.
    pub operation: usize,
    /// What it ended.
    pub level: ErrorLevel,
    /// Its class.
    pub class: ErrorClass,
    /// How many.
    pub count: u64,
    /// When the first of them happened, since Go.
    pub first_ns: u64,
    /// When the last of them happened, since Go.
    pub last_ns: u64,
    /// The message of one of them, cut to 200 characters, never with credentials.
    pub example: String,
}

/// How the load generator itself fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// CPU time of this process in the interval.
    pub cpu_ns: u64,
    /// Its resident memory at the interval's end.
    pub rss_bytes: u64,
    /// How long the oldest operation that is due has been waiting for a worker, at the interval's end.
    pub behind_ns: u64,
    /// Tasks that can carry an operation.
    pub workers: u64,
    /// Operations given to the driver and not ended.
    pub in_flight: u64,
}

/// What the whole trial must add up to: the engine counts these on their own, beside the snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Operations that got an outcome, by operation.
    pub ended: Vec<u64>,
    /// Attempts that ended.
    pub attempts: u64,
    /// Those of each of several clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<u64>,
    /// Whether a stop was asked for before the measured time was over.
    pub cut: bool,
}

/// What one server says of itself, once an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// host:port, as the driver spells it.
    pub address: String,
    /// `primary`, `secondary`, `mongos` …
    pub role: String,
    /// Values by the names in [`SERVER_COUNTERS`], as the server gives them: counters run since it started, the others
    /// are of the moment. What it does not know is left out; other names are not stored.
    pub counters: BTreeMap<String, i64>,
    /// What the staleness probe found in the interval; `None` without a probe.
    pub staleness: Option<StalenessStats>,
}

/// What the staleness probe found of one server in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StalenessStats {
    /// How old what reads saw was, by the role that the server had when it was read. Nothing (0) is a read that saw every
    /// acknowledged heartbeat.
    pub by_role: BTreeMap<String, Latencies>,
    /// Reads without an answer in time and, on the primary, heartbeats without an acknowledgement.
    pub failures: u64,
}

/// The numbers of a server that results keep, in the order of their columns. New ones are added at the end only.
pub const SERVER_COUNTERS: [&str; 31] = [
    "opcounters_insert",
    "opcounters_query",
    "opcounters_update",
    "opcounters_delete",
    "opcounters_getmore",
    "opcounters_command",
    "connections_current",
    "connections_total_created",
    "queue_readers",
    "queue_writers",
    "active_readers",
    "active_writers",
    "read_tickets_available",
    "read_tickets_out",
    "write_tickets_available",
    "write_tickets_out",
    "admissions_attempted",
    "admissions_successful",
    "admissions_rejected",
    "admissions_exempted",
    "admission_tokens_available",
    "network_requests",
    "network_in_bytes",
    "network_out_bytes",
    "admissions_waiting",
    "connection_admissions_attempted",
    "connection_admissions_successful",
    "connection_admissions_rejected",
    "connection_admissions_exempted",
    "connection_admissions_waiting",
    "connection_admission_tokens_available",
];

/// Something that happened at a moment, rather than over an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in nanoseconds since Go; negative before it.
    pub at_ns: i64,
    /// What: `overload_on`, `overload_off`, `primary_changed`, `generator_saturated` …
    pub kind: String,
    /// To whom: an overload's name, a server's address; may be empty.
    pub subject: String,
    /// The particulars, in words; may be empty.
    pub detail: String,
}
