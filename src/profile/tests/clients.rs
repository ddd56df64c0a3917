//! `[clients.NAME]`: what each client comes to, and what is said about mistakes in them.

use insta::assert_snapshot;

use super::{PING, any_option, plan, read, told};
use crate::plan::{Model, Plan, WhenFull};
use crate::profile::{Overrides, describe, estimate, resolve};
use crate::units::{Rate, Span};

const SECOND: Span = Span::seconds(1);

const TWO: &str = r#"
[load]
rate = "100/s"
warmup = "1s"
duration = "10s"
[client]
maxPoolSize = 50
maxAdaptiveRetries = 2
[timeout]
operation = "1s"
[flow.backoff]
max_attempts = 3
[op.read.find_one]
filter = {}
[clients.critical.load]
max_in_flight = 7
[clients.critical.timeout]
grace = "2s"
[clients.batch.client]
maxAdaptiveRetries = 0
[clients.batch.load]
workers = 4
[clients.batch.flow.backoff]
on = false
[clients.batch.op.write.insert_one]
[clients.batch.op.read.find_one]
filter = {}
weight = 3
"#;

fn sets(pairs: &[(&str, &str)]) -> Overrides {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    Overrides { sets: pairs.iter().map(owned).collect(), ..Overrides::default() }
}

/// What a client's options are.
fn options(plan: &Plan, client: usize) -> Vec<(String, String)> {
    let own = plan.clients[client].client.iter();
    own.map(|setting| (setting.name.clone(), setting.value.clone().unwrap_or_default())).collect()
}

fn refused(text: &str, overrides: &Overrides) -> String {
    resolve(&read(text).unwrap(), overrides, &any_option).unwrap_err().to_string()
}

#[test]
fn what_a_client_does_not_say_the_profile_says() {
    let plan = plan(TWO, &Overrides::default());
    let names: Vec<&str> = plan.operations.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "read"]);
    let [critical, batch] = &plan.clients[..] else { panic!("two") };
    assert_eq!((critical.name.as_str(), critical.operations.clone()), ("critical", 0..1));
    assert_eq!((batch.name.as_str(), batch.operations.clone()), ("batch", 1..3));
    assert_eq!(batch.model, Model::Closed { workers: 4 });
    let Model::Open { stages, max_in_flight, .. } = &critical.model else { panic!("open") };
    assert_eq!((stages[0].from.to_string(), *max_in_flight), ("100/s".to_owned(), 7));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(options(&plan, 0), [pair("maxPoolSize", "50"), pair("maxAdaptiveRetries", "2")]);
    assert_eq!(options(&plan, 1), [pair("maxPoolSize", "50"), pair("maxAdaptiveRetries", "0")]);
    assert_eq!((batch.backoff, critical.backoff.map(|backoff| backoff.max_attempts)), (None, Some(3)));
    assert_eq!((critical.timeout.operation, batch.timeout.operation), (Some(SECOND), Some(SECOND)));
    assert_eq!((critical.timeout.grace, batch.timeout.grace), (Span::seconds(2), SECOND));
    // The plan's own says nothing that no client does.
    assert_eq!((plan.backoff, plan.timeout.operation), (None, None));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn each_key_of_the_producer_is_taken_from_the_profile() {
    let base = "[flow]\nqueue = 64\nwhen_full = \"drop\"\n";
    let producers = |text: &str, pairs: &[(&str, &str)]| {
        let plan = plan(&format!("{base}{text}"), &sets(pairs));
        let of = |client: usize| plan.clients[client].flow.producer;
        [0, 1].map(|client| of(client).map(|producer| (producer.queue, producer.when_full)))
    };
    // The other client is closed, and has none.
    assert_eq!(producers(TWO, &[]), [Some((64, WhenFull::Drop)), None]);
    let own = format!("{TWO}[clients.critical.flow]\nqueue = 32\n");
    assert_eq!(producers(&own, &[])[0], Some((32, WhenFull::Drop)));
    assert_eq!(producers(&own, &[("flow.when_full", "block")])[0], Some((32, WhenFull::Block)));
    let word = format!("{TWO}[clients.critical.flow]\nwhen_full = \"block\"\n");
    assert_eq!(producers(&word, &[])[0], Some((64, WhenFull::Block)));
    assert_eq!(producers(TWO, &[("clients.critical.load.workers", "2")]), [None, None]);
    assert_snapshot!(refused(&own, &sets(&[("clients.critical.load.workers", "2")])), @"client critical: flow.queue and flow.when_full belong to the open model, and the load is closed then: --set clients.critical.flow.when_full=none takes them away");
    assert!(
        refused(TWO, &sets(&[("clients.batch.flow.queue", "2")]))
            .contains("clients.batch.flow.when_full=none")
    );
}

#[test]
fn the_command_line_reaches_one_client_or_all() {
    let retries = |pairs: &[(&str, &str)]| {
        let plan = plan(TWO, &sets(pairs));
        [0, 1].map(|client| options(&plan, client)[1].1.clone())
    };
    assert_eq!(retries(&[("maxAdaptiveRetries", "5")]), ["5", "0"], "batch says that for itself");
    assert_eq!(retries(&[("clients.batch.client.maxAdaptiveRetries", "5")]), ["2", "5"]);
    let plan = plan(
        TWO,
        &sets(&[
            ("clients.batch.load.rate", "50/s"),
            ("clients.batch.op.write.weight", "9"),
            ("clients.critical.flow.limit", "aimd"),
            ("clients.critical.timeout.operation", "unset"),
            ("rate", "30/s"),
            ("duration", "20s"),
        ]),
    );
    let Model::Open { stages, .. } = &plan.load.model else { panic!("both are open") };
    assert_eq!((stages.len(), stages[0].from.to_string()), (1, "80/s".to_owned()));
    assert_eq!((plan.load.duration, stages[0].length), (stages[0].length, Span::seconds(20)));
    assert_eq!(plan.operations[1].weight, 9);
    assert_eq!((plan.clients[0].flow.limit.is_some(), plan.clients[1].flow.limit.is_some()), (true, false));
    assert_eq!(plan.clients[0].timeout.operation, None);
}

#[test]
fn what_reaches_no_client_is_told() {
    assert_snapshot!(refused(TWO, &sets(&[
        ("clients.batch.load.rte", "5/s"),
        ("clients.bach.load.rate", "5/s"),
        ("clients.batch.load.duration", "5s"),
        ("clients.batch.data.documents", "5"),
        ("clients.batch.op.write.weight", "-1"),
        ("clients.batch", "5"),
    ])), @r"
    --set clients.batch.load.rte: there is no such key; did you mean `clients.batch.load.rate`?
    --set clients.bach.load.rate: there is no client `bach`; did you mean `batch`?
    --set clients.batch.load.duration: it is not for one client to say: all of them share the time; set load.duration
    --set clients.batch.data.documents: there is no such key; did you mean `clients.batch.load.rate`?
    --set clients.batch.op.write.weight: '-1' is no whole number from 0 to 10000
    --set clients.batch: there is no such key; did you mean `clients.batch.load.rate`?
    ");
    assert_snapshot!(refused(TWO, &sets(&[
        ("clients.x.load.rate", "5/s"),
        ("clients.batch.maxAdaptiveRetries", "5"),
        ("clients.batch.rate", "5/s"),
        ("op.write.weight", "3"),
    ])), @r"
    --set op.write.weight: there is no such key; did you mean `clients.batch.op.write.weight`?
    --set clients.x.load.rate: there is no client `x`; there are critical, batch
    --set clients.batch.maxAdaptiveRetries: there is no such key; did you mean `clients.batch.client.maxAdaptiveRetries`?
    --set clients.batch.rate: there is no such key; did you mean `clients.batch.load.rate`?
    ");
    let own = format!("{TWO}\n[clients.critical.client]\nmaxAdaptiveRetries = 1\n");
    assert_snapshot!(refused(&own, &sets(&[("maxAdaptiveRetries", "5")])), @"--set maxAdaptiveRetries: each client says that for itself; set clients.critical.client.maxAdaptiveRetries or clients.batch.client.maxAdaptiveRetries");
    let rates = TWO.replace("max_in_flight = 7", "rate = \"9/s\"");
    assert_snapshot!(refused(&rates, &sets(&[("load.rate", "5/s")])), @"--set load.rate: each client says that for itself; set clients.critical.load.rate or clients.batch.load.rate");
    let model =
        Overrides { varies: vec![("load.model".to_owned(), "open".to_owned())], ..Overrides::default() };
    assert_snapshot!(refused(&rates, &model), @"--vary load.model: each client says that for itself; set clients.critical.load.model or clients.batch.load.model");
    let most = format!("{TWO}[clients.critical.flow]\nqueue = 5\n");
    assert_snapshot!(refused(&most, &sets(&[("load.max_in_flight", "5"), ("flow.queue", "5")])), @r"
    --set load.max_in_flight: each client says that for itself; set clients.critical.load.max_in_flight
    --set flow.queue: each client says that for itself; set clients.critical.flow.queue
    ");
    let closed = TWO.replace("max_in_flight = 7", "workers = 7");
    assert_snapshot!(refused(&closed, &sets(&[("load.arrivals", "even")])), @"--set load.arrivals: it belongs to the open model, and the load of each client is closed");
    let flag = Overrides { rate: Rate::per_second(5.0).ok(), ..Overrides::default() };
    assert_snapshot!(refused(&rates, &flag), @"--rate: each client says that for itself; set clients.critical.load.rate or clients.batch.load.rate");
}

#[test]
fn what_several_clients_cannot_is_told() {
    let spool = format!("{TWO}\n[clients.critical.flow]\nwhen_full = \"spool\"\n");
    assert_snapshot!(refused(&spool, &Overrides::default()), @r#"client critical: several clients cannot spool, as a spool is sent later by one client: write when_full = "drop" or "block""#);
    assert_snapshot!(refused(&format!("driver = \"3.9.1\"\n{TWO}"), &Overrides::default()), @"several clients make their load in one process, with the driver that overdrive is built with: leave the driver out, or give each client a run of its own");
    let idle = sets(&[("clients.batch.op.write.weight", "0"), ("clients.batch.op.read.weight", "0")]);
    assert_snapshot!(refused(TWO, &idle), @"client batch: every operation has weight 0 then, so there is nothing to do");
}

#[test]
fn mistakes_are_shown_where_they_are() {
    assert_snapshot!(told(r#"
[load]
rate = "5/s"
duration = "10s"
[clients.all.load]
rate = "5/s"
[clients."a b".load]
warmup = "5s"
stages = [{ for = "3s", rate = "5/s" }]
[clients.batch]
wieght = 5
[clients.batch.load]
workers = 4
rate = "5/s"
[clients.batch.data]
documents = 5
[clients.batch.op.x.find_on]
[clients.batch.timeout]
grace = "1s"
[clients.batch.flow.limit]
floor = "a"
[clients.batch.flow.spool]
[clients.batch.client]
maxPoolSize = 1.5
"#), @r#"
    error: a client cannot be called `all`: rows of tables are called that
     --> test.toml:5:10
      |
    5 | [clients.all.load]
      |          ^^^

    error: client `all` has no operation
     --> test.toml:5:10
      |
    5 | [clients.all.load]
      |          ^^^
      |
      = help: add one, like [clients.all.op.read.find_one], or an [op.read.find_one] for it to take

    error: a client's name has letters, digits, _ and - only, not 'a b'
     --> test.toml:7:10
      |
    7 | [clients."a b".load]
      |          ^^^^^

    error: client `a b` has no operation
     --> test.toml:7:10
      |
    7 | [clients."a b".load]
      |          ^^^^^
      |
      = help: add one, like [clients.a b.op.read.find_one], or an [op.read.find_one] for it to take

    error: `clients.a b.load.warmup` is not for one client to say: all of them share the time
     --> test.toml:8:1
      |
    8 | warmup = "5s"
      | ^^^^^^
      |
      = help: write it in [load]

    error: the stages last 3s together, but `load.duration` is 10s
     --> test.toml:9:1
      |
    9 | stages = [{ for = "3s", rate = "5/s" }]
      | ^^^^^^
      |
      = help: let them last as long: all clients share the time

    error: unknown key `wieght` in `clients.batch`
      --> test.toml:11:1
       |
    11 | wieght = 5
       | ^^^^^^
       |
       = help: known here: load, client, op, timeout, flow

    error: `clients.batch.load.workers` belongs to the closed model, and this load is open
      --> test.toml:13:1
       |
    13 | workers = 4
       | ^^^^^^^
       |
       = help: leave it out, or write model = "closed"

    error: unknown key `data` in `clients.batch`
      --> test.toml:15:16
       |
    15 | [clients.batch.data]
       |                ^^^^
       |
       = help: known here: load, client, op, timeout, flow

    error: unknown kind of operation `find_on`
      --> test.toml:17:21
       |
    17 | [clients.batch.op.x.find_on]
       |                     ^^^^^^^ did you mean `find_one`?

    error: `clients.batch.timeout.grace` says nothing without `clients.batch.timeout.operation`: no call has a deadline
      --> test.toml:19:1
       |
    19 | grace = "1s"
       | ^^^^^
       |
       = help: write operation = "500ms", or leave it out

    error: `clients.batch.flow.limit.floor` must be a whole number, not a text
      --> test.toml:21:9
       |
    21 | floor = "a"
       |         ^^^

    error: `clients.batch.flow.spool` says nothing unless `clients.batch.flow.when_full` is "spool"
      --> test.toml:22:21
       |
    22 | [clients.batch.flow.spool]
       |                     ^^^^^
       |
       = help: write when_full = "spool" in [flow], or leave the spool out

    error: `clients.batch.client.maxPoolSize` must be a text, a whole number, true, false or a list of those, not a number
      --> test.toml:24:15
       |
    24 | maxPoolSize = 1.5
       |               ^^^
    "#);
    assert_snapshot!(told(&format!("clients = {{}}\n{PING}")), @r#"
    error: `clients` has no client
     --> test.toml:1:11
      |
    1 | clients = {}
      |           ^^
      |
      = help: add one, like [clients.critical.load] with rate = "100/s", or leave it out
    "#);
    assert_snapshot!(told(&format!("{PING}[clients.a.op.x.run_command]\ncommand = {{ ping = 1 }}\n")), @r"
    error: no client takes these operations: each has its own
     --> test.toml:1:2
      |
    1 | [op.ping.run_command]
      |  ^^
      |
      = help: leave them out, or those of a client that is to take them
    ");
    let empty = "[clients.a.op.x.run_command]\ncommand = { ping = 1 }\n[clients.empty]\n";
    assert_snapshot!(told(empty), @r"
    error: client `empty` has no operation
     --> test.toml:3:10
      |
    3 | [clients.empty]
      |          ^^^^^
      |
      = help: add one, like [clients.empty.op.read.find_one], or an [op.read.find_one] for it to take
    ");
    let idle = "[load]\nmodel = \"closed\"\nworkers = 2\n[clients.a.load]\nrate = \"0/s\"\n";
    assert_snapshot!(told(&format!("{PING}{idle}")), @r#"
    error: `clients.a.load.rate`: a rate of 0/s cannot be had: it must be above 0 and at most 10000000/s
     --> test.toml:7:8
      |
    7 | rate = "0/s"
      |        ^^^^^
    "#);
    let few: String = (0..17).map(|i| format!("[clients.c{i}]\n")).collect();
    assert_snapshot!(told(&format!("{PING}{few}")).lines().next().unwrap(), @"error: there are 17 clients, and 16 is the most");
}

#[test]
fn thresholds_name_the_client() {
    let with = |condition: &str| format!("{TWO}\n[thresholds]\nfail_if = [\"{condition}\"]\n");
    assert_eq!(told(&with("client.batch.op.write.error_rate > 1%")), "");
    assert_eq!(told(&with("client.critical.latency_p99 > 50ms")), "");
    assert_eq!(told(&with("goodput < 5/s")), "");
    assert_snapshot!(told(&with("client.bach.error_rate > 1%")), @r#"
    error: there is no client `bach`
      --> test.toml:31:13
       |
    31 | fail_if = ["client.bach.error_rate > 1%"]
       |             ^^^^^^^^^^^ did you mean `batch`?
    "#);
    assert_snapshot!(told(&with("op.read.error_rate > 1%")), @r#"
    error: there are several clients, and `op.read` is of one: write client.NAME.op.read
      --> test.toml:31:13
       |
    31 | fail_if = ["op.read.error_rate > 1%"]
       |             ^^^^^^^
       |
       = help: known here: critical, batch
    "#);
    assert_snapshot!(told(&with("client.critical.op.write.error_rate > 1%")), @r#"
    error: there is no operation `write`
      --> test.toml:31:29
       |
    31 | fail_if = ["client.critical.op.write.error_rate > 1%"]
       |                             ^^^^^^^^
       |
       = help: known here: read
    "#);
    assert_eq!(told(&with("client.critical.behind_max > 1s")), "");
    assert_snapshot!(told(&with("client.critical.cpu_per_op > 1ms")), @r#"
    error: `cpu_per_op` is the load generator's as a whole, so `critical` has none: leave client.critical. out
      --> test.toml:31:13
       |
    31 | fail_if = ["client.critical.cpu_per_op > 1ms"]
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn each_client_is_described() {
    let plan = plan(TWO, &sets(&[("clients.critical.client.maxPoolSize", "unset")]));
    let doubts = estimate::doubts(&plan, estimate::Options::default());
    assert_snapshot!(describe(&plan, None, &doubts), @r"
    test

    load of all clients
      warm-up 1s, measured 10s, cool-down at most 30s
      1000 documents in overdrive.load
      seed 42

    client critical: load
      open: Poisson arrivals, at most 7 operations in flight
      100/s for 10s

    client critical: operations: about 1000 offered while measured
      read  find_one             100.0 %  about 1000

    client critical: connection-string options
      maxPoolSize taken away  (from --set)
      maxAdaptiveRetries = 2  (from profile)

    client critical: application
      waits 1s for a call, then drops it, and the driver its connection
      calls up to 3 times in all, after pauses (full_jitter, base 100ms, cap 10s)

    client critical: estimate, while every attempt is rejected
      100/s × (3 calls × (1 ms service + 300 ms backoff over 2 retries) + 150 ms between them) = about 105 operations under way
      max_in_flight = 7, maxPoolSize = not set (an operation that backs off holds no connection)

    client batch: load
      closed: 4 workers, each starts its next operation when the last has ended

    client batch: operations
      write  insert_one            25.0 %
      read   find_one              75.0 %

    client batch: connection-string options
      maxPoolSize = 50  (from profile)
      maxAdaptiveRetries = 0  (from profile)

    client batch: application
      waits 1s for a call, then drops it, and the driver its connection

    warning: client critical: maxPoolSize is not set: unless the connection string sets it, the driver opens 10 connections per server, and the load may queue in the client
    warning: client critical: about 105 operations would be under way while everything is rejected, more than max_in_flight = 7
    ");
}
