//! An interval as rows of `intervals.csv`.

use super::accumulated::GeneratorSummary;
use super::facts::{Scope, TrialFacts, per_second, rounded, seconds};
use super::figures::{Figures, Quantiles};
use super::tables::IntervalRow;
use crate::plan::Plan;
use crate::plan::timeline::Segment;
use crate::snapshot::Snapshot;
use crate::stats::OpStats;

/// Everything that the rows of one interval have in common.
#[derive(Clone, Copy)]
pub(crate) struct Interval<'a> {
    pub run_id: &'a str,
    pub facts: &'a TrialFacts,
    pub snapshot: &'a Snapshot,
    /// The segment it lies in.
    pub segment: &'a Segment,
    /// The wall-clock time of its end.
    pub timestamp: &'a str,
    /// Open operations at its start, by operation.
    pub open: &'a [u64],
}

/// Hands out a row for each operation, for each of several clients, and for all of them: percentiles do not add.
pub(crate) fn for_each_row<E>(
    interval: Interval<'_>,
    mut take: impl FnMut(&IntervalRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let plan = &interval.facts.plan;
    let each: Vec<OpStats> = (0..plan.operations.len()).map(|i| merged(interval.snapshot, i)).collect();
    Scope::every(plan).into_iter().try_for_each(|scope| {
        let mut stats = OpStats::default();
        each[scope.operations(plan)].iter().for_each(|own| stats.merge(own));
        take(&row(plan, interval, scope, &stats))
    })
}

/// What happened to one operation, whichever segment it was meant for.
pub(crate) fn merged(snapshot: &Snapshot, operation: usize) -> OpStats {
    let mut sum = OpStats::default();
    for ((_, op), stats) in &snapshot.cells {
        if *op == operation {
            sum.merge(stats);
        }
    }
    sum
}

fn row<'a>(plan: &'a Plan, interval: Interval<'a>, scope: Scope, stats: &OpStats) -> IntervalRow<'a> {
    let Interval { snapshot, open, .. } = interval;
    let figures = Figures::new(plan, scope, stats);
    let (latency, service) = (Quantiles::of(&stats.latency), Quantiles::of(&stats.service));
    let failed = Quantiles::of(&stats.failed_latency);
    let (served, rejected) = (figures.served(), Quantiles::of(&stats.attempt_rejected));
    let length_s = seconds(snapshot.end_ns.saturating_sub(snapshot.start_ns));
    let open_of = |open: &[u64]| open.get(scope.operations(plan)).map_or(0, |own| own.iter().sum());
    // The generator is one for all operations of a client, and what restrains them restrains all alike. Processors and
    // memory are those of all clients together.
    let (generator, flow) = match scope {
        Scope::Operation(_) => (None, None),
        Scope::Client(client) => {
            let state = snapshot.clients.get(client);
            (state.map(|state| &state.generator), state.map(|state| &state.flow))
        }
        Scope::All => (Some(&snapshot.generator), Some(&snapshot.flow)),
    };
    let whole = (scope == Scope::All).then(|| GeneratorSummary::of(snapshot));
    let outcomes = stats.outcomes;
    IntervalRow {
        run_id: interval.run_id,
        trial: interval.facts.trial,
        variant: &interval.facts.variant,
        timestamp: interval.timestamp,
        elapsed_s: seconds(snapshot.end_ns),
        interval_s: length_s,
        phase: interval.segment.phase.name(),
        segment: &interval.segment.name,
        client: scope.client(plan),
        op: scope.op(plan),
        open_at_start: open_of(open),
        offered: stats.offered,
        ops_ok: outcomes.ok,
        ops_failed: outcomes.failed,
        ops_gave_up: stats.gave_up,
        ops_timed_out: outcomes.timed_out,
        ops_dropped: outcomes.dropped,
        ops_parked: outcomes.parked,
        ops_not_started: outcomes.not_started,
        ops_in_flight: outcomes.in_flight,
        open_at_end: open_of(&snapshot.open),
        calls: stats.calls,
        commands: figures.commands(),
        attempts: stats.attempts,
        retries: figures.retries(),
        app_retries: stats.app_retries(),
        rejected: figures.rejected(),
        retargeted: figures.retargeted(),
        in_flight: generator.map(|g| g.in_flight),
        generator_workers: generator.map(|g| g.workers),
        offered_ops_per_s: per_second(stats.offered, length_s).filter(|_| scope.is_open(plan)),
        goodput_ops_per_s: per_second(outcomes.ok, length_s),
        error_rate: stats.error_rate().map(|r| rounded(r, 6)),
        amplification: figures.amplification(),
        backoff_mean_us: figures.backoff_mean_us(),
        latency_mean_us: latency.mean,
        latency_p50_us: latency.p50,
        latency_p90_us: latency.p90,
        latency_p99_us: latency.p99,
        latency_p99_9_us: latency.p99_9,
        latency_max_us: latency.max,
        service_mean_us: service.mean,
        service_p50_us: service.p50,
        service_p90_us: service.p90,
        service_p99_us: service.p99,
        service_p99_9_us: service.p99_9,
        service_max_us: service.max,
        failed_latency_p50_us: failed.p50,
        failed_latency_p99_us: failed.p99,
        attempt_ok_p50_us: served.p50,
        attempt_ok_p99_us: served.p99,
        attempt_rejected_p50_us: rejected.p50,
        attempt_rejected_p99_us: rejected.p99,
        checkout_p99_us: stats.checkout.percentile_us(0.99),
        behind_ms: generator.map(|g| milliseconds(g.behind_ns)),
        lag_p99_us: stats.lag.percentile_us(0.99),
        cpu_us_per_op: whole.and_then(|whole| whole.cpu_us_per_op()),
        cpu_share: whole.and_then(|whole| whole.cpu_share()).map(|share| rounded(share, 3)),
        // None at all is no measurement: the load was simulated.
        rss_bytes: whole.map(|whole| whole.rss_max_bytes).filter(|&bytes| bytes > 0),
        late_ok: stats.late.ok,
        late_failed: stats.late.failed,
        late_lost: stats.late.lost,
        flow_limit: flow.and_then(|flow| flow.limit),
        breaker: flow.and_then(|flow| flow.breaker.as_deref()),
        spool_depth: flow.and_then(|flow| flow.spooled),
        queue_depth: flow.and_then(|flow| flow.queued),
    }
}

/// Nanoseconds as milliseconds, to the microsecond.
pub(crate) fn milliseconds(nanos: u64) -> f64 {
    rounded(seconds(nanos) * 1e3, 3)
}
