//! The same interval as several processes saw it, each with a part of the load, made one.

use std::collections::BTreeMap;

use super::{FlowState, ServerStats, Snapshot};

impl Snapshot {
    /// Adds what another process did in the same time. Everything adds up, connections, memory and processors included; how
    /// far behind is the load is how far its latest part is.
    pub fn merge_beside(&mut self, other: Self) {
        for (key, stats) in other.cells {
            self.cells.entry(key).or_default().merge(&stats);
        }
        for (ours, theirs) in self.open.iter_mut().zip(&other.open) {
            *ours += theirs;
        }
        self.add_servers(other.servers);
        for theirs in other.errors {
            match self.errors.iter_mut().find(|ours| ours.is_like(&theirs)) {
                Some(ours) => ours.merge(&theirs),
                None => self.errors.push(theirs),
            }
        }
        self.add_orphans(other.orphans);
        let sum = |ours: Option<u64>, theirs: Option<u64>| Some(ours? + theirs?);
        self.flow = FlowState {
            limit: self.flow.limit.zip(other.flow.limit).map(|(ours, theirs)| ours + theirs),
            // Each has a breaker of its own, and where they differ there is no word for all.
            breaker: self.flow.breaker.take().filter(|ours| other.flow.breaker.as_ref() == Some(ours)),
            queued: sum(self.flow.queued, other.flow.queued),
            spooled: sum(self.flow.spooled, other.flow.spooled),
        };
        self.events.extend(other.events);
        self.dead_letters.merge(other.dead_letters);
        let (ours, theirs) = (&mut self.generator, other.generator);
        ours.cpu_ns += theirs.cpu_ns;
        ours.rss_bytes += theirs.rss_bytes;
        ours.behind_ns = ours.behind_ns.max(theirs.behind_ns);
        ours.workers += theirs.workers;
        ours.in_flight += theirs.in_flight;
    }

    /// Adds what another client of the same servers saw of them.
    pub(super) fn add_servers(&mut self, servers: Vec<ServerStats>) {
        for theirs in servers {
            match self.servers.iter_mut().find(|ours| ours.address == theirs.address) {
                Some(ours) => {
                    let connections_open = ours.connections_open + theirs.connections_open;
                    ours.merge_after(&theirs);
                    ours.connections_open = connections_open;
                }
                None => self.servers.push(theirs),
            }
        }
    }

    /// Adds commands that another client sent outside any operation.
    pub(super) fn add_orphans(&mut self, orphans: BTreeMap<String, u64>) {
        for (name, count) in orphans {
            *self.orphans.entry(name).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::results::testing;
    use crate::snapshot::{FlowState, Generator, PoolCounts, ServerStats};

    #[test]
    fn everything_adds_up() {
        let part = |address: &str, ok: u64, behind_ns| {
            let mut part = testing::snapshot(3, 1, [((1, 0), testing::cell(ok + 1, ok, ok, 2))], [1, 0, 2]);
            part.servers.push(ServerStats {
                address: address.to_owned(),
                attempts: ok,
                connections_open: 4,
                pool: PoolCounts { created: 1, ..PoolCounts::default() },
                ..ServerStats::default()
            });
            part.generator.behind_ns = behind_ns;
            let breaker = if ok < 30 { "open" } else { "closed" }.to_owned();
            part.flow = FlowState { limit: Some(10), queued: Some(2), breaker: Some(breaker), spooled: None };
            part
        };
        let mut whole = part("a:1", 10, 5);
        whole.merge_beside(part("a:1", 20, 9));
        whole.merge_beside(part("b:1", 30, 1));
        let stats = &whole.cells[&(1, 0)];
        assert_eq!((stats.offered, stats.outcomes.ok, stats.latency.count()), (63, 60, 60));
        assert_eq!(whole.open, [3, 0, 6]);
        let servers: Vec<_> = whole
            .servers
            .iter()
            .map(|s| (s.address.as_str(), s.attempts, s.connections_open, s.pool.created))
            .collect();
        assert_eq!(servers, [("a:1", 30, 8, 2), ("b:1", 30, 4, 1)]);
        let Generator { rss_bytes, behind_ns, workers, in_flight, .. } = whole.generator;
        assert_eq!((rss_bytes, behind_ns, workers, in_flight), (3 << 20, 9, 24, 3));
        let flow = FlowState { limit: Some(30), queued: Some(6), breaker: None, spooled: None };
        assert_eq!(whole.flow, flow);
        assert_eq!((whole.start_ns, whole.end_ns), (3_000_000_000, 4_000_000_000));
    }
}
