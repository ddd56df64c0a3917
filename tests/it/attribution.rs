//! Every attempt is somebody's, and the servers agree: their own counters of commands, and the failpoint's of
//! rejections, must give exactly the attempts that the engine reports, kind by kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Document, doc};
use mongodb::Client;
use overdrive::client::merge::resolve_options;
use overdrive::client::options;
use overdrive::client::uri::Uri;
use overdrive::client::version::DRIVER_VERSION;
use overdrive::control::Control;
use overdrive::engine;
use overdrive::plan::{Attempts, Plan};
use overdrive::profile::{Overrides, Profile, Source, resolve};
use overdrive::snapshot::{ErrorLevel, Report, Snapshot, Totals};
use overdrive::stats::{Latencies, OpStats};
use tokio::sync::mpsc;

use crate::{SharedLab, alone, shared_lab};

const LOAD: &str = r#"
[data]
collection = "COLLECTION"
documents = 500
[load]
rate = 300
warmup = "1s"
duration = "5s"
[client]
maxPoolSize = 50
maxAdaptiveRetries = 4
"#;

/// Operations of kinds that send one command a call, named after it. Reads stand apart from writes: a server that sees
/// a session's first retryable write looks that session up with a find of its own.
const READS: &str = r#"
[op.find.find_one]
filter = { _id = { "^Key" = "uniform" } }
[op.aggregate.count]
filter = { _id = { "$lt" = { "^Int" = { min = 1, max = 20 } } } }
[op.distinct.distinct]
field = "_id"
filter = { _id = { "$lt" = 20 } }
[op.dbStats.run_command]
command = { dbStats = 1 }
"#;
const WRITES: &str = r#"
[op.insert.insert_one]
[op.update.update_one]
filter = { _id = { "^Key" = "zipfian" } }
update = { "$inc" = { n = 1 } }
[op.delete.delete_one]
filter = { _id = { "^Key" = "uniform" } }
[op.findAndModify.find_one_and_update]
filter = { _id = { "^Key" = "hotspot" } }
update = { "$inc" = { n = 1 } }
"#;

fn plan(operations: &str, collection: &str, attempts: Attempts) -> Plan {
    let text = format!("{LOAD}{operations}").replace("COLLECTION", collection);
    Plan { attempts, ..plan_of(&text, collection) }
}

/// The plan that a profile's text comes to.
pub fn plan_of(text: &str, name: &str) -> Plan {
    let source = Source { name: name.to_owned(), shown: name.to_owned(), text: text.to_owned() };
    let profile = Profile::read(source, &options::check).unwrap();
    resolve(&profile, &Overrides::default(), &options::check).unwrap()
}

/// Runs the engine alone. `around` is awaited right before the load begins and right after it has ended.
pub async fn drive<T, F: Future<Output = T>>(
    lab: &SharedLab,
    plan: &Plan,
    around: impl Fn() -> F,
) -> (Vec<Snapshot>, Totals, T, T) {
    let target = resolve_options(&Uri::parse(&lab.uri).unwrap(), &plan.client, DRIVER_VERSION).unwrap();
    let (control, requests) = mpsc::channel(4);
    let (sender, mut reports) = mpsc::channel(64);
    let running = tokio::spawn(engine::run(Arc::new(plan.clone()), target.uri, requests, sender));
    let (mut snapshots, mut before) = (Vec::new(), None);
    while let Some(report) = reports.recv().await {
        match report {
            Report::Ready => {
                before = Some(around().await);
                control.send(Control::Go).await.unwrap();
            }
            Report::Snapshot(snapshot) => snapshots.push(*snapshot),
            Report::Done(totals) => {
                let after = around().await;
                running.await.unwrap().unwrap();
                return (snapshots, totals, before.unwrap(), after);
            }
            Report::Hello(_) | Report::Preparing(_) => {}
        }
    }
    panic!("the engine ended early: {:?}", running.await);
}

/// A connection to the primary, which all attempts here go to. The secondaries' counters would not do: they find the
/// sessions of writes that they replicate with commands of their own.
pub async fn primary(lab: &SharedLab) -> Client {
    for member in &lab.members {
        let uri = format!("mongodb://{}/?directConnection=true&appName=overdrive-test", member.address);
        let client = Client::with_uri_str(uri).await.unwrap();
        let hello = client.database("admin").run_command(doc! { "hello": 1 }).await.unwrap();
        if hello.get_bool("isWritablePrimary").unwrap() {
            return client;
        }
    }
    panic!("the lab has no primary");
}

/// How often each command was executed, and how many the failpoint, which is off after this, has rejected.
async fn counters(client: &Client) -> (BTreeMap<String, i64>, i64) {
    let admin = client.database("admin");
    let status = admin.run_command(doc! { "serverStatus": 1 }).await.unwrap();
    let commands = status.get_document("metrics").unwrap().get_document("commands").unwrap();
    let total = |command: &bson::Bson| command.as_document()?.get_i64("total").ok();
    let commands =
        commands.iter().filter_map(|(name, command)| Some((name.clone(), total(command)?))).collect();
    let off: Document =
        admin.run_command(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await.unwrap();
    let rejected = off.get_i64("count").or_else(|_| off.get_i32("count").map(i64::from)).unwrap();
    (commands, rejected)
}

fn merged(snapshots: &[Snapshot], operation: usize) -> OpStats {
    let mut sum = OpStats::default();
    for snapshot in snapshots {
        for (_, stats) in snapshot.cells.iter().filter(|((_, op), _)| *op == operation) {
            sum.merge(stats);
        }
    }
    sum
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_what_the_servers_executed_and_rejected() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let primary = primary(lab).await;
    for (kinds, operations) in [("reads", READS), ("writes", WRITES)] {
        for attempts in [Attempts::Full, Attempts::Light] {
            let plan = plan(operations, &format!("attribution_{kinds}_{attempts:?}"), attempts);
            check(lab, &primary, &plan).await;
        }
    }
}

/// Runs a plan while the failpoint rejects two commands in five, and holds the engine's counts against the servers'.
async fn check(lab: &SharedLab, primary: &Client, plan: &Plan) {
    let names: Vec<&str> = plan.operations.iter().map(|o| o.name.as_str()).collect();
    let (snapshots, totals, before, after) = drive(lab, plan, async || {
        let before = counters(primary).await;
        let fail = doc! {
            "configureFailPoint": "failCommand",
            "mode": { "activationProbability": 0.4 },
            "data": {
                "failCommands": &names, "errorCode": 462, "appName": "overdrive",
                "errorLabels": ["SystemOverloadedError", "RetryableError"],
            },
        };
        primary.database("admin").run_command(fail).await.unwrap();
        before
    })
    .await;
    // The call after the load has switched the failpoint on again: nobody else is to meet it.
    counters(primary).await;
    let executed = |name: &str| after.0.get(name).unwrap_or(&0) - before.0.get(name).unwrap_or(&0);
    let mut all = OpStats::default();
    for (number, name) in names.iter().enumerate() {
        let stats = merged(&snapshots, number);
        assert!(stats.offered > 300, "{name}: {}", stats.offered);
        assert_eq!(stats.offered, stats.outcomes.sum(), "{name}");
        // Of the cool-down, the last few may be due and not be started; what was started was let end.
        assert_eq!(stats.outcomes.in_flight, 0, "{name}");
        assert_eq!(stats.attempts, stats.commands + stats.retries, "{name}");
        assert_eq!(stats.commands, stats.calls, "{name}: one command a call");
        assert_eq!(stats.calls, stats.outcomes.ok + stats.outcomes.failed, "{name}: one call an operation");
        // What the servers executed is what they did not reject: every execution is a success here.
        assert_eq!(executed(name), signed(stats.outcomes.ok), "{name}: executed by the servers");
        let by_retries = stats.by_retries.iter().map(|(&retries, r)| u64::from(retries) * (r.ok + r.failed));
        assert_eq!(by_retries.sum::<u64>(), stats.retries, "{name}");
        assert!(stats.by_retries.keys().all(|&retries| retries <= 4), "{name}: maxAdaptiveRetries=4");
        let early = stats.by_retries.iter().filter(|(retries, _)| **retries < 4).map(|(_, r)| r.failed);
        assert_eq!(early.sum::<u64>(), 0, "{name}: nobody gives up before the fourth retry");
        assert_eq!(stats.gave_up, stats.outcomes.failed, "{name}: nothing fails but by giving up");
        all.merge(&stats);
    }
    let executed: i64 = names.iter().map(|name| executed(name)).sum();
    let rejected = after.1 - before.1;
    assert_eq!(signed(all.attempts), executed + rejected, "attempts = executed + rejected");
    assert_eq!(totals.attempts, all.attempts, "by pool events alone");
    let parts = all.wait_ns + all.checkout_ns + all.attempt_ns + all.backoff_ns;
    assert!(all.latency_ns >= parts, "{} is less than the sum of its parts, {parts}", all.latency_ns);
    if plan.attempts == Attempts::Full {
        assert_eq!(signed(all.rejected), rejected, "rejections by the failpoint's own counter");
        let errors = snapshots.iter().flat_map(|snapshot| &snapshot.errors);
        let by_errors = errors.filter(|e| e.level == ErrorLevel::Attempt && e.class.code == Some(462));
        assert_eq!(signed(by_errors.map(|e| e.count).sum()), rejected, "rejections by class");
        let backoffs: u64 = all.backoff.values().map(Latencies::count).sum();
        assert_eq!(backoffs, all.retries, "each retry follows a backoff");
    }
    let orphans: Vec<&String> = snapshots.iter().flat_map(|s| s.orphans.keys()).collect();
    assert!(orphans.iter().all(|name| *name == "killCursors" || *name == "endSessions"), "{orphans:?}");
}
