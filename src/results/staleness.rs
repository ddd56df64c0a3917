//! What the staleness probe found, put together: by segment and by the role that servers had when they were read.

use std::collections::BTreeMap;

use super::accumulated::Accumulated;
use super::facts::ALL;
use crate::snapshot::ServerFacts;
use crate::stats::Latencies;

/// How stale reads from servers of one role were.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleStaleness {
    /// The measured segment that the reads were in, or `all`.
    pub segment: String,
    /// `primary`, `secondary` …
    pub role: String,
    /// A time for each read; 0 for one that saw everything.
    pub times: Latencies,
}

/// Everything so far. Its size depends on the plan and the cluster, never on time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// By the segment that the interval lay in, and role.
    times: BTreeMap<(usize, String), Latencies>,
    /// Tries without an answer, by segment and server.
    failures: BTreeMap<(usize, String), u64>,
}

/// The roles and times in what servers said.
pub(crate) fn by_role(servers: &[ServerFacts]) -> impl Iterator<Item = (&str, &Latencies)> {
    let probed = servers.iter().filter_map(|facts| facts.staleness.as_ref());
    probed.flat_map(|staleness| staleness.by_role.iter().map(|(role, times)| (&**role, times)))
}

impl Found {
    /// Adds an interval in a segment.
    pub fn add(&mut self, segment: usize, servers: &[ServerFacts]) {
        for (role, times) in by_role(servers) {
            self.times.entry((segment, role.to_owned())).or_default().merge(times);
        }
        for facts in servers {
            let failures = facts.staleness.as_ref().map_or(0, |staleness| staleness.failures);
            if failures > 0 {
                *self.failures.entry((segment, facts.address.clone())).or_default() += failures;
            }
        }
    }

    /// The measured time as a whole and, with overloads, its segments; of each the roles that were read from.
    pub fn rows(&self, sums: &Accumulated) -> Vec<RoleStaleness> {
        let measured = sums.measured();
        let every: Vec<usize> = measured.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
        let mut rows = self.in_segment(ALL, &every);
        if measured.len() > 1 {
            rows.extend(measured.iter().flat_map(|(name, parts)| self.in_segment(name, parts)));
        }
        rows
    }

    fn in_segment(&self, name: &str, parts: &[usize]) -> Vec<RoleStaleness> {
        let mut by_role: BTreeMap<&str, Latencies> = BTreeMap::new();
        for ((segment, role), times) in &self.times {
            if parts.contains(segment) {
                by_role.entry(role).or_default().merge(times);
            }
        }
        let row = |(role, times): (&str, _)| RoleStaleness {
            segment: name.to_owned(),
            role: role.to_owned(),
            times,
        };
        by_role.into_iter().map(row).collect()
    }

    /// A sentence on tries that failed in the measured time, if some did.
    pub fn note(&self, sums: &Accumulated) -> Option<String> {
        let every: Vec<usize> = sums.measured().into_iter().flat_map(|(_, parts)| parts).collect();
        let mut by_server: BTreeMap<&str, u64> = BTreeMap::new();
        for ((segment, server), count) in &self.failures {
            if every.contains(segment) {
                *by_server.entry(server).or_default() += count;
            }
        }
        let each: Vec<String> = by_server.iter().map(|(server, count)| format!("{server} {count}")).collect();
        (!each.is_empty()).then(|| {
            format!(
                "the staleness probe got no answer {} times ({}): how stale reads were then is not known",
                by_server.values().sum::<u64>(),
                each.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use crate::snapshot::StalenessStats;

    fn server(address: &str, role: &str, times_us: &[u64], failures: u64) -> ServerFacts {
        let mut times = Latencies::default();
        times_us.iter().for_each(|us| times.record_or_none_ns(us * 1000));
        let by_role = BTreeMap::from([(role.to_owned(), times)]);
        let staleness = Some(StalenessStats { by_role, failures });
        ServerFacts { address: address.to_owned(), staleness, ..ServerFacts::default() }
    }

    #[test]
    fn times_are_those_of_the_role_at_the_time() {
        let mut sums = Accumulated::new(&testing::overload_plan());
        let found = &mut sums.staleness;
        found.add(0, &[server("a:1", "secondary", &[9_000], 5)]);
        found.add(1, &[server("a:1", "primary", &[0, 0], 0), server("b:1", "secondary", &[0, 70], 0)]);
        found.add(2, &[server("a:1", "secondary", &[8], 1), server("b:1", "primary", &[0], 2)]);
        let told: Vec<_> = found
            .clone()
            .rows(&sums)
            .into_iter()
            .map(|row| (row.segment, row.role, row.times.count(), row.times.max_us()))
            .collect();
        let row =
            |segment: &str, role: &str, count, max| (segment.to_owned(), role.to_owned(), count, Some(max));
        assert_eq!(
            told,
            [
                row("all", "primary", 3, 0),
                row("all", "secondary", 3, 70),
                row("before", "primary", 2, 0),
                row("before", "secondary", 2, 70),
                row("shed", "primary", 1, 0),
                row("shed", "secondary", 1, 8),
            ]
        );
        assert_eq!(
            sums.staleness.note(&sums).unwrap(),
            "the staleness probe got no answer 3 times (a:1 1, b:1 2): how stale reads were then is not known"
        );
    }

    #[test]
    fn without_a_probe_there_is_nothing() {
        let mut sums = Accumulated::new(&testing::plan());
        sums.staleness.add(1, &[ServerFacts::default()]);
        assert_eq!((sums.staleness.rows(&sums), sums.staleness.note(&sums)), (Vec::new(), None));
    }
}
