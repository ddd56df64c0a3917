//! Every attempt is somebody's, and the servers agree: their own counters of commands, and the failpoint's of
//! rejections, must give exactly the attempts that the engine reports, kind by kind.

use std::collections::BTreeMap;

use bson::doc;
use mongodb::Client;
use overdrive::plan::{Attempts, Plan};
use overdrive::snapshot::ErrorLevel;
use overdrive::stats::{Latencies, OpStats};

use crate::running::{OVERLOAD, Run, drive, fail, members, met, plan_with, signed};
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

/// How often each command was executed, and how many the failpoint, which is off after this, has rejected.
async fn counters(client: &Client) -> (BTreeMap<String, i64>, i64) {
    let admin = client.database("admin");
    let status = admin.run_command(doc! { "serverStatus": 1 }).await.unwrap();
    let commands = status.get_document("metrics").unwrap().get_document("commands").unwrap();
    let total = |command: &bson::Bson| command.as_document()?.get_i64("total").ok();
    let commands =
        commands.iter().filter_map(|(name, command)| Some((name.clone(), total(command)?))).collect();
    (commands, met(client).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_what_the_servers_executed_and_rejected() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    // All attempts go to the primary. The secondaries' counters would not do: they find the sessions of writes that they
    // replicate with commands of their own.
    let (primary, _) = members(lab).await;
    for (kinds, operations) in [("reads", READS), ("writes", WRITES)] {
        for attempts in [Attempts::Full, Attempts::Light] {
            let text = format!("{LOAD}{operations}");
            let plan = plan_with(&text, &format!("attribution_{kinds}_{attempts:?}"), attempts);
            check(lab, &primary, &plan).await;
        }
    }
}

/// Runs a plan while the failpoint rejects two commands in five, and holds the engine's counts against the servers'.
async fn check(lab: &SharedLab, primary: &Client, plan: &Plan) {
    let names: Vec<&str> = plan.operations.iter().map(|o| o.name.as_str()).collect();
    let run = drive(&lab.uri, plan, async || {
        let before = counters(primary).await;
        let what = doc! { "failCommands": &names, "errorCode": 462, "errorLabels": OVERLOAD.as_slice() };
        fail(primary, doc! { "activationProbability": 0.4 }, what).await;
        before
    })
    .await;
    let after = counters(primary).await;
    let Run { snapshots, totals, before, .. } = &run;
    let executed = |name: &str| after.0.get(name).unwrap_or(&0) - before.0.get(name).unwrap_or(&0);
    let mut all = OpStats::default();
    for name in &names {
        let stats = run.op(name);
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
