//! What the coordinator notices while a trial runs, and what of it deserves an event.

use std::collections::BTreeMap;
use std::time::Duration;

use super::rising::Rising;
use crate::plan::Plan;
use crate::plan::timeline::nanos;
use crate::results::{BEHIND, SATURATED_SHARE};
use crate::snapshot::{Event, ServerFacts, Snapshot};

/// The shortest interval whose use of the processors tells something.
const SHORTEST: Duration = Duration::from_millis(500);

/// Keeps what was last said.
#[derive(Default)]
pub struct Watch {
    primary: Option<String>,
    saturated: bool,
    behind: bool,
    /// The names of several clients; empty for one.
    clients: Vec<String>,
    /// By client: intervals in a row in which no call got a connection although there are some.
    starved: BTreeMap<String, u32>,
    rising: Rising,
}

/// So many intervals without a connection for anyone are no matter of a busy server any more.
const WEDGED: u32 = 3;

/// What is told of a pool that gives nothing.
pub const POOL_WEDGED: &str = "pool_wedged";

impl Watch {
    /// Of a trial of which nothing is known yet.
    pub fn of(plan: &Plan) -> Self {
        let clients = plan.clients.iter().map(|group| group.name.clone()).collect();
        Self { clients, ..Self::default() }
    }

    /// What has changed by the end of an interval, at which the servers said these facts.
    pub fn events(&mut self, snapshot: &Snapshot, facts: &[ServerFacts]) -> Vec<Event> {
        let at_ns = i64::try_from(snapshot.end_ns).unwrap_or(i64::MAX);
        let event = |kind: &str, subject: &str, detail: String| Event {
            at_ns,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            detail,
        };
        let mut events = Vec::new();
        let primary = facts.iter().find(|f| f.role == "primary").map(|f| f.address.clone());
        if let Some(now) = primary.filter(|now| self.primary.as_ref() != Some(now)) {
            if let Some(before) = &self.primary {
                events.push(event("primary_changed", &now, format!("it was {before}")));
            }
            self.primary = Some(now);
        }
        for (client, starved) in starved(snapshot, &self.clients) {
            let before = self.starved.entry(client.to_owned()).or_default();
            let so_far = if starved.is_some() { *before + 1 } else { 0 };
            let before = std::mem::replace(before, so_far);
            if let Some(open) = starved.filter(|_| so_far == WEDGED) {
                let detail = format!(
                    "for {WEDGED} s no call got a connection, though {open} are open and no server was asked anything: the \
                     driver's pool serves calls that nobody waits for any more"
                );
                events.push(event(POOL_WEDGED, client, detail));
            } else if before >= WEDGED && so_far == 0 {
                events.push(event("pool_recovered", client, "calls get connections again".to_owned()));
            }
        }
        if let Some(minutes) = self.rising.add(snapshot) {
            let each: Vec<String> = minutes.iter().map(u64::to_string).collect();
            events.push(event(
                "rejections_rise",
                "",
                format!("more attempts are rejected each minute than in the one before: {}", each.join(", ")),
            ));
        }
        let share = cpu_share(snapshot);
        // Over a moment, as between the end of a segment and that of a second, a share says nothing.
        let known = snapshot.end_ns - snapshot.start_ns >= nanos(SHORTEST);
        let saturated = if known { share >= SATURATED_SHARE } else { self.saturated };
        if saturated != std::mem::replace(&mut self.saturated, saturated) {
            let kind = if saturated { "generator_saturated" } else { "generator_free" };
            let detail = format!("it uses {:.0} % of this machine's processors", share * 100.0);
            events.push(event(kind, "", detail));
        }
        let behind_ns = snapshot.generator.behind_ns;
        let behind = behind_ns > nanos(BEHIND);
        if behind != std::mem::replace(&mut self.behind, behind) {
            let kind = if behind { "behind" } else { "caught_up" };
            events.push(event(
                kind,
                "",
                format!("due operations wait {} ms for a worker", behind_ns / 1_000_000),
            ));
        }
        events
    }
}

/// For each client, one without a name where there are not several: how many connections its starving pool has; `None` for
/// one that does not.
fn starved<'a>(snapshot: &'a Snapshot, clients: &'a [String]) -> Vec<(&'a str, Option<u64>)> {
    match snapshot.clients.is_empty() {
        true => vec![("", snapshot.starving())],
        false => {
            let each = clients.iter().zip(&snapshot.clients);
            each.map(|(name, state)| (name.as_str(), state.starving)).collect()
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an interval in nanoseconds is far below 2^53")]
fn cpu_share(snapshot: &Snapshot) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let available = (snapshot.end_ns - snapshot.start_ns) as f64 * cores as f64;
    if available > 0.0 { snapshot.generator.cpu_ns as f64 / available } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use crate::snapshot::ClientState;

    #[test]
    fn a_wedged_pool_is_told_of_the_client_that_has_it() {
        let mut watch = Watch::of(&testing::groups_plan());
        let mut told = Vec::new();
        // Six seconds in which the second client gets nothing but in the first and the last, while the first goes on.
        for second in 0..6 {
            let mut snapshot = testing::snapshot(second, 1, [], [0, 0, 0]);
            let starving = (1..5).contains(&second).then_some(7);
            let state = |starving| ClientState { starving, ..ClientState::default() };
            snapshot.clients = vec![state(None), state(starving)];
            told.extend(
                watch.events(&snapshot, &[]).into_iter().map(|event| (second, event.kind, event.subject)),
            );
        }
        let event = |second: u64, kind: &str| (second, kind.to_owned(), "batch".to_owned());
        assert_eq!(told, [event(3, POOL_WEDGED), event(5, "pool_recovered")]);
    }
}
