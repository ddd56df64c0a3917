//! What the applications of all clients do about rejection: the plan's `flow`, by the same state machines as a run's. Each
//! client has its own. They are asked before a call and told of endings; who waits for what is kept elsewhere.

use super::rules::{BREAKER_OPEN, THROTTLED};
use crate::document::Random;
use crate::flow::breaker::{Admission, Change, Circuit, Probe, State};
use crate::flow::budget::{Allowance, Call};
use crate::flow::limit::AdaptiveLimit;
use crate::flow::restraint::AT_FLOOR;
use crate::flow::{Reply, Verdict};
use crate::plan::flow::Signal;
use crate::plan::timeline::nanos;
use crate::plan::{Flow, WhenFull};
use crate::snapshot::{Event, FlowState};

/// The parts, each by client; those that the plan does not have are empty.
#[derive(Debug)]
pub struct Applications {
    budgets: Vec<Allowance>,
    limits: Vec<AdaptiveLimit>,
    circuits: Vec<Circuit>,
    budget_signal: Signal,
    limit_signal: Signal,
    breaker_signal: Signal,
    /// All limits added up: now, and when it was told last.
    limit_sum: u64,
    limit_told: u64,
    floor_told: bool,
    /// How many breakers are closed, open and half open: now, and when it was told last.
    states: [u64; 3],
    states_told: [u64; 3],
    events: Vec<Event>,
}

/// What becomes of an operation that is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Leave {
    /// It may go.
    Go,
    /// It may go, and the breaker has to hear of its fate.
    Probe(Probe),
    /// It may not, and this is the error that says why.
    Refused(u8),
}

/// What an ending has changed for those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// More operations may be under way.
    pub has_grown: bool,
    /// The breaker is open now, and lets a probe go at this time.
    pub probe_at: Option<u64>,
}

impl Applications {
    /// As they are at Go.
    pub fn new(flow: &Flow, clients: u32) -> Self {
        let count = clients as usize;
        let limits = flow.limit.map_or_else(Vec::new, |limit| vec![AdaptiveLimit::new(&limit); count]);
        let circuits = flow.breaker.map_or_else(Vec::new, |breaker| vec![Circuit::new(breaker); count]);
        let budgets = flow.budget.map_or_else(Vec::new, |budget| vec![Allowance::new(&budget); count]);
        let limit_sum = limits.iter().map(|limit| u64::from(limit.limit())).sum();
        let states = [circuits.len() as u64, 0, 0];
        Self {
            budgets,
            limits,
            circuits,
            budget_signal: flow.budget.map(|budget| budget.signal).unwrap_or_default(),
            limit_signal: flow.limit.map(|limit| limit.signal).unwrap_or_default(),
            breaker_signal: flow.breaker.map(|breaker| breaker.signal).unwrap_or_default(),
            limit_sum,
            limit_told: limit_sum,
            floor_told: false,
            states,
            states_told: states,
            events: Vec::new(),
        }
    }

    /// How many operations of a client may be under way.
    pub fn limit(&self, client: u32) -> u32 {
        self.limits.get(client as usize).map_or(u32::MAX, AdaptiveLimit::limit)
    }

    /// Whether a client's operation may go now.
    pub fn ask(&mut self, client: u32, now_ns: u64, random: &mut Random) -> Leave {
        match self.circuits.get_mut(client as usize).map(|circuit| circuit.ask(now_ns)) {
            Some(Admission::Probe(probe, change)) => {
                self.changed(change);
                return Leave::Probe(probe);
            }
            Some(Admission::Refuse) => return Leave::Refused(BREAKER_OPEN),
            Some(Admission::Pass) | None => {}
        }
        match self.allows(client, Call::First, now_ns, random) {
            true => Leave::Go,
            false => Leave::Refused(THROTTLED),
        }
    }

    /// Whether a further call of a client's operation may be made.
    pub fn may_repeat(&mut self, client: u32, now_ns: u64, random: &mut Random) -> bool {
        let closed =
            self.circuits.get(client as usize).is_none_or(|circuit| circuit.state().0 == State::Closed);
        closed && self.allows(client, Call::Retry, now_ns, random)
    }

    fn allows(&mut self, client: u32, call: Call, now_ns: u64, random: &mut Random) -> bool {
        self.budgets.get_mut(client as usize).is_none_or(|budget| budget.allows(call, now_ns, random))
    }

    /// The driver tries again, of itself.
    pub fn retried(&mut self, client: u32, now_ns: u64) {
        if self.budget_signal == Signal::Attempt
            && let Some(budget) = self.budgets.get_mut(client as usize)
        {
            budget.retried(now_ns);
        }
    }

    /// An attempt or a call of a client's has ended, and that says something of the servers' load.
    pub fn told(&mut self, signal: Signal, client: u32, reply: &Reply) -> News {
        let (mut news, client) = (News::default(), client as usize);
        if self.limit_signal == signal
            && let Some(limit) = self.limits.get_mut(client)
            && let Some(moved) = limit.told(reply)
        {
            self.limit_sum = self.limit_sum + u64::from(moved.to) - u64::from(moved.from);
            news.has_grown = moved.to > moved.from;
        }
        if self.breaker_signal == signal
            && let Some(circuit) = self.circuits.get_mut(client)
            && let Some(change) = circuit.told(reply)
        {
            news.probe_at = circuit.probe_at();
            self.changed(change);
        }
        if self.budget_signal == signal
            && let Some(budget) = self.budgets.get_mut(client)
        {
            budget.told(reply);
        }
        news
    }

    /// A probe has ended. When the next one may go; `None` when the breaker is closed.
    pub fn conclude(&mut self, client: u32, probe: Probe, verdict: Verdict, now_ns: u64) -> Option<u64> {
        // Only breakers give probes.
        let circuit = self.circuits.get_mut(client as usize)?;
        let change = circuit.conclude(probe, verdict, now_ns);
        let probe_at = circuit.probe_at();
        self.changed(change);
        probe_at
    }

    /// Whether a client's breaker lets a probe go now.
    pub fn wants_probe(&self, client: u32, now_ns: u64) -> bool {
        let circuit = self.circuits.get(client as usize);
        circuit.and_then(Circuit::probe_at).is_some_and(|at_ns| at_ns <= now_ns)
    }

    fn changed(&mut self, change: Change) {
        self.states[change.from as usize] -= 1;
        self.states[change.to as usize] += 1;
        // Of many, what they come to in an interval is told.
        if self.circuits.len() == 1 {
            let detail = format!("{} to {}", change.from.name(), change.to.name());
            self.happened(change.at_ns, "breaker", detail);
        }
    }

    /// How they stand, and what has happened since they were asked before. Of several clients the limits are added up, and
    /// there is a word for the breakers where all are in the same state: as of several processes with a part of the load
    /// each.
    pub fn report(&mut self, now_ns: u64) -> (FlowState, Vec<Event>) {
        self.tell_limits(now_ns);
        self.tell_breakers(now_ns);
        let count = self.circuits.len() as u64;
        let all = |(state, of): (State, &u64)| (count > 0 && *of == count).then(|| state.name().to_owned());
        let flow = FlowState {
            limit: (!self.limits.is_empty()).then(|| u32::try_from(self.limit_sum).unwrap_or(u32::MAX)),
            breaker: STATES.into_iter().zip(&self.states).find_map(all),
            ..FlowState::default()
        };
        (flow, std::mem::take(&mut self.events))
    }

    fn tell_limits(&mut self, now_ns: u64) {
        let (from, to) = (std::mem::replace(&mut self.limit_told, self.limit_sum), self.limit_sum);
        if from != to {
            self.happened(now_ns, "limit_moved", format!("{from} to {to} operations at once"));
        }
        let stays = |since_ns: u64| now_ns.saturating_sub(since_ns) >= nanos(AT_FLOOR);
        let at_floor = !self.limits.is_empty()
            && self.limits.iter().all(|limit| limit.moves() && limit.at_floor_since().is_some_and(stays));
        if at_floor && !self.floor_told {
            let detail = format!("for {} s, as rejections and deadlines keep it there", AT_FLOOR.as_secs());
            self.happened(now_ns, "limit_at_floor", detail);
        }
        self.floor_told = at_floor;
    }

    fn tell_breakers(&mut self, now_ns: u64) {
        if std::mem::replace(&mut self.states_told, self.states) != self.states && self.circuits.len() > 1 {
            let [closed, open, half_open] = self.states;
            self.happened(now_ns, "breaker", format!("{closed} closed, {open} open, {half_open} half_open"));
        }
    }

    fn happened(&mut self, at_ns: u64, kind: &str, detail: String) {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.events.push(Event { at_ns, kind: kind.to_owned(), subject: String::new(), detail });
    }
}

/// In the order of their numbers.
const STATES: [State; 3] = [State::Closed, State::Open, State::HalfOpen];

/// What of a flow is not simulated, in words.
pub fn not_simulated(flow: &Flow) -> Option<&'static str> {
    let spools = flow.producer.is_some_and(|producer| producer.when_full == WhenFull::Spool);
    spools
        .then_some("flow.spool is not simulated: what a run would park is dropped, and counted by its reason")
}
