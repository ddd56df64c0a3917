//! Thresholds in profiles and on the command line: what is read, and what is said about wrong ones.

use insta::assert_snapshot;

use super::{any_option, read, told};
use crate::profile::thresholds::{condition, doubts};
use crate::profile::{Overrides, resolve};
use crate::thresholds::Thresholds;

const PROFILE: &str = r#"
[op.read.find_one]
[op.idle.find_one]
weight = 0
[[overload]]
name = "shed"
at = "10s"
for = "5s"
fail_command = {}
"#;

#[test]
fn thresholds_are_read_in_order() {
    let text = format!(
        "[thresholds]\nfail_if = [\"latency_p99>50ms\", 'segment.shed.op.read.error_rate > 1%']\nabort_when = [\"goodput < 1/s\"]\n{PROFILE}"
    );
    let thresholds = read(&text).unwrap().thresholds;
    let written: Vec<String> = thresholds.all().map(ToString::to_string).collect();
    assert_eq!(written, ["latency_p99 > 50ms", "segment.shed.op.read.error_rate > 1%", "goodput < 1/s"]);
    assert_eq!((thresholds.fail_if.len(), thresholds.abort_when.len()), (2, 1));
    assert_eq!(read(PROFILE).unwrap().thresholds, Thresholds::default());
}

#[test]
fn every_mistake_is_shown_where_it_is() {
    assert_snapshot!(told(&format!(r#"
[thresholds]
fail_if = ["latncy_p99 > 50ms", "op.raed.error_rate > 1%", "segment.shd.goodput < 5/s", "error_rate > 5"]
abort_when = ["error_rate = 5%", 'colour > 1', 5, "\u006fp.x.goodput < 5"]
fail_when = []
{PROFILE}"#)), @r#"
    error: there is no metric `latncy_p99`
     --> test.toml:3:13
      |
    3 | fail_if = ["latncy_p99 > 50ms", "op.raed.error_rate > 1%", "segment.shd.goodput < 5/s", "error_rate > 5"]
      |             ^^^^^^^^^^ did you mean `latency_p99`?

    error: there is no operation `raed`
     --> test.toml:3:34
      |
    3 | fail_if = ["latncy_p99 > 50ms", "op.raed.error_rate > 1%", "segment.shd.goodput < 5/s", "error_rate > 5"]
      |                                  ^^^^^^^ did you mean `read`?

    error: there is no segment `shd`
     --> test.toml:3:61
      |
    3 | fail_if = ["latncy_p99 > 50ms", "op.raed.error_rate > 1%", "segment.shd.goodput < 5/s", "error_rate > 5"]
      |                                                             ^^^^^^^^^^^ did you mean `shed`?

    error: the limit of `error_rate`: '5' is no percentage from 0% to 100%: write one like 2%
     --> test.toml:3:103
      |
    3 | fail_if = ["latncy_p99 > 50ms", "op.raed.error_rate > 1%", "segment.shd.goodput < 5/s", "error_rate > 5"]
      |                                                                                                       ^

    error: '= 5%' is no comparison: write [segment.NAME.][client.NAME.][op.NAME.]METRIC < LIMIT, with < <= > or >=, like latency_p99 > 50ms
     --> test.toml:4:27
      |
    4 | abort_when = ["error_rate = 5%", 'colour > 1', 5, "\u006fp.x.goodput < 5"]
      |                           ^^^^

    error: there is no metric `colour`
     --> test.toml:4:35
      |
    4 | abort_when = ["error_rate = 5%", 'colour > 1', 5, "\u006fp.x.goodput < 5"]
      |                                   ^^^^^^
      |
      = help: known here: goodput, error_rate, retries_per_op, amplification, latency_p50, latency_p90, latency_p99, latency_p99_9, service_p50, service_p90, service_p99, service_p99_9, cpu_per_op, offered, completed, loss_rate, ops_failed, ops_gave_up, ops_timed_out, ops_dropped, rejected, retargeted, backoff_mean, latency_mean, latency_max, service_mean, service_max, failed_latency_p50, failed_latency_p99, checkout_p99, lag_p99, behind_max

    error: `thresholds.abort_when` must be a text, not a whole number
     --> test.toml:4:48
      |
    4 | abort_when = ["error_rate = 5%", 'colour > 1', 5, "\u006fp.x.goodput < 5"]
      |                                                ^

    error: there is no operation `x`
     --> test.toml:4:51
      |
    4 | abort_when = ["error_rate = 5%", 'colour > 1', 5, "\u006fp.x.goodput < 5"]
      |                                                   ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: known here: read, idle

    error: unknown key `fail_when` in `thresholds`
     --> test.toml:5:1
      |
    5 | fail_when = []
      | ^^^^^^^^^ did you mean `fail_if`?
    "#);
}

#[test]
fn the_command_line_adds_to_the_profile() {
    let profile = read(&format!("[thresholds]\nfail_if = [\"goodput < 5/s\"]\n{PROFILE}")).unwrap();
    let resolved = |fail_if: &[&str], abort_when: &[&str]| {
        let read = |texts: &[&str]| texts.iter().map(|text| condition(text).unwrap()).collect();
        let (fail_if, abort_when) = (read(fail_if), read(abort_when));
        resolve(&profile, &Overrides { fail_if, abort_when, ..Overrides::default() }, &any_option)
    };
    let plan = resolved(&["segment.after.error_rate > 1%"], &["error_rate > 9%"]).unwrap();
    let written: Vec<String> = plan.thresholds.all().map(ToString::to_string).collect();
    assert_eq!(written, ["goodput < 5/s", "segment.after.error_rate > 1%", "error_rate > 9%"]);
    assert_snapshot!(resolved(&["op.raed.goodput < 5", "segment.x.goodput < 5"], &["op.xyz.goodput < 5"]).unwrap_err(), @"
    --fail-if 'op.raed.goodput < 5': there is no operation `raed`; did you mean `read`?
    --fail-if 'segment.x.goodput < 5': there is no segment `x`; there are all, before, between, after, shed
    --abort-when 'op.xyz.goodput < 5': there is no operation `xyz`; there are read, idle
    ");
    assert_snapshot!(condition("latency_p9 > 1s").unwrap_err(), @"there is no metric `latency_p9`; did you mean `latency_p99`?");
}

#[test]
fn what_there_will_be_nothing_of_is_doubtful() {
    let profile = read(PROFILE).unwrap();
    let doubts = |duration: &str, fail_if: &str| {
        let overrides = Overrides {
            fail_if: vec![condition(fail_if).unwrap()],
            duration: duration.parse().ok(),
            ..Overrides::default()
        };
        doubts(&resolve(&profile, &overrides, &any_option).unwrap())
    };
    assert_eq!(doubts("20s", "segment.after.goodput < 5/s"), Vec::<String>::new());
    assert_snapshot!(doubts("15s", "segment.after.goodput < 5/s").join(""), @"the threshold segment.after.goodput < 5/s will have no data: the measured time has no segment after");
    assert_snapshot!(doubts("20s", "op.idle.goodput < 5/s").join(""), @"the threshold op.idle.goodput < 5/s will have no data: idle has weight 0");
}
