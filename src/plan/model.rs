//! What a simulation assumes of the world that a profile is silent about: how many clients there are, how far away the
//! servers, and how fast. A run on real servers has no use for it.

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// The most servers: sets of them are kept in the bits of one number.
pub const MOST_SERVERS: u32 = 64;

/// The most clients.
pub const MOST_CLIENTS: u32 = 1_000_000;

/// Clients, network and servers of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumptions {
    /// Members of the replica set, from 1 to [`MOST_SERVERS`]; number 0 is the primary.
    pub servers: u32,
    /// Clients, each with connection pools and a flow of its own, from 1 to [`MOST_CLIENTS`]; the load is spread over them evenly.
    pub clients: u32,
    /// How many reads a server works on at a time, and how many writes; at least 1. Its capacity for each is
    /// `tickets / service_time`.
    pub tickets: u32,
    /// How many requests may wait for a ticket, of either kind, before more of them are rejected; `None` for no bound.
    pub max_queue: Option<u32>,
    /// How long an operation keeps its ticket, on average; above zero.
    pub service_time: Span,
    /// How service times are spread.
    pub service_distribution: ServiceDistribution,
    /// What a rejection costs of a ticket's time, as a share of `service_time` from 0 to 1; 0 is a rejection for free.
    pub rejection_cost: f64,
    /// From a client to any server and back.
    pub rtt: Span,
}

/// How service times are spread around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceDistribution {
    /// All the same.
    Fixed,
    /// Exponential: many short ones, few long ones.
    #[default]
    Exponential,
}

impl Default for Assumptions {
    /// A replica set of three with the storage engine's usual 128 tickets, nearby, and one client.
    fn default() -> Self {
        Self {
            servers: 3,
            clients: 1,
            tickets: 128,
            max_queue: None,
            service_time: Span::millis(1),
            service_distribution: ServiceDistribution::default(),
            rejection_cost: 0.0,
            rtt: Span::from(std::time::Duration::from_micros(500)),
        }
    }
}
