//! A plan carried out in virtual time, with no server and no driver: a discrete-event model of clients, the driver's
//! retries, wires and servers. It is seeded and exact: the same plan gives the same numbers to the last digit.
//!
//! What is modelled: arrivals (by the same [`Schedule`] as a real load) or workers; the application's queue, limit, breaker
//! and budget (the same state machines as a run's), deadlines and further calls; the driver's selection of servers,
//! retries, backoff and retargeting; pools as bounds; limiters (the same state machine as the gates'), failpoints, tickets
//! with their queue, stopped processes. What is not: the spool, elections, monitoring, making connections, cursors of
//! several batches, what a command's work depends on, and the load generator itself, which never falls behind.

mod application;
pub mod driver;
mod entrance;
mod event;
mod flight;
mod overloads;
pub mod pace;
mod pool;
pub mod rules;
mod runs;
mod server;
mod serving;
pub mod settings;
mod tally;
#[cfg(test)]
mod testing;
mod world;

use std::ops::ControlFlow;

use jiff::Timestamp;

use self::driver::Driver;
use self::rules::{Change, changes, hit};
use self::world::World;
use crate::engine::DRAIN;
use crate::engine::schedule::{Due, Schedule};
use crate::plan::model::Assumptions;
use crate::plan::timeline::nanos;
use crate::plan::{Model, Plan};
use crate::snapshot::{Event, Generator, ServerFacts, Snapshot, Totals};

/// The length of an interval, when no segment ends in it.
const INTERVAL_NS: u64 = 1_000_000_000;

/// When the first trial of every simulation begins, by its own clock: at a time that nobody takes for today.
pub const GO: Timestamp = Timestamp::constant(946_684_800, 0);

/// What a simulation tells, in order of its time.
#[derive(Debug)]
pub enum Told {
    /// An interval is over, and this is what the servers say of themselves at its end.
    Interval(Box<Snapshot>, Vec<ServerFacts>),
    /// An overload begins or ends.
    Event(Event),
}

/// Carries a plan out. `tell` hears of every interval and event, and may ask for an early end, which is one as of a real
/// load: operations under way have five seconds to end.
///
/// # Errors
/// What `tell` fails with.
pub fn simulate<E>(
    plan: &Plan,
    model: &Assumptions,
    driver: &Driver,
    tell: impl FnMut(Told) -> Result<ControlFlow<()>, E>,
) -> Result<Totals, E> {
    Course::new(plan, model, driver, tell).run()
}

/// The names of so many servers.
fn addresses(servers: u32) -> Vec<String> {
    (0..servers).map(|server| format!("simulated-{server}:27017")).collect()
}

/// Where the load comes from.
enum Load {
    /// `next` becomes due next, and `later` goes over those after it. Those of the backlog are due and have no room; `taken` goes over these,
    /// once it has left out those before them, which had room at once.
    Open { next: Due, later: Box<Schedule>, taken: Box<Schedule>, at_once: u64, backlog: u64 },
    /// The number of the next operation.
    Closed { next: u64 },
}

/// A trial in virtual time.
struct Course<'a, T> {
    plan: &'a Plan,
    model: &'a Assumptions,
    world: World<'a>,
    load: Load,
    /// Those to come, the next one last.
    changes: Vec<Change>,
    tell: T,
    now_ns: u64,
    next_cut_ns: u64,
    measured_until_ns: u64,
    /// When the load ended; `u64::MAX` as long as it goes on.
    frozen_at: u64,
    stopped: bool,
}

impl<'a, T, E> Course<'a, T>
where
    T: FnMut(Told) -> Result<ControlFlow<()>, E>,
{
    fn new(plan: &'a Plan, model: &'a Assumptions, driver: &'a Driver, tell: T) -> Self {
        let load = match &plan.load.model {
            Model::Closed { .. } => Load::Closed { next: 0 },
            Model::Open { stages, arrivals, .. } => {
                let taken = Box::new(Schedule::new(plan.load.warmup, stages, *arrivals, plan.seed));
                let mut later = taken.clone();
                let next = later.peek();
                later.next();
                Load::Open { next, later, taken, at_once: 0, backlog: 0 }
            }
        };
        let mut changes = changes(plan);
        changes.reverse();
        Self {
            world: World::new(plan, model, driver),
            load,
            changes,
            tell,
            now_ns: 0,
            next_cut_ns: 0,
            measured_until_ns: nanos(plan.load.warmup.duration() + plan.load.duration.duration()),
            frozen_at: u64::MAX,
            stopped: false,
            plan,
            model,
        }
    }

    fn run(mut self) -> Result<Totals, E> {
        self.plan_cut();
        if let Model::Closed { workers } = self.plan.load.model {
            (0..workers).for_each(|worker| self.begin_closed(worker % self.model.clients));
        }
        let cooled_down_ns = self.measured_until_ns + nanos(self.plan.load.cooldown.duration());
        loop {
            if self.is_frozen() {
                if self.world.flights.len() == 0 || self.now_ns >= self.frozen_at + nanos(DRAIN) {
                    return self.end();
                }
            } else if self.stopped
                || self.now_ns >= cooled_down_ns
                || (self.now_ns >= self.measured_until_ns && self.world.tally.measured_open() == 0)
            {
                self.freeze()?;
                continue;
            }
            let end_ns = if self.is_frozen() { self.frozen_at + nanos(DRAIN) } else { cooled_down_ns };
            let change_ns = self.changes.last().map_or(u64::MAX, |change| change.at_ns);
            let due_ns = self.next_due();
            let bound_ns = end_ns.min(change_ns).min(due_ns).min(self.next_cut_ns);
            if self.happens_before(bound_ns) {
                continue;
            }
            self.now_ns = bound_ns;
            self.world.at(bound_ns);
            if bound_ns == self.next_cut_ns {
                self.cut()?;
                self.plan_cut();
            } else if bound_ns == change_ns {
                self.change()?;
            } else if bound_ns == due_ns {
                self.due();
            }
        }
    }

    /// Whatever happens before a time, or until something has happened after which the load may be over. Whether that is so.
    fn happens_before(&mut self, bound_ns: u64) -> bool {
        let may_end_ns = self.measured_until_ns.min(self.frozen_at);
        while let Some(event) = self.world.agenda.next_before(bound_ns) {
            self.now_ns = event.at_ns;
            self.world.look_ahead();
            self.world.happen(event);
            self.refill();
            if self.now_ns >= may_end_ns {
                return true;
            }
        }
        false
    }

    const fn is_frozen(&self) -> bool {
        self.frozen_at != u64::MAX
    }

    const fn next_due(&self) -> u64 {
        match &self.load {
            Load::Open { next, .. } if !self.is_frozen() => next.at_ns,
            _ => u64::MAX,
        }
    }

    /// An operation becomes due.
    fn due(&mut self) {
        if let Load::Open { next, later, at_once, backlog, .. } = &mut self.load
            && let Some(after) = later.next()
        {
            let next = std::mem::replace(next, after);
            let op = self.world.operation(next.n);
            self.world.tally.offer(self.world.tally.segment_at(next.at_ns), op);
            self.world.look_at_arrivals(next.n);
            if *backlog == 0 && self.world.has_room() {
                *at_once += 1;
                self.world.arrive(next, op);
            } else {
                *backlog += 1;
            }
        }
    }

    /// Starts what is due, as far as there is room, or the next operation of clients whose last one has ended.
    fn refill(&mut self) {
        let is_frozen = self.is_frozen();
        match &mut self.load {
            _ if is_frozen => {
                self.world.idle.clear();
                self.world.free.clear();
            }
            Load::Open { taken, at_once, backlog, .. } => {
                self.world.idle.clear();
                while let Some(client) = self.world.free.pop() {
                    self.world.advance(client);
                }
                self.world.relieve();
                while *backlog > 0 && self.world.has_room() {
                    let Some(next) = waiting(taken, at_once).next() else { return };
                    *backlog -= 1;
                    self.world.arrive(next, self.world.operation(next.n));
                }
            }
            Load::Closed { .. } => {
                while let Some(client) = self.world.idle.pop() {
                    self.begin_closed(client);
                }
                while let Some(client) = self.world.free.pop() {
                    while self.world.take_worker(client) {
                        self.begin_closed(client);
                    }
                }
            }
        }
    }

    /// A worker of a client's begins its next operation, or waits for a place for it.
    fn begin_closed(&mut self, client: u32) {
        if let Load::Closed { next } = &mut self.load
            && self.world.finds_place(client)
        {
            let n = *next;
            *next += 1;
            self.world.take(Due { n, at_ns: self.now_ns }, self.world.operation(n), Some(client));
        }
    }

    fn change(&mut self) -> Result<(), E> {
        let Some(change) = self.changes.pop() else { return Ok(()) };
        self.world.change(change);
        let overload = &self.plan.overloads[change.overload];
        let names = addresses(self.model.servers);
        let hit: Vec<String> = hit(&overload.members, self.model.servers)
            .into_iter()
            .map(|server| names[server].clone())
            .collect();
        self.told(Told::Event(Event {
            at_ns: i64::try_from(self.now_ns).unwrap_or(i64::MAX),
            kind: if change.on { "overload_on" } else { "overload_off" }.to_owned(),
            subject: overload.name.clone(),
            detail: hit.join(", "),
        }))
    }

    /// Nothing more becomes due.
    fn freeze(&mut self) -> Result<(), E> {
        self.frozen_at = self.now_ns;
        if self.world.tally.start_ns() < self.now_ns {
            self.cut()?;
        }
        self.plan_cut();
        Ok(())
    }

    fn plan_cut(&mut self) {
        let whole = (self.now_ns / INTERVAL_NS + 1) * INTERVAL_NS;
        self.next_cut_ns = whole.min(self.world.tally.border_after(self.now_ns));
    }

    fn cut(&mut self) -> Result<(), E> {
        let (oldest_ns, beyond) = match &mut self.load {
            Load::Open { taken, at_once, backlog, .. } if *backlog > 0 => {
                (Some(waiting(taken, at_once).peek().at_ns), *backlog)
            }
            _ => (None, 0),
        };
        // What is held or in queues is older than what has not come to them, but for that of other clients.
        let oldest_ns = oldest_ns.into_iter().chain(self.world.oldest_waiting_ns()).min();
        let behind_ns = oldest_ns.map_or(0, |oldest_ns| self.now_ns - oldest_ns);
        let workers = self.world.flights.len() as u64;
        let in_flight = workers - self.world.held().count() as u64;
        // What a simulation costs this machine says nothing of what is simulated.
        let generator = Generator { cpu_ns: 0, rss_bytes: 0, behind_ns, workers, in_flight };
        let snapshot = self.world.snapshot(self.frozen_at, generator, beyond);
        let facts = self.world.facts();
        self.told(Told::Interval(Box::new(snapshot), facts))
    }

    fn told(&mut self, told: Told) -> Result<(), E> {
        self.stopped |= (self.tell)(told)?.is_break();
        Ok(())
    }

    /// The last interval; whoever is still under way or waiting gets the outcome of a load that was cut off.
    fn end(mut self) -> Result<Totals, E> {
        let mut left = self.world.flights.len() > 0 || self.world.entrances.waiting().next().is_some();
        self.world.abandon();
        if let Load::Open { taken, at_once, backlog, .. } = &mut self.load {
            left |= *backlog > 0;
            for next in waiting(taken, at_once).take(usize::try_from(*backlog).unwrap_or(usize::MAX)) {
                let op = self.world.operation(next.n);
                self.world.tally.leave_out(self.world.tally.segment_at(next.at_ns), op);
            }
        }
        if left || self.world.tally.start_ns() < self.now_ns {
            let snapshot = self.world.snapshot(self.frozen_at, Generator::default(), 0);
            let facts = self.world.facts();
            self.told(Told::Interval(Box::new(snapshot), facts))?;
        }
        Ok(self.world.tally.finish(self.stopped))
    }
}

/// Those who wait, once those who had room at once are left out.
fn waiting<'a>(taken: &'a mut Schedule, at_once: &mut u64) -> &'a mut Schedule {
    for _ in 0..std::mem::take(at_once) {
        taken.next();
    }
    taken
}

#[cfg(test)]
mod tests;
