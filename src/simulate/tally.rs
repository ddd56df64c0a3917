//! Counts what happens, and cuts it into the same snapshots that a real load makes.

use std::collections::BTreeMap;

use super::flight::Flight;
use super::rules::{Class, OK};
use super::runs::{Run, Runs};
use crate::plan::Plan;
use crate::plan::timeline::{Segment, index_at, segments};
use crate::snapshot::{
    DeadLetters, ErrorCount, ErrorLevel, FlowState, Generator, ServerStats, Snapshot, Totals,
};
use crate::stats::OpStats;
use crate::stats::sample::{AttemptEnd, Outcome};

/// What is gathered of the interval that goes on, and what the whole trial comes to.
#[derive(Debug)]
pub struct Tally {
    segments: Vec<Segment>,
    operations: usize,
    classes: Vec<Class>,
    /// By segment and operation.
    cells: Vec<OpStats>,
    /// What the cells are still to get of times that are mostly the same.
    runs: Vec<Runs>,
    /// Whether anything happened in them.
    touched: Vec<bool>,
    servers: Vec<ServerStats>,
    /// Likewise.
    checkouts: Vec<Run>,
    /// By cell, level and class.
    errors: Vec<Seen>,
    offered: Vec<u64>,
    measured_open: u64,
    cut_off: bool,
    totals: Totals,
    sequence: u64,
    start_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    count: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new(plan: &Plan, servers: Vec<String>, classes: Vec<Class>) -> Self {
        let (segments, operations) = (segments(plan), plan.operations.len());
        let cells = segments.len() * operations;
        let server = |address| ServerStats { address, ..ServerStats::default() };
        Self {
            operations,
            cells: vec![OpStats::default(); cells],
            runs: vec![Runs::default(); cells],
            touched: vec![false; cells],
            checkouts: vec![Run::default(); servers.len()],
            servers: servers.into_iter().map(server).collect(),
            errors: vec![Seen::default(); cells * 2 * classes.len()],
            classes,
            offered: vec![0; operations],
            measured_open: 0,
            cut_off: false,
            totals: Totals { ended: vec![0; operations], ..Totals::default() },
            sequence: 0,
            start_ns: 0,
            segments,
        }
    }

    /// The segment that a moment lies in.
    pub fn segment_at(&self, at_ns: u64) -> u16 {
        // There are a few for each overload.
        u16::try_from(index_at(&self.segments, at_ns)).unwrap_or(u16::MAX)
    }

    /// The first border of a segment after a moment; `u64::MAX` when none is left.
    pub fn border_after(&self, at_ns: u64) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.end_ns)
            .filter(|&end| end > at_ns)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Where the interval that goes on starts.
    pub const fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Measured operations that have no outcome yet.
    pub const fn measured_open(&self) -> u64 {
        self.measured_open
    }

    fn cell(&mut self, segment: u16, op: u16) -> &mut OpStats {
        let place = self.place(segment, op);
        self.touched[place] = true;
        &mut self.cells[place]
    }

    fn place(&self, segment: u16, op: u16) -> usize {
        usize::from(segment) * self.operations + usize::from(op)
    }

    fn is_measured(&self, segment: u16) -> bool {
        segment > 0 && usize::from(segment) + 1 < self.segments.len()
    }

    /// An operation is due.
    pub fn offer(&mut self, segment: u16, op: u16) {
        self.cell(segment, op).offered += 1;
        self.offered[usize::from(op)] += 1;
        self.measured_open += u64::from(self.is_measured(segment));
    }

    /// An operation starts.
    pub fn start(&mut self, flight: &Flight) {
        let place = self.place(flight.segment, flight.op);
        self.touched[place] = true;
        self.runs[place].lag.add(flight.started_ns - flight.due_ns, &mut self.cells[place].lag);
    }

    /// An attempt has its connection.
    pub fn checked_out(&mut self, flight: &Flight, waited_ns: u64) {
        let (place, server) = (self.place(flight.segment, flight.op), usize::from(flight.server));
        self.touched[place] = true;
        self.runs[place].checkout.add(waited_ns, &mut self.cells[place].checkout);
        self.checkouts[server].add(waited_ns, &mut self.servers[server].checkout);
    }

    /// A backoff of the driver's is over.
    pub fn backed_off(&mut self, flight: &Flight, paused_ns: u64) {
        let retry = u32::from(flight.retry);
        self.cell(flight.segment, flight.op).backoff_before(retry).record_ns(paused_ns);
    }

    /// An attempt has ended, `round_trip_ns` after it was sent.
    pub fn attempt(&mut self, flight: &Flight, end: AttemptEnd, class: u8, round_trip_ns: u64, now_ns: u64) {
        let rejected = u64::from(end == AttemptEnd::Rejected);
        let retargeted = u64::from(flight.retargeted);
        let place = self.place(flight.segment, flight.op);
        self.touched[place] = true;
        let stats = &mut self.cells[place];
        stats.attempts += 1;
        stats.rejected += rejected;
        stats.retargeted += retargeted;
        if flight.retry == 0 {
            stats.commands += 1;
            stats.repeated_commands += u64::from(flight.calls > 1);
        } else {
            stats.retries += 1;
        }
        match end {
            AttemptEnd::Served => stats.attempt_ok.record_ns(round_trip_ns),
            AttemptEnd::Rejected => self.runs[place].rejected.add(round_trip_ns, &mut stats.attempt_rejected),
            _ => {}
        }
        let server = &mut self.servers[usize::from(flight.server)];
        server.attempts += 1;
        server.rejected += rejected;
        server.retargeted += retargeted;
        self.totals.attempts += 1;
        self.count_error((flight.segment, flight.op), ErrorLevel::Attempt, class, now_ns);
    }

    /// An operation has ended; `class` is its error.
    pub fn end(&mut self, flight: &Flight, outcome: Outcome, class: u8, now_ns: u64) {
        let (wait_ns, service_ns) = (flight.started_ns - flight.due_ns, now_ns - flight.started_ns);
        let latency_ns = wait_ns + service_ns;
        let stats = self.cell(flight.segment, flight.op);
        stats.calls += u64::from(flight.calls);
        stats.wait_ns += wait_ns;
        stats.checkout_ns += flight.checkout_ns;
        stats.attempt_ns += flight.attempt_ns;
        stats.backoff_ns += flight.backoff_ns;
        stats.latency_ns += latency_ns;
        if outcome == Outcome::Ok {
            stats.outcomes.ok += 1;
            stats.latency.record_ns(latency_ns);
            stats.service.record_ns(service_ns);
            let bucket = stats.with_retries(flight.retries);
            bucket.ok += 1;
            bucket.latency.record_ns(latency_ns);
        } else {
            let gave_up = u64::from(outcome == Outcome::GaveUp);
            match outcome {
                Outcome::TimedOut => stats.outcomes.timed_out += 1,
                _ => stats.outcomes.failed += 1,
            }
            stats.gave_up += gave_up;
            stats.failed_latency.record_ns(latency_ns);
            let bucket = stats.with_retries(flight.retries);
            bucket.failed += 1;
            bucket.gave_up += gave_up;
        }
        self.settle(flight.segment, flight.op);
        self.count_error((flight.segment, flight.op), ErrorLevel::Operation, class, now_ns);
    }

    /// An operation is never given to the driver; `class` is the reason.
    pub fn drop(&mut self, segment: u16, op: u16, class: u8, now_ns: u64) {
        self.cell(segment, op).outcomes.dropped += 1;
        self.settle(segment, op);
        self.count_error((segment, op), ErrorLevel::Operation, class, now_ns);
    }

    /// An operation is under way when the load is cut off.
    pub fn abandon(&mut self, flight: &Flight) {
        self.cell(flight.segment, flight.op).outcomes.in_flight += 1;
        self.cut_off |= self.is_measured(flight.segment);
        self.settle(flight.segment, flight.op);
    }

    /// An operation is due, and nothing more is started.
    pub fn leave_out(&mut self, segment: u16, op: u16) {
        self.cell(segment, op).outcomes.not_started += 1;
        self.cut_off |= self.is_measured(segment);
        self.settle(segment, op);
    }

    /// Every outcome passes here once.
    fn settle(&mut self, segment: u16, op: u16) {
        self.totals.ended[usize::from(op)] += 1;
        self.measured_open -= u64::from(self.is_measured(segment));
    }

    fn count_error(&mut self, (segment, op): (u16, u16), level: ErrorLevel, class: u8, now_ns: u64) {
        if class == OK {
            return;
        }
        let place = self.place(segment, op) * 2 + usize::from(level == ErrorLevel::Operation);
        let seen = &mut self.errors[place * self.classes.len() + usize::from(class)];
        if seen.count == 0 {
            seen.first_ns = now_ns;
        }
        seen.count += 1;
        seen.last_ns = now_ns;
    }

    /// The interval up to now; the next one starts here. `frozen_at` is when the load ended.
    pub fn snapshot(&mut self, end_ns: u64, frozen_at: u64, generator: Generator) -> Snapshot {
        let start_ns = std::mem::replace(&mut self.start_ns, end_ns);
        let segment = match start_ns >= frozen_at {
            true => self.segments.len() - 1,
            false => index_at(&self.segments, start_ns),
        };
        let mut cells = BTreeMap::new();
        for (place, touched) in self.touched.iter_mut().enumerate().filter(|(_, touched)| **touched) {
            *touched = false;
            let key = (place / self.operations, place % self.operations);
            let (runs, stats) = (&mut self.runs[place], &mut self.cells[place]);
            runs.end(stats);
            cells.insert(key, std::mem::take(&mut self.cells[place]));
        }
        for (run, server) in self.checkouts.iter_mut().zip(&mut self.servers) {
            run.end(&mut server.checkout);
        }
        let emptied = |server: &mut ServerStats| {
            let address = server.address.clone();
            std::mem::replace(server, ServerStats { address, ..ServerStats::default() })
        };
        let snapshot = Snapshot {
            sequence: self.sequence,
            start_ns,
            end_ns,
            segment,
            cells,
            open: self
                .offered
                .iter()
                .zip(&self.totals.ended)
                .map(|(offered, ended)| offered - ended)
                .collect(),
            servers: self.servers.iter_mut().map(emptied).collect(),
            errors: self.take_errors(),
            orphans: BTreeMap::new(),
            flow: FlowState::default(),
            events: Vec::new(),
            dead_letters: DeadLetters::default(),
            clients: Vec::new(),
            generator,
        };
        self.sequence += 1;
        snapshot
    }

    fn take_errors(&mut self) -> Vec<ErrorCount> {
        let (classes, operations) = (&self.classes, self.operations);
        let counted = self.errors.iter_mut().enumerate().filter(|(_, seen)| seen.count > 0);
        counted
            .map(|(place, seen)| {
                let Seen { count, first_ns, last_ns } = std::mem::take(seen);
                let (cell, class) = (place / classes.len(), &classes[place % classes.len()]);
                ErrorCount {
                    segment: cell / 2 / operations,
                    operation: cell / 2 % operations,
                    level: if cell % 2 == 0 { ErrorLevel::Attempt } else { ErrorLevel::Operation },
                    class: class.class.clone(),
                    count,
                    first_ns,
                    last_ns,
                    example: class.example.to_owned(),
                }
            })
            .collect()
    }

    /// What everything must add up to; `stopped` says that somebody asked for an end before its time.
    pub fn finish(self, stopped: bool) -> Totals {
        Totals { cut: stopped || self.cut_off, ..self.totals }
    }
}
