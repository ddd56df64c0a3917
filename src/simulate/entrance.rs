//! Between arrivals and the operations under way: places within a client's limit, its producer's queue, and those who have a
//! place and whom breaker or throttle make wait.

use std::collections::VecDeque;

use super::application::{Leave, News};
use super::event::{Event, NOBODY, What};
use super::flight::{Flight, Step};
use super::rules::{BREAKER_OPEN, OK, QUEUE_FULL};
use super::world::World;
use crate::engine::schedule::Due;
use crate::flow::breaker::Probe;
use crate::flow::restraint::AGAIN;
use crate::flow::{Reply, Verdict};
use crate::plan::flow::Signal;
use crate::plan::timeline::nanos;
use crate::plan::{BudgetLaw, Flow, Model, Plan, WhenFull};

/// The entrances, by client; none where the plan's flow never keeps an operation back.
#[derive(Debug)]
pub struct Entrances {
    each: Vec<Entrance>,
    /// What waits in all queues.
    queued: u64,
    /// How much of a queue counts as the producer's; `None` where the plan has no producer.
    queue: Option<usize>,
    /// What cannot go is dropped, as far as it does not fit into the queue. Otherwise it waits.
    pub drops: bool,
    /// The most operations under way and in queues of all clients together.
    most: usize,
    /// Clients with somebody in the queue who has a place, but there are too many under way.
    crowded: VecDeque<u32>,
}

/// That of one client.
#[derive(Debug, Default)]
struct Entrance {
    /// Operations that have one, under way or held.
    places: u32,
    /// Operations under way.
    under_way: u32,
    /// Arrivals without a place.
    queue: VecDeque<Due>,
    /// Closed model: workers without a place.
    workers: u32,
    /// Those with a place whom the breaker makes wait, by their slots.
    held: VecDeque<u32>,
    /// The operation that the breaker has to hear of.
    probe: Option<(u32, Probe)>,
    /// Whether it is among the crowded.
    is_crowded: bool,
}

impl Entrances {
    /// Before the load begins.
    pub fn new(plan: &Plan, clients: u32) -> Self {
        let Flow { limit, breaker, budget, producer, .. } = &plan.flow;
        let throttled = budget.is_some_and(|budget| matches!(budget.law, BudgetLaw::Throttle { .. }));
        let keeps_back = limit.is_some() || breaker.is_some() || producer.is_some() || throttled;
        let most = match plan.load.model {
            Model::Open { max_in_flight, .. } => usize::try_from(max_in_flight).unwrap_or(usize::MAX),
            Model::Closed { .. } => usize::MAX,
        };
        Self {
            each: (0..if keeps_back { clients } else { 0 }).map(|_| Entrance::default()).collect(),
            queued: 0,
            queue: producer.map(|producer| producer.queue as usize),
            drops: producer.is_some_and(|producer| producer.when_full != WhenFull::Block),
            most,
            crowded: VecDeque::new(),
        }
    }

    /// Arrivals in the producers' queues, `beyond` more being due that found no room; `None` without a producer.
    pub fn queued(&self, beyond: u64) -> Option<u64> {
        let queue = self.queue?;
        let waiting = |entrance: &Entrance| entrance.queue.len().min(queue) as u64;
        let seen = if self.queued > 0 { self.each.iter().map(waiting).sum() } else { 0 };
        Some((seen + beyond).min(queue as u64 * self.each.len() as u64))
    }

    /// All that waits in queues.
    pub fn waiting(&self) -> impl Iterator<Item = Due> {
        let each = if self.queued > 0 { &self.each[..] } else { &[] };
        each.iter().flat_map(|entrance| entrance.queue.iter().copied())
    }

    fn get(&mut self, client: u32) -> Option<&mut Entrance> {
        self.each.get_mut(client as usize)
    }
}

impl World<'_> {
    /// Whether another arrival can be taken. One that cannot waits for it, and those after it likewise.
    pub fn has_room(&self) -> bool {
        let taken = self.flights.len() as u64 + self.entrances.queued;
        self.entrances.drops || taken < self.entrances.most as u64
    }

    /// An arrival of the open model, whose place in the plan this is, reaches its client.
    pub fn arrive(&mut self, due: Due, op: u16) {
        if self.entrances.each.is_empty() {
            return self.take(due, op, None);
        }
        let (client, _) = self.draw(due.n);
        let is_crowd = self.flights.len() >= self.entrances.most;
        let (limit, drops) = (self.applications.limit(client), self.entrances.drops);
        let most = self.entrances.queue.filter(|_| drops).unwrap_or(usize::MAX);
        let Some(entrance) = self.entrances.get(client) else { return };
        if entrance.places < limit && entrance.queue.is_empty() && !is_crowd {
            return self.take(due, op, None);
        }
        if entrance.queue.len() >= most {
            return self.tally.drop(self.tally.segment_at(due.at_ns), op, QUEUE_FULL, self.now_ns);
        }
        entrance.queue.push_back(due);
        self.entrances.queued += 1;
        self.advance(client);
    }

    /// Takes arrivals out of a client's queue, as far as they have places.
    pub fn advance(&mut self, client: u32) {
        loop {
            let limit = self.applications.limit(client);
            let is_crowd = self.flights.len() >= self.entrances.most;
            let Some(entrance) = self.entrances.get(client).filter(|of| of.places < limit) else { return };
            if is_crowd && !entrance.queue.is_empty() {
                if !std::mem::replace(&mut entrance.is_crowded, true) {
                    self.entrances.crowded.push_back(client);
                }
                return;
            }
            let Some(due) = entrance.queue.pop_front() else { return };
            self.entrances.queued -= 1;
            self.take(due, self.operation(due.n), None);
        }
    }

    /// Lets those in who had a place and no room, as far as there is some now.
    pub fn relieve(&mut self) {
        while self.flights.len() < self.entrances.most
            && let Some(client) = self.entrances.crowded.pop_front()
        {
            if let Some(entrance) = self.entrances.get(client) {
                entrance.is_crowded = false;
            }
            self.advance(client);
        }
    }

    /// Closed model: whether a worker of a client's has a place for its next operation. One that has none waits for it.
    pub fn finds_place(&mut self, client: u32) -> bool {
        let limit = self.applications.limit(client);
        self.entrances.get(client).is_none_or(|entrance| {
            let finds = entrance.places < limit;
            entrance.workers += u32::from(!finds);
            finds
        })
    }

    /// Closed model: takes one of a client's workers who wait for a place, if there is a place now.
    pub fn take_worker(&mut self, client: u32) -> bool {
        let limit = self.applications.limit(client);
        self.entrances.get(client).is_some_and(|entrance| {
            let takes = entrance.places < limit && entrance.workers > 0;
            entrance.workers -= u32::from(takes);
            takes
        })
    }

    /// An operation takes a place, and goes if the application lets it.
    pub fn take(&mut self, due: Due, op: u16, client: Option<u32>) {
        let flight = self.flight(due, op, client);
        let client = flight.client;
        let slot = self.flights.add(flight);
        if let Some(entrance) = self.entrances.get(client) {
            entrance.places += 1;
        }
        self.ask(slot);
    }

    /// Whoever has a place asks whether it may go.
    pub fn ask(&mut self, slot: u32) {
        let flight = self.flights.get(slot);
        let client = flight.client;
        match self.applications.ask(client, self.now_ns, &mut flight.random) {
            Leave::Go => self.start(slot),
            Leave::Probe(probe) => {
                if let Some(entrance) = self.entrances.get(client) {
                    entrance.probe = Some((slot, probe));
                }
                self.start(slot);
            }
            Leave::Refused(class) if self.entrances.drops => {
                self.tally.drop(flight.segment, flight.op, class, self.now_ns);
                self.vacate(slot);
            }
            Leave::Refused(BREAKER_OPEN) => {
                if let Some(entrance) = self.entrances.get(client) {
                    entrance.held.push_back(slot);
                }
            }
            Leave::Refused(_) => {
                let at_ns = self.now_ns + nanos(AGAIN);
                let event = super::world::event(flight, slot, at_ns, What::AskAgain);
                self.agenda.plan(event);
            }
        }
    }

    /// A client's breaker lets a probe go: the first of those it holds, if there are any; else whoever comes first asks.
    pub fn may_probe(&mut self, client: u32) {
        if self.applications.wants_probe(client, self.now_ns)
            && let Some(slot) = self.entrances.get(client).and_then(|entrance| entrance.held.pop_front())
        {
            self.ask(slot);
        }
    }

    /// An operation begins.
    pub fn begun(&mut self, client: u32) {
        if let Some(entrance) = self.entrances.get(client) {
            entrance.under_way += 1;
        }
    }

    /// Whether it is a flight that its client's breaker has to hear of.
    pub fn is_probe(&mut self, client: u32, slot: u32) -> bool {
        let probe = self.entrances.get(client).and_then(|entrance| entrance.probe.as_ref());
        probe.is_some_and(|(of, _)| *of == slot)
    }

    /// An operation that began has ended; it still has its place.
    pub fn ended(&mut self, client: u32, slot: u32, verdict: Verdict) {
        let Some(entrance) = self.entrances.get(client) else { return };
        entrance.under_way -= 1;
        let Some((_, probe)) = entrance.probe.take_if(|(of, _)| *of == slot) else { return };
        match self.applications.conclude(client, probe, verdict, self.now_ns) {
            Some(at_ns) => self.plan_probe(client, at_ns),
            None => {
                let held = self.entrances.get(client).map(|entrance| std::mem::take(&mut entrance.held));
                held.into_iter().flatten().for_each(|slot| self.ask(slot));
            }
        }
    }

    /// A flight ends, and its place is free.
    pub fn vacate(&mut self, slot: u32) {
        let client = self.flights.get(slot).client;
        self.flights.remove(slot);
        if let Some(entrance) = self.entrances.get(client) {
            entrance.places -= 1;
            self.free.push(client);
        }
        self.idle.push(client);
    }

    /// An attempt of a flight, or a call, has ended, and that says something of the servers' load.
    pub fn told(&mut self, signal: Signal, slot: u32, verdict: Verdict) {
        let Flight { client, since_ns, called_ns, .. } = *self.flights.get(slot);
        let started_ns = match signal {
            Signal::Attempt => since_ns,
            Signal::Operation => called_ns,
        };
        let in_flight = self.entrances.get(client).map_or(0, |entrance| entrance.under_way);
        let reply = Reply { verdict, started_ns, ended_ns: self.now_ns, in_flight };
        let News { has_grown, probe_at } = self.applications.told(signal, client, &reply);
        if has_grown {
            self.free.push(client);
        }
        if let Some(at_ns) = probe_at {
            self.plan_probe(client, at_ns);
        }
    }

    /// What is planned for a client and not for an operation has its number for an epoch.
    fn plan_probe(&mut self, client: u32, at_ns: u64) {
        let what = What::MayProbe;
        self.agenda.plan(Event { at_ns, slot: NOBODY, epoch: client, op: 0, server: 0, class: OK, what });
    }

    /// Those who wait with a place.
    pub fn held(&self) -> impl Iterator<Item = &Flight> {
        let flights = (!self.entrances.each.is_empty()).then(|| self.flights.iter());
        flights.into_iter().flatten().filter(|flight| flight.step == Step::Held)
    }

    /// When the oldest of those was due who are in queues, or wait with a place; workers without arrivals are never late.
    pub fn oldest_waiting_ns(&self) -> Option<u64> {
        let is_open = matches!(self.plan.load.model, Model::Open { .. });
        let held = self.held().filter(|_| is_open).map(|flight| flight.due_ns);
        self.entrances.waiting().map(|due| due.at_ns).chain(held).min()
    }
}
