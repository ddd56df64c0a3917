//! Small worlds for tests.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use super::driver::{Driver, ReadPreference};
use super::event::{Event, NOBODY, What};
use super::flight::{Flight, Neighbours, Step};
use super::{Told, simulate};
use crate::document::Random;
use crate::plan::{Assumptions, Fault, Generation, Limit, LimitRequests, Members, Model, Overload, Plan};
use crate::results::accumulated::Accumulated;
use crate::results::checks::checks;
use crate::results::testing;
use crate::snapshot::{self, Snapshot, Totals};
use crate::stats::{OpStats, ratio};
use crate::units::{Offset, Span};

/// An operation of client 0 that goes to server 0.
pub fn flight() -> Flight {
    Flight {
        due_ns: 0,
        started_ns: 0,
        called_ns: 0,
        since_ns: 0,
        checkout_ns: 0,
        attempt_ns: 0,
        backoff_ns: 0,
        random: Random::new(1),
        avoid: 0,
        client: 0,
        epoch: 0,
        neighbours: Neighbours { before: NOBODY, behind: NOBODY },
        calls: 1,
        retries: 0,
        retry: 0,
        commands: 1,
        op: 0,
        segment: 1,
        server: 0,
        retargeted: false,
        step: Step::Paused,
    }
}

/// A request that reaches server 0.
pub fn request(slot: u32) -> Event {
    Event { at_ns: 0, slot, epoch: 0, op: 0, server: 0, class: 0, what: What::Arrives }
}

/// A driver of version 3.9 that retries so often, reads from the primary and has connections for everybody.
pub fn driver(max_retries: u32) -> Driver {
    Driver {
        max_retries,
        first_exponent: 1,
        heeds_base: true,
        retargets: false,
        prefers: ReadPreference::Primary,
        retry_reads: true,
        retry_writes: true,
        pool: 1_000_000,
    }
}

/// Reads that arrive at this rate for so many seconds after a warm-up.
pub fn plan(rate: f64, warmup_s: u64, duration_s: u64) -> Plan {
    let mut plan = testing::plan_with_stages(&[(duration_s, rate, rate)]);
    plan.load.warmup = Span::seconds(warmup_s);
    plan.load.cooldown = Span::seconds(120);
    if let Model::Open { max_in_flight, .. } = &mut plan.load.model {
        *max_in_flight = 1_000_000;
    }
    plan
}

/// Puts something on all servers for the whole time.
pub fn always(plan: &mut Plan, name: &str, fault: Fault) {
    plan.overloads.push(Overload {
        name: name.to_owned(),
        at: Offset::seconds(-3600),
        length: Span::seconds(36_000),
        members: Members::All,
        fault,
    });
}

/// A limit on requests, its bucket a tenth of a second deep.
pub fn limit(rate: u32) -> Fault {
    Fault::LimitRequests(LimitRequests {
        limit: Limit { rate: NonZeroU32::new(rate).unwrap(), burst: Span::millis(100), queue_depth: 0 },
        mechanism: None,
        base_backoff_ms: None,
        allow_retries: true,
        generation: Generation::default(),
        code: 462,
        labels: None,
    })
}

/// What a simulation comes to.
pub struct Came {
    /// Every interval.
    pub intervals: Vec<Snapshot>,
    /// What happened beside.
    pub events: Vec<snapshot::Event>,
    /// What all must add up to.
    pub totals: Totals,
    /// All measured operations.
    pub measured: OpStats,
    /// What does not add up.
    pub broken: Vec<String>,
    seconds: f64,
}

/// Simulates a plan.
pub fn came(plan: &Plan, model: &Assumptions, driver: &Driver) -> Came {
    let (mut intervals, mut events) = (Vec::new(), Vec::new());
    let tell = |told| -> Result<_, Infallible> {
        match told {
            Told::Interval(snapshot, _) => intervals.push(*snapshot),
            Told::Event(event) => events.push(event),
        }
        Ok(ControlFlow::Continue(()))
    };
    let Ok(totals) = simulate(plan, model, driver, tell);
    let mut sums = Accumulated::new(plan);
    intervals.iter().for_each(|snapshot| sums.add(plan, snapshot));
    let parts: Vec<usize> = sums.measured().into_iter().flat_map(|(_, parts)| parts).collect();
    let broken = checks(plan, &sums, &totals).into_iter().flat_map(|check| check.broken).collect();
    let seconds = plan.load.duration.duration().as_secs_f64();
    Came { measured: sums.merged(&parts, None), broken, totals, events, intervals, seconds }
}

impl Came {
    /// Measured operations that succeeded, per second.
    pub fn goodput(&self) -> f64 {
        ratio(self.measured.outcomes.ok, 1).unwrap_or(0.0) / self.seconds
    }

    /// Measured operations that were due, per second.
    pub fn offered(&self) -> f64 {
        ratio(self.measured.offered, 1).unwrap_or(0.0) / self.seconds
    }

    /// Attempts of measured operations, per second.
    pub fn attempts(&self) -> f64 {
        ratio(self.measured.attempts, 1).unwrap_or(0.0) / self.seconds
    }

    /// Successes of all intervals that end within some seconds since Go, per second.
    pub fn done(&self, from_s: u64, to_s: u64) -> f64 {
        let within = |s: &&Snapshot| s.start_ns >= from_s * 1_000_000_000 && s.end_ns <= to_s * 1_000_000_000;
        let ok = |s: &Snapshot| s.cells.values().map(|cell| cell.outcomes.ok).sum::<u64>();
        ratio(self.intervals.iter().filter(within).map(ok).sum(), to_s - from_s).unwrap_or(0.0)
    }
}
