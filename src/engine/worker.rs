//! Workers: tasks that carry one operation at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_channel::Receiver;
use bson::Bson;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::{Call, Place};
use super::dead_letters::LetterBox;
use super::parking::Parking;
use super::schedule::Due;
use crate::client::attempt::{self, Ledger, Sums};
use crate::document::{Random, Stream};
use crate::drain::Drain;
use crate::flow::Verdict;
use crate::flow::backoff::Pauses;
use crate::flow::breaker::Probe;
use crate::flow::restraint::{Leave, Restraint};
use crate::operation::Workload;
use crate::operation::execute::Target;
use crate::operation::items::Items;
use crate::operation::mix::Mix;
use crate::plan::timeline::{Segment, index_at, nanos};
use crate::plan::{Backoff, Signal, SpoolPlan, Timeout};
use crate::snapshot::DeadLetter;
use crate::stats::sample::{Cell, Ended, KeptBack, Outcome, Record, Started};

/// Something that all workers write, kept out of the cache lines of what they only read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// What all workers of an engine share.
pub struct Shared {
    /// The operations.
    pub workload: Workload,
    /// Their order.
    pub mix: Arc<Mix>,
    /// The parts of the trial.
    pub segments: Vec<Segment>,
    /// Where they run.
    pub target: Target,
    /// What they leave behind.
    pub ledger: Arc<Ledger>,
    /// How long the application waits for a call.
    pub timeout: Timeout,
    /// Calls that go on although nobody waits for them.
    pub background: TaskTracker,
    /// Ends them.
    pub cut: CancellationToken,
    /// Where operations go that are kept back; `None` when they are dropped.
    pub parking: Option<Parking>,
    /// What keeps operations back; `None` for nothing.
    pub restraint: Option<Arc<Restraint>>,
    /// What it does about a failed one.
    pub backoff: Option<Backoff>,
    /// Where items of bulks go that no server takes.
    pub dead_letters: LetterBox,
    /// The plan's.
    pub seed: u64,
    /// When the load began.
    pub go: Instant,
    /// Closed model: the number of the next operation.
    pub next: Apart<AtomicU64>,
    /// Workers that wait for an operation.
    pub idle: Apart<AtomicUsize>,
    /// Whether operations are due whatever becomes of those before.
    pub is_open: bool,
    /// Closed model: nothing more is to be begun.
    pub stopping: AtomicBool,
}

impl Shared {
    /// The open model: takes what is due until the queue is closed and empty. Whatever it takes, it carries out, unless the
    /// application is not to send it.
    pub async fn serve(self: Arc<Self>, queue: Receiver<Due>) {
        loop {
            // First the place, then the operation: those that have no place yet stay in the queue.
            let place = self.place().await;
            self.idle.0.fetch_add(1, Ordering::Relaxed);
            let due = queue.recv().await;
            self.idle.0.fetch_sub(1, Ordering::Relaxed);
            let Ok(due) = due else { return };
            self.perform(due).await;
            drop(place);
        }
    }

    /// The closed model: begins the next operation when the last has ended.
    pub async fn repeat(self: Arc<Self>) {
        while !self.stopping.load(Ordering::Relaxed) {
            let place = self.place().await;
            let n = self.next.0.fetch_add(1, Ordering::Relaxed);
            self.perform(Due { n, at_ns: nanos(self.go.elapsed()) }).await;
            drop(place);
        }
    }

    /// A place among the operations under way, which is free again when this is dropped.
    async fn place(&self) -> Option<InPlace<'_>> {
        let restraint = self.restraint.as_deref()?;
        restraint.enter().await;
        Some(InPlace(restraint))
    }

    /// Where an operation is counted.
    pub fn cell(&self, due: Due, operation: usize) -> Cell {
        Cell {
            // Plans are refused beyond these bounds long before.
            operation: u16::try_from(operation).unwrap_or(u16::MAX),
            segment: u16::try_from(index_at(&self.segments, due.at_ns)).unwrap_or(u16::MAX),
        }
    }

    /// Sends what is parked while nothing else is kept back.
    pub async fn drain(self: Arc<Self>, drain: Drain, queue: Receiver<Due>, spool: Option<SpoolPlan>) {
        let (Some(parking), Some(spool)) = (&self.parking, spool) else { return };
        let room = || queue.len() * 2 <= queue.capacity().unwrap_or(0);
        let closed = || self.restraint.as_ref().is_none_or(|restraint| restraint.is_closed());
        parking.drain(drain, spool.drain.get(), closed, room).await;
    }

    /// An operation is not to be sent now, for this reason: it is parked if there is a spool, and else dropped.
    pub fn keep_back(&self, due: Due, reason: &'static str) {
        match &self.parking {
            Some(parking) => parking.park(self, due, reason),
            None => self.drop_due(due, reason),
        }
    }

    /// An operation is not to be sent at all, for this reason.
    pub fn drop_due(&self, due: Due, reason: &str) {
        self.ledger.buffers.push(Record::Dropped(self.kept_back(due, reason)));
    }

    /// The record of one that is not sent, for this reason.
    pub fn kept_back(&self, due: Due, reason: &str) -> KeptBack {
        let cell = self.cell(due, self.mix.at(due.n).operation);
        let error = self.ledger.errors.number_of_kind(reason, "the application did not send it");
        KeptBack { cell, error, at_ns: nanos(self.go.elapsed()) }
    }

    async fn perform(self: &Arc<Self>, due: Due) {
        let probe = match &self.restraint {
            None => None,
            Some(restraint) => {
                let waiting = Waiting { shared: self, due: self.is_open.then_some(due) };
                let leave = restraint.ask().await;
                waiting.over();
                match leave {
                    Leave::Go => None,
                    Leave::Probe(probe) => Some(Probing { restraint, probe: Some(probe) }),
                    Leave::Dropped(reason) => return self.keep_back(due, reason),
                }
            }
        };
        let start = Instant::now();
        // The pacer never hands out early; the subtraction only guards the type.
        let start_ns = nanos(start - self.go);
        let wait_ns = start_ns.saturating_sub(due.at_ns);
        let mut instance = self.workload.instance(&self.mix, due.n);
        let cell = self.cell(due, instance.operation);
        self.ledger.buffers.push(Record::Started(Started { cell, lag_ns: wait_ns, at_ns: start_ns }));
        attempt::begin(cell);
        let under_way = self.restraint.as_deref().map(UnderWay::begin);
        let mut application = self.backoff.map(|policy| Application::new(policy, self.seed, due.n));
        let (mut calls, mut sums) = (1, Sums::default());
        let (mut items, mut dead, mut unclear) = (Items::default(), None, false);
        let mut call = loop {
            let began = Instant::now();
            let place = Place { n: due.n, cell, repeats: calls > 1 };
            let (mut call, apart) = self.call(&mut instance, &items, place).await;
            sums.add(apart);
            if !call.hopeless.is_empty() {
                dead = dead.or(call.error);
                self.give_up(&call, place, calls, unclear);
            }
            unclear |= call.is_unclear();
            items = call.left.take().unwrap_or(items);
            if let (Some(restraint), Some(verdict)) = (&self.restraint, call.verdict()) {
                restraint.told(Signal::Operation, verdict, began);
            }
            let pause = application.as_mut().filter(|_| probe.is_none());
            let Some(pause) =
                pause.and_then(|application| application.answer(&call)).filter(|_| self.may_repeat())
            else {
                break call;
            };
            attempt::next_call(call.outcome == Outcome::TimedOut);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
                if let Some(application) = &mut application {
                    application.paused += pause;
                }
            }
            // The same operation again: the same keys, the same documents.
            instance = self.workload.instance(&self.mix, due.n);
            calls += 1;
        };
        drop(under_way);
        if let Some(probe) = probe {
            probe.conclude(call.verdict());
        }
        let end = Instant::now();
        sums.add(attempt::end(call.outcome == Outcome::Ok));
        if let (Outcome::Ok, Some(error)) = (call.outcome, dead) {
            // The rest of it is written, but it is not.
            (call.outcome, call.error) = (Outcome::Failed, Some(error));
        }
        self.ledger.buffers.push(Record::Ended(Ended {
            cell,
            outcome: call.outcome,
            calls,
            retries: sums.retries,
            wait_ns,
            checkout_ns: sums.checkout_ns,
            attempt_ns: sums.attempt_ns,
            backoff_ns: sums.backoff_ns + application.map_or(0, |application| nanos(application.paused)),
            service_ns: nanos(end - start),
            error: call.error,
            at_ns: nanos(end - self.go),
        }));
    }

    /// Keeps items for people that no server takes.
    fn give_up(&self, call: &Call, place: Place, calls: u32, unclear_before: bool) {
        let mut instance = self.workload.instance(&self.mix, place.n);
        // What was sent was rendered from the same.
        let Ok(writes) = instance.statement.written(&mut instance.draw) else { return };
        for it in &call.hopeless {
            let error = it.error.as_ref();
            self.dead_letters.put(DeadLetter {
                at_ns: nanos(self.go.elapsed()),
                operation: instance.operation,
                n: place.n,
                item: it.item as u64,
                calls,
                code: error.map(|error| error.code),
                code_name: error.map(|error| error.name.clone()).unwrap_or_default(),
                message: error.map(|error| error.message.clone()).unwrap_or_default(),
                unclear_before,
                write: writes
                    .get(it.item)
                    .cloned()
                    .map(Bson::Document)
                    .unwrap_or(Bson::Null)
                    .into_relaxed_extjson(),
            });
        }
    }

    fn may_repeat(&self) -> bool {
        self.restraint.as_ref().is_none_or(|restraint| restraint.may_repeat())
    }
}

/// An operation that was taken and may not go yet. One that is taken away has not been started; in the closed model there
/// is none before it starts.
struct Waiting<'a> {
    shared: &'a Shared,
    due: Option<Due>,
}

impl Waiting<'_> {
    fn over(mut self) {
        self.due = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(due) = self.due {
            let cell = self.shared.cell(due, self.shared.mix.at(due.n).operation);
            self.shared.ledger.buffers.push(Record::Untaken(cell));
        }
    }
}

/// A place among the operations under way.
struct InPlace<'a>(&'a Restraint);

impl Drop for InPlace<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// An operation under way.
struct UnderWay<'a>(&'a Restraint);

impl<'a> UnderWay<'a> {
    fn begin(restraint: &'a Restraint) -> Self {
        restraint.begun();
        Self(restraint)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// The breaker's probe. One that is taken away has not been served.
struct Probing<'a> {
    restraint: &'a Restraint,
    probe: Option<Probe>,
}

impl Probing<'_> {
    fn conclude(mut self, verdict: Option<Verdict>) {
        if let Some(probe) = self.probe.take() {
            self.restraint.conclude(probe, verdict.unwrap_or(Verdict::Rejected));
        }
    }
}

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.restraint.conclude(probe, Verdict::Rejected);
        }
    }
}

/// The application around the calls of one operation.
struct Application {
    pauses: Pauses,
    random: Random,
    paused: Duration,
}

impl Application {
    const fn new(policy: Backoff, seed: u64, n: u64) -> Self {
        let random = Random::stream(seed, Stream::Backoff, n);
        Self { pauses: Pauses::new(policy), random, paused: Duration::ZERO }
    }

    /// The pause before the next call; `None` leaves it at this one.
    fn answer(&mut self, call: &Call) -> Option<Duration> {
        self.pauses.next_after(call.asked_for, &mut self.random).filter(|_| call.again)
    }
}
