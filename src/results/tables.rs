//! The contract of the CSV files: one struct per file, its fields the columns in their order.
//!
//! Keys come first, then counts, rates and times. Names are snake_case with the unit last; times are whole microseconds;
//! `p99_9` is the 99.9th percentile. Empty means no data and 0 a measured zero; a percentile is empty unless ten samples
//! lie beyond it. New columns are added at the end only (before `param_` and `server_` columns, which depend on the run).

use serde::{Deserialize, Serialize};

/// The version of all tables: raised when a column changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// `summary.csv`: trial × segment × client × operation, by intended start. `param_` columns follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct SummaryRow {
    pub schema_version: u32,
    pub run_id: String,
    pub trial: u32,
    pub variant: String,
    pub repeat: u32,
    pub segment: String,
    pub client: String,
    pub op: String,
    pub driver: String,
    pub driver_version: String,
    pub server_version: String,
    pub mechanism: String,
    pub model: String,
    pub target_ops_per_s: Option<f64>,
    pub workers: Option<u32>,
    pub duration_s: f64,
    pub offered: u64,
    pub ops_ok: u64,
    pub ops_failed: u64,
    pub ops_gave_up: u64,
    pub ops_timed_out: u64,
    pub ops_dropped: u64,
    pub ops_parked: u64,
    pub ops_not_started: u64,
    pub ops_in_flight: u64,
    pub offered_ops_per_s: Option<f64>,
    pub goodput_ops_per_s: Option<f64>,
    pub error_rate: Option<f64>,
    pub loss_rate: Option<f64>,
    pub calls: u64,
    pub commands: Option<u64>,
    pub attempts: u64,
    pub retries: Option<u64>,
    pub app_retries: u64,
    pub rejected: Option<u64>,
    pub retargeted: Option<u64>,
    pub amplification: Option<f64>,
    pub backoff_mean_us: Option<u64>,
    pub latency_mean_us: Option<u64>,
    pub latency_p50_us: Option<u64>,
    pub latency_p90_us: Option<u64>,
    pub latency_p99_us: Option<u64>,
    pub latency_p99_9_us: Option<u64>,
    pub latency_max_us: Option<u64>,
    pub service_mean_us: Option<u64>,
    pub service_p50_us: Option<u64>,
    pub service_p90_us: Option<u64>,
    pub service_p99_us: Option<u64>,
    pub service_p99_9_us: Option<u64>,
    pub service_max_us: Option<u64>,
    pub failed_latency_p50_us: Option<u64>,
    pub failed_latency_p99_us: Option<u64>,
    pub attempt_ok_p50_us: Option<u64>,
    pub attempt_ok_p99_us: Option<u64>,
    pub attempt_rejected_p50_us: Option<u64>,
    pub attempt_rejected_p99_us: Option<u64>,
    pub checkout_p99_us: Option<u64>,
    /// This and the next but one are of the generator as a whole, so they stand in the rows of all operations only.
    pub behind_max_ms: Option<f64>,
    pub lag_p99_us: Option<u64>,
    pub cpu_us_per_op: Option<f64>,
    pub rss_max_bytes: Option<u64>,
    /// Successful operations that ended within the segment by the clock, whenever they were due; goodput counts those that
    /// were due within it, whenever they ended.
    pub completed_ops_per_s: Option<f64>,
    /// Whether the trial began with the turn of a knob.
    pub live: bool,
    /// Replies that came after their call's deadline, and calls of which none came; `[timeout]` reading in the background.
    pub late_ok: u64,
    pub late_failed: u64,
    pub late_lost: u64,
    /// From the deadline to the reply.
    pub overshoot_p50_us: Option<u64>,
    pub overshoot_p99_us: Option<u64>,
    pub overshoot_max_us: Option<u64>,
}

/// `intervals.csv`: interval × client × operation, by the time things happened. `timestamp` and `elapsed_s` are of the
/// interval's end; open_at_start + offered = the outcomes + open_at_end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct IntervalRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub timestamp: &'a str,
    pub elapsed_s: f64,
    pub interval_s: f64,
    pub phase: &'a str,
    pub segment: &'a str,
    pub client: &'a str,
    pub op: &'a str,
    pub open_at_start: u64,
    pub offered: u64,
    pub ops_ok: u64,
    pub ops_failed: u64,
    pub ops_gave_up: u64,
    pub ops_timed_out: u64,
    pub ops_dropped: u64,
    pub ops_parked: u64,
    pub ops_not_started: u64,
    pub ops_in_flight: u64,
    pub open_at_end: u64,
    pub calls: u64,
    pub commands: Option<u64>,
    pub attempts: u64,
    pub retries: Option<u64>,
    pub app_retries: u64,
    pub rejected: Option<u64>,
    pub retargeted: Option<u64>,
    /// Operations given to the driver at the interval's end, and the tasks there are to carry them.
    pub in_flight: Option<u64>,
    pub generator_workers: Option<u64>,
    pub offered_ops_per_s: Option<f64>,
    pub goodput_ops_per_s: Option<f64>,
    pub error_rate: Option<f64>,
    pub amplification: Option<f64>,
    pub backoff_mean_us: Option<u64>,
    pub latency_mean_us: Option<u64>,
    pub latency_p50_us: Option<u64>,
    pub latency_p90_us: Option<u64>,
    pub latency_p99_us: Option<u64>,
    pub latency_p99_9_us: Option<u64>,
    pub latency_max_us: Option<u64>,
    pub service_mean_us: Option<u64>,
    pub service_p50_us: Option<u64>,
    pub service_p90_us: Option<u64>,
    pub service_p99_us: Option<u64>,
    pub service_p99_9_us: Option<u64>,
    pub service_max_us: Option<u64>,
    pub failed_latency_p50_us: Option<u64>,
    pub failed_latency_p99_us: Option<u64>,
    pub attempt_ok_p50_us: Option<u64>,
    pub attempt_ok_p99_us: Option<u64>,
    pub attempt_rejected_p50_us: Option<u64>,
    pub attempt_rejected_p99_us: Option<u64>,
    pub checkout_p99_us: Option<u64>,
    pub behind_ms: Option<f64>,
    pub lag_p99_us: Option<u64>,
    pub cpu_us_per_op: Option<f64>,
    /// Of one processor: 2 is two of them busy.
    pub cpu_share: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub late_ok: u64,
    pub late_failed: u64,
    pub late_lost: u64,
    /// Operations that may be under way at once, at the interval's end; with `[flow.limit]`.
    pub flow_limit: Option<u32>,
    /// `closed`, `open` or `half_open`, at the interval's end; with `[flow.breaker]`.
    pub breaker: Option<&'a str>,
    /// Operations in the producer's queue at the interval's end; with `[flow]` `queue`.
    pub queue_depth: Option<u64>,
    /// Operations in the spool at the interval's end; with `when_full = "spool"`.
    pub spool_depth: Option<u64>,
}

/// `retries.csv`: trial × segment × operation × number of retries.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct RetriesRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub segment: &'a str,
    pub client: &'a str,
    pub op: &'a str,
    pub retries: u32,
    pub ops_ok: u64,
    pub ops_failed: u64,
    pub latency_p50_us: Option<u64>,
    pub latency_p99_us: Option<u64>,
    pub ops_gave_up: u64,
}

/// `backoff.csv`: trial × operation × which retry (1 is a command's first), over the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct BackoffRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub client: &'a str,
    pub op: &'a str,
    pub retry: u32,
    pub count: u64,
    pub backoff_mean_us: Option<u64>,
    pub backoff_p50_us: Option<u64>,
    pub backoff_p99_us: Option<u64>,
    pub backoff_max_us: Option<u64>,
}

/// `errors.csv`: trial × segment × operation × level × class of error, warm-up and cool-down included.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct ErrorRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub phase: &'a str,
    pub segment: &'a str,
    pub client: &'a str,
    pub op: &'a str,
    /// `attempt` or `operation`.
    pub level: &'a str,
    pub kind: &'a str,
    pub code: Option<i32>,
    pub code_name: &'a str,
    /// Joined by `+`.
    pub labels: String,
    pub count: u64,
    pub first_seen_s: f64,
    pub last_seen_s: f64,
    pub example: &'a str,
}

/// `recovery.csv`: trial × overload, by the time things happened. `on_s` and `off_s` are planned, in seconds since Go, and
/// within the measured time; an overload outside of it has names and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct RecoveryRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub overload: &'a str,
    pub kind: &'a str,
    pub on_s: Option<f64>,
    pub off_s: Option<f64>,
    pub goodput_before_ops_per_s: Option<f64>,
    pub goodput_during_ops_per_s: Option<f64>,
    pub goodput_after_ops_per_s: Option<f64>,
    pub latency_p50_before_us: Option<u64>,
    /// `yes`, `no`, or empty when it is not known.
    pub recovered: &'a str,
    pub time_to_recover_s: Option<f64>,
}

/// `servers.csv`: interval × server. What the client saw is empty for a server it never used, the role and what the
/// server says of itself for one that was not asked or did not answer. `server_` columns follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct ServerRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub timestamp: &'a str,
    pub elapsed_s: f64,
    pub interval_s: f64,
    pub phase: &'a str,
    pub server: &'a str,
    pub role: &'a str,
    pub attempts: Option<u64>,
    pub rejected: Option<u64>,
    pub retargeted: Option<u64>,
    pub connections_open: Option<u64>,
    pub connections_created: Option<u64>,
    pub connections_closed: Option<u64>,
    pub closed_stale: Option<u64>,
    pub closed_idle: Option<u64>,
    pub closed_error: Option<u64>,
    pub closed_dropped: Option<u64>,
    pub closed_pool_closed: Option<u64>,
    pub checkout_p50_us: Option<u64>,
    pub checkout_p99_us: Option<u64>,
    pub pool_clears: Option<u64>,
    /// This and the next three are of the staleness probe, and empty without one.
    pub staleness_p50_us: Option<u64>,
    pub staleness_max_us: Option<u64>,
    pub staleness_samples: Option<u64>,
    pub staleness_failures: Option<u64>,
}

/// `staleness.csv`: trial × segment × role that servers had when they were read; there with a staleness probe only. 0 is a
/// read that saw all there was to see.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct StalenessRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub segment: &'a str,
    pub role: &'a str,
    pub staleness_samples: u64,
    pub staleness_p50_us: Option<u64>,
    pub staleness_p99_us: Option<u64>,
    pub staleness_max_us: Option<u64>,
}

/// `events.csv`: what happened when.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct EventRow<'a> {
    pub run_id: &'a str,
    pub trial: u32,
    pub variant: &'a str,
    pub timestamp: &'a str,
    /// Negative before Go.
    pub elapsed_s: f64,
    pub phase: &'a str,
    pub segment: &'a str,
    pub kind: &'a str,
    pub subject: &'a str,
    pub detail: &'a str,
}

/// `runs.csv`: one row per trial of every run beside it; the figures are those of its summary row for `all`, `all`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct RunsRow {
    pub schema_version: u32,
    pub run_id: String,
    pub trial: u32,
    pub variant: String,
    pub repeat: u32,
    /// The time of Go.
    pub timestamp: String,
    pub profile: String,
    pub driver: String,
    pub driver_version: String,
    pub server_version: String,
    pub mechanism: String,
    pub model: String,
    pub target_ops_per_s: Option<f64>,
    pub workers: Option<u32>,
    pub duration_s: f64,
    pub offered: u64,
    pub ops_ok: u64,
    pub goodput_ops_per_s: Option<f64>,
    pub error_rate: Option<f64>,
    pub loss_rate: Option<f64>,
    pub amplification: Option<f64>,
    pub latency_p50_us: Option<u64>,
    pub latency_p99_us: Option<u64>,
    /// `complete`, `cut`, `taken_over` by a live trial, `aborted` by a threshold, or `broken` when the sums did not add up.
    pub result: String,
    /// The options varied or set, as a JSON object.
    pub params: String,
    pub completed_ops_per_s: Option<f64>,
    /// Whether the trial began with the turn of a knob.
    pub live: bool,
}

/// `search.csv`: one row per trial of a search that was not cut short, in their order. The figures are those of its summary
/// row for `all`, `all`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "a column's name says what it is, by the rules above and the README's words")]
pub struct SearchRow {
    pub run_id: String,
    /// 1, 2, 3 … for `step` and `confirm`; a `baseline` has the number of the one that it comes before.
    pub step: u32,
    pub trial: u32,
    pub variant: String,
    /// `step`, `baseline` or `confirm`.
    pub role: String,
    pub target_ops_per_s: f64,
    pub held: bool,
    /// Why it did not hold; empty where it did.
    pub reason: String,
    /// What each condition's figure was, in the unit of its column, as a JSON object; null where there was too little for one.
    pub figures: String,
    pub duration_s: f64,
    pub offered: u64,
    pub ops_ok: u64,
    pub offered_ops_per_s: Option<f64>,
    pub goodput_ops_per_s: Option<f64>,
    pub completed_ops_per_s: Option<f64>,
    pub error_rate: Option<f64>,
    pub loss_rate: Option<f64>,
    pub amplification: Option<f64>,
    pub latency_p50_us: Option<u64>,
    pub latency_p90_us: Option<u64>,
    pub latency_p99_us: Option<u64>,
}

#[cfg(test)]
mod tests;
