//! The simulated world: clients, wires and servers, moved on from one event to the next.
//!
//! ```text
//! due ─▶ (queue) ─▶ ask ─▶ start ─▶ call ─▶ attempt ─▶ (pool) ─▶ send ══wire══▶ limiter ─▶ failpoint ─▶ tickets ─▶ served
//!                    ▲               ▲        ▲                                       rejected│                        │
//!                  breaker,          │        └── driver's backoff ◀── answer ◀═══════wire════╧════════════════════════╯
//!                  throttle          └──────────── application's pause ◀── call failed ◀──┤
//!                                                                                        end
//! ```

use std::time::Duration;

use super::application::Applications;
use super::driver::{Driver, select};
use super::entrance::Entrances;
use super::event::{Agenda, Event, Lane, NOBODY, What};
use super::flight::{Flight, Flights, Neighbours, Step};
use super::pool::Pools;
use super::rules::{self, Class, DEADLINE, FULL, OK, Rule};
use super::server::Server;
use super::tally::Tally;
use crate::document::{Random, Stream};
use crate::engine::schedule::Due;
use crate::flow::Verdict;
use crate::flow::backoff::Pauses;
use crate::operation::mix::{Mix, Share};
use crate::plan::flow::Signal;
use crate::plan::model::Assumptions;
use crate::plan::timeline::nanos;
use crate::plan::{Backoff, Model, Plan};
use crate::snapshot::{Generator, ServerFacts, Snapshot};
use crate::stats::sample::{AttemptEnd, Outcome};

/// The kind of the tickets for reads, which holders take.
pub const READS: usize = 0;

/// Everything that is simulated.
pub struct World<'a> {
    pub(super) plan: &'a Plan,
    driver: &'a Driver,
    pub(super) model: &'a Assumptions,
    pub(super) rules: Vec<Rule>,
    classes: Vec<Class>,
    mix: Mix,
    /// One way, in nanoseconds.
    pub(super) wire_ns: u64,
    deadline_ns: Option<u64>,
    /// What is planned.
    pub agenda: Agenda,
    /// What is under way.
    pub flights: Flights,
    /// What is counted.
    pub tally: Tally,
    /// The members, number 0 is the primary.
    pub servers: Vec<Server>,
    pools: Pools,
    /// By slot: the application's pauses; empty where it makes no further calls.
    pauses: Vec<Pauses>,
    pub(super) applications: Applications,
    pub(super) entrances: Entrances,
    /// Clients whose operation has just ended.
    pub idle: Vec<u32>,
    /// Clients that may have a place for an operation that had none.
    pub free: Vec<u32>,
    pub(super) now_ns: u64,
}

impl<'a> World<'a> {
    /// Before the load begins.
    pub fn new(plan: &'a Plan, model: &'a Assumptions, driver: &'a Driver) -> Self {
        let classes = rules::classes(plan);
        let share = |weight| Share { weight, new_keys: 0 };
        let shares: Vec<Share> = plan.operations.iter().map(|operation| share(operation.weight)).collect();
        let random = |server: u32| Random::stream(plan.seed, Stream::Server, server.into());
        Self {
            rules: plan.operations.iter().map(|operation| Rule::of(operation, driver)).collect(),
            mix: Mix::new(plan.seed, &shares),
            wire_ns: nanos(model.rtt.duration()) / 2,
            deadline_ns: plan.timeout.operation.map(|operation| nanos(operation.duration())),
            agenda: Agenda::default(),
            flights: Flights::default(),
            tally: Tally::new(plan, super::addresses(model.servers), classes.clone()),
            classes,
            servers: (0..model.servers).map(|server| Server::new(model, FULL, random(server))).collect(),
            pools: Pools::new(model.clients, model.servers, driver.pool),
            pauses: Vec::new(),
            applications: Applications::new(&plan.flow, model.clients),
            entrances: Entrances::new(plan, model.clients),
            idle: Vec::new(),
            free: Vec::new(),
            now_ns: 0,
            plan,
            driver,
            model,
        }
    }

    /// Moves the clock; never back.
    pub fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The n-th operation's place in the plan.
    pub fn operation(&self, n: u64) -> u16 {
        // Plans with more operations are refused before.
        u16::try_from(self.mix.at(n).operation).unwrap_or(u16::MAX)
    }

    /// The client of the n-th operation of the open model, and the operation's random numbers.
    pub fn draw(&self, n: u64) -> (u32, Random) {
        let mut random = Random::stream(self.plan.seed, Stream::Client, n);
        let client = u32::try_from(random.below(self.model.clients.into())).unwrap_or(0);
        (client, random)
    }

    /// An operation that is due, of a client or of any, as it is before it begins.
    pub fn flight(&self, due: Due, client: Option<u32>) -> Flight {
        let (anyone, random) = self.draw(due.n);
        Flight {
            due_ns: due.at_ns,
            started_ns: 0,
            called_ns: 0,
            since_ns: 0,
            checkout_ns: 0,
            attempt_ns: 0,
            backoff_ns: 0,
            random,
            avoid: 0,
            client: client.unwrap_or(anyone),
            epoch: 0,
            neighbours: Neighbours { before: NOBODY, behind: NOBODY },
            calls: 0,
            retries: 0,
            retry: 0,
            commands: 0,
            op: self.operation(due.n),
            segment: self.tally.segment_at(due.at_ns),
            server: 0,
            retargeted: false,
            step: Step::Held,
        }
    }

    /// Nothing keeps an operation back any more.
    pub fn start(&mut self, slot: u32) {
        let flight = self.flights.get(slot);
        flight.started_ns = self.now_ns;
        let (client, segment, op) = (flight.client, flight.segment, flight.op);
        // Without arrivals, what is offered is what begins.
        if matches!(self.plan.load.model, Model::Closed { .. }) {
            self.tally.offer(segment, op);
        }
        self.tally.start(flight);
        self.begun(client);
        if let Some(policy) = self.plan.backoff {
            self.renew_pauses(slot, policy);
        }
        self.call(slot);
    }

    fn renew_pauses(&mut self, slot: u32, policy: Backoff) {
        let slot = slot as usize;
        if self.pauses.len() <= slot {
            self.pauses.resize(slot + 1, Pauses::new(policy));
        }
        self.pauses[slot] = Pauses::new(policy);
    }

    /// The application calls.
    fn call(&mut self, slot: u32) {
        let flight = self.flights.get(slot);
        flight.epoch = flight.epoch.wrapping_add(1);
        flight.calls += 1;
        flight.called_ns = self.now_ns;
        flight.commands = self.rules[usize::from(flight.op)].commands;
        (flight.retry, flight.avoid) = (0, 0);
        if let Some(deadline_ns) = self.deadline_ns {
            let event = event(flight, slot, self.now_ns + deadline_ns, What::Deadline);
            self.agenda.follow(Lane::Deadlines, event);
        }
        self.attempt(slot);
    }

    /// The driver selects a server and asks for a connection.
    fn attempt(&mut self, slot: u32) {
        let everyone = u64::MAX >> (64 - self.model.servers);
        let flight = self.flights.get(slot);
        let reads = self.rules[usize::from(flight.op)].reads;
        let server = if reads {
            let (pools, client) = (&self.pools, flight.client);
            let busy = |server| pools.in_use(client, server);
            select(self.driver.prefers, everyone, flight.avoid, busy, &mut flight.random)
        } else {
            0
        };
        flight.retargeted = flight.retry > 0 && server != flight.server;
        flight.server = server;
        flight.since_ns = self.now_ns;
        flight.step = Step::Queued;
        if self.pools.take(&mut self.flights, slot) {
            self.send(slot);
        }
    }

    /// The attempt has its connection.
    fn send(&mut self, slot: u32) {
        let flight = self.flights.get(slot);
        let waited_ns = self.now_ns - flight.since_ns;
        flight.checkout_ns += waited_ns;
        flight.retries += u32::from(flight.retry > 0);
        flight.since_ns = self.now_ns;
        flight.step = Step::Sent;
        self.tally.checked_out(flight, waited_ns);
        let event = event(flight, slot, self.now_ns + self.wire_ns, What::Arrives);
        self.agenda.follow(Lane::ToServer, event);
    }

    /// Looks at everybody whose turn comes soon. It changes nothing, but it is these looks, all at once, that the processor
    /// waits for the memory with; one by one, when each has its turn, it would wait for each.
    pub fn look_ahead(&mut self) {
        let mut seen = 0;
        for event in self.agenda.fetched().filter(|event| event.slot != NOBODY) {
            let flight = self.flights.get(event.slot);
            // A flight has two lines of the cache: that of its times, and that of everything else.
            let in_use = self.pools.in_use(flight.client, flight.server);
            seen ^= flight.since_ns ^ u64::from(flight.epoch ^ in_use);
        }
        std::hint::black_box(seen);
    }

    /// Something happens.
    pub fn happen(&mut self, event: Event) {
        self.now_ns = event.at_ns;
        match event.what {
            What::Arrives | What::Served | What::Admitted => self.at_server(event),
            What::MayProbe => self.may_probe(event.epoch),
            _ if !self.flights.is_awaited(event.slot, event.epoch) => {}
            What::Answered => self.answered(event.slot, event.class),
            What::Deadline => self.out_of_time(event.slot),
            What::AskAgain => self.ask(event.slot),
            What::Retry => {
                let flight = self.flights.get(event.slot);
                let paused_ns = self.now_ns - flight.since_ns;
                flight.backoff_ns += paused_ns;
                self.tally.backed_off(flight, paused_ns);
                self.attempt(event.slot);
            }
            What::CallAgain => {
                let flight = self.flights.get(event.slot);
                flight.backoff_ns += self.now_ns - flight.since_ns;
                self.call(event.slot);
            }
        }
    }

    /// A connection is free again: whoever waited for it goes on.
    fn release(&mut self, slot: u32) {
        let (client, server) = {
            let flight = self.flights.get(slot);
            (flight.client, flight.server)
        };
        if let Some(next) = self.pools.give_back(&mut self.flights, client, server) {
            self.send(next);
        }
    }

    fn answered(&mut self, slot: u32, class: u8) {
        self.release(slot);
        let flight = self.flights.get(slot);
        let round_trip_ns = self.now_ns - flight.since_ns;
        flight.attempt_ns += round_trip_ns;
        let Class { rejected, retryable, base_ms, .. } = self.classes[usize::from(class)];
        let end = match class {
            OK => AttemptEnd::Served,
            _ if rejected => AttemptEnd::Rejected,
            _ => AttemptEnd::Failed,
        };
        self.tally.attempt(flight, end, class, round_trip_ns, self.now_ns);
        let verdict = if rejected { Verdict::Rejected } else { Verdict::Served };
        self.told(Signal::Attempt, slot, verdict);
        let flight = self.flights.get(slot);
        if class == OK {
            flight.commands -= 1;
            (flight.retry, flight.avoid) = (0, 0);
            return match flight.commands {
                0 => {
                    self.told(Signal::Operation, slot, Verdict::Served);
                    self.end(slot, Outcome::Ok, OK, Verdict::Served);
                }
                _ => self.attempt(slot),
            };
        }
        if !retryable {
            return self.call_failed(slot, Outcome::Failed, class);
        }
        if flight.retry >= self.rules[usize::from(flight.op)].retries {
            return self.call_failed(slot, Outcome::GaveUp, class);
        }
        flight.retry += 1;
        self.applications.retried(flight.client, self.now_ns);
        if self.driver.retargets {
            flight.avoid |= 1 << flight.server;
        }
        let pause_ns = self.driver.backoff_ns(flight.retry.into(), base_ms, &mut flight.random);
        self.pause(slot, pause_ns, What::Retry);
    }

    fn pause(&mut self, slot: u32, pause_ns: u64, what: What) {
        let flight = self.flights.get(slot);
        flight.since_ns = self.now_ns;
        flight.step = Step::Paused;
        let event = event(flight, slot, self.now_ns + pause_ns, what);
        self.agenda.plan(event);
    }

    /// The application waits no longer for its call. What is on the wire or at a server goes on there.
    fn out_of_time(&mut self, slot: u32) {
        let flight = self.flights.get(slot);
        let since_ns = self.now_ns - flight.since_ns;
        match flight.step {
            Step::Queued => {
                flight.checkout_ns += since_ns;
                self.pools.leave(&mut self.flights, slot);
            }
            Step::Sent => {
                flight.attempt_ns += since_ns;
                self.tally.attempt(flight, AttemptEnd::NoAnswer, OK, since_ns, self.now_ns);
                self.release(slot);
            }
            Step::Paused => flight.backoff_ns += since_ns,
            Step::Held | Step::Ended => {}
        }
        self.call_failed(slot, Outcome::TimedOut, DEADLINE);
    }

    /// A call has failed: the application calls again, or gives the operation up.
    fn call_failed(&mut self, slot: u32, outcome: Outcome, class: u8) {
        let Class { rejected, worth_another_call, base_ms, .. } = self.classes[usize::from(class)];
        // A call that took too long has met servers with too much to do, as far as an application can tell.
        let overloaded = rejected || outcome == Outcome::TimedOut;
        let verdict = if overloaded { Verdict::Rejected } else { Verdict::Served };
        self.told(Signal::Operation, slot, verdict);
        let asked_for = base_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        let client = self.flights.get(slot).client;
        // A probe goes once.
        let again = self.plan.backoff.is_some() && worth_another_call && !self.is_probe(client, slot);
        let flight = self.flights.get(slot);
        if again
            && let Some(pause) = self.pauses[slot as usize].next_after(asked_for, &mut flight.random)
            && self.applications.may_repeat(client, self.now_ns, &mut flight.random)
        {
            // The deadline of the call that failed is void.
            flight.epoch = flight.epoch.wrapping_add(1);
            return self.pause(slot, nanos(pause), What::CallAgain);
        }
        self.end(slot, outcome, class, verdict);
    }

    fn end(&mut self, slot: u32, outcome: Outcome, class: u8, verdict: Verdict) {
        let flight = self.flights.get(slot);
        let client = flight.client;
        self.tally.end(flight, outcome, class, self.now_ns);
        self.ended(client, slot, verdict);
        self.vacate(slot);
    }

    /// The interval up to now. `beyond` more operations are due than have been taken.
    pub fn snapshot(&mut self, frozen_at: u64, generator: Generator, beyond: u64) -> Snapshot {
        let mut snapshot = self.tally.snapshot(self.now_ns, frozen_at, generator);
        for flight in self.flights.iter().filter(|flight| flight.step == Step::Sent) {
            snapshot.servers[usize::from(flight.server)].connections_open += 1;
        }
        (snapshot.flow, snapshot.events) = self.applications.report(self.now_ns);
        snapshot.flow.queued = self.entrances.queued(beyond);
        snapshot
    }

    /// What the servers would say of themselves now.
    pub fn facts(&mut self) -> Vec<ServerFacts> {
        let now_ns = self.now_ns;
        let each = super::addresses(self.model.servers).into_iter().zip(&mut self.servers).enumerate();
        each.map(|(number, (address, server))| ServerFacts {
            address,
            role: if number == 0 { "primary" } else { "secondary" }.to_owned(),
            counters: server.counters(now_ns),
            staleness: None,
        })
        .collect()
    }

    /// Whatever is under way is cut off, and what waits is left out; of workers without arrivals nothing waits.
    pub fn abandon(&mut self) {
        let is_open = matches!(self.plan.load.model, Model::Open { .. });
        for flight in self.flights.iter() {
            match flight.step {
                Step::Held if is_open => self.tally.leave_out(flight.segment, flight.op),
                Step::Held => {}
                _ => self.tally.abandon(flight),
            }
        }
        self.flights = Flights::default();
        for due in self.entrances.waiting() {
            self.tally.leave_out(self.tally.segment_at(due.at_ns), self.operation(due.n));
        }
    }
}

/// Something that is planned for an operation.
pub const fn event(flight: &Flight, slot: u32, at_ns: u64, what: What) -> Event {
    Event { at_ns, slot, epoch: flight.epoch, op: flight.op, server: flight.server, class: OK, what }
}
