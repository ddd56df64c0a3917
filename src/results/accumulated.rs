//! What a trial's snapshots add up to while it runs. Its size depends on the plan, never on time or load.

use std::collections::BTreeMap;
use std::ops::Range;

use super::facts::{Scope, seconds};
use super::recovery::Recoveries;
use super::staleness::Found;
use crate::plan::Plan;
use crate::plan::load::Phase;
use crate::plan::timeline::{Segment, segments};
use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, Snapshot};
use crate::stats::{OpStats, ratio};

/// How many broken intervals are described: one bug breaks them all alike.
const BREAKS_DESCRIBED: usize = 5;

/// The sum of the snapshots so far.
#[derive(Clone, Debug)]
pub(crate) struct Accumulated {
    /// The plan's parts.
    pub segments: Vec<Segment>,
    /// By (segment of the intended start, operation).
    pub cells: BTreeMap<(usize, usize), OpStats>,
    /// Successful operations by (segment of the interval in which they ended, operation).
    pub completed: BTreeMap<(usize, usize), u64>,
    /// By segment, operation, level and class.
    pub errors: BTreeMap<(usize, usize, ErrorLevel, ErrorClass), ErrorCount>,
    /// Commands outside any operation.
    pub orphans: BTreeMap<String, u64>,
    /// By the segment the interval lay in.
    pub generator: Vec<GeneratorSummary>,
    /// By (segment the interval lay in, client), where there are several: the longest that an operation of its was due
    /// without having been started.
    pub behind: BTreeMap<(usize, usize), u64>,
    /// Where the last interval ended.
    pub end_ns: u64,
    /// Operations without an outcome there.
    pub open: Vec<u64>,
    /// Intervals in which the open operations did not add up.
    pub unbalanced: Broken,
    /// Intervals that did not start where the one before ended.
    pub gaps: Broken,
    /// What came of each overload.
    pub recoveries: Recoveries,
    /// What the staleness probe found.
    pub staleness: Found,
}

/// Sentences about what did not add up, the first few of maybe many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Broken {
    pub described: Vec<String>,
    pub count: usize,
}

impl Broken {
    fn note(&mut self, sentence: String) {
        self.count += 1;
        if self.described.len() < BREAKS_DESCRIBED {
            self.described.push(sentence);
        }
    }
}

/// How the load generator fared over some intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorSummary {
    /// The intervals' length.
    pub length_ns: u64,
    /// CPU time of this process.
    pub cpu_ns: u64,
    /// The longest that an operation was due without having been started.
    pub behind_max_ns: u64,
    /// The most memory.
    pub rss_max_bytes: u64,
    /// The most operations under way.
    pub in_flight_max: u64,
    /// Operations that fell due in these intervals.
    pub due: u64,
    /// Operations that ended in these intervals, wherever their intended start was.
    pub ended: u64,
    /// Operations that were due and not started when the last of these intervals ended.
    pub queued_at_end: u64,
}

impl GeneratorSummary {
    /// Adds later intervals.
    pub fn merge(&mut self, other: &Self) {
        self.length_ns += other.length_ns;
        self.cpu_ns += other.cpu_ns;
        self.behind_max_ns = self.behind_max_ns.max(other.behind_max_ns);
        self.rss_max_bytes = self.rss_max_bytes.max(other.rss_max_bytes);
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.due += other.due;
        self.ended += other.ended;
        if other.length_ns > 0 {
            self.queued_at_end = other.queued_at_end;
        }
    }

    /// Of one interval.
    pub fn of(snapshot: &Snapshot) -> Self {
        let sum = |count: fn(&OpStats) -> u64| snapshot.cells.values().map(count).sum();
        Self {
            length_ns: snapshot.end_ns.saturating_sub(snapshot.start_ns),
            cpu_ns: snapshot.generator.cpu_ns,
            behind_max_ns: snapshot.generator.behind_ns,
            rss_max_bytes: snapshot.generator.rss_bytes,
            in_flight_max: snapshot.generator.in_flight,
            due: sum(|s| s.offered),
            ended: sum(super::figures::ended),
            queued_at_end: snapshot.open.iter().sum::<u64>().saturating_sub(snapshot.generator.in_flight),
        }
    }

    /// Processors kept busy; `None` over no time, and of a load that took none, as a simulated one does.
    pub fn cpu_share(&self) -> Option<f64> {
        ratio(self.cpu_ns, self.length_ns).filter(|_| self.cpu_ns > 0)
    }

    /// CPU time in microseconds ÷ operations that ended; `None` likewise.
    pub fn cpu_us_per_op(&self) -> Option<f64> {
        ratio(self.cpu_ns, self.ended)
            .filter(|_| self.cpu_ns > 0)
            .map(|ns| super::facts::rounded(ns / 1e3, 3))
    }
}

impl Accumulated {
    /// Nothing yet.
    pub fn new(plan: &Plan) -> Self {
        let segments = segments(plan);
        Self {
            generator: vec![GeneratorSummary::default(); segments.len()],
            segments,
            cells: BTreeMap::new(),
            completed: BTreeMap::new(),
            errors: BTreeMap::new(),
            orphans: BTreeMap::new(),
            behind: BTreeMap::new(),
            end_ns: 0,
            open: vec![0; plan.operations.len()],
            unbalanced: Broken::default(),
            gaps: Broken::default(),
            recoveries: Recoveries::new(plan),
            staleness: Found::default(),
        }
    }

    /// The segment an interval lies in.
    pub fn segment_of(&self, snapshot: &Snapshot) -> &Segment {
        // There are always a warm-up and a cool-down; a number beyond them can only be meant for the end.
        &self.segments[snapshot.segment.min(self.segments.len() - 1)]
    }

    /// Adds an interval, after checking that it fits to the one before.
    pub fn add(&mut self, plan: &Plan, snapshot: &Snapshot) {
        self.check(plan, snapshot);
        let segment = snapshot.segment.min(self.segments.len() - 1);
        for (&key, stats) in &snapshot.cells {
            self.cells.entry(key).or_default().merge(stats);
            // Intervals end at segments' borders, so what ended in one ended in its segment, wherever it was due.
            *self.completed.entry((segment, key.1)).or_default() += stats.outcomes.ok;
        }
        for error in &snapshot.errors {
            let key = (error.segment, error.operation, error.level, error.class.clone());
            self.errors.entry(key).and_modify(|sum| sum.merge(error)).or_insert_with(|| error.clone());
        }
        for (name, count) in &snapshot.orphans {
            *self.orphans.entry(name.clone()).or_default() += count;
        }
        self.generator[segment].merge(&GeneratorSummary::of(snapshot));
        for (client, state) in snapshot.clients.iter().enumerate() {
            let behind = self.behind.entry((segment, client)).or_default();
            *behind = state.generator.behind_ns.max(*behind);
        }
        self.recoveries.add(snapshot);
        self.end_ns = snapshot.end_ns;
        self.open.clone_from(&snapshot.open);
    }

    /// open at the start + offered = outcomes + open at the end, for every operation.
    fn check(&mut self, plan: &Plan, snapshot: &Snapshot) {
        let (start_s, end_s) = (seconds(snapshot.start_ns), seconds(snapshot.end_ns));
        if snapshot.start_ns != self.end_ns {
            let before = seconds(self.end_ns);
            self.gaps.note(format!("an interval ended at {before} s and the next started at {start_s} s"));
        }
        for i in 0..plan.operations.len() {
            let of = |count: fn(&OpStats) -> u64| -> u64 {
                snapshot.cells.iter().filter(|((_, op), _)| *op == i).map(|(_, stats)| count(stats)).sum()
            };
            let (offered, outcomes) = (of(|s| s.offered), of(|s| s.outcomes.sum()));
            let at = |open: &[u64]| open.get(i).copied().unwrap_or(0);
            let (before, after) = (at(&self.open), at(&snapshot.open));
            if before + offered != outcomes + after {
                self.unbalanced.note(format!(
                    "from {start_s} s to {end_s} s {} had {before} open operations, got {offered} more, resolved \
                     {outcomes} and had {after} left",
                    Scope::Operation(i).title(plan)
                ));
            }
        }
    }

    /// The measured segments with the names they go by, each name once; stretches of the same name count as one.
    pub fn measured(&self) -> Vec<(&str, Vec<usize>)> {
        let mut named: Vec<(&str, Vec<usize>)> = Vec::new();
        for (i, segment) in self.segments.iter().enumerate().filter(|(_, s)| s.phase == Phase::Measure) {
            match named.iter_mut().find(|(name, _)| *name == segment.name) {
                Some((_, parts)) => parts.push(i),
                None => named.push((&segment.name, vec![i])),
            }
        }
        named
    }

    /// How many operations, of those in a row, ended well within some segments by the clock, whenever they were due.
    pub fn completed(&self, segments: &[usize], operations: &Range<usize>) -> u64 {
        let wanted =
            |&(segment, op): &(usize, usize)| segments.contains(&segment) && operations.contains(&op);
        self.completed.iter().filter(|(key, _)| wanted(key)).map(|(_, count)| count).sum()
    }

    /// An operation's statistics (`None`: those of all) over some segments.
    pub fn merged(&self, segments: &[usize], operation: Option<usize>) -> OpStats {
        self.merged_of(segments, &operation.map_or(0..usize::MAX, |one| one..one + 1))
    }

    /// The same of some operations in a row.
    pub fn merged_of(&self, segments: &[usize], operations: &Range<usize>) -> OpStats {
        let mut sum = OpStats::default();
        for ((segment, op), stats) in &self.cells {
            if segments.contains(segment) && operations.contains(op) {
                sum.merge(stats);
            }
        }
        sum
    }
}
