//! One call of the driver, as long as the application waits for it.

use std::any::Any;
use std::error::Error as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::worker::Shared;
use crate::client::attempt::{self, Sums, Waiting};
use crate::client::errors;
use crate::flow::Verdict;
use crate::operation::items::{Hopeless, Items};
use crate::operation::{Instance, Statement};
use crate::plan::OnTimeout;
use crate::plan::timeline::nanos;
use crate::stats::sample::{AttemptEnd, Cell, Late, LateEnd, Outcome, Record};
use crate::units::Span;

/// What came of one call.
pub struct Call {
    /// How it ended.
    pub outcome: Outcome,
    /// Its error's class, where there was one.
    pub error: Option<u32>,
    /// Whether another call may go better.
    pub again: bool,
    /// Whether it failed for overload.
    overloaded: bool,
    /// Whether it was a server that said so.
    answered: bool,
    /// How long the server asked to be left alone, where it did.
    pub asked_for: Option<Duration>,
    /// What is left of a bulk that went item by item; `None` where its items all had one fate.
    pub left: Option<Items>,
    /// Items that no server takes.
    pub hopeless: Vec<Hopeless>,
}

impl Call {
    const fn new(outcome: Outcome, error: Option<u32>) -> Self {
        Self {
            outcome,
            error,
            again: false,
            overloaded: false,
            answered: false,
            asked_for: None,
            left: None,
            hopeless: Vec::new(),
        }
    }

    /// Whether nobody knows what of it the servers did. A rejection is the word of one that has done nothing.
    pub const fn is_unclear(&self) -> bool {
        !matches!(self.outcome, Outcome::Ok) && !self.overloaded && self.left.is_none()
    }

    /// What it says of the servers' load; `None` for nothing. A call that took too long has met servers with too much to
    /// do, as far as an application can tell.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.outcome {
            Outcome::Ok => Some(Verdict::Served),
            Outcome::GaveUp | Outcome::TimedOut => Some(Verdict::Rejected),
            // What another call would not mend is no matter of load, and was worked on.
            Outcome::Failed if self.overloaded => Some(Verdict::Rejected),
            Outcome::Failed => self.answered.then_some(Verdict::Served),
        }
    }
}

/// Which call it is.
#[derive(Clone, Copy)]
pub struct Place {
    /// Its operation's number.
    pub n: u64,
    /// Its operation's cell.
    pub cell: Cell,
    /// Whether the operation has made a call before.
    pub repeats: bool,
}

type Panic = Box<dyn Any + Send>;

impl Shared {
    /// Makes it, of a bulk with these items. What its attempts took is in the trace, but for those that are returned.
    pub async fn call(
        self: &Arc<Self>,
        instance: &mut Instance<'_>,
        items: &Items,
        place: Place,
    ) -> (Call, Sums) {
        let statement = instance.statement;
        let Some(limit) = self.timeout.operation.map(Span::duration) else {
            return (self.judge(self.execute(instance, items).await, statement, items), Sums::default());
        };
        if self.timeout.on_timeout == OnTimeout::ReadInBackground {
            return self.call_beside(items.clone(), place, limit).await;
        }
        let call = match tokio::time::timeout(limit, self.execute(instance, items)).await {
            Ok(result) => self.judge(result, statement, items),
            Err(_) => self.passed(attempt::waiting()),
        };
        (call, Sums::default())
    }

    /// Makes it in a task of its own, which goes on with what was sent when the application has stopped waiting.
    async fn call_beside(self: &Arc<Self>, items: Items, place: Place, limit: Duration) -> (Call, Sums) {
        let (tell, told) = oneshot::channel();
        let shared = Arc::clone(self);
        let work = async move { shared.outlast(&items, place, limit, tell).await };
        let traced = attempt::traced(Arc::clone(&self.ledger), self.go, work);
        // Whoever takes the worker away takes the call away.
        let task = AbortOnDropHandle::new(tokio::spawn(self.background.track_future(traced)));
        let call = told.await.unwrap_or_else(|_| (self.passed(Waiting::Unknown), Sums::default()));
        drop(task.detach());
        call
    }

    async fn outlast(
        &self,
        items: &Items,
        place: Place,
        limit: Duration,
        tell: oneshot::Sender<(Call, Sums)>,
    ) {
        attempt::begin_part(place.cell, place.repeats);
        let mut instance = self.workload.instance(&self.mix, place.n);
        let statement = instance.statement;
        let call = self.execute(&mut instance, items);
        tokio::pin!(call);
        if let Ok(result) = tokio::time::timeout(limit, &mut call).await {
            let call = self.judge(result, statement, items);
            let sums = attempt::end(call.outcome == Outcome::Ok);
            let _ = tell.send((call, sums));
            return;
        }
        let (deadline, waiting) = (Instant::now(), attempt::waiting());
        let _ = tell.send((self.passed(waiting), attempt::pass_deadline()));
        // There is nothing to be read where nothing was sent.
        if !matches!(waiting, Waiting::Reply | Waiting::Unknown) {
            return;
        }
        let end = tokio::select! {
            biased;
            result = &mut call => match result {
                Ok(Ok(())) => LateEnd::Ok,
                _ => LateEnd::Failed,
            },
            // The driver or a cursor would go on from here.
            end = attempt::answer() => match end {
                AttemptEnd::Served => LateEnd::Ok,
                _ => LateEnd::Failed,
            },
            () = tokio::time::sleep(self.timeout.grace.duration()) => LateEnd::Lost,
            () = self.cut.cancelled() => LateEnd::Lost,
        };
        let overshoot_ns = nanos(deadline.elapsed());
        let at_ns = nanos(self.go.elapsed());
        self.ledger.buffers.push(Record::Late(Late { cell: place.cell, end, overshoot_ns, at_ns }));
    }

    async fn execute(
        &self,
        instance: &mut Instance<'_>,
        items: &Items,
    ) -> Result<mongodb::error::Result<()>, Panic> {
        let execute = self.target.execute(instance.statement, items, &mut instance.draw);
        AssertUnwindSafe(execute).catch_unwind().await
    }

    /// The application has stopped waiting.
    fn passed(&self, waiting: Waiting) -> Call {
        let error = self.ledger.errors.number_of_kind(waiting.kind(), "the call passed its deadline");
        Call { again: true, ..Call::new(Outcome::TimedOut, Some(error)) }
    }

    fn judge(
        &self,
        result: Result<mongodb::error::Result<()>, Panic>,
        statement: &Statement,
        items: &Items,
    ) -> Call {
        match result {
            Ok(Ok(())) => Call::new(Outcome::Ok, None),
            Ok(Err(error)) => {
                let bulk = self.backoff.and_then(|_| statement.bulk());
                let mut left = items.clone();
                let hopeless = bulk.and_then(|bulk| left.settle(bulk, &error));
                let again = match &hopeless {
                    // What befell single items says enough, unless the bulk as a whole ended before its end.
                    Some(_) if error.source().is_none() => left.any(),
                    _ => left.any() && errors::is_worth_another_call(&error),
                };
                Call {
                    outcome: if errors::is_retryable_overload(&error) {
                        Outcome::GaveUp
                    } else {
                        Outcome::Failed
                    },
                    error: Some(self.ledger.errors.number(&error)),
                    again: self.backoff.is_some() && again,
                    overloaded: errors::is_overload(&error),
                    answered: errors::is_a_servers(&error),
                    asked_for: self.backoff.and_then(|_| errors::base_backoff(&error)),
                    left: hopeless.is_some().then_some(left),
                    hopeless: hopeless.unwrap_or_default(),
                }
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                let error = self.ledger.errors.number_of_kind("panic", &text);
                Call::new(Outcome::Failed, Some(error))
            }
        }
    }
}
