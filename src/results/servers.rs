//! An interval as rows of `servers.csv`: what the client saw beside what each server says of itself.

use super::facts::{reasons_known, seconds};
use super::intervals::Interval;
use super::tables::ServerRow;
use crate::snapshot::{SERVER_COUNTERS, ServerFacts, ServerStats};
use crate::stats::Latencies;

/// A row and the values of the `server_` columns behind it.
pub(crate) type Row<'a> = (ServerRow<'a>, Vec<Option<i64>>);

/// Names of the `server_` columns.
pub(crate) fn counter_columns() -> impl Iterator<Item = String> {
    SERVER_COUNTERS.iter().map(|name| format!("server_{name}"))
}

/// A row for each server that the client or the poller knows.
pub(crate) fn rows<'a>(interval: Interval<'a>, facts: &'a [ServerFacts]) -> Vec<Row<'a>> {
    let servers = &interval.snapshot.servers;
    let facts_of = |address: &str| facts.iter().find(|f| f.address == address);
    let used = servers.iter().map(|s| row(interval, &s.address, s, facts_of(&s.address)));
    // What the client never went to it made no attempts on: that is measured, too.
    let nothing = ServerStats::default();
    let unused = facts.iter().filter(|f| servers.iter().all(|s| s.address != f.address));
    used.chain(unused.map(|f| row(interval, &f.address, &nothing, Some(f)))).collect()
}

fn row<'a>(
    interval: Interval<'a>,
    server: &'a str,
    seen: &ServerStats,
    facts: Option<&'a ServerFacts>,
) -> Row<'a> {
    let snapshot = interval.snapshot;
    let known = reasons_known(&interval.facts.plan);
    let probed = facts.and_then(|facts| facts.staleness.as_ref());
    // Whatever role it had: there is seldom more than one in an interval.
    let staleness = probed.map(|probed| {
        let mut times = Latencies::default();
        probed.by_role.values().for_each(|of_role| times.merge(of_role));
        times
    });
    let row = ServerRow {
        run_id: interval.run_id,
        trial: interval.facts.trial,
        variant: &interval.facts.variant,
        timestamp: interval.timestamp,
        elapsed_s: seconds(snapshot.end_ns),
        interval_s: seconds(snapshot.end_ns.saturating_sub(snapshot.start_ns)),
        phase: interval.segment.phase.name(),
        server,
        role: facts.map(|f| &*f.role).unwrap_or_default(),
        attempts: Some(seen.attempts),
        rejected: known.then_some(seen.rejected),
        retargeted: known.then_some(seen.retargeted),
        connections_open: Some(seen.connections_open),
        connections_created: Some(seen.pool.created),
        connections_closed: Some(seen.pool.closed()),
        closed_stale: Some(seen.pool.closed_stale),
        closed_idle: Some(seen.pool.closed_idle),
        closed_error: Some(seen.pool.closed_error),
        closed_dropped: Some(seen.pool.closed_dropped),
        closed_pool_closed: Some(seen.pool.closed_pool_closed),
        checkout_p50_us: seen.checkout.percentile_us(0.5),
        checkout_p99_us: seen.checkout.percentile_us(0.99),
        pool_clears: Some(seen.pool.clears),
        staleness_p50_us: staleness.as_ref().and_then(|times| times.percentile_us(0.5)),
        staleness_max_us: staleness.as_ref().and_then(Latencies::max_us),
        staleness_samples: staleness.as_ref().map(Latencies::count),
        staleness_failures: probed.map(|probed| probed.failures),
    };
    let counter = |name: &&str| facts.and_then(|f| f.counters.get(*name).copied());
    (row, SERVER_COUNTERS.iter().map(counter).collect())
}
