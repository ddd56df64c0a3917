//! Two intervals in a row made one, for a reader that cannot keep up.

use super::{ErrorCount, Generator, PoolCounts, ServerFacts, ServerStats, Snapshot, StalenessStats};

impl Snapshot {
    /// Makes this interval longer by the one that follows it. Counts add up and nothing is lost but the boundary between
    /// the two; only intervals of the same segment should be merged, since this one's segment stays.
    pub fn merge_after(&mut self, next: Self) {
        self.end_ns = next.end_ns;
        for (key, stats) in next.cells {
            self.cells.entry(key).or_default().merge(&stats);
        }
        self.open = next.open;
        for theirs in next.servers {
            match self.servers.iter_mut().find(|ours| ours.address == theirs.address) {
                Some(ours) => ours.merge_after(&theirs),
                None => self.servers.push(theirs),
            }
        }
        for theirs in next.errors {
            match self.errors.iter_mut().find(|ours| ours.is_like(&theirs)) {
                Some(ours) => ours.merge(&theirs),
                None => self.errors.push(theirs),
            }
        }
        self.add_orphans(next.orphans);
        self.generator.merge_after(next.generator);
        self.flow = next.flow;
        self.events.extend(next.events);
        self.dead_letters.merge(next.dead_letters);
        for (ours, theirs) in self.clients.iter_mut().zip(next.clients) {
            ours.generator.merge_after(theirs.generator);
            ours.flow = theirs.flow;
        }
    }
}

impl Generator {
    fn merge_after(&mut self, next: Self) {
        self.cpu_ns += next.cpu_ns;
        // These two are looked at for their worst, which a merge must not hide.
        self.rss_bytes = self.rss_bytes.max(next.rss_bytes);
        self.behind_ns = self.behind_ns.max(next.behind_ns);
        self.workers = next.workers;
        self.in_flight = next.in_flight;
    }
}

impl ServerStats {
    pub(super) fn merge_after(&mut self, next: &Self) {
        self.attempts += next.attempts;
        self.rejected += next.rejected;
        self.retargeted += next.retargeted;
        self.checkout.merge(&next.checkout);
        self.pool.merge(&next.pool);
        self.connections_open = next.connections_open;
    }
}

impl PoolCounts {
    /// Closed, for whatever reason.
    pub const fn closed(&self) -> u64 {
        self.closed_stale
            + self.closed_idle
            + self.closed_error
            + self.closed_dropped
            + self.closed_pool_closed
    }

    const fn merge(&mut self, other: &Self) {
        self.created += other.created;
        self.closed_stale += other.closed_stale;
        self.closed_idle += other.closed_idle;
        self.closed_error += other.closed_error;
        self.closed_dropped += other.closed_dropped;
        self.closed_pool_closed += other.closed_pool_closed;
        self.clears += other.clears;
    }
}

impl ErrorCount {
    /// Whether another counts the same errors.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.segment, self.operation, self.level, &self.class)
            == (other.segment, other.operation, other.level, &other.class)
    }

    /// Adds another count of the same errors.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        if self.example.is_empty() {
            self.example.clone_from(&other.example);
        }
    }
}

impl ServerFacts {
    /// The later facts of each server, with all that the staleness probe found; of a server that is not there the second
    /// time, the earlier ones.
    pub fn merge_after(earlier: &mut Vec<Self>, next: Vec<Self>) {
        for mut theirs in next {
            match earlier.iter_mut().find(|ours| ours.address == theirs.address) {
                Some(ours) => {
                    if let Some(before) = ours.staleness.take() {
                        theirs.staleness.get_or_insert_default().merge(&before);
                    }
                    *ours = theirs;
                }
                None => earlier.push(theirs),
            }
        }
    }
}

impl StalenessStats {
    fn merge(&mut self, other: &Self) {
        for (role, times) in &other.by_role {
            self.by_role.entry(role.clone()).or_default().merge(times);
        }
        self.failures += other.failures;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{DeadLetters, ErrorClass, ErrorLevel, FlowState, Generator};
    use crate::stats::OpStats;
    use std::collections::BTreeMap;

    fn error(count: u64, first_ns: u64, last_ns: u64) -> ErrorCount {
        ErrorCount {
            segment: 1,
            operation: 0,
            level: ErrorLevel::Attempt,
            class: ErrorClass { kind: "command".to_owned(), code: Some(462), ..ErrorClass::default() },
            count,
            first_ns,
            last_ns,
            example: String::new(),
        }
    }

    fn snapshot(sequence: u64, offered: u64, behind_ns: u64) -> Snapshot {
        let server = |address: &str, attempts, connections_open| ServerStats {
            address: address.to_owned(),
            attempts,
            connections_open,
            pool: PoolCounts { created: 1, closed_idle: 2, closed_error: 1, ..PoolCounts::default() },
            ..ServerStats::default()
        };
        let mut servers = vec![server("a:1", offered, sequence)];
        if sequence > 0 {
            servers.push(server("b:1", 1, 7));
        }
        Snapshot {
            sequence,
            start_ns: sequence * 100,
            end_ns: sequence * 100 + 100,
            segment: 1,
            cells: BTreeMap::from([((1, 0), OpStats { offered, ..OpStats::default() })]),
            open: vec![sequence],
            servers,
            errors: vec![error(2, 10 + sequence, 20 + sequence)],
            orphans: BTreeMap::from([("endSessions".to_owned(), 1)]),
            flow: FlowState::default(),
            events: Vec::new(),
            dead_letters: DeadLetters::default(),
            clients: Vec::new(),
            generator: Generator {
                cpu_ns: 5,
                rss_bytes: 100 - sequence,
                behind_ns,
                workers: 3,
                in_flight: 2,
            },
        }
    }

    #[test]
    fn counts_add_and_states_are_the_later_ones() {
        let mut merged = snapshot(0, 10, 9);
        merged.merge_after(snapshot(1, 5, 4));
        assert_eq!((merged.sequence, merged.start_ns, merged.end_ns), (0, 0, 200));
        assert_eq!(merged.cells[&(1, 0)].offered, 15);
        assert_eq!(merged.open, [1]);
        assert_eq!(merged.servers.len(), 2);
        assert_eq!((merged.servers[0].attempts, merged.servers[0].connections_open), (15, 1));
        assert_eq!((merged.servers[0].pool.created, merged.servers[0].pool.closed()), (2, 6));
        assert_eq!(merged.errors.len(), 1);
        assert_eq!(
            (merged.errors[0].count, merged.errors[0].first_ns, merged.errors[0].last_ns),
            (4, 10, 21)
        );
        assert_eq!(merged.orphans["endSessions"], 2);
        assert_eq!((merged.generator.cpu_ns, merged.generator.rss_bytes), (10, 100));
        assert_eq!(merged.generator.behind_ns, 9, "the worst stays");
    }

    #[test]
    fn a_server_that_stopped_answering_keeps_its_last_facts() {
        let facts = |address: &str, role: &str| ServerFacts {
            address: address.into(),
            role: role.into(),
            ..ServerFacts::default()
        };
        let mut merged = vec![facts("a:1", "primary"), facts("b:1", "secondary")];
        ServerFacts::merge_after(&mut merged, vec![facts("b:1", "primary"), facts("c:1", "secondary")]);
        assert_eq!(merged, [facts("a:1", "primary"), facts("b:1", "primary"), facts("c:1", "secondary")]);
    }

    #[test]
    fn what_the_staleness_probe_found_adds_up() {
        let facts = |role: &str, staleness_ns: u64| {
            let mut found = StalenessStats { failures: 1, ..StalenessStats::default() };
            found.by_role.entry(role.to_owned()).or_default().record_or_none_ns(staleness_ns);
            ServerFacts { address: "a:1".into(), staleness: Some(found), ..ServerFacts::default() }
        };
        let mut merged = vec![facts("secondary", 7_000)];
        for (role, staleness_ns) in [("secondary", 0), ("primary", 0)] {
            ServerFacts::merge_after(&mut merged, vec![facts(role, staleness_ns)]);
        }
        let found = merged[0].staleness.as_ref().unwrap();
        let (primary, secondary) = (&found.by_role["primary"], &found.by_role["secondary"]);
        assert_eq!((primary.count(), primary.max_us()), (1, Some(0)));
        assert_eq!((secondary.count(), secondary.max_us()), (2, Some(7)));
        assert_eq!(found.failures, 3);
    }
}
