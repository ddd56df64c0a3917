//! The overloads of a trial, applied and undone when the plan says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::overload::{Bench, Undone};
use crate::plan::timeline::{nanos, on_time};
use crate::plan::{Overload, Plan};
use crate::snapshot::Event;

/// A change that comes this late is worth a word: the segments are cut where the plan has it.
const LATE: Duration = Duration::from_millis(500);

/// Follows the plan's timeline until its last change, or until `end` is cancelled: what has begun by then is not left
/// half done. `events` hears of each change. Each overload is followed by itself, so that one whose member takes its time
/// holds up no other.
///
/// A member that does not let itself be set right is told as an event and no error: it may be down, and what it did
/// until then is worth keeping. [`Bench::undo_all`] tries again.
///
/// # Errors
/// When a member refuses an overload; no other change is begun then. What is on by then is for [`Bench::undo_all`].
pub async fn follow(
    plan: Arc<Plan>,
    bench: Arc<Bench>,
    go: Instant,
    events: mpsc::Sender<Event>,
    end: CancellationToken,
) -> anyhow::Result<()> {
    let each = plan.overloads.iter().map(|overload| async {
        let followed = follow_one(&plan, overload, &bench, go, &events, &end).await;
        if followed.is_err() {
            end.cancel();
        }
        followed
    });
    join_all(each).await.into_iter().collect()
}

async fn follow_one(
    plan: &Plan,
    overload: &Overload,
    bench: &Bench,
    go: Instant,
    events: &mpsc::Sender<Event>,
    end: &CancellationToken,
) -> anyhow::Result<()> {
    let Some((on, off)) = on_time(&plan.load, overload) else { return Ok(()) };
    let (on, off) = (Duration::from_nanos(on), Duration::from_nanos(off));
    let reached = async |at: Duration| {
        end.run_until_cancelled(tokio::time::sleep_until((go + at).into())).await.is_some()
    };
    // Nobody hears of a change once the load has ended, and the change is made all the same.
    let tell = async |kind: &str, due: Duration, said: String| {
        let late = go.elapsed().saturating_sub(due);
        let late = if late > LATE { format!(" (it took {} ms)", late.as_millis()) } else { String::new() };
        let _ = events.send(event(go, kind, &overload.name, said + &late)).await;
    };
    if !reached(on).await {
        return Ok(());
    }
    let hit = bench.apply(overload).await.with_context(|| format!("overload '{}'", overload.name))?;
    tell("overload_on", on, bench.names(&hit).join(", ")).await;
    if !reached(off).await {
        return Ok(());
    }
    let undone = bench.undo(overload).await;
    let said: Vec<String> = undone.said.into_values().flatten().collect();
    tell("overload_off", off, said.join("; ")).await;
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
