//! The servers a client has met, numbered in that order, and what its pools did there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use mongodb::event::cmap::{CmapEvent, ConnectionClosedReason};
use mongodb::options::ServerAddress;

use crate::snapshot::PoolCounts;

/// Every server met so far. Only ever grows, by as many members as a deployment has.
#[derive(Debug, Default)]
pub struct Servers(RwLock<Vec<Server>>);

#[derive(Debug)]
struct Server {
    address: ServerAddress,
    created: AtomicU64,
    closed: [AtomicU64; 5],
    clears: AtomicU64,
}

impl Servers {
    /// The server's number.
    pub fn number(&self, address: &ServerAddress) -> u16 {
        let find = |servers: &[Server]| servers.iter().position(|server| server.address == *address);
        let known = find(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let number = known.unwrap_or_else(|| {
            let mut servers = self.0.write().unwrap_or_else(PoisonError::into_inner);
            find(&servers).unwrap_or_else(|| {
                servers.push(Server {
                    address: address.clone(),
                    created: AtomicU64::new(0),
                    closed: Default::default(),
                    clears: AtomicU64::new(0),
                });
                servers.len() - 1
            })
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// Counts what a pool event says of a server's connections; check-outs are attempts and counted elsewhere.
    pub fn count(&self, event: &CmapEvent) {
        let one = |address: &ServerAddress, counter: fn(&Server) -> &AtomicU64| {
            let number = usize::from(self.number(address));
            if let Some(server) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(number) {
                counter(server).fetch_add(1, Ordering::Relaxed);
            }
        };
        match event {
            CmapEvent::ConnectionCreated(e) => one(&e.address, |s| &s.created),
            CmapEvent::PoolCleared(e) => one(&e.address, |s| &s.clears),
            CmapEvent::ConnectionClosed(e) => one(
                &e.address,
                match e.reason {
                    ConnectionClosedReason::Stale => |s| &s.closed[0],
                    ConnectionClosedReason::Idle => |s| &s.closed[1],
                    ConnectionClosedReason::Dropped => |s| &s.closed[3],
                    ConnectionClosedReason::PoolClosed => |s| &s.closed[4],
                    // `Error`, and whatever a later driver adds.
                    _ => |s| &s.closed[2],
                },
            ),
            _ => {}
        }
    }

    /// Address and counts since the client was made, in order of number.
    pub fn totals(&self) -> Vec<(String, PoolCounts)> {
        let servers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        servers.iter().map(|server| (server.address.to_string(), server.counts())).collect()
    }
}

impl Server {
    fn counts(&self) -> PoolCounts {
        let [stale, idle, error, dropped, pool_closed] =
            [0, 1, 2, 3, 4].map(|reason| self.closed[reason].load(Ordering::Relaxed));
        PoolCounts {
            created: self.created.load(Ordering::Relaxed),
            closed_stale: stale,
            closed_idle: idle,
            closed_error: error,
            closed_dropped: dropped,
            closed_pool_closed: pool_closed,
            clears: self.clears.load(Ordering::Relaxed),
        }
    }
}
