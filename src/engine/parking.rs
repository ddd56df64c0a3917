//! Operations that cannot be sent now: written to the spool by a thread of their own, and taken out again when the servers
//! take something.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::{mpsc, oneshot};

use super::schedule::Due;
use super::worker::Shared;
use crate::drain::{Drain, Order, Sent, can_wait, keep_plan};
use crate::flow::spool::{Parked, Spool, SpoolError};
use crate::plan::{Plan, SpoolPlan};
use crate::snapshot::Event;
use crate::stats::sample::Record;
use crate::units::Span;

/// Operations that may wait for the disk; those beyond are dropped.
const WAITING: usize = 10_000;

/// The most that are written, or taken out, at once.
const BATCH: usize = 500;

/// The drain says that operations are done, and asks for more, about as often in a second: what it has not said is sent again
/// by the next one.
const BATCHES: f64 = 4.0;

/// How often the drain looks whether it may go on.
const LOOK: Duration = Duration::from_millis(100);

/// A spool that has grown for so many intervals, and given nothing back, is worth an event.
const GROWING: u32 = 60;

/// What the spool's thread is asked.
enum Request {
    Park(Due, &'static str),
    /// So many of the oldest.
    Take(usize, oneshot::Sender<Result<Vec<Parked<Order>>, SpoolError>>),
    /// This one and all before it are out of the spool: so many more than before were sent, and refused.
    Done(Box<Parked<Order>>, [u64; 2], oneshot::Sender<Result<(), SpoolError>>),
    End(oneshot::Sender<()>),
}

/// A spool in its thread.
pub struct Parking {
    requests: mpsc::Sender<Request>,
    /// By operation: whether it can wait.
    can_wait: Vec<bool>,
    counts: Arc<Mutex<Counts>>,
    growth: Mutex<Growth>,
}

/// What has become of parked operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the spool.
    pub backlog: u64,
    /// Ever written to it.
    pub parked: u64,
    /// Sent later.
    pub drained: u64,
    /// Taken out of it because they cannot be done, and never will be.
    pub refused: u64,
    /// For how long there was something to be taken out while servers took what they were sent.
    pub draining: Duration,
    /// Why one was refused.
    pub refusal: Option<String>,
    /// Why they are not sent any more.
    pub failed: Option<String>,
}

/// With the rate at which they were sent, and how long the rest would take at that. It is what servers bore beside the
/// arrivals, which is what a backlog is to be divided by: capacity − arrivals.
impl fmt::Display for Counts {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "operations and seconds far below 2^53, and above 0"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parked, drained, backlog, .. } = self;
        write!(f, "{parked} operations were parked, {drained} of them sent again")?;
        let rate = (drained + self.refused) as f64 / self.draining.as_secs_f64();
        let known = rate.is_finite() && rate > 0.0;
        if known {
            write!(f, " ({rate:.0}/s beside the load)")?;
        }
        write!(f, "; {backlog} are left")?;
        if known && *backlog > 0 {
            write!(
                f,
                ", which takes {} at that rate",
                Span::seconds((*backlog as f64 / rate).ceil() as u64)
            )?;
        }
        Ok(())
    }
}

/// How the spool was at the last look.
#[derive(Default)]
struct Growth {
    backlog: u64,
    drained: u64,
    intervals: u32,
    refusal_told: bool,
    failure_told: bool,
}

impl Parking {
    /// Opens the spool at this place.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, spool: &SpoolPlan, plan: &Plan) -> anyhow::Result<(Self, Thread)> {
        let opened = Spool::open(path, spool.max_bytes.get(), spool.rotate_bytes.get());
        let spool = opened.with_context(|| format!("the spool {}", path.display()))?;
        keep_plan(path, plan)?;
        let (requests, asked) = mpsc::channel(WAITING);
        let counts = Arc::<Mutex<Counts>>::default();
        let can_wait = plan.operations.iter().map(|operation| can_wait(&operation.action)).collect();
        let thread = Thread { spool, asked, counts: Arc::clone(&counts) };
        Ok((Self { requests, can_wait, counts, growth: Mutex::default() }, thread))
    }

    /// Parks an operation that is not to be sent now, for this reason; one that cannot wait, or finds no place, is dropped.
    pub fn park(&self, shared: &Shared, due: Due, reason: &'static str) {
        let operation = shared.mix.at(due.n).operation;
        if !self.can_wait[operation] || self.requests.try_send(Request::Park(due, reason)).is_err() {
            shared.drop_due(due, reason);
        }
    }

    /// How many are parked, and what is worth telling since the last call, of which there is one an interval.
    pub fn report(&self, now_ns: u64) -> (u64, Vec<Event>) {
        let counts = self.counts().clone();
        let mut growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let grows = counts.backlog > growth.backlog && counts.drained == growth.drained;
        growth.intervals = if grows { growth.intervals + 1 } else { 0 };
        (growth.backlog, growth.drained) = (counts.backlog, counts.drained);
        let at_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        let event =
            |kind: &str, detail: String| Event { at_ns, kind: kind.into(), subject: String::new(), detail };
        let mut events = Vec::new();
        if growth.intervals == GROWING {
            events.push(event(
                "spool_grows",
                format!("for {GROWING} s without giving anything back: {} are parked", counts.backlog),
            ));
        }
        if let Some(why) = counts.refusal.filter(|_| !growth.refusal_told) {
            growth.refusal_told = true;
            events.push(event("spool_refused", why));
        }
        if let Some(why) = counts.failed.filter(|_| !growth.failure_told) {
            growth.failure_told = true;
            events.push(event("spool_drain_failed", why));
        }
        (counts.backlog, events)
    }

    /// What has become of them, in the end.
    pub fn result(&self, now_ns: u64) -> Event {
        let counts = self.counts();
        let detail = counts.to_string();
        let refused =
            counts.refusal.as_ref().map(|why| format!("; {} were refused, like: {why}", counts.refused));
        let failed = counts.failed.as_ref().map(|why| format!("; they are not sent any more: {why}"));
        let detail = detail + &refused.unwrap_or_default() + &failed.unwrap_or_default();
        let at_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
        Event { at_ns, kind: SPOOL.to_owned(), subject: String::new(), detail }
    }

    /// Ends the thread, whoever waits for it.
    pub fn leave(&self) {
        // A thread that has so much to do that this finds no place will see the others gone.
        let _ = self.requests.try_send(Request::End(oneshot::channel().0));
    }

    /// Ends the thread, once all that it was asked is done.
    pub async fn end(&self) {
        let (tell, told) = oneshot::channel();
        if self.requests.send(Request::End(tell)).await.is_ok() {
            let _ = told.await;
        }
    }

    /// Sends what is parked, so many a second at most, while servers take something (`taken`) and there is `room` beside the
    /// load, for as long as it is polled.
    pub async fn drain(
        &self,
        drain: Drain,
        per_second: f64,
        taken: impl Fn() -> bool,
        room: impl Fn() -> bool,
    ) {
        let may = || taken() && room();
        let (mut looked, mut waits) = (Instant::now(), false);
        loop {
            tokio::time::sleep(LOOK).await;
            // From one look to the next, so that what empties the spool counts as well, and waits for room do.
            let since = std::mem::replace(&mut looked, Instant::now()).elapsed();
            if waits && taken() {
                self.counts().draining += since;
            }
            waits = self.counts().backlog > 0;
            if may()
                && waits
                && let Err(error) = self.drain_some(&drain, per_second, &may).await
            {
                self.counts().failed = Some(format!("{error:#}"));
                return;
            }
        }
    }

    async fn drain_some(&self, drain: &Drain, per_second: f64, may: impl Fn() -> bool) -> anyhow::Result<()> {
        let (tell, told) = oneshot::channel();
        self.requests
            .send(Request::Take(batch(per_second), tell))
            .await
            .context("the spool's thread has ended")?;
        let (mut done, mut refused, mut last) = (Vec::new(), 0, None);
        for parked in told.await.context("the spool's thread has ended")?? {
            if !may() {
                break;
            }
            tokio::time::sleep(Duration::from_secs_f64(1.0 / per_second)).await;
            if let Sent::Never(why) = drain.send(&parked).await? {
                refused += 1;
                self.counts().refusal.get_or_insert(why);
            }
            done.push(parked.id.clone());
            last = Some(parked);
        }
        let Some(last) = last else { return Ok(()) };
        let (tell, told) = oneshot::channel();
        let count = u64::try_from(done.len()).unwrap_or(u64::MAX);
        let request = Request::Done(Box::new(last), [count - refused, refused], tell);
        self.requests.send(request).await.context("the spool's thread has ended")?;
        told.await.context("the spool's thread has ended")??;
        // Nobody sends these again.
        drain.unmark(&done).await;
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many are taken out at once.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and BATCH")]
fn batch(per_second: f64) -> usize {
    ((per_second / BATCHES) as usize).clamp(1, BATCH)
}

/// The event that says what has become of parked operations.
pub const SPOOL: &str = "spool";

/// The thread's own.
pub struct Thread {
    spool: Spool,
    asked: mpsc::Receiver<Request>,
    counts: Arc<Mutex<Counts>>,
}

impl Thread {
    /// Does what is asked until it is to end.
    pub fn run(mut self, shared: &Shared) {
        let mut batch = Vec::new();
        while let Some(request) = self.asked.blocking_recv() {
            let mut next = Some(request);
            while let Some(Request::Park(due, reason)) = next {
                batch.push((due, reason));
                next = if batch.len() < BATCH { self.asked.try_recv().ok() } else { None };
            }
            self.park(shared, &mut batch);
            match next {
                Some(Request::Take(most, tell)) => drop(tell.send(self.spool.oldest(most))),
                Some(Request::Done(last, [sent, refused], tell)) => {
                    let done = self.spool.done(&last);
                    if done.is_ok() {
                        self.count(|counts| {
                            counts.drained += sent;
                            counts.refused += refused;
                        });
                    }
                    let _ = tell.send(done);
                }
                Some(Request::End(tell)) => {
                    let _ = tell.send(());
                    return;
                }
                Some(Request::Park(..)) | None => {}
            }
        }
    }

    fn park(&mut self, shared: &Shared, batch: &mut Vec<(Due, &'static str)>) {
        if batch.is_empty() {
            return;
        }
        let orders: Vec<Order> = batch.iter().map(|(due, _)| Order { n: due.n, due_ns: due.at_ns }).collect();
        // A disk that takes nothing is a reason of its own.
        let (durable, beyond) = match self.spool.park(&orders) {
            Ok(durable) => (durable, "spool_full"),
            Err(_) => (0, "spool_failed"),
        };
        for (place, (due, why)) in batch.drain(..).enumerate() {
            if place < durable {
                shared.ledger.buffers.push(Record::Parked(shared.kept_back(due, why)));
            } else {
                shared.drop_due(due, beyond);
            }
        }
        let parked = u64::try_from(durable).unwrap_or(u64::MAX);
        self.count(|counts| counts.parked += parked);
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut counts);
        counts.backlog = self.spool.backlog();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_rate_says() {
        let counts = Counts { parked: 900, drained: 300, backlog: 600, ..Counts::default() };
        assert_eq!(
            Counts { draining: Duration::from_secs(3), ..counts.clone() }.to_string(),
            "900 operations were parked, 300 of them sent again (100/s beside the load); 600 are left, which takes 6s at that \
             rate"
        );
        assert_eq!(
            Counts { drained: 0, backlog: 900, ..counts.clone() }.to_string(),
            "900 operations were parked, 0 of them sent again; 900 are left"
        );
        assert_eq!(
            Counts { drained: 900, backlog: 0, draining: Duration::from_secs(90), ..counts }.to_string(),
            "900 operations were parked, 900 of them sent again (10/s beside the load); 0 are left"
        );
    }
}
