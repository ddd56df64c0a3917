//! Workers: tasks that carry one operation at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_channel::Receiver;
use futures_util::FutureExt;

use super::schedule::Due;
use crate::client::attempt::{self, Ledger};
use crate::client::errors;
use crate::document::{Random, Stream};
use crate::flow::backoff::Pauses;
use crate::operation::execute::Target;
use crate::operation::mix::Mix;
use crate::operation::{Instance, Workload};
use crate::plan::Backoff;
use crate::plan::timeline::{Segment, index_at};
use crate::stats::sample::{Cell, Ended, Outcome, Record, Started};

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
    pub timeout: Option<Duration>,
    /// What it does about a failed one.
    pub backoff: Option<Backoff>,
    /// The plan's.
    pub seed: u64,
    /// When the load began.
    pub go: Instant,
    /// Closed model: the number of the next operation.
    pub next: Apart<AtomicU64>,
    /// Workers that wait for an operation.
    pub idle: Apart<AtomicUsize>,
    /// Closed model: nothing more is to be begun.
    pub stopping: AtomicBool,
}

impl Shared {
    /// The open model: takes what is due until the queue is closed and empty. Whatever it takes, it carries out.
    pub async fn serve(self: Arc<Self>, queue: Receiver<Due>) {
        loop {
            self.idle.0.fetch_add(1, Ordering::Relaxed);
            let due = queue.recv().await;
            self.idle.0.fetch_sub(1, Ordering::Relaxed);
            let Ok(due) = due else { return };
            self.perform(due).await;
        }
    }

    /// The closed model: begins the next operation when the last has ended.
    pub async fn repeat(self: Arc<Self>) {
        while !self.stopping.load(Ordering::Relaxed) {
            let n = self.next.0.fetch_add(1, Ordering::Relaxed);
            self.perform(Due { n, at_ns: nanos(self.go.elapsed()) }).await;
        }
    }

    async fn perform(&self, due: Due) {
        let start = Instant::now();
        // The pacer never hands out early; the subtraction only guards the type.
        let start_ns = nanos(start - self.go);
        let wait_ns = start_ns.saturating_sub(due.at_ns);
        let mut instance = self.workload.instance(&self.mix, due.n);
        let cell = Cell {
            // Plans are refused beyond these bounds long before.
            operation: u16::try_from(instance.operation).unwrap_or(u16::MAX),
            segment: u16::try_from(index_at(&self.segments, due.at_ns)).unwrap_or(u16::MAX),
        };
        self.ledger.buffers.push(Record::Started(Started { cell, lag_ns: wait_ns, at_ns: start_ns }));
        attempt::begin(cell);
        let mut application = self.backoff.map(|policy| Application::new(policy, self.seed, due.n));
        let mut calls = 1;
        let call = loop {
            let call = self.call(&mut instance).await;
            let Some(pause) = application.as_mut().and_then(|application| application.answer(&call)) else {
                break call;
            };
            attempt::next_call(call.outcome == Outcome::TimedOut);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            // The same operation again: the same keys, the same documents.
            instance = self.workload.instance(&self.mix, due.n);
            calls += 1;
        };
        let end = Instant::now();
        let sums = attempt::end(call.outcome == Outcome::Ok);
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

    /// One call of the driver, as long as the application waits for it.
    async fn call(&self, instance: &mut Instance<'_>) -> Call {
        let call =
            AssertUnwindSafe(self.target.execute(instance.statement, &mut instance.draw)).catch_unwind();
        let result = match self.timeout {
            None => call.await,
            Some(limit) => match tokio::time::timeout(limit, call).await {
                Ok(result) => result,
                Err(_) => {
                    let error = self.ledger.errors.number_of_kind("timeout", "the call passed its deadline");
                    return Call { outcome: Outcome::TimedOut, error: Some(error), again: true };
                }
            },
        };
        match result {
            Ok(Ok(())) => Call { outcome: Outcome::Ok, error: None, again: false },
            Ok(Err(error)) => Call {
                outcome: if errors::is_retryable_overload(&error) {
                    Outcome::GaveUp
                } else {
                    Outcome::Failed
                },
                error: Some(self.ledger.errors.number(&error)),
                again: self.backoff.is_some() && errors::is_worth_another_call(&error),
            },
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                let error = self.ledger.errors.number_of_kind("panic", &text);
                Call { outcome: Outcome::Failed, error: Some(error), again: false }
            }
        }
    }
}

/// What came of one call.
struct Call {
    outcome: Outcome,
    error: Option<u32>,
    /// Whether another call may go better.
    again: bool,
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
        let pause = self.pauses.next(&mut self.random).filter(|_| call.again)?;
        self.paused += pause;
        Some(pause)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
