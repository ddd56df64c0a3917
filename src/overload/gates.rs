//! The limits of the lab's gates, as part of a timeline.

use anyhow::Context;

use super::Ground;
use super::applied::Applied;
use crate::gate::Gate;
use crate::limiter::LimiterCounters;
use crate::plan::{GateSettings, LimitConnections, LimitRequests};
use crate::snapshot::ServerFacts;

/// Which of a gate's two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// That on requests.
    Requests,
    /// That on new connections.
    Connections,
}

/// Sets a gate's limit on requests, once `put` has taken down what the gate had counted.
pub async fn limit_requests(
    ground: &Ground,
    number: usize,
    fault: &LimitRequests,
    put: impl AsyncFnOnce(Applied) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let gate = gate(ground, number)?;
    put(Applied::Gate(Part::Requests, gate.counters().requests)).await?;
    gate.configure(GateSettings {
        requests: Some(fault.limit),
        generation: fault.generation,
        base_backoff_ms: fault.base_backoff_ms,
        code: fault.code,
        labels: fault.labels.clone(),
        allow_retries: fault.allow_retries,
        ..gate.settings()
    })
    .context("the gate cannot make such a rejection")
}

/// Sets a gate's limit on new connections, likewise.
pub async fn limit_connections(
    ground: &Ground,
    number: usize,
    fault: &LimitConnections,
    put: impl AsyncFnOnce(Applied) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let gate = gate(ground, number)?;
    put(Applied::Gate(Part::Connections, gate.counters().connections)).await?;
    gate.configure(GateSettings { connections: Some(fault.limit), ..gate.settings() })?;
    Ok(())
}

/// Takes a limit away, and says what it did.
pub fn undo(ground: &Ground, number: usize, part: Part, before: &LimiterCounters) -> anyhow::Result<String> {
    let gate = gate(ground, number)?;
    let (settings, what) = match part {
        Part::Requests => (GateSettings { requests: None, ..gate.settings() }, "requests"),
        Part::Connections => (GateSettings { connections: None, ..gate.settings() }, "connections"),
    };
    gate.configure(settings)?;
    let counters = gate.counters();
    let now = match part {
        Part::Requests => counters.requests,
        Part::Connections => counters.connections,
    };
    let (attempted, rejected) = (now.attempted - before.attempted, now.rejected - before.rejected);
    Ok(format!("{rejected} of {attempted} {what} rejected"))
}

/// Adds what a member's gate has counted to what the member says of itself.
pub fn add_counters(ground: &Ground, facts: &mut ServerFacts) {
    let Some(lab) = ground.lab.as_deref() else { return };
    let Some(gate) = lab.number_of(&facts.address).and_then(|index| lab.gates().get(index)) else { return };
    let counters = gate.counters();
    let limits = [("admission", &counters.requests), ("connection_admission", &counters.connections)];
    for (prefix, limit) in limits {
        for (name, value) in [
            (format!("{prefix}s_attempted"), limit.attempted),
            (format!("{prefix}s_successful"), limit.successful),
            (format!("{prefix}s_rejected"), limit.rejected),
            (format!("{prefix}s_exempted"), limit.exempted),
            (format!("{prefix}s_waiting"), u64::from(limit.queue_length)),
            (format!("{prefix}_tokens_available"), limit.available_tokens),
        ] {
            facts.counters.insert(name, i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

fn gate(ground: &Ground, number: usize) -> anyhow::Result<&Gate> {
    let (lab, index) = ground.lab_member(number).context("only the lab's members have gates")?;
    lab.gates().get(index).context("the lab has no gates")
}
