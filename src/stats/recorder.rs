//! Folds the workers' records into snapshots, in a thread of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sample::{Attempt, AttemptEnd, Ended, KeptBack, Late, LateEnd, Outcome, Record, Started};
use super::{OpStats, Outcomes};
use crate::client::attempt::Ledger;
use crate::engine::schedule::{Due, Schedule};
use crate::operation::mix::Mix;
use crate::plan::timeline::{Segment, index_at};
use crate::snapshot::{
    DeadLetters, ErrorCount, ErrorLevel, Event, FlowState, Generator, PoolCounts, ServerStats, Snapshot,
    Totals,
};

/// What the recorder needs to know of the load to tell how many operations were due.
pub enum Offered {
    /// Operations are due when the schedule says. `due` trails the clock, `taken` the workers.
    Open {
        /// Counts operations that are due.
        due: Box<Schedule>,
        /// Counts operations that workers took.
        taken: Box<Schedule>,
        /// The number of the first of all.
        first: u64,
    },
    /// Operations are due when they start.
    Closed,
}

/// The state between two snapshots.
pub struct Recorder {
    ledger: Arc<Ledger>,
    mix: Arc<Mix>,
    segments: Vec<Segment>,
    offered: Offered,
    /// By operation: whether it is known when its attempts ended.
    told_apart: Vec<bool>,
    spare: Vec<Vec<Record>>,
    /// What happened after the end of the interval that is being gathered.
    early: Vec<Record>,
    interval: Interval,
    sequence: u64,
    start_ns: u64,
    /// From when on nothing is due, as far as is known.
    frozen_at: u64,
    /// Operations that workers have begun.
    started: u64,
    /// By operation: how many were offered in all phases.
    offered_so_far: Vec<u64>,
    /// Measured operations: offered, and with an outcome.
    measured: (u64, u64),
    /// Measured operations whose outcome is that the run was cut.
    cut_off: u64,
    pools: Vec<PoolCounts>,
    totals: Totals,
}

/// What the application around the driver has come to.
#[derive(Debug, Default)]
pub struct Application {
    /// How what it does about rejection stands.
    pub flow: FlowState,
    /// What has happened to that since the last snapshot.
    pub events: Vec<Event>,
    /// Items of bulks that no server took since then.
    pub dead_letters: DeadLetters,
}

/// What is gathered for the next snapshot.
#[derive(Default)]
struct Interval {
    cells: BTreeMap<(usize, usize), OpStats>,
    servers: Vec<ServerStats>,
    errors: BTreeMap<(usize, usize, ErrorLevel, u32), Seen>,
}

#[derive(Clone, Copy)]
struct Seen {
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Recorder {
    /// Nothing recorded yet; `told_apart` says of each of the plan's operations whether it is known when its attempts end.
    pub fn new(
        ledger: Arc<Ledger>,
        mix: Arc<Mix>,
        segments: Vec<Segment>,
        offered: Offered,
        told_apart: Vec<bool>,
    ) -> Self {
        let operations = told_apart.len();
        Self {
            ledger,
            mix,
            segments,
            offered,
            told_apart,
            spare: Vec::new(),
            early: Vec::new(),
            interval: Interval::default(),
            sequence: 0,
            start_ns: 0,
            frozen_at: u64::MAX,
            started: 0,
            offered_so_far: vec![0; operations],
            measured: (0, 0),
            cut_off: 0,
            pools: Vec::new(),
            totals: Totals { ended: vec![0; operations], ..Totals::default() },
        }
    }

    /// Takes what workers have left so far. Returns the time up to which all is known, at most `until`: what happened
    /// later waits for the next interval. All times are nanoseconds since Go; nothing is due from `frozen_at` on.
    ///
    /// The clock is read after the records are taken: whatever they speak of was due by then, so no outcome is counted
    /// before its offer.
    pub fn absorb(&mut self, clock: impl FnOnce() -> u64, frozen_at: u64, until: u64) -> u64 {
        self.frozen_at = frozen_at;
        let mut early = std::mem::take(&mut self.early);
        let mut spare = std::mem::take(&mut self.spare);
        let ledger = Arc::clone(&self.ledger);
        ledger.buffers.take(&mut spare, |record| early.push(*record));
        self.spare = spare;
        early.retain(|record| {
            let later = record.at_ns().is_some_and(|at_ns| at_ns >= until);
            if !later {
                self.fold(record);
            }
            later
        });
        self.early = early;
        let known_until = clock().min(until);
        while let Some(next) = self.next_due(known_until.min(frozen_at)) {
            let segment = index_at(&self.segments, next.at_ns);
            let operation = self.mix.at(next.n).operation;
            self.offer(segment, operation);
        }
        known_until
    }

    fn next_due(&mut self, before_ns: u64) -> Option<Due> {
        let Offered::Open { due, .. } = &mut self.offered else { return None };
        if due.peek().at_ns < before_ns { due.next() } else { None }
    }

    fn offer(&mut self, segment: usize, operation: usize) {
        self.interval.cells.entry((segment, operation)).or_default().offered += 1;
        self.offered_so_far[operation] += 1;
        self.measured.0 += u64::from(self.is_measured(segment));
    }

    /// Every outcome passes here once.
    fn settle(&mut self, segment: usize, operation: usize) {
        self.totals.ended[operation] += 1;
        self.measured.1 += u64::from(self.is_measured(segment));
    }

    fn fold(&mut self, record: &Record) {
        match record {
            Record::Started(started) => self.fold_started(*started),
            Record::Attempt(attempt) => self.fold_attempt(attempt),
            Record::Ended(ended) => self.fold_ended(ended),
            Record::Late(late) => self.fold_late(late),
            Record::Dropped(kept_back) => self.fold_kept_back(kept_back, |outcomes| outcomes.dropped += 1),
            Record::Parked(kept_back) => self.fold_kept_back(kept_back, |outcomes| outcomes.parked += 1),
            Record::Untaken(cell) => {
                // It has had its turn.
                self.started += 1;
                let key = (usize::from(cell.segment), usize::from(cell.operation));
                self.interval.cells.entry(key).or_default().outcomes.not_started += 1;
                self.cut_off += u64::from(self.is_measured(key.0));
                self.settle(key.0, key.1);
            }
            Record::Abandoned(cell) => {
                let key = (usize::from(cell.segment), usize::from(cell.operation));
                self.interval.cells.entry(key).or_default().outcomes.in_flight += 1;
                self.cut_off += u64::from(self.is_measured(key.0));
                self.settle(key.0, key.1);
            }
        }
    }

    fn fold_started(&mut self, started: Started) {
        self.started += 1;
        let key = (usize::from(started.cell.segment), usize::from(started.cell.operation));
        if matches!(self.offered, Offered::Closed) {
            self.offer(key.0, key.1);
        }
        self.interval.cells.entry(key).or_default().lag.record_ns(started.lag_ns);
    }

    fn fold_attempt(&mut self, attempt: &Attempt) {
        let key = (usize::from(attempt.cell.segment), usize::from(attempt.cell.operation));
        let rejected = u64::from(attempt.end == AttemptEnd::Rejected);
        let stats = self.interval.cells.entry(key).or_default();
        stats.attempts += 1;
        stats.rejected += rejected;
        stats.retargeted += u64::from(attempt.retargeted);
        if attempt.retry == 0 {
            stats.commands += 1;
            stats.repeated_commands += u64::from(!attempt.first_call);
        } else {
            stats.retries += 1;
        }
        if let Some(ns) = attempt.backoff_ns {
            stats.backoff_before(u32::from(attempt.retry)).record_ns(ns);
        }
        if let Some(ns) = attempt.checkout_ns {
            stats.checkout.record_ns(ns);
        }
        match (attempt.end, attempt.round_trip_ns) {
            (AttemptEnd::Served, Some(ns)) if self.told_apart[key.1] => stats.attempt_ok.record_ns(ns),
            (AttemptEnd::Rejected, Some(ns)) => stats.attempt_rejected.record_ns(ns),
            _ => {}
        }
        let number = usize::from(attempt.server);
        // A number beyond every server means that none was selected; there is no row for nowhere.
        if attempt.server != u16::MAX {
            if self.interval.servers.len() <= number {
                self.interval.servers.resize_with(number + 1, ServerStats::default);
            }
            let server = &mut self.interval.servers[number];
            server.attempts += 1;
            server.rejected += rejected;
            server.retargeted += u64::from(attempt.retargeted);
            if let Some(ns) = attempt.checkout_ns {
                server.checkout.record_ns(ns);
            }
        }
        self.count_error(key, ErrorLevel::Attempt, attempt.error, attempt.at_ns);
    }

    fn fold_ended(&mut self, ended: &Ended) {
        let key = (usize::from(ended.cell.segment), usize::from(ended.cell.operation));
        let latency_ns = ended.wait_ns + ended.service_ns;
        let stats = self.interval.cells.entry(key).or_default();
        stats.calls += u64::from(ended.calls);
        stats.wait_ns += ended.wait_ns;
        stats.checkout_ns += ended.checkout_ns;
        stats.attempt_ns += ended.attempt_ns;
        stats.backoff_ns += ended.backoff_ns;
        stats.latency_ns += latency_ns;
        if ended.outcome == Outcome::Ok {
            stats.outcomes.ok += 1;
            stats.latency.record_ns(latency_ns);
            stats.service.record_ns(ended.service_ns);
            let bucket = stats.with_retries(ended.retries);
            bucket.ok += 1;
            bucket.latency.record_ns(latency_ns);
        } else {
            let gave_up = u64::from(ended.outcome == Outcome::GaveUp);
            match ended.outcome {
                Outcome::TimedOut => stats.outcomes.timed_out += 1,
                _ => stats.outcomes.failed += 1,
            }
            stats.gave_up += gave_up;
            stats.failed_latency.record_ns(latency_ns);
            let bucket = stats.with_retries(ended.retries);
            bucket.failed += 1;
            bucket.gave_up += gave_up;
        }
        self.settle(key.0, key.1);
        self.count_error(key, ErrorLevel::Operation, ended.error, ended.at_ns);
    }

    fn fold_kept_back(&mut self, kept_back: &KeptBack, count: fn(&mut Outcomes)) {
        let key = (usize::from(kept_back.cell.segment), usize::from(kept_back.cell.operation));
        // It has had its turn.
        self.started += 1;
        if matches!(self.offered, Offered::Closed) {
            self.offer(key.0, key.1);
        }
        count(&mut self.interval.cells.entry(key).or_default().outcomes);
        self.settle(key.0, key.1);
        self.count_error(key, ErrorLevel::Operation, Some(kept_back.error), kept_back.at_ns);
    }

    fn fold_late(&mut self, late: &Late) {
        let key = (usize::from(late.cell.segment), usize::from(late.cell.operation));
        let stats = self.interval.cells.entry(key).or_default();
        match late.end {
            LateEnd::Ok => stats.late.ok += 1,
            LateEnd::Failed => stats.late.failed += 1,
            LateEnd::Lost => stats.late.lost += 1,
        }
        if late.end != LateEnd::Lost {
            stats.overshoot.record_ns(late.overshoot_ns);
        }
    }

    fn count_error(&mut self, key: (usize, usize), level: ErrorLevel, error: Option<u32>, at_ns: u64) {
        let Some(error) = error else { return };
        let seen = self.interval.errors.entry((key.0, key.1, level, error)).or_insert(Seen {
            count: 0,
            first_ns: at_ns,
            last_ns: at_ns,
        });
        seen.count += 1;
        // Threads' records are folded one thread after the other, so times come out of order.
        seen.first_ns = seen.first_ns.min(at_ns);
        seen.last_ns = seen.last_ns.max(at_ns);
    }

    fn is_measured(&self, segment: usize) -> bool {
        segment > 0 && segment + 1 < self.segments.len()
    }

    /// Measured operations that have no outcome yet.
    pub const fn measured_open(&self) -> u64 {
        self.measured.0 - self.measured.1
    }

    /// Where the interval that is being gathered starts, in nanoseconds since Go.
    pub const fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Operations under way.
    pub fn in_flight(&self) -> u64 {
        self.started - self.totals.ended.iter().sum::<u64>()
    }

    /// Gives every operation that is due and that no worker will take the outcome of a cut run: those that were handed
    /// out and taken back, and those that were never handed out, from number `handed_out` on.
    pub fn cut(&mut self, taken_back: &[Due], handed_out: u64) {
        taken_back.iter().for_each(|due| self.cut_off(*due));
        if let Offered::Open { taken: cursor, .. } = &mut self.offered {
            advance(cursor, handed_out);
        }
        while let Some(due) = self.next_untaken() {
            self.cut_off(due);
        }
    }

    fn cut_off(&mut self, due: Due) {
        let (segment, operation) = (index_at(&self.segments, due.at_ns), self.mix.at(due.n).operation);
        self.interval.cells.entry((segment, operation)).or_default().outcomes.not_started += 1;
        self.cut_off += u64::from(self.is_measured(segment));
        self.settle(segment, operation);
    }

    fn next_untaken(&mut self) -> Option<Due> {
        let Offered::Open { due, taken, .. } = &mut self.offered else { return None };
        if taken.peek().n < due.peek().n { taken.next() } else { None }
    }

    /// How long the oldest operation that no worker has begun has been due.
    pub fn behind_ns(&mut self, now_ns: u64) -> u64 {
        match &mut self.offered {
            Offered::Open { taken: cursor, first, .. } => {
                // Operations are begun in their order.
                advance(cursor, *first + self.started);
                now_ns.saturating_sub(cursor.peek().at_ns)
            }
            Offered::Closed => 0,
        }
    }

    /// The interval up to now; the next one starts here.
    pub fn snapshot(&mut self, end_ns: u64, generator: Generator, application: Application) -> Snapshot {
        let interval = std::mem::take(&mut self.interval);
        let snapshot = Snapshot {
            sequence: self.sequence,
            start_ns: self.start_ns,
            end_ns,
            // A load that ended before its time cools down from there on.
            segment: if self.start_ns >= self.frozen_at {
                self.segments.len() - 1
            } else {
                index_at(&self.segments, self.start_ns)
            },
            cells: interval.cells,
            open: self
                .offered_so_far
                .iter()
                .zip(&self.totals.ended)
                .map(|(offered, ended)| offered - ended)
                .collect(),
            servers: self.servers(interval.servers),
            errors: self.errors(interval.errors),
            orphans: self.ledger.take_orphans(),
            generator,
            flow: application.flow,
            events: application.events,
            dead_letters: application.dead_letters,
            clients: Vec::new(),
        };
        self.sequence += 1;
        self.start_ns = end_ns;
        snapshot
    }

    /// Ends the recording; `stopped` says that somebody asked for it before its time.
    pub fn finish(mut self, stopped: bool) -> Totals {
        self.totals.cut = stopped || self.cut_off > 0;
        self.totals.attempts = self.ledger.buffers.checkouts();
        self.totals
    }

    fn servers(&mut self, mut seen: Vec<ServerStats>) -> Vec<ServerStats> {
        let totals = self.ledger.servers.totals();
        seen.resize_with(totals.len(), ServerStats::default);
        self.pools.resize_with(totals.len(), PoolCounts::default);
        for ((server, before), (address, now)) in seen.iter_mut().zip(&mut self.pools).zip(totals) {
            server.address = address;
            server.connections_open = now.open();
            server.pool = now.since(before);
            *before = now;
        }
        seen
    }

    fn errors(&self, seen: BTreeMap<(usize, usize, ErrorLevel, u32), Seen>) -> Vec<ErrorCount> {
        seen.into_iter()
            .filter_map(|((segment, operation, level, number), seen)| {
                let (class, example) = self.ledger.errors.get(number)?;
                let Seen { count, first_ns, last_ns } = seen;
                Some(ErrorCount { segment, operation, level, class, count, first_ns, last_ns, example })
            })
            .collect()
    }
}

fn advance(cursor: &mut Schedule, to: u64) {
    while cursor.peek().n < to {
        cursor.next();
    }
}
