//! An interval as rows of `servers.csv`: what the client saw beside what each server says of itself.

use super::facts::{reasons_known, seconds};
use super::intervals::Interval;
use super::tables::ServerRow;
use crate::snapshot::{SERVER_COUNTERS, ServerFacts, ServerStats};

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
    let unused = facts.iter().filter(|f| servers.iter().all(|s| s.address != f.address));
    let used = servers.iter().map(|s| row(interval, Some(s), facts_of(&s.address)));
    used.chain(unused.map(|f| row(interval, None, Some(f)))).collect()
}

fn row<'a>(interval: Interval<'a>, seen: Option<&'a ServerStats>, facts: Option<&'a ServerFacts>) -> Row<'a> {
    let snapshot = interval.snapshot;
    let known = reasons_known(&interval.facts.plan);
    let row = ServerRow {
        run_id: interval.run_id,
        trial: interval.facts.trial,
        variant: &interval.facts.variant,
        timestamp: interval.timestamp,
        elapsed_s: seconds(snapshot.end_ns),
        interval_s: seconds(snapshot.end_ns.saturating_sub(snapshot.start_ns)),
        phase: interval.segment.phase.name(),
        server: seen.map(|s| &*s.address).or(facts.map(|f| &*f.address)).unwrap_or_default(),
        role: facts.map(|f| &*f.role).unwrap_or_default(),
        attempts: seen.map(|s| s.attempts),
        rejected: seen.map(|s| s.rejected).filter(|_| known),
        retargeted: seen.map(|s| s.retargeted).filter(|_| known),
        connections_open: seen.map(|s| s.connections_open),
        connections_created: seen.map(|s| s.pool.created),
        connections_closed: seen.map(|s| s.pool.closed()),
        closed_stale: seen.map(|s| s.pool.closed_stale),
        closed_idle: seen.map(|s| s.pool.closed_idle),
        closed_error: seen.map(|s| s.pool.closed_error),
        closed_dropped: seen.map(|s| s.pool.closed_dropped),
        closed_pool_closed: seen.map(|s| s.pool.closed_pool_closed),
        checkout_p50_us: seen.and_then(|s| s.checkout.percentile_us(0.5)),
        checkout_p99_us: seen.and_then(|s| s.checkout.percentile_us(0.99)),
        pool_clears: seen.map(|s| s.pool.clears),
    };
    let counter = |name: &&str| facts.and_then(|f| f.counters.get(*name).copied());
    (row, SERVER_COUNTERS.iter().map(counter).collect())
}
