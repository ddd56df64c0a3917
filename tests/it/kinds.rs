//! Every kind of operation sends the commands it is said to send, and every attempt of them is told for what it was. The
//! servers' failpoint is the witness: it counts what it rejects, or merely lets pass.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bson::doc;
use mongodb::Client;
use overdrive::client::version::{DRIVER_VERSION, Version};
use overdrive::plan::{Attempts, Model, Plan};
use overdrive::snapshot::{ErrorClass, ErrorLevel};
use overdrive::stats::Latencies;
use overdrive::units::Span;
use tokio::net::{TcpListener, TcpStream};

use crate::running::{OVERLOAD, Run, drive, fail, members, met, plan, plan_with, watch};
use crate::{SharedLab, alone, shared_lab};

/// Fifty operations, evenly over a second, and as long as it takes for all of them to end.
const LOAD: &str = r#"
[data]
collection = "COLLECTION"
documents = 100
[load]
arrivals = "even"
rate = 50
warmup = "0s"
duration = "1s"
cooldown = "60s"
[client]
maxPoolSize = 50
"#;

const PING: &str = "[op.ping.run_command]\ncommand = { ping = 1 }\n";
const FIND: &str = "[op.find.find_one]\nfilter = { _id = 1 }\n";

/// One after the other, so that transactions meet no conflict.
const TRANSACTION: &str = r#"
[load]
max_in_flight = 1
[op.both.transaction]
statements = [
    { find_one = { filter = { _id = { "^Key" = "uniform" } } } },
    { update_one = { filter = { _id = { "^Key" = "uniform" } }, update = { "$inc" = { n = 1 } } } },
]
"#;

/// The shared lab's servers, and nobody else who works on them.
struct Servers {
    lab: &'static SharedLab,
    primary: Client,
    secondaries: Vec<Client>,
}

impl Servers {
    async fn meet() -> Self {
        let lab = tokio::task::block_in_place(shared_lab);
        let (primary, secondaries) = members(lab).await;
        let hello = primary.database("admin").run_command(doc! { "hello": 1 }).await.unwrap();
        assert_eq!(
            hello.get_str("me").unwrap(),
            lab.members[0].address.to_string(),
            "the first is the primary"
        );
        Self { lab, primary, secondaries }
    }

    /// The addresses of the others, in the order of their clients.
    fn secondaries(&self) -> impl Iterator<Item = (String, &Client)> {
        self.lab.members[1..].iter().map(|member| member.address.to_string()).zip(&self.secondaries)
    }

    /// Runs a plan while the primary's failpoint does what it is told, and tells how many commands that met.
    async fn run(&self, plan: &Plan, failpoint: impl AsyncFnOnce(&Client)) -> (Run<i64>, u64) {
        let run = drive(&self.lab.uri, plan, async || {
            let before = met(&self.primary).await;
            failpoint(&self.primary).await;
            before
        })
        .await;
        run.assert_sums();
        let met = met(&self.primary).await - run.before;
        (run, u64::try_from(met).unwrap())
    }
}

/// The whole text of a profile: [load] may be given once more, with more of it.
fn text(operations: &str) -> String {
    match operations.trim_start().strip_prefix("[load]\n") {
        Some(more) => {
            let (load, operations) = more.split_once("\n[op").unwrap();
            format!("{}\n[op{operations}", LOAD.replace("[client]", &format!("{load}\n[client]")))
        }
        None => format!("{LOAD}{operations}"),
    }
}

/// The same with another line in [client].
fn with_options(operations: &str, option: &str) -> String {
    text(operations).replace("[client]\n", &format!("[client]\n{option}\n"))
}

fn overload(commands: &[&str]) -> bson::Document {
    doc! { "failCommands": commands, "errorCode": 462, "errorLabels": OVERLOAD.as_slice() }
}

fn classes<T>(run: &Run<T>, level: ErrorLevel) -> Vec<(String, Option<i32>, u64)> {
    run.errors(level).into_iter().map(|(class, count)| (class.kind, class.code, count)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_succeeds_and_the_servers_count_the_same_commands() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let mut plan = plan(include_str!("../data/every-kind.toml"), "every_kind");
    plan.overloads.clear();
    plan.operations.iter_mut().filter(|o| o.name == "delete_many").for_each(|o| o.weight = 1);
    // One at a time: transactions are to meet no conflict.
    let Model::Open { max_in_flight, stages, .. } = &mut plan.load.model else { panic!("it is open") };
    *max_in_flight = 1;
    stages.truncate(1);
    plan.load.duration = stages[0].length;
    plan.load.cooldown = Span::seconds(60);
    // All but find: a server that sees a session's first write looks the session up with a find of its own.
    let commands = [
        "getMore",
        "aggregate",
        "distinct",
        "insert",
        "update",
        "delete",
        "findAndModify",
        "create",
        "drop",
        "ping",
        "commitTransaction",
        "abortTransaction",
    ];
    let (run, met) = servers.run(&plan, async |primary| watch(primary, &commands).await).await;
    let finds: u64 = ["find_one", "find", "transaction"].iter().map(|name| run.op(name).outcomes.ok).sum();
    assert_eq!(run.all().attempts, met + finds);
    assert_eq!(run.all().retries, 0);
    for operation in plan.operations.iter().filter(|o| o.weight > 0) {
        let (name, stats) = (&operation.name, run.op(&operation.name));
        assert!(stats.outcomes.ok > 0, "{name}: {:?}", run.errors(ErrorLevel::Operation));
        assert_eq!(stats.outcomes.failed, 0, "{name}: {:?}", run.errors(ErrorLevel::Operation));
        match name.as_str() {
            "find" | "aggregate" => assert!(stats.commands >= stats.calls, "{name}"),
            "transaction" => assert_eq!(stats.commands, 3 * stats.calls, "find, update, commitTransaction"),
            _ => assert_eq!(stats.commands, stats.calls, "{name}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_is_too_old_for_is_said_and_never_sent() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let bulk = "[op.bulk.bulk_write]\nwrites = [{ insert_one = {} }]\n";
    let plan = plan(&text(bulk), "kinds_bulk_write");
    let (run, met) = servers.run(&plan, async |primary| watch(primary, &["bulkWrite"]).await).await;
    let all = run.all();
    if servers.lab.version.starts_with('6') {
        let started = all.offered - all.outcomes.not_started;
        assert_eq!((all.outcomes.failed, all.gave_up, all.attempts, met), (started, 0, 0, 0));
        assert_eq!(classes(&run, ErrorLevel::Operation), [("incompatible_server".to_owned(), None, started)]);
        assert_eq!(classes(&run, ErrorLevel::Attempt), []);
    } else {
        assert_eq!((all.outcomes.failed, all.attempts), (0, met));
    }
}

/// 45 documents in batches of ten are four batches and a half.
const CURSORS: &str = r#"
[op.find.find]
filter = { _id = { "$lt" = 45 } }
batch_size = 10
[op.aggregate.aggregate]
pipeline = [{ "$match" = { _id = { "$lt" = 45 } } }, { "$sort" = { _id = 1 } }]
batch_size = 10
[op.insert.insert_many]
count = 20
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_as_many_commands_as_it_has_batches_and_a_batch_of_inserts_is_one() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    for attempts in [Attempts::Full, Attempts::Light] {
        let plan = plan_with(&text(CURSORS), "kinds_cursors", attempts);
        let (run, met) = servers.run(&plan, async |primary| watch(primary, &["getMore"]).await).await;
        let ok = |name| run.op(name).outcomes.ok;
        assert!(ok("find") > 10 && ok("aggregate") > 10 && ok("insert") > 10);
        assert_eq!(met, 4 * (ok("find") + ok("aggregate")), "by the server");
        assert_eq!(run.op("find").attempts, 5 * ok("find"));
        assert_eq!(run.op("aggregate").attempts, 5 * ok("aggregate"));
        assert_eq!(run.op("insert").attempts, ok("insert"));
        if attempts == Attempts::Full {
            assert_eq!(run.op("find").commands, 5 * ok("find"));
            assert_eq!(run.op("aggregate").commands, 5 * ok("aggregate"));
            assert_eq!(run.all().retries, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_batch_is_a_retry_and_no_command_more() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&with_options(CURSORS, "maxAdaptiveRetries = 3"), "kinds_cursors");
    let times = doc! { "times": 3 };
    let (run, met) =
        servers.run(&plan, async |primary| fail(primary, times, overload(&["getMore"])).await).await;
    let (all, find, aggregate) = (run.all(), run.op("find"), run.op("aggregate"));
    assert_eq!((met, all.retries, all.rejected, all.outcomes.failed), (3, 3, 3, 0));
    assert_eq!(find.commands + aggregate.commands, 5 * (find.outcomes.ok + aggregate.outcomes.ok));
    assert_eq!(all.backoff.values().map(Latencies::count).sum::<u64>(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_of_a_transaction_is_retried_by_itself() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&text(TRANSACTION), "kinds_transaction");
    // Twice is what the driver's default retries cover, so that no transaction is lost.
    for command in ["find", "update", "commitTransaction"] {
        let times = doc! { "times": 2 };
        let run = async |primary: &Client| fail(primary, times, overload(&[command])).await;
        let (run, met) = servers.run(&plan, run).await;
        let all = run.all();
        assert_eq!((met, all.retries, all.rejected), (2, 2, 2), "{command}");
        assert_eq!(all.outcomes.failed, 0, "{command}: {:?}", run.errors(ErrorLevel::Operation));
        assert_eq!(all.commands, 3 * all.outcomes.ok, "{command}");
        assert_eq!(all.by_retries[&2].ok, 1, "{command}: both met the same transaction");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_transaction_sends_one_command_more() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&text(TRANSACTION), "kinds_transaction");
    let bad_value = doc! { "failCommands": ["update"], "errorCode": 2 };
    let times = doc! { "times": 3 };
    let (run, met) = servers.run(&plan, async |primary| fail(primary, times, bad_value).await).await;
    let all = run.all();
    assert_eq!((met, all.outcomes.failed, all.gave_up, all.retries, all.rejected), (3, 3, 0, 0, 0));
    assert_eq!(all.commands, 3 * (all.outcomes.ok + 3), "find, update, and one to commit or abort");
    assert_eq!(classes(&run, ErrorLevel::Operation), [("command".to_owned(), Some(2), 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_that_is_rejected_is_retried_and_still_one_command() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    // Nobody may change a key: each of these is aborted.
    let hopeless = TRANSACTION.replace("\"$inc\" = { n = 1 }", "\"$set\" = { _id = -1 }");
    let plan = plan(&text(&hopeless), "kinds_abort");
    let times = doc! { "times": 2 };
    let what = overload(&["abortTransaction"]);
    let (run, met) = servers.run(&plan, async |primary| fail(primary, times, what).await).await;
    let all = run.all();
    assert_eq!((met, all.retries, all.rejected, all.outcomes.ok), (2, 2, 2, 0));
    assert_eq!(all.commands, 3 * all.outcomes.failed, "find, update, abortTransaction");
    let immutable = ("write".to_owned(), Some(66), all.outcomes.failed);
    assert_eq!(classes(&run, ErrorLevel::Operation), [immutable], "the reason is what the statement met");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_error_that_may_not_be_retried_fails_without_giving_up() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&text(PING), "kinds_reasons");
    let what = doc! { "failCommands": ["ping"], "errorCode": 433, "errorLabels": ["SystemOverloadedError"] };
    let times = doc! { "times": 5 };
    let (run, met) = servers.run(&plan, async |primary| fail(primary, times, what).await).await;
    let all = run.all();
    assert_eq!((met, all.rejected, all.retries), (5, 5, 0));
    assert_eq!((all.outcomes.failed, all.gave_up), (5, 0));
    let class = ErrorClass {
        kind: "command".to_owned(),
        code: Some(433),
        code_name: "Location433".to_owned(),
        labels: vec!["SystemOverloadedError".to_owned()],
    };
    let expected = BTreeMap::from([(class, 5)]);
    assert_eq!(run.errors(ErrorLevel::Attempt), expected);
    assert_eq!(run.errors(ErrorLevel::Operation), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_retry_is_a_retry_without_rejection() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    // One at a time: a hang-up clears the whole pool, and is to be met by one operation.
    let plan = plan(&text(&format!("[load]\nmax_in_flight = 1\n{FIND}")), "kinds_reasons");
    let network_timeout = doc! { "failCommands": ["find"], "errorCode": 89 };
    let hang_up = doc! { "failCommands": ["find"], "closeConnection": true };
    for (what, kind, code) in [(network_timeout, "command", Some(89)), (hang_up, "io", None)] {
        let times = doc! { "times": 1 };
        let (run, met) = servers.run(&plan, async |primary| fail(primary, times, what).await).await;
        let all = run.all();
        assert_eq!((met, all.retries, all.rejected, all.outcomes.failed), (1, 1, 0, 0), "{kind}");
        assert_eq!(classes(&run, ErrorLevel::Attempt), [(kind.to_owned(), code, 1)]);
        assert_eq!(all.attempt_rejected.count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_retries_as_often_as_it_is_told_to() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    // Four backoffs last 3 s at most: what is under way when the load ends has 5 s to end, and does.
    for (option, most) in [("maxAdaptiveRetries = 0", 0), ("", 2), ("maxAdaptiveRetries = 4", 4)] {
        let plan = plan(&with_options(PING, option).replace("rate = 50", "rate = 10"), "kinds_most_retries");
        let (run, met) =
            servers.run(&plan, async |primary| fail(primary, "alwaysOn", overload(&["ping"])).await).await;
        let all = run.all();
        let started = all.offered - all.outcomes.not_started;
        assert_eq!((all.outcomes.failed, all.gave_up), (started, started), "'{option}'");
        assert_eq!((all.attempts, all.rejected, met), (all.commands * (most + 1), met, met), "'{option}'");
        assert!(all.by_retries.keys().all(|&retries| u64::from(retries) == most), "'{option}'");
        assert!(all.backoff.keys().copied().map(u64::from).eq(1..=most), "'{option}'");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backoff_doubles_from_retry_to_retry() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&text(PING).replace("rate = 50", "rate = 400"), "kinds_backoff");
    let (run, _) =
        servers.run(&plan, async |primary| fail(primary, "alwaysOn", overload(&["ping"])).await).await;
    let all = run.all();
    let mean = |retry| all.backoff[&retry].mean_us().unwrap();
    assert!(all.backoff[&2].count() >= 400);
    // Slowness can only add to a backoff, so only this side of the theory is held against it: the mean of jitter from
    // 0 to 1, times 200 ms and 400 ms since 3.9, half of that before.
    let least = if Version::parse(DRIVER_VERSION) >= Version::parse("3.9.0") { 80_000 } else { 40_000 };
    assert!(mean(1) >= least && mean(2) >= 2 * least, "{} and {} µs", mean(1), mean(2));
    let (doubled, range) = (mean(2) * 10 / mean(1), 15..=27);
    assert!(range.contains(&doubled), "{} and {} µs", mean(1), mean(2));
    assert_eq!(all.backoff.values().map(Latencies::count).sum::<u64>(), all.retries);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_cannot_be_made_are_attempts_too() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let door = Door::open(servers.lab.members[0].address).await;
    // No connection is there yet but that of the first ping: the others are made under load, and some are refused.
    let plan = plan(&text(FIND).replace("rate = 50", "rate = 400"), "kinds_no_connection");
    let uri = format!("mongodb://{}/?directConnection=true", door.address);
    let slow = doc! { "failCommands": ["find"], "blockConnection": true, "blockTimeMS": 50 };
    let run = drive(&uri, &plan, async || {
        fail(&servers.primary, "alwaysOn", slow).await;
        door.refuse(3);
    })
    .await;
    met(&servers.primary).await;
    run.assert_sums();
    let (all, refused) = (run.all(), door.refused());
    let errors = classes(&run, ErrorLevel::Attempt);
    assert_eq!(refused, 3, "so many connections are made");
    assert_eq!(errors, [("connect".to_owned(), None, refused)]);
    assert_eq!(all.attempts - all.checkout.count(), refused, "the others had a connection");
    assert_eq!(all.retries, refused);
    assert_eq!(all.outcomes.failed, 0, "{:?}", run.errors(ErrorLevel::Operation));
}

const COUNT: &str = "[op.count.count]\nfilter = { _id = { \"$lt\" = 10 } }\n";

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_told_by_the_server_that_had_them() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    let plan = plan(&with_options(COUNT, "readPreference = \"secondary\""), "kinds_secondary");
    let mut before = BTreeMap::new();
    for (address, client) in servers.secondaries() {
        before.insert(address, met(client).await);
    }
    let run = drive(&servers.lab.uri, &plan, async || {
        for client in &servers.secondaries {
            watch(client, &["aggregate"]).await;
        }
    })
    .await;
    run.assert_sums();
    let mut attempts = run.attempts_by_server();
    // The primary was met for the ping that looks for it, and for nothing else.
    assert_eq!(attempts.remove(&servers.lab.members[0].address.to_string()).unwrap_or(0), 0);
    for (address, client) in servers.secondaries() {
        let counted = u64::try_from(met(client).await - before[&address]).unwrap();
        assert_eq!(attempts.remove(&address).unwrap_or(0), counted, "{address}");
        assert!(counted > 0, "{address}: both are as near");
    }
    assert_eq!(attempts, BTreeMap::new());
    assert_eq!(run.all().outcomes.failed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn retargeted_are_those_that_went_elsewhere_after_a_rejection() {
    let _alone = alone().await;
    let servers = Servers::meet().await;
    for on in [false, true] {
        let options = format!("readPreference = \"primaryPreferred\"\nenableOverloadRetargeting = {on}");
        let plan = plan(&with_options(COUNT, &options), "kinds_retargeted");
        let (run, rejected) = servers
            .run(&plan, async |primary| {
                fail(primary, "alwaysOn", overload(&["aggregate"])).await;
                for client in &servers.secondaries {
                    met(client).await;
                    watch(client, &["aggregate"]).await;
                }
            })
            .await;
        let primary = servers.lab.members[0].address.to_string();
        let (all, attempts) = (run.all(), run.attempts_by_server());
        assert_eq!((all.rejected, attempts[&primary]), (rejected, rejected));
        let elsewhere = all.attempts - rejected;
        let by_server: u64 = run.snapshots.iter().flat_map(|s| &s.servers).map(|s| s.retargeted).sum();
        assert_eq!((all.retargeted, by_server), (elsewhere, elsewhere));
        for client in &servers.secondaries {
            met(client).await;
        }
        if on {
            assert_eq!(
                (elsewhere, all.outcomes.failed),
                (all.outcomes.ok, 0),
                "one step aside helps everybody"
            );
        } else {
            assert_eq!((elsewhere, all.outcomes.ok), (0, 0), "there is no way around the primary");
        }
    }
}

/// A way to a server that can be shut for the next few that want in. A real server does the same when it has as many
/// connections as it may have: it hangs up without a word.
struct Door {
    address: SocketAddr,
    state: Arc<DoorState>,
}

#[derive(Default)]
struct DoorState {
    to_refuse: AtomicU64,
    refused: AtomicU64,
}

impl Door {
    async fn open(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(DoorState::default());
        let theirs = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                if theirs.refuses() {
                    continue;
                }
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, state }
    }

    fn refuse(&self, next: u64) {
        self.state.to_refuse.store(next, Ordering::Relaxed);
    }

    fn refused(&self) -> u64 {
        self.state.refused.load(Ordering::Relaxed)
    }
}

impl DoorState {
    fn refuses(&self) -> bool {
        let one_less = |n: u64| n.checked_sub(1);
        let refuses = self.to_refuse.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        self.refused.fetch_add(u64::from(refuses), Ordering::Relaxed);
        refuses
    }
}
