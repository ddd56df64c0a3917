//! What the applications of all clients have spent on servers that reject: the plan's `flow` at the boundary of calls. A
//! part that is to be simulated as well is asked and told in the same places.

use super::flight::Flight;
use crate::document::Random;
use crate::flow::budget::{Allowance, Call};
use crate::flow::{Reply, Verdict};
use crate::plan::flow::Signal;
use crate::plan::{Flow, Plan};

/// The budgets, by client; none where the plan has none.
#[derive(Debug)]
pub struct Applications {
    budgets: Vec<Allowance>,
    signal: Signal,
}

impl Applications {
    /// As they are at Go.
    pub fn new(plan: &Plan, clients: u32) -> Self {
        let budget = plan.flow.budget;
        Self {
            budgets: budget.map_or_else(Vec::new, |budget| vec![Allowance::new(&budget); clients as usize]),
            signal: budget.map(|budget| budget.signal).unwrap_or_default(),
        }
    }

    /// Whether a client's application may make a call.
    pub fn allows(&mut self, client: u32, call: Call, now_ns: u64, random: &mut Random) -> bool {
        self.budgets.get_mut(client as usize).is_none_or(|budget| budget.allows(call, now_ns, random))
    }

    /// The driver tries again, of itself.
    pub fn retried(&mut self, client: u32, now_ns: u64) {
        if self.signal == Signal::Attempt
            && let Some(budget) = self.budgets.get_mut(client as usize)
        {
            budget.retried(now_ns);
        }
    }

    /// An attempt or an operation of a flight has ended, and the servers had a word in it.
    pub fn told(&mut self, signal: Signal, flight: &Flight, verdict: Verdict, now_ns: u64) {
        if self.signal == signal
            && let Some(budget) = self.budgets.get_mut(flight.client as usize)
        {
            let started_ns = match signal {
                Signal::Attempt => flight.since_ns,
                Signal::Operation => flight.started_ns,
            };
            // How many are under way is for limits of concurrency, which are not simulated.
            budget.told(&Reply { verdict, started_ns, ended_ns: now_ns, in_flight: 0 });
        }
    }
}

/// The parts of a flow that are not simulated, as profiles spell them.
pub fn not_simulated(flow: &Flow) -> Vec<&'static str> {
    let parts = [
        ("flow.limit", flow.limit.is_some()),
        ("flow.breaker", flow.breaker.is_some()),
        ("flow.producer", flow.producer.is_some()),
        ("flow.spool", flow.spool.is_some()),
    ];
    parts.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}
