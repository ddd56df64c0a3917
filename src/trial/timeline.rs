//! The overloads of a trial, applied and undone when the plan says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::mpsc;

use crate::overload::Bench;
use crate::plan::Plan;
use crate::plan::timeline::nanos;
use crate::snapshot::Event;

/// One change: overload number `overload` of the plan is turned on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    at: Duration,
    on: bool,
    overload: usize,
}

/// Follows the plan's timeline until its last change; `events` hears of each.
///
/// # Errors
/// When a member refuses. What is on by then is for [`Bench::undo_all`].
pub async fn follow(
    plan: Arc<Plan>,
    bench: Arc<Bench>,
    go: Instant,
    events: mpsc::Sender<Event>,
) -> anyhow::Result<()> {
    let mut hit = vec![Vec::new(); plan.overloads.len()];
    for change in changes(&plan) {
        tokio::time::sleep_until((go + change.at).into()).await;
        let overload = &plan.overloads[change.overload];
        let (kind, detail) = if change.on {
            hit[change.overload] =
                bench.apply(overload).await.with_context(|| format!("overload '{}'", overload.name))?;
            ("overload_on", bench.names(&hit[change.overload]).join(", "))
        } else {
            let members = std::mem::take(&mut hit[change.overload]);
            let said = bench.undo(&members).await.with_context(|| format!("overload '{}'", overload.name))?;
            ("overload_off", said.join("; "))
        };
        let event = Event {
            at_ns: i64::try_from(nanos(go.elapsed())).unwrap_or(i64::MAX),
            kind: kind.to_owned(),
            subject: overload.name.clone(),
            detail,
        };
        if events.send(event).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Every change in order of time; at the same instant what ends comes before what begins.
fn changes(plan: &Plan) -> Vec<Change> {
    let warmup = nanos(plan.load.warmup.duration());
    let mut changes: Vec<Change> = plan
        .overloads
        .iter()
        .enumerate()
        .flat_map(|(overload, o)| {
            // One that would begin before the load begins with it.
            let on = warmup.saturating_add_signed(o.at.nanos());
            let off = on + nanos(o.length.duration());
            [(on, true), (off, false)].map(|(at, on)| Change { at: Duration::from_nanos(at), on, overload })
        })
        .collect();
    changes.sort_by_key(|change| (change.at, change.on));
    changes
}
