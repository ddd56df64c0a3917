//! What the application does beside what the driver does: deadlines and further calls.

use crate::support::{Finished, Place, Row, assert_sums, block_on, count, finish, table, whole};
use crate::{alone, shared_lab};

/// A hundred operations, all measured.
const LOAD: &str = r#"
[data]
database = "overdrive_application"
documents = 0
[load]
arrivals = "even"
rate = "50/s"
warmup = "1s"
duration = "2s"
cooldown = "10s"
[client]
maxPoolSize = 200
maxConnecting = 50
maxAdaptiveRetries = 1
[op.nap.run_command]
database = "admin"
command = { sleep = 1, millis = 3000, lock = "none" }
"#;

/// Every operation is rejected, from long before the measured time on.
const SHED: &str = r#"
[[overload]]
at = "-1s"
for = "1h"
fail_command = { commands = ["sleep"], probability = 1, labels = LABELS }
"#;

fn run(more: &str) -> (Place, Finished) {
    let _alone = block_on(alone());
    let place = Place::new(LOAD.to_owned() + more);
    let args = ["--uri", &shared_lab().uri, "--ui", "none", "--allow-faults=fail_command"];
    let finished = finish(&mut place.run(&args));
    (place, finished)
}

fn counts<const N: usize>(row: &Row, columns: [&str; N]) -> [u64; N] {
    columns.map(|column| count(row, column))
}

#[test]
fn calls_commands_and_attempts_are_told_apart() {
    let shed = SHED.replace("LABELS", "[\"SystemOverloadedError\", \"RetryableError\"]");
    let (_place, finished) =
        run(&("[flow.backoff]\nkind = \"fixed\"\nbase = \"10ms\"\nmax_attempts = 3\n".to_owned() + &shed));
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    // Three calls of one command each, and the driver makes two attempts of every command.
    let columns = ["offered", "ops_gave_up", "calls", "app_retries", "commands", "attempts", "retries"];
    assert_eq!(counts(&row, columns), [100, 100, 300, 200, 300, 600, 300]);
    // Six attempts for what the workload needed one for.
    assert_eq!(row["amplification"], "6.0");
}

#[test]
fn what_no_call_can_mend_is_called_once() {
    let shed = SHED.replace("LABELS", "[]");
    let (_place, finished) =
        run(&("[flow.backoff]\nkind = \"immediate\"\nmax_attempts = 3\n".to_owned() + &shed));
    let row = whole(finished.assert_code(0).directory());
    assert_eq!(counts(&row, ["ops_failed", "calls", "attempts"]), [100, 100, 100]);
}

#[test]
fn operations_time_out_and_the_last_attempt_has_no_answer() {
    let (_place, finished) =
        run("[timeout]\noperation = \"200ms\"\n[flow.backoff]\nkind = \"immediate\"\nmax_attempts = 2\n");
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    let row = whole(directory);
    assert_eq!(counts(&row, ["offered", "ops_timed_out", "ops_failed", "calls"]), [100, 100, 0, 200]);
    assert_eq!(row["error_rate"], "1.0");
    assert_eq!(count(&row, "retries"), 0, "the driver does not repeat what was taken away from it");
    // A call may have waited for its connection until the end.
    let attempts = count(&row, "attempts");
    assert!(attempts <= 200 && attempts > 100, "{attempts}");
    // Two deadlines one after the other; a slow machine makes it longer, never shorter.
    assert!(count(&row, "failed_latency_p50_us") >= 399_000, "{row:?}");
    let errors = table(directory, "errors.csv");
    assert!(errors.iter().any(|e| e["level"] == "operation"
        && e["kind"] == "timeout_reply"
        && e["phase"] == "measure"
        && e["count"] == "100"));
}
