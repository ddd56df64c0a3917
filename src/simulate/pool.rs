//! The connection pools of all clients, as bounds on how many attempts a client has with a server at a time. Making a
//! connection takes no time here, and `maxConnecting` bounds nothing.

use super::event::NOBODY;
use super::flight::{Flights, Neighbours};

/// The pools, by client and server. Those who wait are a list through the flights themselves.
#[derive(Debug)]
pub struct Pools {
    pools: Vec<Pool>,
    servers: usize,
    size: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    in_use: u32,
    first: u32,
    last: u32,
}

impl Pools {
    /// Pools of so many connections for each client and server.
    pub fn new(clients: u32, servers: u32, size: u32) -> Self {
        let servers = servers as usize;
        let pools = vec![Pool { in_use: 0, first: NOBODY, last: NOBODY }; clients as usize * servers];
        Self { pools, servers, size }
    }

    fn pool(&mut self, client: u32, server: u8) -> &mut Pool {
        &mut self.pools[client as usize * self.servers + usize::from(server)]
    }

    /// How many connections of a pool are in use.
    pub fn in_use(&self, client: u32, server: u8) -> u32 {
        self.pools[client as usize * self.servers + usize::from(server)].in_use
    }

    /// Takes a connection for a flight, or puts it into the queue for one. Whether it has one.
    pub fn take(&mut self, flights: &mut Flights, slot: u32) -> bool {
        let size = self.size;
        let flight = flights.get(slot);
        let pool = self.pool(flight.client, flight.server);
        if pool.in_use < size {
            pool.in_use += 1;
            return true;
        }
        flight.neighbours = Neighbours { before: pool.last, behind: NOBODY };
        match std::mem::replace(&mut pool.last, slot) {
            NOBODY => pool.first = slot,
            last => flights.get(last).neighbours.behind = slot,
        }
        false
    }

    /// Gives a connection back. Returns who has it now: the first of those who waited.
    pub fn give_back(&mut self, flights: &mut Flights, client: u32, server: u8) -> Option<u32> {
        let pool = self.pool(client, server);
        match pool.first {
            NOBODY => {
                pool.in_use -= 1;
                None
            }
            first => {
                self.leave(flights, first);
                Some(first)
            }
        }
    }

    /// Takes a flight out of the queue that it waits in.
    pub fn leave(&mut self, flights: &mut Flights, slot: u32) {
        let flight = flights.get(slot);
        let Neighbours { before, behind } = flight.neighbours;
        let pool = self.pool(flight.client, flight.server);
        match before {
            NOBODY => pool.first = behind,
            before => flights.get(before).neighbours.behind = behind,
        }
        match behind {
            NOBODY => pool.last = before,
            behind => flights.get(behind).neighbours.before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::testing::flight;

    #[test]
    fn connections_go_to_those_who_wait_in_their_order_and_not_to_those_who_left() {
        let mut flights = Flights::default();
        let slots: Vec<u32> = (0..6).map(|_| flights.add(flight())).collect();
        let mut pools = Pools::new(1, 2, 2);
        let taken: Vec<bool> = slots.iter().map(|&slot| pools.take(&mut flights, slot)).collect();
        assert_eq!(taken, [true, true, false, false, false, false]);
        assert_eq!((pools.in_use(0, 0), pools.in_use(0, 1)), (2, 0));
        pools.leave(&mut flights, slots[3]);
        let mut next = || pools.give_back(&mut flights, 0, 0);
        assert_eq!([next(), next(), next()], [Some(slots[2]), Some(slots[4]), Some(slots[5])]);
        assert_eq!([next(), next()], [None, None]);
        assert_eq!(pools.in_use(0, 0), 0);
        // Those at either end leave, too.
        for &slot in &slots[..5] {
            pools.take(&mut flights, slot);
        }
        pools.leave(&mut flights, slots[4]);
        pools.leave(&mut flights, slots[2]);
        assert_eq!(pools.give_back(&mut flights, 0, 0), Some(slots[3]));
        assert_eq!(pools.give_back(&mut flights, 0, 0), None);
    }
}
