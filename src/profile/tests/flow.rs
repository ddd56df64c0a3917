//! `[timeout]` and `[flow]`: what is read, what is said about mistakes, and what the command line makes of them.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::{PING, any_option, plan, read, told};
use crate::plan::{BackoffKind, BudgetLaw, LimitLaw, OnTimeout, Plan, Signal, WhenFull};
use crate::profile::estimate::{Options, doubts};
use crate::profile::{OverrideErrors, Overrides, describe, resolve};
use crate::units::Span;

/// Everything there is, with other numbers than the defaults.
const FULL: &str = r#"
[op.ping.run_command]
command = { ping = 1 }

[timeout]
operation = "100ms"
on_timeout = "read_in_background"
grace = "2s"
max_time = "50ms"

[flow]
queue = 8
when_full = "spool"

[flow.backoff]
kind = "server_guided"
max_attempts = 5
base = "50ms"
cap = "1s"

[flow.limit]
kind = "aimd"
signal = "attempt"
initial = 4
floor = 2
ceiling = 32
increase = 2
decrease = 0.75
once_per_round_trip = true

[flow.breaker]
signal = "attempt"
threshold = "25%"
window = "5s"
minimum = 10
cool_down = "1s"

[flow.budget]
kind = "throttle"
signal = "attempt"
k = 1.5
window = "30s"

[flow.spool]
max = "1MiB"
rotate = "64KiB"
drain = "50/s"
"#;

fn overrides(pairs: &[(&str, &str)]) -> Overrides {
    let sets = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Overrides { sets, ..Overrides::default() }
}

fn set(text: &str, pairs: &[(&str, &str)]) -> Result<Plan, OverrideErrors> {
    resolve(&read(text).unwrap(), &overrides(pairs), &any_option)
}

fn wrong(text: &str, pairs: &[(&str, &str)]) -> String {
    set(text, pairs).unwrap_err().to_string()
}

#[test]
fn everything_is_read_and_survives_json() {
    assert_eq!(told(FULL), "");
    let plan = plan(FULL, &Overrides::default());
    assert_eq!(
        (plan.timeout.on_timeout, plan.timeout.grace),
        (OnTimeout::ReadInBackground, Span::seconds(2))
    );
    assert_eq!(plan.timeout.max_time, Some(Span::millis(50)));
    assert_eq!(plan.backoff.unwrap().kind, BackoffKind::ServerGuided);
    assert_snapshot!(serde_json::to_string(&plan.flow).unwrap(), @r#"{"limit":{"signal":"attempt","initial":4,"floor":2,"ceiling":32,"law":{"aimd":{"increase":2,"decrease":0.75,"once_per_round_trip":true}}},"breaker":{"signal":"attempt","threshold":0.25,"window":"5s","minimum":10,"cool_down":"1s"},"budget":{"signal":"attempt","law":{"throttle":{"k":1.5,"window":"30s"}}},"producer":{"queue":8,"when_full":"spool"},"spool":{"max_bytes":"1MiB","rotate_bytes":"64KiB","drain":"50/s"}}"#);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn what_nobody_says_has_a_default() {
    let empty = "[flow]\nwhen_full = \"spool\"\n[flow.limit]\n[flow.breaker]\n[flow.budget]\n";
    let flow = plan(&format!("{PING}{empty}"), &Overrides::default()).flow;
    assert_snapshot!(serde_json::to_string(&flow).unwrap(), @r#"{"limit":{"signal":"operation","initial":10,"floor":1,"ceiling":200,"law":{"aimd":{"increase":1,"decrease":0.5,"once_per_round_trip":false}}},"breaker":{"signal":"operation","threshold":0.5,"window":"10s","minimum":20,"cool_down":"5s"},"budget":{"signal":"operation","law":{"token_bucket":{"capacity":1000,"per_success":0.1}}},"producer":{"queue":64,"when_full":"spool"},"spool":{"max_bytes":"64MiB","rotate_bytes":"8MiB","drain":"1000/s"}}"#);
    assert_eq!(plan(&format!("{PING}[flow]\n"), &Overrides::default()).flow, crate::plan::Flow::default());
    let small =
        plan(&format!("{PING}[flow.limit]\nceiling = 5\n"), &Overrides::default()).flow.limit.unwrap();
    assert_eq!((small.initial, small.floor, small.ceiling), (5, 1, 5));
    let large =
        plan(&format!("{PING}[flow.limit]\nfloor = 300\n"), &Overrides::default()).flow.limit.unwrap();
    assert_eq!((large.initial, large.floor, large.ceiling), (300, 300, 300));
}

#[test]
fn bounds_and_names_are_checked() {
    assert_snapshot!(told(&format!(r#"
[timeout]
operation = "0s"
on_timeout = "read_in_the_background"
grace = "1"
max_time = "500us"
[flow]
queue = 0
when_full = "spol"
quee = 1
[flow.backoff]
kind = "server_guidd"
[flow.limit]
kind = "aimd"
signal = "operations"
floor = 20
ceiling = 10
decrease = 1
smoothing = 0.2
[flow.breaker]
threshold = "0%"
minimum = 0
cooldown = "1s"
[flow.budget]
kind = "throttle"
k = 0.5
window = "0s"
capacity = 5
[flow.spool]
max = "1.5MiB"
rotate = 0
drain = "0/s"
{PING}"#)), @r#"
    error: `timeout.operation` must be longer than 0
     --> test.toml:3:13
      |
    3 | operation = "0s"
      |             ^^^^

    error: `timeout.on_timeout` cannot be 'read_in_the_background'
     --> test.toml:4:14
      |
    4 | on_timeout = "read_in_the_background"
      |              ^^^^^^^^^^^^^^^^^^^^^^^^ did you mean `read_in_background`?

    error: `timeout.grace`: '1' has no unit: write 1s, 1ms or 1m
     --> test.toml:5:9
      |
    5 | grace = "1"
      |         ^^^

    error: `timeout.max_time` must be at least 1ms
     --> test.toml:6:12
      |
    6 | max_time = "500us"
      |            ^^^^^^^

    error: `flow.queue` must be from 1 to 1000000
     --> test.toml:8:9
      |
    8 | queue = 0
      |         ^

    error: `flow.when_full` cannot be 'spol'
     --> test.toml:9:13
      |
    9 | when_full = "spol"
      |             ^^^^^^ did you mean `spool`?

    error: unknown key `quee` in `flow`
      --> test.toml:10:1
       |
    10 | quee = 1
       | ^^^^ did you mean `queue`?

    error: `flow.backoff.kind` cannot be 'server_guidd'
      --> test.toml:12:8
       |
    12 | kind = "server_guidd"
       |        ^^^^^^^^^^^^^^ did you mean `server_guided`?

    error: `flow.limit.signal` cannot be 'operations'
      --> test.toml:15:10
       |
    15 | signal = "operations"
       |          ^^^^^^^^^^^^ did you mean `operation`?

    error: flow.limit.floor = 20 is above flow.limit.ceiling = 10
      --> test.toml:16:1
       |
    16 | floor = 20
       | ^^^^^

    error: `flow.limit.decrease` must be above 0 and below 1, not 1
      --> test.toml:18:12
       |
    18 | decrease = 1
       |            ^

    error: `flow.limit.smoothing` belongs to gradient, and the kind is aimd
      --> test.toml:19:1
       |
    19 | smoothing = 0.2
       | ^^^^^^^^^
       |
       = help: leave it out, or write kind = "gradient"

    error: `flow.breaker.threshold`: '0%' is no share above 0 and at most 1: write one like 50% or 0.5
      --> test.toml:21:13
       |
    21 | threshold = "0%"
       |             ^^^^

    error: `flow.breaker.minimum` must be from 1 to 1000000
      --> test.toml:22:11
       |
    22 | minimum = 0
       |           ^

    error: unknown key `cooldown` in `flow.breaker`
      --> test.toml:23:1
       |
    23 | cooldown = "1s"
       | ^^^^^^^^ did you mean `cool_down`?

    error: `flow.budget.k` must be at least 1, not 0.5
      --> test.toml:26:5
       |
    26 | k = 0.5
       |     ^^^

    error: `flow.budget.window` must be longer than 0
      --> test.toml:27:10
       |
    27 | window = "0s"
       |          ^^^^

    error: `flow.budget.capacity` belongs to token_bucket, and the kind is throttle
      --> test.toml:28:1
       |
    28 | capacity = 5
       | ^^^^^^^^
       |
       = help: leave it out, or write kind = "token_bucket"

    error: `flow.spool.max`: '1.5MiB' is no number of bytes: write one like 64MiB or 500kB
      --> test.toml:30:7
       |
    30 | max = "1.5MiB"
       |       ^^^^^^^^

    error: `flow.spool.rotate` must be above 0
      --> test.toml:31:10
       |
    31 | rotate = 0
       |          ^

    error: `flow.spool.drain`: a rate of 0/s cannot be had: it must be above 0 and at most 10000000/s
      --> test.toml:32:9
       |
    32 | drain = "0/s"
       |         ^^^^^
    "#);
}

#[test]
fn keys_of_another_kind_are_mistakes() {
    assert_snapshot!(told(&format!(
        "[flow.limit]\nkind = \"gradient\"\nincrease = 1\ntolerance = inf\n[flow.budget]\nk = 2\n{PING}"
    )), @r#"
    error: `flow.limit.increase` belongs to aimd, and the kind is gradient
     --> test.toml:3:1
      |
    3 | increase = 1
      | ^^^^^^^^
      |
      = help: leave it out, or write kind = "aimd"

    error: `flow.limit.tolerance` must be at least 1, not inf
     --> test.toml:4:13
      |
    4 | tolerance = inf
      |             ^^^

    error: `flow.budget.k` belongs to throttle, and the kind is token_bucket
     --> test.toml:6:1
      |
    6 | k = 2
      | ^
      |
      = help: leave it out, or write kind = "throttle"
    "#);
    // Whose keys they are is not clear while the kind is not.
    assert_snapshot!(told(&format!("[flow.limit]\nkind = \"gradent\"\nmemory = \"1s\"\n{PING}")), @r#"
    error: `flow.limit.kind` cannot be 'gradent'
     --> test.toml:2:8
      |
    2 | kind = "gradent"
      |        ^^^^^^^^^ did you mean `gradient`?
    "#);
}

#[test]
fn parts_of_nothing_are_mistakes() {
    assert_snapshot!(told(&format!("[timeout]\n{PING}")), @r"
    error: `timeout` lacks `operation` or `max_time`
     --> test.toml:1:1
      |
    1 | [timeout]
      | ^^^^^^^^^
    ");
    assert_snapshot!(told(&format!("[timeout]\nmax_time = \"1s\"\ngrace = \"2s\"\n{PING}")), @r#"
    error: `timeout.grace` says nothing without `timeout.operation`: no call has a deadline
     --> test.toml:3:1
      |
    3 | grace = "2s"
      | ^^^^^
      |
      = help: write operation = "500ms", or leave it out
    "#);
    assert_snapshot!(told(&format!("[flow]\nwhen_full = \"drop\"\n[flow.spool]\nmax = \"1MiB\"\nrotate = \"2MiB\"\n{PING}")), @r#"
    error: `flow.spool` says nothing unless `flow.when_full` is "spool"
     --> test.toml:3:7
      |
    3 | [flow.spool]
      |       ^^^^^
      |
      = help: write when_full = "spool" in [flow], or leave the spool out

    error: flow.spool.rotate = 2MiB is above flow.spool.max = 1MiB
     --> test.toml:5:1
      |
    5 | rotate = "2MiB"
      | ^^^^^^
    "#);
    assert_snapshot!(told(&format!("[load]\nmodel = \"closed\"\nworkers = 1\n[flow]\nqueue = 5\nwhen_full = \"drop\"\n{PING}")), @r#"
    error: `flow.queue` belongs to the open model, and this load is closed
     --> test.toml:5:1
      |
    5 | queue = 5
      | ^^^^^
      |
      = help: leave it out, or write model = "open"

    error: `flow.when_full` belongs to the open model, and this load is closed
     --> test.toml:6:1
      |
    6 | when_full = "drop"
      | ^^^^^^^^^
      |
      = help: leave it out, or write model = "open"
    "#);
    assert_snapshot!(told(&format!("[flow.limit]\ninitial = 300\n{PING}")), @r"
    error: flow.limit.initial = 300 is not from 1 to 200, the limit's floor and ceiling
     --> test.toml:2:1
      |
    2 | initial = 300
      | ^^^^^^^
    ");
}

#[test]
fn a_word_chooses_the_kind_or_takes_the_part_away() {
    let aimd = |pairs: &[(&str, &str)]| set(FULL, pairs).unwrap().flow.limit.map(|limit| limit.law);
    let own = LimitLaw::Aimd { increase: 2, decrease: 0.75, once_per_round_trip: true };
    assert_eq!(aimd(&[("flow.limit", "aimd")]), Some(own));
    assert_eq!(aimd(&[("flow.limit", "none"), ("flow.limit", "aimd")]), Some(own));
    assert_eq!(aimd(&[("flow.limit", "gradient"), ("flow.limit.kind", "aimd")]), Some(own));
    assert_eq!(aimd(&[("flow.limit", "unset")]), None);
    let gradient = set(FULL, &[("flow.limit", "gradient")]).unwrap().flow.limit.unwrap();
    assert_eq!((gradient.law, gradient.ceiling, gradient.signal), (LimitLaw::GRADIENT, 32, Signal::Attempt));

    let bare = set(PING, &[("flow.limit", "aimd"), ("flow.budget", "token_bucket"), ("flow.breaker", "on")]);
    let bare = bare.unwrap().flow;
    assert_eq!((bare.limit.unwrap().law, bare.limit.unwrap().ceiling), (LimitLaw::AIMD, 200));
    assert_eq!((bare.budget.unwrap().law, bare.breaker.unwrap().threshold), (BudgetLaw::TOKEN_BUCKET, 0.5));

    let none = ["backoff", "limit", "breaker", "budget", "spool"].map(|part| format!("flow.{part}"));
    let none: Vec<(&str, &str)> = none.iter().map(|key| (key.as_str(), "none")).collect();
    let plan = set(FULL, &none).unwrap();
    assert_eq!(
        (plan.backoff, plan.flow.limit, plan.flow.breaker, plan.flow.budget),
        (None, None, None, None)
    );
    assert_eq!((plan.flow.producer.unwrap().when_full, plan.flow.spool), (WhenFull::Block, None));
    assert_eq!(set(FULL, &[("flow.when_full", "none")]).unwrap().flow.producer, None);
    assert_eq!(set(FULL, &[("timeout.max_time", "unset")]).unwrap().timeout.max_time, None);
}

#[test]
fn a_part_that_is_off_is_there_for_the_command_line() {
    let text =
        FULL.replace("kind = \"aimd\"", "on = false").replace("threshold =", "on = false\nthreshold =");
    assert_eq!(told(&text), "");
    let flow = plan(&text, &Overrides::default()).flow;
    assert_eq!((flow.limit, flow.breaker), (None, None));
    let on = |pairs: &[(&str, &str)]| set(&text, pairs).unwrap().flow;
    let full = plan(FULL, &Overrides::default()).flow;
    assert_eq!(on(&[("flow.limit", "aimd"), ("flow.breaker", "on")]), full);
    assert_eq!(on(&[("flow.limit.ceiling", "9")]).limit.unwrap().floor, 2);
}

#[test]
fn the_spool_comes_and_goes_with_the_producer_that_spools() {
    let own = plan(FULL, &Overrides::default()).flow.spool;
    let spool = |pairs: &[(&str, &str)]| set(FULL, pairs).unwrap().flow.spool;
    assert_eq!(spool(&[("flow.when_full", "drop")]), None);
    assert_eq!(spool(&[("flow.when_full", "drop"), ("flow.when_full", "spool")]), own);
    assert_eq!(spool(&[("flow.spool.max", "16KiB")]).unwrap().rotate_bytes.to_string(), "16KiB");
    assert_eq!(
        set(PING, &[("flow.when_full", "spool")]).unwrap().flow.spool.unwrap().max_bytes.to_string(),
        "64MiB"
    );
}

#[test]
fn every_leaf_can_be_set() {
    let same = [
        ("timeout.on_timeout", "read_in_background"),
        ("timeout.grace", "2s"),
        ("timeout.max_time", "50ms"),
        ("timeout.operation", "100ms"),
        ("flow.queue", "8"),
        ("flow.when_full", "spool"),
        ("flow.backoff", "server_guided"),
        ("flow.backoff.max_attempts", "5"),
        ("flow.backoff.base", "50ms"),
        ("flow.backoff.cap", "1s"),
        ("flow.limit.signal", "attempt"),
        ("flow.limit.initial", "4"),
        ("flow.limit.floor", "2"),
        ("flow.limit.ceiling", "32"),
        ("flow.limit.increase", "2"),
        ("flow.limit.decrease", "0.75"),
        ("flow.limit.once_per_round_trip", "true"),
        ("flow.breaker.signal", "attempt"),
        ("flow.breaker.threshold", "25%"),
        ("flow.breaker.window", "5s"),
        ("flow.breaker.minimum", "10"),
        ("flow.breaker.cool_down", "1s"),
        ("flow.budget.kind", "throttle"),
        ("flow.budget.signal", "attempt"),
        ("flow.budget.k", "1.5"),
        ("flow.budget.window", "30s"),
        ("flow.spool.max", "1MiB"),
        ("flow.spool.rotate", "64KiB"),
        ("flow.spool.drain", "50/s"),
    ];
    let (set, full) = (set(PING, &same).unwrap(), plan(FULL, &Overrides::default()));
    assert_eq!((set.timeout, set.backoff, set.flow), (full.timeout, full.backoff, full.flow));
    let other = [
        ("flow.limit", "gradient"),
        ("flow.limit.smoothing", "0.5"),
        ("flow.limit.tolerance", "2"),
        ("flow.limit.memory", "9s"),
        ("flow.budget", "token_bucket"),
        ("flow.budget.capacity", "0"),
        ("flow.budget.per_success", "0.05"),
    ];
    let flow = self::set(FULL, &other).unwrap().flow;
    let gradient = LimitLaw::Gradient { smoothing: 0.5, tolerance: 2.0, memory: Span::seconds(9) };
    assert_eq!(flow.limit.unwrap().law, gradient);
    assert_eq!(flow.budget.unwrap().law, BudgetLaw::TokenBucket { capacity: 0, per_success: 0.05 });
}

#[test]
fn what_the_command_line_cannot_have_is_told() {
    assert_snapshot!(wrong(FULL, &[
        ("flow.limit", "aimed"),
        ("flow.limit.smoothing", "0.5"),
        ("flow.limit.decrease", "1"),
        ("flow.limit.ceilin", "5"),
        ("flow.breaker", "off"),
        ("flow.breaker.threshold", "5"),
        ("flow.budget.k", "many"),
        ("flow.spool", "on"),
        ("flow.spool.max", "0"),
        ("flow.queue", "0"),
        ("flow.when_full", "wait"),
        ("flow.backoff", "linear"),
        ("timeout.max_time", "0.1ms"),
    ]), @r"
    --set flow.limit: it cannot be 'aimed', only aimd, gradient or none
    --set flow.limit.smoothing: it belongs to gradient, which the kind is not: set flow.limit=gradient before it
    --set flow.limit.decrease: it must be above 0 and below 1, not 1
    --set flow.limit.ceilin: there is no such key; did you mean `flow.limit.ceiling`?
    --set flow.breaker: it cannot be 'off', only on or none
    --set flow.breaker.threshold: '5' is no share above 0 and at most 1: write one like 50% or 0.5
    --set flow.budget.k: 'many' is no number
    --set flow.spool: it can only be taken away, with none: flow.when_full=spool puts it there
    --set flow.spool.max: it must be above 0
    --set flow.queue: '0' is no whole number from 1 to 1000000
    --set flow.when_full: it cannot be 'wait', only block, drop or spool
    --set flow.backoff: it cannot be 'linear', only immediate, fixed, exponential, full_jitter, equal_jitter, decorrelated, server_guided or none
    --set timeout.max_time: it must be at least 1ms
    ");
    assert_snapshot!(wrong(PING, &[
        ("flow.limit.ceiling", "9"),
        ("flow.limit", "none"),
        ("flow.limit.floor", "2"),
        ("flow.spool.drain", "5/s"),
        ("timeout.grace", "5s"),
    ]), @r"
    --set flow.limit.floor: flow.limit was taken away before it: vary one of them in a run of its own
    --set flow.spool.drain: there is no spool then: set flow.when_full=spool before it
    timeout.grace says nothing without a deadline: set timeout.operation, too
    ");
    assert_snapshot!(wrong(FULL, &[
        ("flow.limit.floor", "50"),
        ("flow.spool.rotate", "2MiB"),
        ("workers", "5"),
    ]), @r"
    flow.limit.floor = 50 is above flow.limit.ceiling = 32
    flow.spool.rotate = 2MiB is above flow.spool.max = 1MiB
    flow.queue and flow.when_full belong to the open model, and the load is closed then: --set flow.when_full=none takes them away
    ");
    assert_snapshot!(wrong(PING, &[("flow.limit.initial", "500")]), @"flow.limit.initial = 500 is not from 1 to 200, the limit's floor and ceiling");
    assert_snapshot!(resolve(
        &read(&format!("{PING}[flow]\nqueue = 5\n")).unwrap(),
        &Overrides { workers: Some(3), ..Overrides::default() },
        &any_option,
    ).unwrap_err(), @"flow.queue and flow.when_full belong to the open model, and the load is closed then: --set flow.when_full=none takes them away");
    // A variant may be without a deadline, and keep what the others do after theirs.
    assert!(set(FULL, &[("timeout.on_timeout", "cancel"), ("timeout.operation", "unset")]).is_ok());
    assert!(set(PING, &[("timeout.grace", "5s"), ("timeout.operation", "1s")]).is_ok());
}

proptest! {
    /// Sound TOML in which one value, or one key, is another's.
    #[test]
    fn no_misplaced_value_panics(
        line in 0_usize..60,
        value in prop::sample::select(vec![
            "0", "-1", "9223372036854775807", "1.5", "nan", "inf", "\"\"", "\"1s\"", "\"50%\"", "\"none\"", "true", "[]", "{}",
            "{ kind = \"aimd\" }", "07:32:00",
        ]),
        key in prop::option::of(prop::sample::select(vec!["kind", "on", "max", "window", "queue", "\"\"", "limit.floor"])),
    ) {
        let changed: Vec<String> = FULL.lines().enumerate().map(|(number, text)| match text.split_once(" = ") {
            Some((old, _)) if number == line => format!("{} = {value}", key.unwrap_or(old)),
            _ => text.to_owned(),
        }).collect();
        if let Ok(profile) = read(&changed.join("\n"))
            && let Ok(plan) = resolve(&profile, &Overrides::default(), &any_option)
        {
            describe(&plan, None, &doubts(&plan, Options::default()));
        }
    }
}
