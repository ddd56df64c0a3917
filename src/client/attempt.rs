//! Telling attempts apart: the driver runs its event callbacks inside the operation's own future, so a task-local that
//! each worker carries attributes every event to the operation under way.
//!
//! Pool events say when an attempt begins and where; command events say what it was and how it ended. A command's
//! attempt is a retry when the attempt before it, within the same call, failed and was of the same command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use mongodb::event::cmap::CmapEvent;
use mongodb::event::command::CommandEvent;
use mongodb::options::ServerAddress;
use tokio::sync::Notify;

use super::errors::{self, ErrorTable};
use super::servers::Servers;
use crate::flow::Verdict;
use crate::flow::restraint::Restraint;
use crate::plan::Signal;
use crate::stats::buffers::Buffers;
use crate::stats::sample::{Attempt, AttemptEnd, Cell, Record};

tokio::task_local! {
    /// Boxed, because the value changes places whenever its task is polled.
    static TRACE: Box<Trace>;
}

/// What all traces of one client share.
pub struct Ledger {
    /// Where records go.
    pub buffers: Buffers,
    /// Whom the client has met.
    pub servers: Servers,
    /// What went wrong so far.
    pub errors: ErrorTable,
    /// Whether command events come at all.
    commands: bool,
    /// Set once the load runs: what the client does before is nobody's.
    armed: AtomicBool,
    orphans: Mutex<BTreeMap<String, u64>>,
    /// Whoever has to hear of attempts as they end.
    restraint: OnceLock<Arc<Restraint>>,
}

impl Ledger {
    /// A new client's, with or without command events.
    pub fn new(commands: bool, errors: ErrorTable) -> Self {
        Self {
            buffers: Buffers::default(),
            servers: Servers::default(),
            errors,
            commands,
            armed: AtomicBool::new(false),
            orphans: Mutex::default(),
            restraint: OnceLock::new(),
        }
    }

    /// From here on it hears of attempts as they end.
    pub fn tell(&self, restraint: &Arc<Restraint>) {
        // There is one a load.
        let _ = self.restraint.set(Arc::clone(restraint));
    }

    /// From here on a command outside any operation is an orphan.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// From here on it is not.
    pub fn disarm(&self) {
        self.armed.store(false, Ordering::Relaxed);
    }

    /// Orphans since the last call, by command name.
    pub fn take_orphans(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut *self.orphans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the client's pool events mean.
    pub fn on_pool_event(&self, event: &CmapEvent) {
        match event {
            CmapEvent::ConnectionCheckoutStarted(_) => with_trace(Trace::checkout_started),
            CmapEvent::ConnectionCheckedOut(e) => {
                with_trace(|trace| trace.checked_out(trace.number(&e.address)));
            }
            CmapEvent::ConnectionCheckoutFailed(e) => {
                let kind = match e.reason {
                    mongodb::event::cmap::ConnectionCheckoutFailedReason::Timeout => "checkout_timeout",
                    _ => "connect",
                };
                with_trace(|trace| trace.checkout_failed(self.servers.number(&e.address), kind));
            }
            _ => self.servers.count(event),
        }
    }

    /// What the client's command events mean.
    pub fn on_command_event(&self, event: &CommandEvent) {
        match event {
            CommandEvent::Started(e) => {
                let inside = TRACE
                    .try_with(|trace| trace.command_started(&e.command_name, &e.connection.address))
                    .is_ok();
                if !inside && self.armed.load(Ordering::Relaxed) {
                    let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
                    *orphans.entry(e.command_name.clone()).or_default() += 1;
                }
            }
            CommandEvent::Succeeded(e) => with_trace(|trace| {
                // The driver calls a reply with ok: 1 a success before it looks for an error of the write concern.
                match errors::classify_reply(&e.reply) {
                    None => trace.close(AttemptEnd::Served, None),
                    Some((class, example)) => {
                        let overload = class.labels.iter().any(|label| label == errors::OVERLOADED);
                        let end = if overload { AttemptEnd::Rejected } else { AttemptEnd::Failed };
                        trace.close(end, Some(self.errors.number_of(class, || example)));
                    }
                }
            }),
            CommandEvent::Failed(e) => with_trace(|trace| {
                let end =
                    if errors::is_overload(&e.failure) { AttemptEnd::Rejected } else { AttemptEnd::Failed };
                trace.close(end, Some(self.errors.number(&e.failure)));
            }),
            _ => {}
        }
    }
}

fn with_trace(f: impl FnOnce(&Trace)) {
    // Outside an operation there is no trace, and nothing to attribute.
    let _ = TRACE.try_with(|trace| f(trace));
}

/// The attempts of the operation that a worker has under way. One a worker, reused for each of its operations.
pub struct Trace {
    ledger: Arc<Ledger>,
    go: Instant,
    /// Told when an attempt ends after the deadline.
    answered: Arc<Notify>,
    state: RefCell<State>,
    /// The server that was met last, and its number: most often it is met again.
    met: RefCell<Option<(ServerAddress, u16)>>,
}

#[derive(Default)]
struct State {
    cell: Option<Cell>,
    sums: Sums,
    /// The attempt under way.
    open: Option<Open>,
    /// The attempt before it, when it failed and nothing has been said since that ends its command.
    failed: Option<Failure>,
    /// Retry number of the latest attempt in its command.
    retry: u16,
    /// Whether this is a later call than the first.
    repeats: bool,
    /// Whether it is another trace that tells of the operation's beginning and end.
    part: bool,
    /// Whether the call's deadline has passed.
    late: bool,
    /// How the first attempt that ended after it did so.
    answer: Option<AttemptEnd>,
}

/// What a call was waiting for when it passed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A server to send it to.
    Selection,
    /// A connection.
    Checkout,
    /// The reply to what was sent.
    Reply,
    /// The end of the driver's pause before a retry.
    Backoff,
    /// By pool events alone: a reply, or whatever follows on one.
    Unknown,
}

impl Waiting {
    /// The kind of error that it is counted as.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Selection => "timeout_selection",
            Self::Checkout => "timeout_checkout",
            Self::Reply => "timeout_reply",
            Self::Backoff => "timeout_backoff",
            Self::Unknown => "timeout",
        }
    }
}

/// An operation's sums over its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Retries in all its commands.
    pub retries: u32,
    /// Waiting for connections.
    pub checkout_ns: u64,
    /// Round trips.
    pub attempt_ns: u64,
    /// From failed attempts' ends to the next check-outs' starts.
    pub backoff_ns: u64,
}

impl Sums {
    /// Adds another call's.
    pub const fn add(&mut self, other: Self) {
        self.retries += other.retries;
        self.checkout_ns += other.checkout_ns;
        self.attempt_ns += other.attempt_ns;
        self.backoff_ns += other.backoff_ns;
    }
}

struct Open {
    checkout: Option<Instant>,
    checkout_ns: Option<u64>,
    backoff_ns: Option<u64>,
    server: u16,
    /// When the command was sent, or, by pool events alone, the connection had.
    sent: Option<Instant>,
    /// Its name, once that is known.
    command: Option<String>,
    retargeted: bool,
}

struct Failure {
    at: Instant,
    server: u16,
    rejected: bool,
    /// `None` when the attempt died before it was a command.
    command: Option<String>,
}

/// Carries a trace through all that a worker does.
pub async fn traced<F: Future>(ledger: Arc<Ledger>, go: Instant, worker: F) -> F::Output {
    let (state, met, answered) = (RefCell::default(), RefCell::default(), Arc::default());
    let trace = Trace { ledger, go, answered, state, met };
    TRACE.scope(Box::new(trace), worker).await
}

/// An operation begins in this worker.
pub fn begin(cell: Cell) {
    with_trace(|trace| *trace.state.borrow_mut() = State { cell: Some(cell), ..State::default() });
}

/// A call begins here of an operation that began in another worker, and ends there.
pub fn begin_part(cell: Cell, repeats: bool) {
    let state = State { cell: Some(cell), repeats, part: true, ..State::default() };
    with_trace(|trace| *trace.state.borrow_mut() = state);
}

/// What the call under way is waiting for.
pub fn waiting() -> Waiting {
    TRACE.try_with(|trace| trace.waiting()).unwrap_or(Waiting::Unknown)
}

/// The call under way has passed its deadline. Returns the sums so far, with a retry that is under way among them.
pub fn pass_deadline() -> Sums {
    TRACE.try_with(|trace| trace.pass_deadline()).unwrap_or_default()
}

/// Whether the call under way has passed its deadline: nothing more is to be sent for it.
pub fn is_late() -> bool {
    TRACE.try_with(|trace| trace.state.borrow().late).unwrap_or(false)
}

/// Waits until an attempt ends that was under way at the deadline, and tells how.
pub async fn answer() -> AttemptEnd {
    let Ok(answered) = TRACE.try_with(|trace| Arc::clone(&trace.answered)) else {
        return std::future::pending().await;
    };
    loop {
        answered.notified().await;
        if let Ok(Some(end)) = TRACE.try_with(|trace| trace.state.borrow().answer) {
            return end;
        }
    }
}

/// Whether this code runs on behalf of an operation.
pub fn inside_operation() -> bool {
    TRACE.try_with(|trace| trace.state.try_borrow().is_ok_and(|state| state.cell.is_some())).unwrap_or(false)
}

/// The operation's next statement begins: what it sends is a new command, whatever became of the last.
pub fn next_statement() {
    with_trace(|trace| trace.state.borrow_mut().failed = None);
}

/// The operation's call has failed, and another begins: its commands are new ones. `given_up` says that nobody waited for
/// an answer to the last attempt.
pub fn next_call(given_up: bool) {
    with_trace(|trace| {
        trace.settle(if given_up { AttemptEnd::NoAnswer } else { AttemptEnd::Unknown });
        let state = &mut *trace.state.borrow_mut();
        state.failed = None;
        state.repeats = true;
    });
}

/// The operation under way has ended; `ok` settles an attempt of which pool events alone do not tell the end.
pub fn end(ok: bool) -> Sums {
    TRACE
        .try_with(|trace| trace.finish(if ok { AttemptEnd::Served } else { AttemptEnd::Unknown }))
        .unwrap_or_default()
}

impl Trace {
    fn number(&self, address: &ServerAddress) -> u16 {
        let met = &mut *self.met.borrow_mut();
        match met {
            Some((known, number)) if known == address => *number,
            _ => met.insert((address.clone(), self.ledger.servers.number(address))).1,
        }
    }

    fn pass_deadline(&self) -> Sums {
        let state = &mut *self.state.borrow_mut();
        state.late = true;
        let mut sums = state.sums;
        // The one under way ends later, and is counted by then.
        let under_way = state.open.as_ref().filter(|open| open.sent.is_some());
        sums.retries += u32::from(under_way.is_some_and(|open| state.is_repeated_by(open)));
        sums
    }

    fn waiting(&self) -> Waiting {
        let state = self.state.borrow();
        match &state.open {
            Some(open) if open.sent.is_some() && self.ledger.commands => Waiting::Reply,
            Some(open) if open.sent.is_some() => Waiting::Unknown,
            Some(open) if open.checkout_ns.is_some() => Waiting::Reply,
            Some(_) => Waiting::Checkout,
            None if state.failed.is_some() => Waiting::Backoff,
            None => Waiting::Selection,
        }
    }

    fn checkout_started(&self) {
        let now = Instant::now();
        // By pool events alone, the next check-out is the first that is heard of the last attempt's end.
        self.settle(AttemptEnd::Unknown);
        let state = &mut *self.state.borrow_mut();
        let backoff_ns =
            state.failed.as_ref().filter(|_| self.ledger.commands).map(|failed| nanos(now - failed.at));
        state.open = Some(Open {
            checkout: Some(now),
            checkout_ns: None,
            backoff_ns,
            server: u16::MAX,
            sent: None,
            command: None,
            retargeted: false,
        });
    }

    fn checked_out(&self, server: u16) {
        self.ledger.buffers.count_checkout(1);
        let now = Instant::now();
        let state = &mut *self.state.borrow_mut();
        let retargeted = state.retargeted_to(server);
        if let Some(open) = &mut state.open {
            open.checkout_ns = open.checkout.map(|start| nanos(now - start));
            open.server = server;
            open.retargeted = retargeted;
            if !self.ledger.commands {
                open.sent = Some(now);
            }
        }
    }

    fn checkout_failed(&self, server: u16, kind: &str) {
        self.ledger.buffers.count_checkout(1);
        let error = self.ledger.errors.number_of_kind(kind, "no connection was had");
        {
            let state = &mut *self.state.borrow_mut();
            let retargeted = state.retargeted_to(server);
            if let Some(open) = &mut state.open {
                open.server = server;
                open.retargeted = retargeted;
            }
        }
        self.close(AttemptEnd::NoConnection, Some(error));
    }

    fn command_started(&self, name: &str, address: &ServerAddress) {
        let state = &mut *self.state.borrow_mut();
        if state.open.is_none() {
            // A pinned connection: the attempt began without a check-out, so it is counted here.
            self.ledger.buffers.count_checkout(1);
            let server = self.ledger.servers.number(address);
            let retargeted = state.retargeted_to(server);
            state.open = Some(Open {
                checkout: None,
                checkout_ns: None,
                backoff_ns: None,
                server,
                sent: None,
                command: None,
                retargeted,
            });
        }
        if let Some(open) = &mut state.open {
            open.sent = Some(Instant::now());
            open.command = Some(name.to_owned());
        }
    }

    /// Ends the operation; an attempt that is still open gets this end.
    fn finish(&self, last: AttemptEnd) -> Sums {
        self.settle(last);
        let state = std::mem::take(&mut *self.state.borrow_mut());
        state.sums
    }

    /// Closes an attempt of which no event told the end.
    fn settle(&self, by_pool_events: AttemptEnd) {
        let open =
            self.state.borrow().open.as_ref().map(|open| (open.checkout_ns.is_some(), open.sent.is_some()));
        match open {
            None => {}
            // It never got a connection, and never will: it was no attempt yet.
            Some((false, false)) => self.state.borrow_mut().open = None,
            // The driver thought better of it (the server is too old for the command): no server was asked anything.
            Some((true, false)) => {
                self.ledger.buffers.count_checkout(-1);
                self.state.borrow_mut().open = None;
            }
            Some((_, true)) => {
                self.close(if self.ledger.commands { AttemptEnd::NoAnswer } else { by_pool_events }, None);
            }
        }
    }

    fn close(&self, end: AttemptEnd, error: Option<u32>) {
        let now = Instant::now();
        let state = &mut *self.state.borrow_mut();
        let (Some(open), Some(cell)) = (state.open.take(), state.cell) else { return };
        let repeats = state.is_repeated_by(&open);
        state.retry = if repeats { state.retry.saturating_add(1) } else { 0 };
        state.sums.retries += u32::from(repeats);
        let backoff_ns = open.backoff_ns.filter(|_| repeats);
        let answered = matches!(end, AttemptEnd::Served | AttemptEnd::Rejected | AttemptEnd::Failed);
        let round_trip_ns = open.sent.filter(|_| answered).map(|sent| nanos(now - sent));
        // A check-out that failed was waited for, too.
        let waited = open.checkout_ns.or_else(|| open.checkout.map(|start| nanos(now - start)));
        state.sums.checkout_ns += waited.unwrap_or(0);
        state.sums.attempt_ns += round_trip_ns.unwrap_or(0);
        state.sums.backoff_ns += backoff_ns.unwrap_or(0);
        state.failed = match end {
            AttemptEnd::Served => None,
            // By pool events alone, a check-out in the same call is taken for a repetition.
            _ => Some(Failure {
                at: now,
                server: open.server,
                rejected: end == AttemptEnd::Rejected,
                command: open.command.or_else(|| state.failed.take().and_then(|failed| failed.command)),
            }),
        };
        if let Some(restraint) = self.ledger.restraint.get() {
            if repeats {
                restraint.retried();
            }
            // What did not come to an answer says nothing about the servers' load.
            let verdict = match end {
                AttemptEnd::Served | AttemptEnd::Failed => Some(Verdict::Served),
                AttemptEnd::Rejected => Some(Verdict::Rejected),
                AttemptEnd::NoConnection | AttemptEnd::NoAnswer | AttemptEnd::Unknown => None,
            };
            if let (Some(verdict), Some(sent)) = (verdict, open.sent) {
                restraint.told(Signal::Attempt, verdict, sent);
            }
        }
        if state.late {
            state.answer.get_or_insert(end);
            self.answered.notify_one();
        }
        self.ledger.buffers.push(Record::Attempt(Attempt {
            cell,
            server: open.server,
            retry: state.retry,
            first_call: !state.repeats,
            end,
            retargeted: open.retargeted,
            backoff_ns,
            checkout_ns: open.checkout_ns,
            round_trip_ns,
            error,
            at_ns: nanos(now - self.go),
        }));
    }
}

impl State {
    /// Whether an attempt is of the same command as the one that failed before it.
    fn is_repeated_by(&self, open: &Open) -> bool {
        self.failed.as_ref().is_some_and(|failed| match (&failed.command, &open.command) {
            (Some(before), Some(this)) => before == this,
            _ => true,
        })
    }

    fn retargeted_to(&self, server: u16) -> bool {
        self.failed.as_ref().is_some_and(|failed| failed.rejected && failed.server != server)
    }
}

/// A worker that is taken away in mid-operation leaves its attempt without an answer and its operation in flight.
impl Drop for Trace {
    fn drop(&mut self) {
        self.settle(AttemptEnd::NoAnswer);
        let state = self.state.borrow();
        if let Some(cell) = state.cell.filter(|_| !state.part) {
            self.ledger.buffers.push(Record::Abandoned(cell));
        }
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
