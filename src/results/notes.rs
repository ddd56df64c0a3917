//! What people must know to read a trial's numbers.

use super::facts::{Scope, TrialFacts, per_second, reasons_known, seconds};
use super::figures::ended;
use super::recovery::BEHIND;
use super::summary::{OpSummary, SegmentSummary};
use crate::plan::load::Model;
use crate::plan::timeline::{nanos, on_time};
use crate::plan::{ClientGroup, Flow, Overload, Plan};
use crate::stats::{OpStats, ratio};

/// A target missed by more than this share is told.
const MISSED_SHARE: f64 = 0.01;

/// A true rate that is below the goodput by more than this share is told.
const LATER_SHARE: f64 = 0.05;

/// So few operations that are left open more at the end than at the start are no backlog.
const FEW_OPEN: u64 = 10;

/// How many standard deviations a random number of arrivals may be off.
const DEVIATIONS: f64 = 4.0;

/// The share of the processors from which on the generator is called saturated.
pub const SATURATED_SHARE: f64 = 0.9;

/// So many calls without a single attempt are no accident.
const STUCK_CALLS: u64 = 20;

/// The share of the time from which on waiting for connections is called the limit.
const POOL_SHARE: f64 = 0.5;

/// All notes of a trial, the most important first. The first segment is the whole.
pub(crate) fn notes(facts: &TrialFacts, segments: &[SegmentSummary], cut: bool) -> Vec<String> {
    let Some(whole) = segments.first() else { return Vec::new() };
    let mut notes = Vec::new();
    let ran_through = whole.duration_s >= seconds(nanos(facts.plan.load.duration.duration()));
    if cut && ran_through {
        notes.push(
            "the run was cut after the measured time: operations of it were still under way or waiting when the \
             cool-down was over"
                .to_owned(),
        );
    } else if cut {
        notes.push(format!(
            "the run was cut: {} s of {} were measured",
            whole.duration_s, facts.plan.load.duration
        ));
    }
    notes.extend(never_ok(whole));
    notes.extend(missed(facts, whole));
    notes.extend(behind(whole));
    // What a run that was cut short counts as completed is over the time in which it ended, too.
    notes.extend(completed_later(whole).filter(|_| ran_through));
    notes.extend(saturation(facts, whole));
    let load = &facts.plan.load;
    let (begin, end) = measured_ns(facts, whole);
    let met = |o: &Overload| on_time(load, o).is_some_and(|(on, off)| on < end && begin < off);
    if facts.plan.overloads.iter().any(|o| !o.fault.depends_on_load() && met(o)) {
        notes.push(
            "these rejections do not depend on load, so more retries always look better here than on a server that \
             is really overloaded"
                .to_owned(),
        );
    }
    notes.extend(closed(&facts.plan));
    if !reasons_known(&facts.plan) {
        notes.push(
            "attempts were counted by pool events alone: why they failed is unknown, as are the retries of operations \
             with several commands"
                .to_owned(),
        );
    }
    notes.extend(without_attempts(segments));
    notes.extend(too_few(whole));
    notes.extend(clipped(&whole.all().stats));
    notes
}

/// Who waits for an answer before the next operation is due.
fn closed(plan: &Plan) -> Option<String> {
    let closed = |group: &&ClientGroup| matches!(group.model, Model::Closed { .. });
    let clients: Vec<&str> = plan.clients.iter().filter(closed).map(|group| group.name.as_str()).collect();
    match plan.load.model {
        Model::Open { .. } => None,
        Model::Closed { .. } if clients.len() == plan.clients.len() => {
            Some("closed: latency omits waiting for a worker".to_owned())
        }
        Model::Closed { .. } => {
            Some(format!("closed ({}): latency omits waiting for a worker", clients.join(", ")))
        }
    }
}

/// Operations that failed whenever they were tried: a mistake in them, more likely than overload.
fn never_ok(whole: &SegmentSummary) -> Option<String> {
    let of_one = |op: &OpSummary| matches!(op.scope, Scope::Operation(_));
    let never = |op: &&OpSummary| of_one(op) && op.stats.outcomes.ok == 0 && ended(&op.stats) > 0;
    let each: Vec<String> = whole.operations.iter().filter(never).map(|op| op.name.clone()).collect();
    (!each.is_empty()).then(|| {
        format!(
            "not one of these operations succeeded: {} (errors.csv tells why they failed)",
            each.join(", ")
        )
    })
}

/// When the measured time that ran began and ended, in nanoseconds since Go.
fn measured_ns(facts: &TrialFacts, whole: &SegmentSummary) -> (u64, u64) {
    let begin = nanos(facts.plan.load.warmup.duration());
    // A cut run's may have been over before it began, and is never longer than a year.
    let ran = std::time::Duration::try_from_secs_f64(whole.duration_s).unwrap_or_default();
    (begin, begin.saturating_add(nanos(ran)))
}

/// Whether less was started in the measured time than was wanted; says how much and what was short.
pub(crate) fn missed(facts: &TrialFacts, whole: &SegmentSummary) -> Option<String> {
    let target = whole.all().target_ops_per_s?;
    let wanted = target * whole.duration_s;
    let due = whole.generator.due;
    let started = due.saturating_sub(whole.generator.queued_at_end);
    let (due_f, started_f) = (ratio(due, 1)?, ratio(started, 1)?);
    // Poisson arrivals are off by the root of their number, which is no fault; what was due and not started is.
    let late = started_f < due_f * (1.0 - MISSED_SHARE);
    (late || few(due_f, wanted)).then(|| {
        format!(
            "target missed: {wanted:.0} operations were wanted in the measured time, {due} were due and {started} \
             started; {}",
            limit(facts, whole).0
        )
    })
}

/// Which of several clients were short of workers, which the figures of all together may hide.
fn behind(whole: &SegmentSummary) -> Option<String> {
    let of_client = |op: &&OpSummary| matches!(op.scope, Scope::Client(_));
    let late = whole.operations.iter().filter(of_client).filter_map(|op| {
        let behind_ns = op.behind_max_ns.filter(|&ns| ns > nanos(BEHIND))?;
        Some(format!("{} (up to {} ms)", op.name, behind_ns / 1_000_000))
    });
    let late: Vec<String> = late.collect();
    (!late.is_empty()).then(|| {
        format!(
            "due operations waited for a worker: {}. That client's max_in_flight, [flow] or maxPoolSize was short, or this \
             machine",
            late.join(", ")
        )
    })
}

/// Whether fewer operations were due than chance explains.
fn few(due: f64, wanted: f64) -> bool {
    due < wanted * (1.0 - MISSED_SHARE) - DEVIATIONS * wanted.sqrt()
}

/// Whether operations piled up in the measured time, or fewer were due than were wanted: such a rate was not held, however
/// well all of them end. Says how much and what was short, and whether that may have been the load generator itself.
pub(crate) fn fell_behind(facts: &TrialFacts, whole: &SegmentSummary) -> Option<(String, bool)> {
    let wanted = whole.all().target_ops_per_s? * whole.duration_s;
    let (due, ended) = (whole.generator.due, whole.generator.ended);
    let more = due.saturating_sub(ended);
    let piled_up = more > FEW_OPEN && ratio(more, due)? > LATER_SHARE;
    (piled_up || few(ratio(due, 1)?, wanted)).then(|| {
        let (limit, is_generator) = limit(facts, whole);
        let told = format!(
            "not kept up with: {wanted:.0} operations were wanted in the measured time, {due} were due and {ended} ended; \
             {limit}"
        );
        (told, is_generator)
    })
}

/// Whether much of the goodput came after the measured time: a backlog that the servers worked off when it was over.
fn completed_later(whole: &SegmentSummary) -> Option<String> {
    let all = whole.all();
    let goodput = per_second(all.stats.outcomes.ok, whole.duration_s)?;
    let completed = all.completed_ops_per_s?;
    (completed < goodput * (1.0 - LATER_SHARE)).then(|| {
        format!(
            "goodput counts operations where they were due, and many of these ended only after the measured time: \
             within it {completed:.0}/s succeeded, which is the rate that was kept up, not {goodput:.0}/s \
             (completed_ops_per_s)"
        )
    })
}

/// What kept the load from being made, and whether it is on this side of the connection.
fn limit(facts: &TrialFacts, whole: &SegmentSummary) -> (String, bool) {
    let stats = &whole.all().stats;
    let in_driver = stats.latency_ns.saturating_sub(stats.wait_ns);
    let pool = ratio(stats.checkout_ns, in_driver).is_some_and(|share| share > POOL_SHARE);
    match facts.plan.load.model {
        _ if saturated(facts, whole) => ("the load generator's processors were the limit".to_owned(), true),
        _ if pool => ("connections were the limit (maxPoolSize)".to_owned(), true),
        _ if flows(&facts.plan).any(restrained) => {
            ("what the application lets go ([flow]) was the limit".to_owned(), false)
        }
        Model::Open { max_in_flight, .. } if whole.generator.in_flight_max >= u64::from(max_in_flight) => {
            let limit =
                format!("max_in_flight = {max_in_flight} was the limit, as the servers' answers took long");
            (limit, true)
        }
        _ => ("the servers' answers were the limit".to_owned(), false),
    }
}

/// What the application of each client does.
fn flows(plan: &Plan) -> impl Iterator<Item = &Flow> {
    plan.clients.iter().map(|group| &group.flow).chain([&plan.flow])
}

/// Whether the application keeps operations back by itself.
const fn restrained(flow: &Flow) -> bool {
    flow.limit.is_some() || flow.breaker.is_some() || flow.budget.is_some()
}

/// Whether the load generator had hardly a processor left.
pub(crate) fn saturation(facts: &TrialFacts, whole: &SegmentSummary) -> Option<String> {
    saturated(facts, whole).then(|| {
        format!(
            "the load generator used {:.1} of {} processors: the numbers may show its limit, not the servers'",
            whole.generator.cpu_share().unwrap_or(0.0),
            facts.cores
        )
    })
}

fn saturated(facts: &TrialFacts, whole: &SegmentSummary) -> bool {
    ratio(facts.cores as u64, 1)
        .zip(whole.generator.cpu_share())
        .is_some_and(|(cores, share)| share >= SATURATED_SHARE * cores)
}

/// Segments in which the application called and not one call got as far as a server: where calls are given up while they
/// wait for a connection, a driver's pool may never recover, however idle the servers are.
fn without_attempts(segments: &[SegmentSummary]) -> Option<String> {
    let stuck = |of: &&SegmentSummary| of.all().stats.calls > STUCK_CALLS && of.all().stats.attempts == 0;
    let stuck: Vec<&str> = segments.iter().filter(stuck).map(|of| of.name.as_str()).collect();
    (!stuck.is_empty()).then(|| {
        format!(
            "not one call got a connection in {}: that is the driver's pool, not the servers. Calls that are given up while \
             they wait stay in its queue; more maxConnecting or a longer timeout.operation avoids it",
            stuck.join(", ")
        )
    })
}

/// Percentiles of the table on screen that some operations have too few samples for: of each only the first.
fn too_few(whole: &SegmentSummary) -> Vec<String> {
    let percentiles = [("p50", 0.5, 20), ("p90", 0.9, 100), ("p99", 0.99, 1000)];
    let first_missing = |op: &OpSummary| {
        percentiles.iter().position(|&(_, quantile, _)| op.stats.latency.percentile_us(quantile).is_none())
    };
    let note = |(i, (percentile, _, needed))| {
        let without = whole.operations.iter().filter(|op| first_missing(op) == Some(i));
        let each: Vec<String> = without.map(|op| format!("{} ({})", op.name, op.stats.outcomes.ok)).collect();
        (!each.is_empty()).then(|| {
            format!(
                "{percentile} takes {needed} successful operations, so it is left out for {}",
                each.join(", ")
            )
        })
    };
    percentiles.into_iter().enumerate().filter_map(note).collect()
}

fn clipped(stats: &OpStats) -> Option<String> {
    let count = stats.latency.clipped() + stats.failed_latency.clipped();
    let ceiling = seconds(nanos(std::time::Duration::from_micros(crate::stats::latencies::CEILING_US)));
    (count > 0).then(|| format!("{count} latencies above {ceiling} s were counted as {ceiling} s"))
}

#[cfg(test)]
mod tests;
