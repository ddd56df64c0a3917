//! The staleness probe: how old is what reads see?

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// The collection of the heartbeats, beside the data. Each run has one document there while it lasts.
pub const HEARTBEATS: &str = "overdrive.heartbeat";

/// The shortest period: the probe shares the servers with the load, and must be nothing beside it.
pub const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// How often the probe writes a heartbeat on the primary, and reads it from every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staleness {
    /// The period; at least [`SHORTEST_PERIOD`].
    pub every: Span,
}
