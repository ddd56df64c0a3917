//! The overloads of a trial, applied and undone when the plan says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Ground, REPORTS};
use crate::overload::{Bench, Undone};
use crate::plan::timeline::{nanos, on_time};
use crate::plan::{Overload, Plan};
use crate::snapshot::Event;

/// A change that comes this late is worth a word: the segments are cut where the plan has it.
const LATE: Duration = Duration::from_millis(500);

/// Something that happened, in the time of no trial yet: one may have taken over meanwhile.
#[derive(Clone, Debug)]
pub struct Happening {
    at: Instant,
    kind: &'static str,
    subject: String,
    detail: String,
}

impl Happening {
    /// It happens now.
    pub fn now(kind: &'static str, subject: &str, detail: String) -> Self {
        Self { at: Instant::now(), kind, subject: subject.to_owned(), detail }
    }

    /// As a trial that began at `go` has it.
    pub fn event(self, go: Instant) -> Event {
        let signed = |duration| i64::try_from(nanos(duration)).unwrap_or(i64::MAX);
        let at_ns = match self.at.checked_duration_since(go) {
            Some(after) => signed(after),
            None => -signed(go - self.at),
        };
        Event { at_ns, kind: self.kind.to_owned(), subject: self.subject, detail: self.detail }
    }
}

/// What a timeline tells.
pub enum Next {
    /// Something happened.
    Happened(Happening),
    /// Nothing more is to be done; or a member refused.
    Over(anyhow::Result<()>),
}

/// A plan's timeline under way.
pub struct Timeline {
    sender: mpsc::Sender<Happening>,
    happenings: mpsc::Receiver<Happening>,
    over: Option<oneshot::Receiver<anyhow::Result<()>>>,
    end: CancellationToken,
}

impl Timeline {
    /// Follows the plan's from now on.
    pub fn start(ground: &Ground, plan: Arc<Plan>, go: Instant) -> Self {
        let (sender, happenings) = mpsc::channel(REPORTS);
        let mut timeline = Self { sender, happenings, over: None, end: CancellationToken::new() };
        timeline.replace(ground, plan, go);
        timeline
    }

    /// Follows another plan's instead, once what the last one put on is undone.
    pub fn replace(&mut self, ground: &Ground, plan: Arc<Plan>, go: Instant) {
        self.end.cancel();
        self.end = ground.end.child_token();
        let (ended, over) = oneshot::channel();
        let before = self.over.replace(over);
        let (sender, end, bench) = (self.sender.clone(), self.end.clone(), Arc::clone(&ground.bench));
        ground.changes.spawn(async move {
            let followed = async {
                if let Some(before) = before {
                    // A change that is under way comes to its end first.
                    before.await.unwrap_or_else(|_| Err(anyhow!("the timeline died")))?;
                }
                let undone = bench.undo_overloads().await;
                for happening in self::ended(&undone) {
                    let _ = sender.send(happening).await;
                }
                undone.complete()?;
                follow(plan, bench, go, sender, end).await
            };
            ended.send(followed.await)
        });
    }

    /// Waits for what happens next. It may be dropped and called again.
    pub async fn next(&mut self) -> Next {
        let over = async {
            match &mut self.over {
                Some(over) => over.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(happening) = self.happenings.recv() => Next::Happened(happening),
            result = over => {
                self.over = None;
                Next::Over(result.unwrap_or_else(|_| Err(anyhow!("the timeline died"))))
            }
        }
    }

    /// What has happened and was not told yet; nothing more is heard then.
    pub async fn rest(&mut self) -> Vec<Happening> {
        self.happenings.close();
        let mut rest = Vec::new();
        while let Some(happening) = self.happenings.recv().await {
            rest.push(happening);
        }
        rest
    }
}

/// Follows the plan's timeline until its last change, or until `end` is cancelled: what has begun by then is not left
/// half done. `happenings` hears of each change. Each overload is followed by itself, so that one whose member takes its time
/// holds up no other.
///
/// A member that does not let itself be set right is told as an event and no error: it may be down, and what it did
/// until then is worth keeping. [`Bench::undo_all`] tries again.
///
/// # Errors
/// When a member refuses an overload; no other change is begun then. What is on by then is for [`Bench::undo_all`].
async fn follow(
    plan: Arc<Plan>,
    bench: Arc<Bench>,
    go: Instant,
    happenings: mpsc::Sender<Happening>,
    end: CancellationToken,
) -> anyhow::Result<()> {
    // One shard does for all what is done to servers.
    let overloads = if plan.leads() { &plan.overloads[..] } else { &[] };
    let each = overloads.iter().map(|overload| async {
        let followed = follow_one(&plan, overload, &bench, go, &happenings, &end).await;
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
    happenings: &mpsc::Sender<Happening>,
    end: &CancellationToken,
) -> anyhow::Result<()> {
    let Some((on, off)) = on_time(&plan.load, overload) else { return Ok(()) };
    let (on, off) = (Duration::from_nanos(on), Duration::from_nanos(off));
    let reached = async |at: Duration| {
        end.run_until_cancelled(tokio::time::sleep_until((go + at).into())).await.is_some()
    };
    // Nobody hears of a change once the load has ended, and the change is made all the same.
    let tell = async |kind: &'static str, due: Duration, said: String| {
        let late = go.elapsed().saturating_sub(due);
        let late = if late > LATE { format!(" (it took {} ms)", late.as_millis()) } else { String::new() };
        let _ = happenings.send(Happening::now(kind, &overload.name, said + &late)).await;
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

/// What became of overloads that did not end by their time.
pub fn ended(undone: &Undone) -> impl Iterator<Item = Happening> {
    undone.said.iter().map(|(overload, said)| Happening::now("overload_off", overload, said.join("; ")))
}
