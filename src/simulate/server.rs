//! A simulated server: a limiter on requests, a failpoint, and tickets with a queue before them.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Event, NOBODY};
use crate::document::Random;
use crate::limiter::{Decision, Limiter};
use crate::plan::model::{Assumptions, ServiceDistribution};
use crate::plan::timeline::nanos;

/// One member of the replica set.
#[derive(Debug)]
pub struct Server {
    /// Its limiter on requests; it has no limit until one is set.
    pub limiter: Limiter,
    /// The error that the limiter rejects with.
    pub limiter_class: u8,
    /// What it fails by chance, if anything.
    pub failpoint: Option<Failpoint>,
    /// Those for reads, then those for writes.
    pub tickets: [Tickets; 2],
    /// What has come while its process was stopped; `None` while it runs.
    pub stopped: Option<VecDeque<Event>>,
    /// Those who do nothing but hold read tickets; `None` when nobody does.
    pub holders: Option<Holders>,
    service: Service,
    random: Random,
}

/// Rejections by chance.
#[derive(Clone, Debug, PartialEq)]
pub struct Failpoint {
    /// Their share of what matches.
    pub probability: f64,
    /// By operation: whether it matches.
    pub ops: Vec<bool>,
    /// The error.
    pub class: u8,
}

/// Holders of read tickets: each gives its ticket back in the end, and waits for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holders {
    /// The epoch of their events: those of others have let go.
    pub epoch: u32,
    /// How long each keeps a ticket.
    pub hold_ns: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is being worked on, for so long.
    Started(u64),
    /// It waits for a ticket.
    Queued,
    /// It waits for its token until then.
    WaitsUntil(u64),
    /// It is rejected, with this error.
    Rejected(u8),
}

/// How long work takes.
#[derive(Clone, Copy, Debug)]
struct Service {
    mean_ns: u64,
    distribution: ServiceDistribution,
    /// Of one rejection.
    rejection_ns: u64,
    /// How many may wait.
    max_queue: usize,
    /// The error of those who may not.
    full_class: u8,
}

impl Server {
    /// An idle one. `full_class` is the error with which it rejects what finds its queue full.
    pub fn new(model: &Assumptions, full_class: u8, random: Random) -> Self {
        let mean_ns = nanos(model.service_time.duration());
        let service = Service {
            mean_ns,
            distribution: model.service_distribution,
            rejection_ns: scaled(mean_ns, model.rejection_cost),
            max_queue: model.max_queue.map_or(usize::MAX, |most| most as usize),
            full_class,
        };
        Self {
            limiter: Limiter::new(None, 0),
            limiter_class: 0,
            failpoint: None,
            tickets: [Tickets::new(model.tickets), Tickets::new(model.tickets)],
            stopped: None,
            holders: None,
            service,
            random,
        }
    }

    /// A request comes; `kind` is that of its tickets.
    pub fn ask(&mut self, request: Event, kind: usize, now_ns: u64) -> Fate {
        match self.limiter.ask(now_ns) {
            Decision::Admit => self.enter(request, kind, now_ns),
            Decision::WaitUntil(at_ns) => Fate::WaitsUntil(at_ns),
            Decision::Reject => self.reject(self.limiter_class, kind, now_ns),
        }
    }

    /// A request has passed the limiter.
    pub fn enter(&mut self, request: Event, kind: usize, now_ns: u64) -> Fate {
        if let Some(failpoint) = &self.failpoint
            && failpoint.ops[usize::from(request.op)]
            && self.random.unit_f64() < failpoint.probability
        {
            return self.reject(failpoint.class, kind, now_ns);
        }
        let tickets = &mut self.tickets[kind];
        if tickets.has_free() {
            let service_ns = self.service.draw(&mut self.random);
            return Fate::Started(tickets.take(service_ns, now_ns));
        }
        if tickets.queue.len() >= self.service.max_queue {
            return self.reject(self.service.full_class, kind, now_ns);
        }
        tickets.queue.push_back(request);
        Fate::Queued
    }

    fn reject(&mut self, class: u8, kind: usize, now_ns: u64) -> Fate {
        if self.service.rejection_ns > 0 {
            self.tickets[kind].charge(self.service.rejection_ns, now_ns);
        }
        Fate::Rejected(class)
    }

    /// Lets the next of those who wait begin, if a ticket is free, and says how long it takes.
    pub fn next(&mut self, kind: usize, now_ns: u64) -> Option<(Event, u64)> {
        let tickets = &mut self.tickets[kind];
        if !tickets.has_free() {
            return None;
        }
        loop {
            let request = tickets.queue.pop_front()?;
            let service_ns = match self.holders {
                _ if request.slot != NOBODY => self.service.draw(&mut self.random),
                Some(holders) if holders.epoch == request.epoch => holders.hold_ns,
                // It has let go while it waited.
                _ => continue,
            };
            return Some((request, tickets.take(service_ns, now_ns)));
        }
    }
}

impl Server {
    /// What it would say of itself, by the names of [`crate::snapshot::SERVER_COUNTERS`].
    pub fn counters(&mut self, now_ns: u64) -> BTreeMap<String, i64> {
        let limiter = self.limiter.counters(now_ns);
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let [reads, writes] = &self.tickets;
        let mut counters = vec![
            ("queue_readers", number(reads.queue.len() as u64)),
            ("queue_writers", number(writes.queue.len() as u64)),
            ("active_readers", reads.busy.into()),
            ("active_writers", writes.busy.into()),
            ("read_tickets_available", reads.free().into()),
            ("read_tickets_out", reads.busy.into()),
            ("write_tickets_available", writes.free().into()),
            ("write_tickets_out", writes.busy.into()),
        ];
        if self.limiter.is_on() || limiter.attempted > 0 {
            counters.extend([
                ("admissions_attempted", number(limiter.attempted)),
                ("admissions_successful", number(limiter.successful)),
                ("admissions_rejected", number(limiter.rejected)),
                ("admissions_exempted", number(limiter.exempted)),
                ("admission_tokens_available", number(limiter.available_tokens)),
                ("admissions_waiting", limiter.queue_length.into()),
            ]);
        }
        counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Service {
    fn draw(&self, random: &mut Random) -> u64 {
        match self.distribution {
            ServiceDistribution::Fixed => self.mean_ns,
            // 1 − u is in (0, 1], so the logarithm is finite.
            ServiceDistribution::Exponential => scaled(self.mean_ns, -(1.0 - random.unit_f64()).ln()),
        }
    }
}

/// Tickets of one kind, and those who wait for one.
///
/// A rejection is answered at once; what it costs is work that is owed. Free tickets work it off; where there is none, the
/// next request that takes the last one is delayed by it. So a busy server has just that much less to give.
#[derive(Debug)]
pub struct Tickets {
    /// How many there are.
    limit: u32,
    /// How many there are when nothing is done to the server.
    usual: u32,
    busy: u32,
    /// Those who wait.
    pub queue: VecDeque<Event>,
    owed_ns: u64,
    /// When that was.
    owed_at_ns: u64,
}

impl Tickets {
    fn new(limit: u32) -> Self {
        Self { limit, usual: limit, busy: 0, queue: VecDeque::new(), owed_ns: 0, owed_at_ns: 0 }
    }

    /// Another number of tickets; `None` is the usual one. Those that are out come back when their work is done.
    pub fn set_limit(&mut self, limit: Option<u32>, now_ns: u64) {
        self.work_off(now_ns);
        self.limit = limit.unwrap_or(self.usual);
    }

    /// How many are not out.
    const fn free(&self) -> u32 {
        self.limit.saturating_sub(self.busy)
    }

    const fn has_free(&self) -> bool {
        self.busy < self.limit
    }

    /// Takes a ticket for this long; returns for how long it is really taken.
    fn take(&mut self, service_ns: u64, now_ns: u64) -> u64 {
        self.work_off(now_ns);
        self.busy += 1;
        let owed_ns = if self.has_free() { 0 } else { std::mem::take(&mut self.owed_ns) };
        service_ns + owed_ns
    }

    /// A ticket comes back.
    pub fn put_back(&mut self, now_ns: u64) {
        self.work_off(now_ns);
        self.busy -= 1;
    }

    fn charge(&mut self, work_ns: u64, now_ns: u64) {
        self.work_off(now_ns);
        self.owed_ns = self.owed_ns.saturating_add(work_ns);
    }

    fn work_off(&mut self, now_ns: u64) {
        if self.owed_ns > 0 {
            let idle_ns = u64::from(self.free()).saturating_mul(now_ns - self.owed_at_ns);
            self.owed_ns = self.owed_ns.saturating_sub(idle_ns);
        }
        self.owed_at_ns = now_ns;
    }
}

/// A part or a multiple of some time.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are far below 2^53 ns, factors are not negative, and a float cast saturates"
)]
fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::testing;

    fn server(tickets: u32, rejection_cost: f64, max_queue: Option<u32>) -> Server {
        let model = Assumptions {
            tickets,
            rejection_cost,
            max_queue,
            service_time: crate::units::Span::from(std::time::Duration::from_nanos(100)),
            service_distribution: ServiceDistribution::Fixed,
            ..Assumptions::default()
        };
        Server::new(&model, 2, Random::new(1))
    }

    #[test]
    fn requests_beyond_the_tickets_wait_and_those_beyond_the_queue_are_rejected() {
        let mut server = server(2, 0.0, Some(1));
        let mut ask = |slot| server.ask(testing::request(slot), 0, 0);
        assert_eq!([ask(0), ask(1)], [Fate::Started(100); 2]);
        assert_eq!([ask(2), ask(3)], [Fate::Queued, Fate::Rejected(2)]);
        assert_eq!(
            server.ask(testing::request(4), 1, 0),
            Fate::Started(100),
            "writes have their own tickets"
        );
        assert_eq!(server.next(0, 100), None);
        server.tickets[0].put_back(100);
        assert_eq!(server.next(0, 100).map(|(request, ns)| (request.slot, ns)), Some((2, 100)));
        assert_eq!((server.tickets[0].busy, server.tickets[0].free()), (2, 0));
    }

    #[test]
    fn what_rejections_cost_is_taken_from_those_who_are_served_unless_a_ticket_is_idle() {
        let mut server = server(1, 0.25, Some(0));
        assert_eq!(server.ask(testing::request(0), 0, 0), Fate::Started(100));
        for slot in 1..4 {
            assert_eq!(server.ask(testing::request(slot), 0, 50), Fate::Rejected(2));
        }
        server.tickets[0].put_back(100);
        assert_eq!(server.ask(testing::request(4), 0, 100), Fate::Started(175), "three times 25");
        server.ask(testing::request(5), 0, 150);
        server.tickets[0].put_back(275);
        assert_eq!(server.ask(testing::request(6), 0, 285), Fate::Started(115), "ten were worked off");
    }

    #[test]
    fn fewer_tickets_count_once_those_that_are_out_are_back() {
        let mut server = server(3, 0.0, None);
        for slot in 0..4 {
            server.ask(testing::request(slot), 0, 0);
        }
        server.tickets[0].set_limit(Some(1), 10);
        for left in [2, 1] {
            server.tickets[0].put_back(100);
            assert_eq!((server.next(0, 100), server.tickets[0].busy), (None, left));
        }
        server.tickets[0].put_back(100);
        assert!(server.next(0, 100).is_some());
        server.tickets[0].set_limit(None, 110);
        assert_eq!(server.tickets[0].free(), 2);
    }
}
