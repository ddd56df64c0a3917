//! What an application does about rejection around all its operations: the parts of a plan's flow, put together and shared
//! by its workers. Each part is told what its signal says, and asked before an operation goes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::breaker::{Admission, Change, Circuit, Probe, State as Circuitry};
use super::budget::{Allowance, Call};
use super::limit::{AdaptiveLimit, Move};
use super::{Reply, Verdict};
use crate::document::{Random, Stream};
use crate::plan::timeline::nanos;
use crate::plan::{Flow, Signal, WhenFull};
use crate::snapshot::{Event, FlowState};

/// How long a limit has to have been at its floor to be worth an event: what is there for so long is no dip.
pub const AT_FLOOR: Duration = Duration::from_secs(5);

/// How soon a producer that waits asks a throttle again, whose answer is a matter of chance.
pub const AGAIN: Duration = Duration::from_millis(50);

/// What may go.
#[derive(Debug)]
pub enum Leave {
    /// The operation.
    Go,
    /// The operation, whose fate the breaker has to hear of.
    Probe(Probe),
    /// It is not to be sent at all, for this reason.
    Dropped(&'static str),
}

/// A plan's limit, breaker and budget as they stand.
#[derive(Debug)]
pub struct Restraint {
    go: Instant,
    when_full: WhenFull,
    state: Mutex<State>,
    /// Told when something may go that might not before.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    limit: Option<(Signal, AdaptiveLimit)>,
    circuit: Option<(Signal, Circuit)>,
    allowance: Option<(Signal, Allowance)>,
    random: Random,
    /// Workers that may take an operation, or have one.
    places: u32,
    /// Operations under way.
    under_way: u32,
    events: Vec<Event>,
    /// The move of the limit that was told last, in the interval's time: one an interval is enough to read.
    moved: Option<Move>,
    /// Whether it has been told that the limit is at its floor.
    floor_told: bool,
}

impl Restraint {
    /// That of a plan's flow, for a load that began at `go`; `None` when it has no part that restrains.
    pub fn new(flow: &Flow, seed: u64, go: Instant) -> Option<Self> {
        let restrains = flow.limit.is_some() || flow.breaker.is_some() || flow.budget.is_some();
        restrains.then(|| Self {
            go,
            when_full: flow.producer.map_or(WhenFull::Block, |producer| producer.when_full),
            state: Mutex::new(State {
                limit: flow.limit.map(|limit| (limit.signal, AdaptiveLimit::new(&limit))),
                circuit: flow.breaker.map(|breaker| (breaker.signal, Circuit::new(breaker))),
                allowance: flow.budget.map(|budget| (budget.signal, Allowance::new(&budget))),
                random: Random::stream(seed, Stream::Budget, 0),
                places: 0,
                under_way: 0,
                events: Vec::new(),
                moved: None,
                floor_told: false,
            }),
            changed: Notify::new(),
        })
    }

    /// Waits until another operation may be under way. [`Self::leave`] gives the place back.
    pub async fn enter(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state();
                let most = state.limit.as_ref().map_or(u32::MAX, |(_, limit)| limit.limit());
                if state.places < most {
                    state.places += 1;
                    return;
                }
            }
            changed.await;
        }
    }

    /// Gives a place back.
    pub fn leave(&self) {
        self.state().places -= 1;
        self.changed.notify_one();
    }

    /// Asks whether an operation may go now, and waits until it may if that is what the producer does.
    pub async fn ask(&self) -> Leave {
        loop {
            let changed = self.changed.notified();
            let (reason, wait) = {
                let mut state = self.state();
                match state.ask(self.now()) {
                    Ok(leave) => return leave,
                    Err(refused) => refused,
                }
            };
            if self.when_full != WhenFull::Block {
                return Leave::Dropped(reason);
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Whether a further call of an operation may be made.
    pub fn may_repeat(&self) -> bool {
        let now = self.now();
        let state = &mut *self.state();
        // Only one operation may go while the breaker is not closed, and that one goes once.
        let closed = state.circuit.as_ref().is_none_or(|(_, circuit)| circuit.state().0 == Circuitry::Closed);
        let random = &mut state.random;
        closed
            && state
                .allowance
                .as_mut()
                .is_none_or(|(_, allowance)| allowance.allows(Call::Retry, now, random))
    }

    /// Whether nothing keeps operations back but their number.
    pub fn is_closed(&self) -> bool {
        let state = self.state();
        state.circuit.as_ref().is_none_or(|(_, circuit)| circuit.state().0 == Circuitry::Closed)
    }

    /// An operation is under way.
    pub fn begun(&self) {
        self.state().under_way += 1;
    }

    /// It is no more.
    pub fn ended(&self) {
        self.state().under_way -= 1;
    }

    /// Takes note of how something ended that was sent, to those who go by it.
    pub fn told(&self, signal: Signal, verdict: Verdict, started: Instant) {
        let (started_ns, ended_ns) = (nanos(started.saturating_duration_since(self.go)), self.now());
        let mut state = self.state();
        let reply = Reply { verdict, started_ns, ended_ns, in_flight: state.under_way };
        state.told(signal, &reply);
        drop(state);
        // A limit that has grown, or a breaker that has closed, lets others go.
        self.changed.notify_one();
    }

    /// Takes note of a retry of the driver's own.
    pub fn retried(&self) {
        let now = self.now();
        if let Some((Signal::Attempt, allowance)) = &mut self.state().allowance {
            allowance.retried(now);
        }
    }

    /// Takes note of how the probe has ended.
    pub fn conclude(&self, probe: Probe, verdict: Verdict) {
        let now = self.now();
        let mut state = self.state();
        if let Some((_, circuit)) = &mut state.circuit {
            let change = circuit.conclude(probe, verdict, now);
            state.changed(change);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// How it stands, and what has happened since it was asked before.
    pub fn report(&self) -> (FlowState, Vec<Event>) {
        let now = self.now();
        let state = &mut *self.state();
        state.tell_limit(now);
        let flow = FlowState {
            limit: state.limit.as_ref().map(|(_, limit)| limit.limit()),
            breaker: state.circuit.as_ref().map(|(_, circuit)| circuit.state().0.name().to_owned()),
            ..FlowState::default()
        };
        (flow, std::mem::take(&mut state.events))
    }

    fn now(&self) -> u64 {
        nanos(self.go.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether an operation may go; if not, why, and when to ask again.
    fn ask(&mut self, now: u64) -> Result<Leave, (&'static str, Duration)> {
        if let Some((_, circuit)) = &mut self.circuit {
            match circuit.ask(now) {
                Admission::Pass => {}
                Admission::Probe(probe, change) => {
                    self.changed(change);
                    return Ok(Leave::Probe(probe));
                }
                Admission::Refuse => {
                    let at =
                        circuit.probe_at().map_or(AGAIN, |at| Duration::from_nanos(at.saturating_sub(now)));
                    return Err(("breaker_open", at));
                }
            }
        }
        let random = &mut self.random;
        let allowed =
            self.allowance.as_mut().is_none_or(|(_, allowance)| allowance.allows(Call::First, now, random));
        if allowed { Ok(Leave::Go) } else { Err(("throttled", AGAIN)) }
    }

    fn told(&mut self, signal: Signal, reply: &Reply) {
        if let Some((of, limit)) = &mut self.limit
            && *of == signal
            && let Some(moved) = limit.told(reply)
        {
            let from = self.moved.map_or(moved.from, |before| before.from);
            self.moved = Some(Move { from, to: moved.to });
        }
        if let Some((of, circuit)) = &mut self.circuit
            && *of == signal
            && let Some(change) = circuit.told(reply)
        {
            self.changed(change);
        }
        if let Some((of, allowance)) = &mut self.allowance
            && *of == signal
        {
            allowance.told(reply);
        }
    }

    fn changed(&mut self, change: Change) {
        let detail = format!("{} to {}", change.from.name(), change.to.name());
        self.happened(change.at_ns, "breaker", detail);
    }

    /// What is worth telling of the limit in an interval.
    fn tell_limit(&mut self, now: u64) {
        let Some((_, limit)) = &self.limit else { return };
        let since = limit.at_floor_since();
        // One that cannot move says nothing by where it is.
        let at_floor =
            limit.moves() && since.is_some_and(|since| now.saturating_sub(since) >= nanos(AT_FLOOR));
        if let Some(Move { from, to }) = self.moved.take().filter(|moved| moved.from != moved.to) {
            self.happened(now, "limit_moved", format!("{from} to {to} operations at once"));
        }
        if at_floor && !self.floor_told {
            self.happened(
                now,
                "limit_at_floor",
                format!("for {} s, as rejections and deadlines keep it there", AT_FLOOR.as_secs()),
            );
        }
        self.floor_told = at_floor;
    }

    fn happened(&mut self, at_ns: u64, kind: &str, detail: String) {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.events.push(Event { at_ns, kind: kind.to_owned(), subject: String::new(), detail });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Breaker, Budget, BudgetLaw, ConcurrencyLimit, LimitLaw, Producer};
    use crate::units::Span;

    fn restraint(flow: Flow) -> Restraint {
        Restraint::new(&flow, 1, Instant::now()).unwrap()
    }

    fn limit(signal: Signal) -> Option<ConcurrencyLimit> {
        Some(ConcurrencyLimit { signal, initial: 2, floor: 1, ceiling: 4, law: LimitLaw::AIMD })
    }

    fn breaker() -> Option<Breaker> {
        let (window, cool_down) = (Span::seconds(10), Span::seconds(3600));
        Some(Breaker { signal: Signal::Operation, threshold: 0.5, window, minimum: 2, cool_down })
    }

    async fn is_free(restraint: &Restraint) -> bool {
        tokio::time::timeout(Duration::from_millis(20), restraint.enter()).await.is_ok()
    }

    #[test]
    fn a_flow_without_parts_restrains_nothing() {
        assert!(Restraint::new(&Flow::default(), 1, Instant::now()).is_none());
    }

    #[tokio::test]
    async fn no_more_are_let_in_than_the_limit_has_it() {
        let restraint = restraint(Flow { limit: limit(Signal::Operation), ..Flow::default() });
        assert!(is_free(&restraint).await && is_free(&restraint).await);
        assert!(!is_free(&restraint).await, "two are in");
        restraint.told(Signal::Attempt, Verdict::Rejected, Instant::now());
        restraint.told(Signal::Operation, Verdict::Rejected, Instant::now());
        restraint.leave();
        assert!(!is_free(&restraint).await, "one is in, and the limit is one now");
        let (state, events) = restraint.report();
        assert_eq!(state.limit, Some(1));
        assert_eq!(events[0].detail, "2 to 1 operations at once");
        assert!(restraint.report().1.is_empty());
        restraint.leave();
        assert!(is_free(&restraint).await);
    }

    #[tokio::test]
    async fn what_an_open_breaker_keeps_back_is_dropped_or_waits() {
        for (when_full, dropped) in [(WhenFull::Drop, true), (WhenFull::Block, false)] {
            let producer = Some(Producer { queue: 4, when_full });
            let restraint = restraint(Flow { breaker: breaker(), producer, ..Flow::default() });
            assert!(matches!(restraint.ask().await, Leave::Go));
            assert!(restraint.may_repeat());
            (0..2).for_each(|_| restraint.told(Signal::Operation, Verdict::Rejected, Instant::now()));
            assert!(!restraint.may_repeat());
            let asked = tokio::time::timeout(Duration::from_millis(20), restraint.ask()).await;
            assert_eq!(matches!(asked, Ok(Leave::Dropped("breaker_open"))), dropped);
            assert_eq!(asked.is_err(), !dropped, "whoever waits, waits for the probe");
            let (state, events) = restraint.report();
            assert_eq!((state.breaker.as_deref(), &*events[0].detail), (Some("open"), "closed to open"));
        }
    }

    #[tokio::test]
    async fn one_probe_decides() {
        let breaker = breaker().map(|breaker| Breaker { cool_down: Span::millis(1), ..breaker });
        let producer = Some(Producer { queue: 4, when_full: WhenFull::Drop });
        let restraint = restraint(Flow { breaker, producer, ..Flow::default() });
        (0..2).for_each(|_| restraint.told(Signal::Operation, Verdict::Rejected, Instant::now()));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let Leave::Probe(probe) = restraint.ask().await else { panic!("no probe") };
        assert!(matches!(restraint.ask().await, Leave::Dropped("breaker_open")), "there is one probe");
        restraint.conclude(probe, Verdict::Served);
        assert!(matches!(restraint.ask().await, Leave::Go));
    }

    #[test]
    fn a_bucket_pays_for_the_drivers_retries_when_it_goes_by_attempts() {
        for (signal, left) in [(Signal::Operation, true), (Signal::Attempt, false)] {
            let law = BudgetLaw::TokenBucket { capacity: 1, per_success: 0.1 };
            let restraint = restraint(Flow { budget: Some(Budget { signal, law }), ..Flow::default() });
            restraint.retried();
            assert_eq!(restraint.may_repeat(), left);
        }
    }
}
