//! What one trial does, with nothing left to decide: every default is filled in, every name is resolved, and there is no
//! secret in it (the URI travels beside it). Pure data, so that it can be printed, compared, and sent to a worker in
//! another process or language as JSON.

pub mod client;
pub mod clients;
pub mod driver;
pub mod flow;
pub mod gate;
pub mod load;
pub mod model;
pub mod operation;
pub mod overload;
pub mod shard;
pub mod staleness;
pub mod template;
pub mod timeline;

use serde::{Deserialize, Serialize};

use crate::thresholds::Thresholds;

pub use client::{OptionSetting, ResolvedOption};
pub use clients::ClientGroup;
pub use driver::Driver;
pub use flow::{
    Backoff, BackoffKind, Breaker, Budget, BudgetLaw, ConcurrencyLimit, Flow, LimitLaw, OnTimeout, Producer,
    Signal, SpoolPlan, Timeout, WhenFull,
};
pub use gate::{GateSettings, Generation, Limit};
pub use load::{Arrivals, Load, Model, Stage};
pub use model::Assumptions;
pub use operation::{Action, Operation};
pub use overload::{
    FailCommand, Fault, HoldTickets, LatencyEvent, LimitConnections, LimitRequests, Mechanism, Members,
    Overload, Tickets,
};
pub use shard::{Shard, Turn};
pub use staleness::Staleness;
pub use template::Template;

/// One trial, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The profile's name: a shipped profile's, or the file's stem.
    pub profile: String,
    /// The profile's own words about itself; may be empty.
    pub description: String,
    /// Fixes every key, document, operation and arrival.
    pub seed: u64,
    /// The collection that is loaded and then worked on.
    pub data: Data,
    /// How much is asked for, and when.
    pub load: Load,
    /// The connection-string options that differ from the URI's own, in the order they were given.
    pub client: Vec<OptionSetting>,
    /// The driver that makes the attempts, in a process of its own; `None` for the one that this program is built with, in
    /// this process.
    #[serde(default)]
    pub driver: Option<Driver>,
    /// The mix; never empty, and some weight is above 0.
    pub operations: Vec<Operation>,
    /// What happens to the servers meanwhile.
    pub overloads: Vec<Overload>,
    /// How attempts are told apart.
    pub attempts: Attempts,
    /// How long the application waits for a call.
    #[serde(default)]
    pub timeout: Timeout,
    /// What the application does about a failed call; `None` leaves it at one.
    #[serde(default)]
    pub backoff: Option<Backoff>,
    /// What the application does about rejection beside that.
    #[serde(default)]
    pub flow: Flow,
    /// The staleness probe; `None` for none.
    pub staleness: Option<Staleness>,
    /// Whether this trial takes over from another while the load goes on: a knob was turned. Its warm-up is a transition,
    /// and the data stays as it is.
    #[serde(default)]
    pub live: bool,
    /// What the trial must not come to.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// What a simulation of it assumes; `None` for the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Assumptions>,
    /// Which part of a load this is that several processes make; `None` for all of it. `load` is this part's own.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// Several clients with a load each; empty for one, which is what the plan itself says. Where there are several, the
    /// plan's load is that of all together, its options are those that none of them says otherwise, and what an application
    /// does is said by each of them alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientGroup>,
    /// Of one of several clients: whose turn it is to take what has to be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

impl Plan {
    /// The driver that makes the attempts.
    pub fn driver(&self) -> Driver {
        self.driver.clone().unwrap_or_else(Driver::built_in)
    }
}

/// How attempts are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempts {
    /// By pool and command events: every attempt, its reason and its command.
    #[default]
    Full,
    /// By pool events alone: cheaper; reasons of failed attempts and the commands of a cursor or transaction stay unknown.
    Light,
}

/// The namespace a trial works in, and what it holds before the load starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Database name.
    pub database: String,
    /// Collection name.
    pub collection: String,
    /// How many documents are there when the load starts; their keys are `0..documents`.
    pub documents: u64,
    /// The document with key k: `^Key` generators in it yield k.
    pub document: Template,
    /// Indexes beside the one on `_id`: each a document of field → direction.
    pub indexes: Vec<Template>,
}
