//! What happens at servers.

use super::event::{Event, Lane, NOBODY, What};
use super::rules::OK;
use super::server::Fate;
use super::world::{READS, World};

impl World<'_> {
    /// Something happens at a server, or as soon as it goes on.
    pub fn at_server(&mut self, event: Event) {
        let server = &mut self.servers[usize::from(event.server)];
        if let Some(held) = &mut server.stopped {
            held.push_back(event);
            return;
        }
        let kind = match event.slot {
            NOBODY => READS,
            _ => self.rules[usize::from(event.op)].tickets,
        };
        let fate = match event.what {
            What::Arrives => server.ask(event, kind, self.now_ns),
            What::Admitted => {
                server.limiter.leave_queue(true);
                server.enter(event, kind, self.now_ns)
            }
            _ => return self.served(event, kind),
        };
        match fate {
            Fate::Started(ns) => {
                self.agenda.plan(Event { at_ns: self.now_ns + ns, what: What::Served, ..event })
            }
            Fate::WaitsUntil(at_ns) => self.agenda.plan(Event { at_ns, what: What::Admitted, ..event }),
            Fate::Rejected(class) => self.answer(Event { class, ..event }),
            Fate::Queued => {}
        }
    }

    fn served(&mut self, event: Event, kind: usize) {
        let server = &mut self.servers[usize::from(event.server)];
        server.tickets[kind].put_back(self.now_ns);
        if event.slot != NOBODY {
            self.answer(Event { class: OK, ..event });
        } else if server.holders.is_some_and(|holders| holders.epoch == event.epoch) {
            server.tickets[READS].queue.push_back(event);
        }
        self.let_in(usize::from(event.server), kind);
    }

    /// Lets those who wait for a ticket begin, as far as there are any.
    pub fn let_in(&mut self, server: usize, kind: usize) {
        while let Some((request, ns)) = self.servers[server].next(kind, self.now_ns) {
            self.agenda.plan(Event { at_ns: self.now_ns + ns, what: What::Served, ..request });
        }
    }

    fn answer(&mut self, event: Event) {
        // Nobody hears what nobody waits for.
        if self.flights.is_awaited(event.slot, event.epoch) {
            let at_ns = self.now_ns + self.wire_ns;
            self.agenda.follow(Lane::ToClient, Event { at_ns, what: What::Answered, ..event });
        }
    }
}
