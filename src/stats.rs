//! What is known of a set of operations, mergeable: counts, times by cause, and latency distributions.
//!
//! There is one `merge`; intervals, segments, the `all` rows and whole trials are all made by it.

pub mod buffers;
pub mod latencies;
pub mod recorder;
pub mod sample;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use latencies::Latencies;

/// The most retries that are told apart; operations with more are counted with these.
const MAX_RETRIES_TOLD_APART: u32 = 255;

/// Operations of one kind in one segment, or any merge of such.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpStats {
    /// Operations due (open model) or started (closed model).
    pub offered: u64,
    /// What became of them.
    pub outcomes: Outcomes,
    /// Of the failed: those whose last error was a retryable overload error.
    pub gave_up: u64,
    /// Application tries of ended operations.
    pub calls: u64,
    /// Commands those calls sent. In light mode only of kinds that send one a call.
    pub commands: u64,
    /// Of the commands: those of calls that repeat an earlier call of the application's.
    pub repeated_commands: u64,
    /// Tries of commands on a server, by connection check-outs, when they ended.
    pub attempts: u64,
    /// Attempts that repeated the one before them in the same command.
    pub retries: u64,
    /// Attempts that failed with the SystemOverloadedError label.
    pub rejected: u64,
    /// Attempts on another server than the one whose rejection preceded them.
    pub retargeted: u64,
    /// Sum over ended operations: intended to actual start.
    pub wait_ns: u64,
    /// Sum over ended operations: waiting for connections.
    pub checkout_ns: u64,
    /// Sum over ended operations: round trips of attempts.
    pub attempt_ns: u64,
    /// Sum over ended operations: from failed attempts' ends to the next check-outs' starts.
    pub backoff_ns: u64,
    /// Sum over ended operations: intended start to end; less the four above it is what the client itself took.
    pub latency_ns: u64,
    /// Latency of successful operations.
    pub latency: Latencies,
    /// Service time of successful operations.
    pub service: Latencies,
    /// Latency of failed operations.
    pub failed_latency: Latencies,
    /// Round trips of attempts that the server served.
    pub attempt_ok: Latencies,
    /// Round trips of attempts that it rejected.
    pub attempt_rejected: Latencies,
    /// Waits for a connection, of attempts that got one.
    pub checkout: Latencies,
    /// Intended to actual start, of every operation that started.
    pub lag: Latencies,
    /// Ended operations by their number of retries.
    pub by_retries: BTreeMap<u32, RetryStats>,
    /// Backoff before the first, second … retry of a command.
    pub backoff: BTreeMap<u32, Latencies>,
}

/// What became of operations; each has exactly one outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    /// Succeeded.
    pub ok: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Passed their deadline.
    pub timed_out: u64,
    /// Never given to the driver.
    pub dropped: u64,
    /// Spooled for later.
    pub parked: u64,
    /// Due when the run was cut, never started.
    pub not_started: u64,
    /// Under way when the run was cut.
    pub in_flight: u64,
}

/// Operations with the same number of retries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryStats {
    /// Succeeded.
    pub ok: u64,
    /// Failed, gave up included.
    pub failed: u64,
    /// Of the failed: gave up.
    pub gave_up: u64,
    /// Latency of the successful ones.
    pub latency: Latencies,
}

impl Outcomes {
    /// All that have an outcome.
    pub const fn sum(&self) -> u64 {
        self.ok
            + self.failed
            + self.timed_out
            + self.dropped
            + self.parked
            + self.not_started
            + self.in_flight
    }

    fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.dropped += other.dropped;
        self.parked += other.parked;
        self.not_started += other.not_started;
        self.in_flight += other.in_flight;
    }
}

impl RetryStats {
    fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.gave_up += other.gave_up;
        self.latency.merge(&other.latency);
    }
}

impl OpStats {
    /// Adds another set's counts and distributions to this one.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.outcomes.merge(&other.outcomes);
        self.gave_up += other.gave_up;
        self.calls += other.calls;
        self.commands += other.commands;
        self.repeated_commands += other.repeated_commands;
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.rejected += other.rejected;
        self.retargeted += other.retargeted;
        self.wait_ns += other.wait_ns;
        self.checkout_ns += other.checkout_ns;
        self.attempt_ns += other.attempt_ns;
        self.backoff_ns += other.backoff_ns;
        self.latency_ns += other.latency_ns;
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.failed_latency.merge(&other.failed_latency);
        self.attempt_ok.merge(&other.attempt_ok);
        self.attempt_rejected.merge(&other.attempt_rejected);
        self.checkout.merge(&other.checkout);
        self.lag.merge(&other.lag);
        for (&retries, stats) in &other.by_retries {
            self.by_retries.entry(retries).or_default().merge(stats);
        }
        for (&index, backoff) in &other.backoff {
            self.backoff.entry(index).or_default().merge(backoff);
        }
    }

    /// The entry for operations with this many retries.
    pub fn with_retries(&mut self, retries: u32) -> &mut RetryStats {
        self.by_retries.entry(retries.min(MAX_RETRIES_TOLD_APART)).or_default()
    }

    /// The backoff before the retry with this number (1 is a command's first).
    pub fn backoff_before(&mut self, retry: u32) -> &mut Latencies {
        self.backoff.entry(retry.min(MAX_RETRIES_TOLD_APART)).or_default()
    }

    /// Latency of operations that succeeded at once, and of those that did after at least one retry.
    pub fn latency_by_first_try(&self) -> (Latencies, Latencies) {
        let (mut first, mut retried) = (Latencies::default(), Latencies::default());
        for (&retries, stats) in &self.by_retries {
            if retries == 0 { &mut first } else { &mut retried }.merge(&stats.latency);
        }
        (first, retried)
    }

    /// (failed + timed out) ÷ (ok + failed + timed out); `None` when nothing ended.
    pub fn error_rate(&self) -> Option<f64> {
        let bad = self.outcomes.failed + self.outcomes.timed_out;
        ratio(bad, self.outcomes.ok + bad)
    }

    /// 1 − ok ÷ offered; `None` when nothing was offered.
    pub fn loss_rate(&self) -> Option<f64> {
        ratio(self.offered.saturating_sub(self.outcomes.ok), self.offered)
    }

    /// Calls beyond one an operation.
    pub fn app_retries(&self) -> u64 {
        let started = self.outcomes.ok + self.outcomes.failed + self.outcomes.timed_out;
        self.calls.saturating_sub(started)
    }

    /// Attempts ÷ commands of first calls: how much more the servers were asked than the workload needed. `None` when
    /// there was no command.
    pub fn amplification(&self) -> Option<f64> {
        ratio(self.attempts, self.commands.saturating_sub(self.repeated_commands))
    }
}

/// A quotient of counts, `None` over zero.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53; a quotient needs no more digits")]
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests;
