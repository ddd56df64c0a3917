//! The rows that a trial gets at its end: of `summary.csv`, `retries.csv`, `backoff.csv`, `errors.csv`, `recovery.csv`,
//! `staleness.csv` and `runs.csv`.

use super::accumulated::Accumulated;
use super::facts::{Scope, commands_known, per_second, rounded, seconds};
use super::figures::Quantiles;
use super::intervals::milliseconds;
use super::summary::{OpSummary, SegmentSummary, Summary};
use super::tables::{
    BackoffRow, ErrorRow, RecoveryRow, RetriesRow, RunsRow, SCHEMA_VERSION, StalenessRow, SummaryRow,
};
use crate::snapshot::ErrorLevel;

/// Of `summary.csv`, without the options.
pub(crate) fn summary(summary: &Summary) -> impl Iterator<Item = SummaryRow> {
    summary.segments.iter().flat_map(move |segment| {
        segment.operations.iter().map(move |operation| summary_row(summary, segment, operation))
    })
}

/// That of one operation in one segment.
pub(crate) fn summary_row(summary: &Summary, segment: &SegmentSummary, operation: &OpSummary) -> SummaryRow {
    let (facts, plan, stats) = (&summary.facts, &summary.facts.plan, &operation.stats);
    let figures = operation.figures(plan);
    let (latency, service) = (Quantiles::of(&stats.latency), Quantiles::of(&stats.service));
    let failed = Quantiles::of(&stats.failed_latency);
    let (served, rejected) = (figures.served(), Quantiles::of(&stats.attempt_rejected));
    let overshoot = Quantiles::of(&stats.overshoot);
    // The generator is one for all operations.
    let generator = (operation.scope == Scope::All).then_some(&segment.generator);
    let outcomes = stats.outcomes;
    SummaryRow {
        schema_version: SCHEMA_VERSION,
        run_id: summary.run_id.clone(),
        trial: facts.trial,
        variant: facts.variant.clone(),
        repeat: facts.repeat,
        segment: segment.name.clone(),
        client: operation.scope.client(plan).to_owned(),
        op: operation.scope.op(plan).to_owned(),
        driver: facts.driver.name.clone(),
        driver_version: facts.driver.version.clone(),
        server_version: facts.server_version(),
        mechanism: facts.mechanism.clone(),
        model: operation.scope.model_name(plan).to_owned(),
        target_ops_per_s: operation.target_ops_per_s,
        workers: operation.scope.workers(plan),
        duration_s: segment.duration_s,
        offered: stats.offered,
        ops_ok: outcomes.ok,
        ops_failed: outcomes.failed,
        ops_gave_up: stats.gave_up,
        ops_timed_out: outcomes.timed_out,
        ops_dropped: outcomes.dropped,
        ops_parked: outcomes.parked,
        ops_not_started: outcomes.not_started,
        ops_in_flight: outcomes.in_flight,
        offered_ops_per_s: per_second(stats.offered, segment.duration_s)
            .filter(|_| operation.scope.is_open(plan)),
        goodput_ops_per_s: per_second(outcomes.ok, segment.duration_s),
        error_rate: stats.error_rate().map(|r| rounded(r, 6)),
        loss_rate: stats.loss_rate().map(|r| rounded(r, 6)),
        calls: stats.calls,
        commands: figures.commands(),
        attempts: stats.attempts,
        retries: figures.retries(),
        app_retries: stats.app_retries(),
        rejected: figures.rejected(),
        retargeted: figures.retargeted(),
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
        behind_max_ms: operation.behind_max_ns.map(milliseconds),
        lag_p99_us: stats.lag.percentile_us(0.99),
        cpu_us_per_op: generator.and_then(|g| g.cpu_us_per_op()),
        rss_max_bytes: generator.map(|g| g.rss_max_bytes).filter(|&bytes| bytes > 0),
        completed_ops_per_s: operation.completed_ops_per_s,
        live: plan.live,
        late_ok: stats.late.ok,
        late_failed: stats.late.failed,
        late_lost: stats.late.lost,
        overshoot_p50_us: overshoot.p50,
        overshoot_p99_us: overshoot.p99,
        overshoot_max_us: overshoot.max,
    }
}

/// Of `retries.csv`; operations whose commands are unknown have none.
pub(crate) fn retries(summary: &Summary) -> impl Iterator<Item = RetriesRow<'_>> {
    let each = summary.segments.iter().flat_map(|s| s.operations.iter().map(move |o| (s, o)));
    each.filter(|(_, o)| commands_known(&summary.facts.plan, o.scope)).flat_map(|(segment, operation)| {
        operation.stats.by_retries.iter().map(|(&retries, stats)| RetriesRow {
            run_id: &summary.run_id,
            trial: summary.facts.trial,
            variant: &summary.facts.variant,
            segment: &segment.name,
            client: operation.scope.client(&summary.facts.plan),
            op: operation.scope.op(&summary.facts.plan),
            retries,
            ops_ok: stats.ok,
            ops_failed: stats.failed,
            latency_p50_us: stats.latency.percentile_us(0.5),
            latency_p99_us: stats.latency.percentile_us(0.99),
            ops_gave_up: stats.gave_up,
        })
    })
}

/// Of `backoff.csv`; operations whose commands are unknown have none.
pub(crate) fn backoff(summary: &Summary) -> impl Iterator<Item = BackoffRow<'_>> {
    let each = summary.whole().operations.iter();
    each.filter(|o| commands_known(&summary.facts.plan, o.scope)).flat_map(|operation| {
        operation.stats.backoff.iter().map(|(&retry, times)| BackoffRow {
            run_id: &summary.run_id,
            trial: summary.facts.trial,
            variant: &summary.facts.variant,
            client: operation.scope.client(&summary.facts.plan),
            op: operation.scope.op(&summary.facts.plan),
            retry,
            count: times.count(),
            backoff_mean_us: times.mean_us(),
            backoff_p50_us: times.percentile_us(0.5),
            backoff_p99_us: times.percentile_us(0.99),
            backoff_max_us: times.max_us(),
        })
    })
}

/// Of `errors.csv`.
pub(crate) fn errors<'a>(summary: &'a Summary, sums: &'a Accumulated) -> impl Iterator<Item = ErrorRow<'a>> {
    let plan = &summary.facts.plan;
    sums.errors.values().map(move |error| {
        let segment = sums.segments.get(error.segment);
        ErrorRow {
            run_id: &summary.run_id,
            trial: summary.facts.trial,
            variant: &summary.facts.variant,
            phase: segment.map(|s| s.phase.name()).unwrap_or_default(),
            segment: segment.map(|s| &*s.name).unwrap_or_default(),
            client: Scope::Operation(error.operation).client(plan),
            op: Scope::Operation(error.operation).op(plan),
            level: match error.level {
                ErrorLevel::Attempt => "attempt",
                ErrorLevel::Operation => "operation",
            },
            kind: &error.class.kind,
            code: error.class.code,
            code_name: &error.class.code_name,
            labels: error.class.labels.join("+"),
            count: error.count,
            first_seen_s: seconds(error.first_ns),
            last_seen_s: seconds(error.last_ns),
            example: &error.example,
        }
    })
}

/// Of `recovery.csv`.
pub(crate) fn recovery(summary: &Summary) -> impl Iterator<Item = RecoveryRow<'_>> {
    summary.recoveries.iter().map(|of| RecoveryRow {
        run_id: &summary.run_id,
        trial: summary.facts.trial,
        variant: &summary.facts.variant,
        overload: &of.overload,
        kind: of.kind,
        on_s: of.on_s,
        off_s: of.off_s,
        goodput_before_ops_per_s: of.goodput_before_ops_per_s,
        goodput_during_ops_per_s: of.goodput_during_ops_per_s,
        goodput_after_ops_per_s: of.goodput_after_ops_per_s,
        latency_p50_before_us: of.latency_p50_before_us,
        recovered: match of.recovered {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        },
        time_to_recover_s: of.time_to_recover_s,
    })
}

/// Of `staleness.csv`.
pub(crate) fn staleness(summary: &Summary) -> impl Iterator<Item = StalenessRow<'_>> {
    summary.staleness.iter().map(|of| StalenessRow {
        run_id: &summary.run_id,
        trial: summary.facts.trial,
        variant: &summary.facts.variant,
        segment: &of.segment,
        role: &of.role,
        staleness_samples: of.times.count(),
        staleness_p50_us: of.times.percentile_us(0.5),
        staleness_p99_us: of.times.percentile_us(0.99),
        staleness_max_us: of.times.max_us(),
    })
}

/// Of `runs.csv`: the figures of the whole.
pub(crate) fn runs(summary: &Summary) -> RunsRow {
    let whole = summary_row(summary, summary.whole(), summary.overall());
    let facts = &summary.facts;
    let params: serde_json::Map<_, _> =
        facts.params.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    RunsRow {
        schema_version: SCHEMA_VERSION,
        run_id: whole.run_id,
        trial: whole.trial,
        variant: whole.variant,
        repeat: whole.repeat,
        timestamp: format!("{:.3}", facts.go),
        profile: facts.plan.profile.clone(),
        driver: whole.driver,
        driver_version: whole.driver_version,
        server_version: whole.server_version,
        mechanism: whole.mechanism,
        model: whole.model,
        target_ops_per_s: whole.target_ops_per_s,
        workers: whole.workers,
        duration_s: whole.duration_s,
        offered: whole.offered,
        ops_ok: whole.ops_ok,
        goodput_ops_per_s: whole.goodput_ops_per_s,
        error_rate: whole.error_rate,
        loss_rate: whole.loss_rate,
        amplification: whole.amplification,
        latency_p50_us: whole.latency_p50_us,
        latency_p99_us: whole.latency_p99_us,
        result: summary.result().to_owned(),
        params: serde_json::Value::Object(params).to_string(),
        completed_ops_per_s: whole.completed_ops_per_s,
        live: whole.live,
    }
}

/// The names of the `param_` columns of a trial.
pub(crate) fn param_columns(params: &[(String, Option<String>)]) -> impl Iterator<Item = String> {
    params.iter().map(|(name, _)| format!("param_{name}"))
}

#[cfg(test)]
mod tests;
