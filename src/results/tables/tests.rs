use super::*;
use crate::results::csv_file::columns;
use crate::results::servers::counter_columns;

/// What other tools rely on since the first version. These lists may only grow, at their ends.
const SUMMARY: &str = "schema_version run_id trial variant repeat segment client op driver driver_version \
    server_version mechanism model target_ops_per_s workers duration_s offered ops_ok ops_failed ops_gave_up \
    ops_timed_out ops_dropped ops_parked ops_not_started ops_in_flight offered_ops_per_s goodput_ops_per_s error_rate \
    loss_rate calls commands attempts retries app_retries rejected retargeted amplification backoff_mean_us \
    latency_mean_us latency_p50_us latency_p90_us latency_p99_us latency_p99_9_us latency_max_us \
    service_mean_us service_p50_us service_p90_us service_p99_us service_p99_9_us service_max_us \
    failed_latency_p50_us failed_latency_p99_us attempt_ok_p50_us attempt_ok_p99_us attempt_rejected_p50_us \
    attempt_rejected_p99_us checkout_p99_us behind_max_ms lag_p99_us cpu_us_per_op rss_max_bytes \
    completed_ops_per_s live late_ok late_failed late_lost overshoot_p50_us overshoot_p99_us overshoot_max_us";
const INTERVALS: &str = "run_id trial variant timestamp elapsed_s interval_s phase segment client op \
    open_at_start offered ops_ok ops_failed ops_gave_up ops_timed_out ops_dropped ops_parked ops_not_started \
    ops_in_flight open_at_end calls commands attempts retries app_retries rejected retargeted in_flight \
    generator_workers offered_ops_per_s goodput_ops_per_s error_rate amplification backoff_mean_us \
    latency_mean_us latency_p50_us latency_p90_us latency_p99_us latency_p99_9_us latency_max_us \
    service_mean_us service_p50_us service_p90_us service_p99_us service_p99_9_us service_max_us \
    failed_latency_p50_us failed_latency_p99_us attempt_ok_p50_us attempt_ok_p99_us attempt_rejected_p50_us \
    attempt_rejected_p99_us checkout_p99_us behind_ms lag_p99_us cpu_us_per_op cpu_share rss_bytes \
    late_ok late_failed late_lost flow_limit breaker queue_depth spool_depth";
const RETRIES: &str = "run_id trial variant segment client op retries ops_ok ops_failed latency_p50_us latency_p99_us \
    ops_gave_up";
const BACKOFF: &str = "run_id trial variant client op retry count backoff_mean_us backoff_p50_us backoff_p99_us \
    backoff_max_us";
const ERRORS: &str = "run_id trial variant phase segment client op level kind code code_name labels count first_seen_s \
    last_seen_s example";
const RECOVERY: &str = "run_id trial variant overload kind on_s off_s goodput_before_ops_per_s \
    goodput_during_ops_per_s goodput_after_ops_per_s latency_p50_before_us recovered time_to_recover_s";
const SERVERS: &str = "run_id trial variant timestamp elapsed_s interval_s phase server role attempts rejected \
    retargeted connections_open connections_created connections_closed closed_stale closed_idle closed_error \
    closed_dropped closed_pool_closed checkout_p50_us checkout_p99_us pool_clears staleness_p50_us staleness_max_us \
    staleness_samples staleness_failures";
const STALENESS: &str = "run_id trial variant segment role staleness_samples staleness_p50_us staleness_p99_us \
    staleness_max_us";
const SERVER_COUNTERS: &str = "server_opcounters_insert server_opcounters_query server_opcounters_update \
    server_opcounters_delete server_opcounters_getmore server_opcounters_command server_connections_current \
    server_connections_total_created server_queue_readers server_queue_writers server_active_readers \
    server_active_writers server_read_tickets_available server_read_tickets_out server_write_tickets_available \
    server_write_tickets_out server_admissions_attempted server_admissions_successful server_admissions_rejected \
    server_admissions_exempted server_admission_tokens_available server_network_requests server_network_in_bytes \
    server_network_out_bytes server_admissions_waiting server_connection_admissions_attempted \
    server_connection_admissions_successful server_connection_admissions_rejected \
    server_connection_admissions_exempted server_connection_admissions_waiting \
    server_connection_admission_tokens_available";
const EVENTS: &str = "run_id trial variant timestamp elapsed_s phase segment kind subject detail";
const RUNS: &str = "schema_version run_id trial variant repeat timestamp profile driver driver_version server_version \
    mechanism model target_ops_per_s workers duration_s offered ops_ok goodput_ops_per_s error_rate loss_rate \
    amplification latency_p50_us latency_p99_us result params completed_ops_per_s live";
const SEARCH: &str = "run_id step trial variant role target_ops_per_s held reason figures duration_s offered ops_ok \
    offered_ops_per_s goodput_ops_per_s completed_ops_per_s error_rate loss_rate amplification latency_p50_us \
    latency_p90_us latency_p99_us";

fn tables() -> [(Vec<String>, &'static str); 12] {
    [
        (columns::<SummaryRow>(), SUMMARY),
        (columns::<IntervalRow<'_>>(), INTERVALS),
        (columns::<RetriesRow<'_>>(), RETRIES),
        (columns::<BackoffRow<'_>>(), BACKOFF),
        (columns::<ErrorRow<'_>>(), ERRORS),
        (columns::<RecoveryRow<'_>>(), RECOVERY),
        (columns::<ServerRow<'_>>(), SERVERS),
        (counter_columns().collect(), SERVER_COUNTERS),
        (columns::<StalenessRow<'_>>(), STALENESS),
        (columns::<EventRow<'_>>(), EVENTS),
        (columns::<RunsRow>(), RUNS),
        (columns::<SearchRow>(), SEARCH),
    ]
}

#[test]
fn columns_and_their_order_are_those_promised() {
    for (columns, promised) in tables() {
        assert_eq!(columns, promised.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn names_follow_the_rules() {
    let units = ["us", "ms", "s", "bytes"];
    for name in tables().iter().flat_map(|(columns, _)| columns) {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(legal) && !name.contains("__"), "{name} is not in snake case");
        assert!(!name.contains("p999"), "{name}: the 99.9th percentile is p99_9");
        // A unit stands last, or is what something is counted by (`cpu_us_per_op`).
        let words: Vec<&str> = name.split('_').collect();
        for (i, word) in words.iter().enumerate().filter(|(_, word)| units.contains(word)) {
            let last = i + 1 == words.len() || words[i + 1] == "per";
            assert!(last, "{name}: the unit {word} is not last");
        }
        // Whatever is a time has one.
        let is_time = ["latency", "service", "backoff", "checkout", "lag", "elapsed", "duration", "behind"];
        if is_time.iter().any(|t| name.contains(t)) {
            assert!(units.contains(&words[words.len() - 1]), "{name} has no unit");
        }
    }
}

#[test]
fn keys_come_first() {
    for (columns, _) in tables().iter().filter(|(columns, _)| columns.contains(&"op".to_owned())) {
        let keys = [
            "schema_version",
            "run_id",
            "trial",
            "variant",
            "repeat",
            "timestamp",
            "elapsed_s",
            "interval_s",
        ];
        let keys = keys.into_iter().chain(["phase", "segment", "client", "op"]);
        let wanted: Vec<&str> = keys.filter(|key| columns.iter().any(|c| c == key)).collect();
        assert_eq!(columns[..wanted.len()], wanted);
    }
}
