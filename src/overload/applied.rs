//! What is on at a member, with all that turning it off takes.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Namespace;

use super::gates::{self, Part};
use super::hold_tickets::Holders;
use super::latency_event::{self, Inserting};
use super::parameters::{self, Setting};
use super::{Ground, PATIENCE, fail_command, processes, step_down};
use crate::limiter::LimiterCounters;

/// How long deleting a latency event's documents, or starting a server again, may take.
const LONG: Duration = Duration::from_secs(120);

/// Something that is on.
#[derive(Clone)]
pub enum Applied {
    /// The failpoint, and how many commands it had rejected before; `None` until the member has answered.
    FailCommand { before: Option<i64> },
    /// Parameters that were changed: what they were, in the order in which they are set back.
    Parameters(Vec<Setting>),
    /// A limit of a gate, and what that had counted before.
    Gate(Part, LimiterCounters),
    /// Operations that hold tickets.
    HoldTickets(Arc<Holders>),
    /// Documents in a collection, and the task that inserts them unless an earlier run did.
    LatencyEvent(Namespace, Option<Arc<Inserting>>),
    /// A stopped process.
    Stall,
    /// A killed process.
    Kill,
    /// A primary that may not be one for a while.
    StepDown,
}

impl Applied {
    /// Turns it off, and says in a few words what it was. Doing so again does no harm.
    pub async fn undo(&self, ground: &Ground, number: usize) -> anyhow::Result<String> {
        let member = &ground.cluster.members[number];
        match self {
            Self::FailCommand { before } => {
                let count = fail_command::undo(&member.client, &member.address).await?;
                Ok(match before {
                    Some(before) => format!("{} commands rejected", count - before),
                    None => "turned off".to_owned(),
                })
            }
            Self::Parameters(before) => {
                for setting in before {
                    parameters::set(member, setting).await?;
                }
                Ok("parameters set back".to_owned())
            }
            Self::Gate(part, before) => gates::undo(ground, number, *part, before),
            Self::HoldTickets(holders) => Ok(holders.stop().await),
            Self::LatencyEvent(data, inserting) => {
                latency_event::undo(ground, data, inserting.as_deref()).await
            }
            Self::Stall => processes::go_on(ground, number).map(|()| "goes on".to_owned()),
            Self::Kill => processes::restart(ground, number).await.map(|()| "started again".to_owned()),
            Self::StepDown => step_down::undo(member).await.map(|()| "may be primary again".to_owned()),
        }
    }

    /// How long undoing it may take.
    pub const fn patience(&self) -> Duration {
        match self {
            Self::LatencyEvent(..) | Self::Kill => LONG,
            _ => PATIENCE,
        }
    }
}
