//! The overloads of a trial, applied and undone when the plan says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::overload::{Bench, Undone};
use crate::plan::Plan;
use crate::plan::timeline::{nanos, on_time};
use crate::snapshot::Event;

/// One change: overload number `overload` of the plan is turned on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    at: Duration,
    on: bool,
    overload: usize,
}

/// Follows the plan's timeline until its last change, or until `end` is cancelled: what has begun by then is not left
/// half done. `events` hears of each change.
///
/// A member that does not let itself be set right is told as an event and no error: it may be down, and what it did
/// until then is worth keeping. [`Bench::undo_all`] tries again.
///
/// # Errors
/// When a member refuses an overload. What is on by then is for [`Bench::undo_all`].
pub async fn follow(
    plan: Arc<Plan>,
    bench: Arc<Bench>,
    go: Instant,
    events: mpsc::Sender<Event>,
    end: CancellationToken,
) -> anyhow::Result<()> {
    for change in changes(&plan) {
        let due = tokio::time::sleep_until((go + change.at).into());
        if end.run_until_cancelled(due).await.is_none() {
            break;
        }
        let overload = &plan.overloads[change.overload];
        let event = if change.on {
            let hit = bench.apply(overload).await.with_context(|| format!("overload '{}'", overload.name))?;
            event(go, "overload_on", &overload.name, bench.names(&hit).join(", "))
        } else {
            let undone = bench.undo(overload).await;
            let said: Vec<String> = undone.said.into_values().flatten().collect();
            event(go, "overload_off", &overload.name, said.join("; "))
        };
        if events.send(event).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The events of overloads that ended with the run.
pub fn ended(undone: &Undone, go: Instant) -> impl Iterator<Item = Event> {
    undone.said.iter().map(move |(overload, said)| event(go, "overload_off", overload, said.join("; ")))
}

/// Something that happens now.
pub fn event(go: Instant, kind: &str, overload: &str, detail: String) -> Event {
    Event {
        at_ns: i64::try_from(nanos(go.elapsed())).unwrap_or(i64::MAX),
        kind: kind.to_owned(),
        subject: overload.to_owned(),
        detail,
    }
}

/// Every change in order of time; at the same instant what ends comes before what begins.
fn changes(plan: &Plan) -> Vec<Change> {
    let mut changes: Vec<Change> = plan
        .overloads
        .iter()
        .enumerate()
        .filter_map(|(overload, o)| on_time(&plan.load, o).map(|times| (overload, times)))
        .flat_map(|(overload, (on, off))| {
            [(on, true), (off, false)].map(|(at, on)| Change { at: Duration::from_nanos(at), on, overload })
        })
        .collect();
    changes.sort_by_key(|change| (change.at, change.on));
    changes
}
