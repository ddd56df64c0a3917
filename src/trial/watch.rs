//! What the coordinator notices while a trial runs, and what of it deserves an event.

use std::time::Duration;

use super::rising::Rising;
use crate::client::attempt::Waiting;
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
    /// Intervals in a row in which no call got a connection although there are some.
    starved: u32,
    rising: Rising,
}

/// So many intervals without a connection for anyone are no matter of a busy server any more.
const WEDGED: u32 = 3;

/// What is told of a pool that gives nothing.
pub const POOL_WEDGED: &str = "pool_wedged";

impl Watch {
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
        let starved = if is_starved(snapshot) { self.starved + 1 } else { 0 };
        let before = std::mem::replace(&mut self.starved, starved);
        if starved == WEDGED {
            let detail = format!(
                "for {WEDGED} s no call got a connection, though {} are open and no server was asked anything: the driver's \
                 pool serves calls that nobody waits for any more",
                open_connections(snapshot)
            );
            events.push(event(POOL_WEDGED, "", detail));
        } else if before >= WEDGED && starved == 0 {
            events.push(event("pool_recovered", "", "calls get connections again".to_owned()));
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

/// Whether calls waited for connections in vain while none was in use: nothing was sent, and no call timed out with
/// something on the wire.
fn is_starved(snapshot: &Snapshot) -> bool {
    let timed_out = |waiting: Waiting| {
        let of_kind = snapshot.errors.iter().filter(|error| error.class.kind == waiting.kind());
        of_kind.map(|error| error.count).sum::<u64>()
    };
    let asked: u64 = snapshot.servers.iter().map(|server| server.attempts).sum();
    asked == 0
        && open_connections(snapshot) > 0
        && timed_out(Waiting::Checkout) > 0
        && timed_out(Waiting::Reply) + timed_out(Waiting::Unknown) == 0
}

fn open_connections(snapshot: &Snapshot) -> u64 {
    snapshot.servers.iter().map(|server| server.connections_open).sum()
}

#[expect(clippy::cast_precision_loss, reason = "an interval in nanoseconds is far below 2^53")]
fn cpu_share(snapshot: &Snapshot) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let available = (snapshot.end_ns - snapshot.start_ns) as f64 * cores as f64;
    if available > 0.0 { snapshot.generator.cpu_ns as f64 / available } else { 0.0 }
}
