//! What is done to servers, and undone.

use std::collections::VecDeque;

use super::event::{Event, NOBODY, What};
use super::rules::{self, Change, OK};
use super::server::Holders;
use super::world::{READS, World};
use crate::plan::Fault;
use crate::plan::timeline::nanos;

impl World<'_> {
    /// An overload begins or ends on the servers that it hits.
    pub fn change(&mut self, change: Change) {
        let overload = &self.plan.overloads[change.overload];
        for number in rules::hit(&overload.members, self.model.servers) {
            let server = &mut self.servers[number];
            match &overload.fault {
                Fault::LimitRequests(fault) => {
                    server.limiter.configure(change.on.then_some(fault.limit), self.now_ns);
                    server.limiter_class = rules::class_of(change.overload);
                }
                Fault::FailCommand(_) => {
                    let failpoint = rules::failpoint(self.plan, change.overload);
                    server.failpoint = failpoint.filter(|_| change.on);
                }
                Fault::Tickets(fault) => {
                    for (kind, limit) in [fault.read, fault.write].into_iter().enumerate() {
                        let limit = limit.filter(|_| change.on);
                        self.servers[number].tickets[kind].set_limit(limit, self.now_ns);
                        self.let_in(number, kind);
                    }
                }
                Fault::HoldTickets(fault) => {
                    let (epoch, hold_ns) =
                        (u32::from(rules::class_of(change.overload)), nanos(fault.hold.duration()));
                    server.holders = change.on.then_some(Holders { epoch, hold_ns });
                    let holder = Event {
                        at_ns: self.now_ns,
                        slot: NOBODY,
                        epoch,
                        op: 0,
                        server: u8::try_from(number).unwrap_or(u8::MAX),
                        class: OK,
                        what: What::Served,
                    };
                    let count = if change.on { fault.count } else { 0 };
                    server.tickets[READS].queue.extend((0..count).map(|_| holder));
                    self.let_in(number, READS);
                }
                Fault::Stall {} if change.on => server.stopped = Some(VecDeque::new()),
                Fault::Stall {} => {
                    let held = server.stopped.take().unwrap_or_default();
                    held.into_iter().for_each(|event| self.at_server(event));
                }
                _ => {}
            }
        }
    }
}
