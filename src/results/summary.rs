//! What a trial came to: the statistics of each measured segment and operation, and whether they add up.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::accumulated::{Accumulated, GeneratorSummary};
use super::checks::{Check, checks};
use super::facts::{ALL, Early, EndFacts, Scope, TrialFacts, expected, per_second, rounded, seconds};
use super::figures::Figures;
use super::notes::notes;
use super::recovery::Recovery;
use super::staleness::RoleStaleness;
use crate::plan::Plan;
use crate::plan::load::Phase;
use crate::plan::timeline::{NO_OVERLOAD, nanos};
use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, Totals};
use crate::stats::OpStats;

/// How many classes of errors are told on screen; `errors.csv` has all.
const ERRORS_TOLD: usize = 5;

/// One trial's result: what the table on screen shows and `run.json` stores.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The run it is part of.
    pub run_id: String,
    /// What was known at its start.
    pub facts: TrialFacts,
    /// When it ended.
    pub ended: Timestamp,
    /// Why it ended before its time, if neither the user nor an accident did it.
    pub early: Option<Early>,
    /// What the engine counted on its own.
    pub totals: Totals,
    /// First `all`, the whole measured time; then, when there is an overload, each measured segment that was reached.
    pub segments: Vec<SegmentSummary>,
    /// What measured operations failed with, the commonest first, a few of maybe many.
    pub errors: Vec<CommonError>,
    /// What came of each overload, in the plan's order.
    pub recoveries: Vec<Recovery>,
    /// How stale reads were, by segment (`all` first) and role; empty without a probe.
    pub staleness: Vec<RoleStaleness>,
    /// The sums that were checked.
    pub checks: Vec<Check>,
    /// A sentence for each sum that did not add up; anything here makes the run fail.
    pub broken: Vec<String>,
    /// What people must know to read the numbers.
    pub notes: Vec<String>,
}

/// Errors of one class by which one operation ended in the measured time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonError {
    /// The operation's name.
    pub operation: String,
    /// What kind of error.
    pub class: ErrorClass,
    /// How many.
    pub count: u64,
    /// The message of one of them.
    pub example: String,
}

/// One measured segment.
#[derive(Clone, Debug)]
pub struct SegmentSummary {
    /// Its name.
    pub name: String,
    /// How long it lasted: for a cut run only what ran.
    pub duration_s: f64,
    /// In the plan's order, and `all` last; each of several clients' is followed by the client's as a whole.
    pub operations: Vec<OpSummary>,
    /// How the load generator fared meanwhile.
    pub generator: GeneratorSummary,
}

/// One operation, or several together, in one segment.
#[derive(Clone, Debug)]
pub struct OpSummary {
    /// Its name, or `all`; with that of its client where there are several.
    pub name: String,
    /// Whose it is.
    pub scope: Scope,
    /// The longest that an operation was due without having been started; `None` of one operation.
    pub behind_max_ns: Option<u64>,
    /// What the plan asked for; `None` in the closed model.
    pub target_ops_per_s: Option<f64>,
    /// What ended well within the segment by the clock, per second, whenever it was due. Beside the goodput, which counts
    /// by the intended start, this is what the servers really delivered in that time. `None` over no time.
    pub completed_ops_per_s: Option<f64>,
    /// What is known of it.
    pub stats: OpStats,
}

impl OpSummary {
    /// The values of its columns.
    pub fn figures(&self, plan: &Plan) -> Figures<'_> {
        Figures::new(plan, self.scope, &self.stats)
    }
}

impl Summary {
    /// Puts a trial's sums together.
    pub(crate) fn new(
        run_id: String,
        facts: TrialFacts,
        sums: &Accumulated,
        totals: Totals,
        end: EndFacts,
    ) -> Self {
        let segments = segments(&facts.plan, sums, end.stopped_ns);
        let recoveries = sums.recoveries.clone().finish(end.stopped_ns);
        let staleness = sums.staleness.rows(sums);
        let checks = checks(&facts.plan, sums, &totals);
        let broken = checks.iter().flat_map(|check| check.broken.clone()).collect();
        let mut notes = notes(&facts, &segments, totals.cut && end.early.is_none());
        notes.extend(sums.staleness.note(sums));
        let stalest: u64 = staleness.iter().filter(|of| of.segment == ALL).map(|of| of.times.clipped()).sum();
        if stalest > 0 {
            notes.push(format!(
                "{stalest} reads of the staleness probe were staler than 120 s and count as that"
            ));
        }
        notes.extend(end.notes);
        let end_ns = i64::try_from(sums.end_ns).unwrap_or(i64::MAX);
        let ended = end.ended.unwrap_or_else(|| facts.time_at(end_ns));
        let errors = common_errors(&facts.plan, sums);
        Self {
            run_id,
            facts,
            ended,
            early: end.early,
            totals,
            segments,
            errors,
            recoveries,
            staleness,
            checks,
            broken,
            notes,
        }
    }

    /// How it ended, in a word for the files.
    pub fn result(&self) -> &'static str {
        match (self.broken.is_empty(), self.totals.cut) {
            (false, _) => "broken",
            (true, true) => self.early.map_or("cut", Early::name),
            (true, false) => "complete",
        }
    }

    /// What the measured time has come to so far: its segments, without what is known at the end alone.
    pub(crate) fn so_far(facts: &TrialFacts, sums: &Accumulated) -> Self {
        Self {
            run_id: String::new(),
            facts: facts.clone(),
            ended: facts.time_at(i64::try_from(sums.end_ns).unwrap_or(i64::MAX)),
            early: None,
            totals: Totals::default(),
            segments: segments(&facts.plan, sums, Some(sums.end_ns)),
            errors: Vec::new(),
            recoveries: Vec::new(),
            staleness: Vec::new(),
            checks: Vec::new(),
            broken: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Counts as offered what has an outcome alone: what is still under way would pass for lost.
    pub(crate) fn leave_out_what_is_under_way(&mut self) {
        for operation in self.segments.iter_mut().flat_map(|segment| &mut segment.operations) {
            operation.stats.offered = operation.stats.outcomes.sum();
        }
    }

    /// The whole measured time.
    pub fn whole(&self) -> &SegmentSummary {
        // `segments` always puts it first.
        &self.segments[0]
    }

    /// All operations over the whole measured time.
    pub fn overall(&self) -> &OpSummary {
        self.whole().all()
    }
}

impl SegmentSummary {
    /// All operations together.
    pub fn all(&self) -> &OpSummary {
        // `segment` always puts it last.
        &self.operations[self.operations.len() - 1]
    }
}

/// Errors as the application saw them; those of attempts that were repeated with success are no answer to why operations
/// failed.
fn common_errors(plan: &Plan, sums: &Accumulated) -> Vec<CommonError> {
    let mut common: BTreeMap<(usize, &ErrorClass), ErrorCount> = BTreeMap::new();
    for ((segment, operation, level, class), error) in &sums.errors {
        let measured = sums.segments.get(*segment).is_some_and(|segment| segment.phase == Phase::Measure);
        if measured && *level == ErrorLevel::Operation {
            let key = (*operation, class);
            common.entry(key).and_modify(|sum| sum.merge(error)).or_insert_with(|| error.clone());
        }
    }
    let mut common: Vec<ErrorCount> = common.into_values().collect();
    // The sort is stable: what is as common stays in the plan's order.
    common.sort_by_key(|error| std::cmp::Reverse(error.count));
    let name = |operation: usize| Scope::Operation(operation).title(plan);
    let told = common.into_iter().take(ERRORS_TOLD);
    told.map(|ErrorCount { operation, class, count, example, .. }| CommonError {
        operation: name(operation),
        class,
        count,
        example,
    })
    .collect()
}

/// The measured segments, `all` first.
fn segments(plan: &Plan, sums: &Accumulated, stopped_ns: Option<u64>) -> Vec<SegmentSummary> {
    let ran_ns = stopped_ns.map_or(sums.end_ns, |stopped| stopped.min(sums.end_ns));
    let measured = sums.measured();
    let every: Vec<usize> = measured.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
    let mut summaries = vec![segment(plan, sums, ALL, &every, ran_ns)];
    // Without an overload in it there is one stretch, which would say the same again.
    if measured.iter().any(|(name, _)| *name != NO_OVERLOAD) {
        let each = measured.iter().map(|(name, parts)| segment(plan, sums, name, parts, ran_ns));
        summaries.extend(each.filter(|s| s.duration_s > 0.0));
    }
    summaries
}

fn segment(plan: &Plan, sums: &Accumulated, name: &str, parts: &[usize], ran_ns: u64) -> SegmentSummary {
    let warmup_ns = nanos(plan.load.warmup.duration());
    let mut ran = Vec::new();
    let mut generator = GeneratorSummary::default();
    for &part in parts {
        let (start, end) = (sums.segments[part].start_ns, sums.segments[part].end_ns.min(ran_ns));
        if start < end {
            ran.push((start, end));
        }
        generator.merge(&sums.generator[part]);
    }
    let duration_s = seconds(ran.iter().map(|(start, end)| end - start).sum());
    let target = |scope: Scope| -> Option<f64> {
        let wanted = ran.iter().map(|(start, end)| {
            expected(scope.model(plan), seconds(start - warmup_ns), seconds(end - warmup_ns))
        });
        let wanted: f64 = wanted.sum::<Option<f64>>().filter(|_| duration_s > 0.0 && scope.is_open(plan))?;
        Some(rounded(wanted / duration_s * scope.share(plan), 3))
    };
    let behind_max_ns = |scope: Scope| match scope {
        Scope::Operation(_) => None,
        Scope::Client(client) => {
            parts.iter().filter_map(|&part| sums.behind.get(&(part, client))).max().copied()
        }
        Scope::All => Some(generator.behind_max_ns),
    };
    let one = |scope: Scope| {
        let operations = scope.operations(plan);
        OpSummary {
            name: scope.title(plan),
            scope,
            behind_max_ns: behind_max_ns(scope),
            completed_ops_per_s: per_second(sums.completed(parts, &operations), seconds(generator.length_ns)),
            target_ops_per_s: target(scope),
            stats: sums.merged_of(parts, &operations),
        }
    };
    let operations = Scope::every(plan).into_iter().map(one).collect();
    SegmentSummary { name: name.to_owned(), duration_s, operations, generator }
}

#[cfg(test)]
mod tests;
