//! Driving the engine in this process, the program in its own, and the servers that say who is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use bson::{Document, doc};
use mongodb::Client;
use overdrive::client::merge::resolve_options;
use overdrive::client::options;
use overdrive::client::uri::Uri;
use overdrive::client::{connect, shut_down, wait_for_primary};
use overdrive::control::Control;
use overdrive::engine;
use overdrive::lab::Member;
use overdrive::plan::{Attempts, Plan};
use overdrive::profile::{Overrides, Profile, Source, resolve};
use overdrive::snapshot::{ErrorClass, ErrorLevel, Report, Snapshot, Totals};
use overdrive::stats::OpStats;
use overdrive::trial::prepare::prepare;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::SharedLab;

/// The labels of an error by which a server asks to be asked again later.
pub const OVERLOAD: [&str; 2] = ["SystemOverloadedError", "RetryableError"];

/// The plan of a profile's text, for a collection of the test's own: the word COLLECTION stands for its name.
pub fn plan(text: &str, collection: &str) -> Plan {
    plan_with(text, collection, Attempts::Full)
}

/// The same, with another way of counting attempts.
pub fn plan_with(text: &str, collection: &str, attempts: Attempts) -> Plan {
    let text = text.replace("COLLECTION", collection);
    let source = Source { name: collection.to_owned(), shown: collection.to_owned(), text };
    let profile = Profile::read(source, &options::check).unwrap_or_else(|d| panic!("{}", d.render(false)));
    let overrides = Overrides { attempts: Some(attempts), ..Overrides::default() };
    resolve(&profile, &overrides, &options::check).unwrap()
}

/// What an engine had to say.
pub struct Run<T> {
    /// Every interval.
    pub snapshots: Vec<Snapshot>,
    /// What they must add up to.
    pub totals: Totals,
    /// What was made of the servers right before the load.
    pub before: T,
    names: Vec<String>,
}

/// Prepares the data and runs the engine alone. `ready` is awaited when everything is prepared, right before the load begins.
pub async fn drive<T>(uri: &str, plan: &Plan, ready: impl AsyncFnOnce() -> T) -> Run<T> {
    let target = resolve_options(&Uri::parse(uri).unwrap(), &plan.client, None, &plan.driver()).unwrap();
    let preparing = connect(&target.uri.control()).await.unwrap();
    wait_for_primary(&preparing, &target.uri).await.unwrap();
    prepare(&preparing, plan, drop).await.unwrap();
    shut_down(preparing).await;
    let (control, requests) = mpsc::channel(4);
    let (sender, mut reports) = mpsc::channel(64);
    let running = tokio::spawn(engine::run(Arc::new(plan.clone()), target.uri, requests, sender));
    let (mut snapshots, mut ready, mut before) = (Vec::new(), Some(ready), None);
    while let Some(report) = reports.recv().await {
        match report {
            Report::Ready => {
                let ready = ready.take().expect("it is ready once");
                before = Some(ready().await);
                control.send(Control::Go { first: 0 }).await.unwrap();
            }
            Report::Snapshot(snapshot) => snapshots.push(*snapshot),
            Report::Done(totals) => {
                running.await.unwrap().unwrap();
                let names = plan.operations.iter().map(|o| o.name.clone()).collect();
                return Run { snapshots, totals, before: before.unwrap(), names };
            }
            Report::Hello(_) | Report::Closed(_) => {}
        }
    }
    panic!("the engine ended early: {:?}", running.await);
}

impl<T> Run<T> {
    /// All that is known of one operation, whatever its segment.
    pub fn op(&self, name: &str) -> OpStats {
        let number = self.names.iter().position(|known| known == name).unwrap();
        self.sum(|_, operation| operation == number)
    }

    /// All that is known of all operations of one segment.
    pub fn segment(&self, number: usize) -> OpStats {
        self.sum(|segment, _| segment == number)
    }

    /// All that is known.
    pub fn all(&self) -> OpStats {
        self.sum(|_, _| true)
    }

    /// The operations and segments (by position) that are wanted, together.
    pub fn sum(&self, wanted: impl Fn(usize, usize) -> bool) -> OpStats {
        let mut sum = OpStats::default();
        for snapshot in &self.snapshots {
            snapshot
                .cells
                .iter()
                .filter(|((s, o), _)| wanted(*s, *o))
                .for_each(|(_, stats)| sum.merge(stats));
        }
        sum
    }

    /// How many errors there were of each class.
    pub fn errors(&self, level: ErrorLevel) -> BTreeMap<ErrorClass, u64> {
        let mut counts = BTreeMap::new();
        for error in self.snapshots.iter().flat_map(|s| &s.errors).filter(|e| e.level == level) {
            *counts.entry(error.class.clone()).or_default() += error.count;
        }
        counts
    }

    /// Attempts by the address they went to.
    pub fn attempts_by_server(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for server in self.snapshots.iter().flat_map(|s| &s.servers) {
            *counts.entry(server.address.clone()).or_default() += server.attempts;
        }
        counts
    }

    /// What must hold of any load, whatever became of it.
    pub fn assert_sums(&self) {
        let all = self.all();
        assert_eq!(all.offered, all.outcomes.sum());
        assert_eq!(all.attempts, all.commands + all.retries);
        assert_eq!(self.totals.attempts, all.attempts, "by pool events alone");
        assert_eq!(self.totals.ended.iter().sum::<u64>(), all.offered);
        let by_retries = all.by_retries.iter().map(|(&retries, r)| u64::from(retries) * (r.ok + r.failed));
        assert_eq!(by_retries.sum::<u64>(), all.retries);
        let ended: u64 = all.by_retries.values().map(|r| r.ok + r.failed).sum();
        assert_eq!(ended, all.outcomes.ok + all.outcomes.failed);
        let parts = all.wait_ns + all.checkout_ns + all.attempt_ns + all.backoff_ns;
        assert!(all.latency_ns >= parts, "{} is less than the sum of its parts, {parts}", all.latency_ns);
        let by_server: u64 = self.attempts_by_server().values().sum();
        assert_eq!(by_server, all.attempts, "every attempt went somewhere");
        let orphans: Vec<&String> = self.snapshots.iter().flat_map(|s| s.orphans.keys()).collect();
        assert!(orphans.iter().all(|name| *name == "killCursors" || *name == "endSessions"), "{orphans:?}");
    }
}

/// A connection to one member that no failpoint of these tests hits.
pub async fn member(member: &Member) -> Client {
    let uri = format!("mongodb://{}/?directConnection=true&appName=overdrive-test", member.address);
    Client::with_uri_str(uri).await.unwrap()
}

/// The same to the primary, and to each of the others.
pub async fn members(lab: &SharedLab) -> (Client, Vec<Client>) {
    let (mut primary, mut others) = (None, Vec::new());
    for each in &lab.members {
        let client = member(each).await;
        // What a test that failed has left on must not fail the others.
        let off = doc! { "configureFailPoint": "failCommand", "mode": "off" };
        client.database("admin").run_command(off).await.unwrap();
        let hello = client.database("admin").run_command(doc! { "hello": 1 }).await.unwrap();
        match hello.get_bool("isWritablePrimary").unwrap() {
            true => primary = Some(client),
            false => others.push(client),
        }
    }
    (primary.expect("the lab has a primary"), others)
}

/// Lets the failpoint meet commands of the measured client; `what` is its data without the application's name.
pub async fn fail(client: &Client, mode: impl Into<bson::Bson>, what: Document) {
    let mut data = what;
    data.insert("appName", "overdrive");
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode.into(), "data": data };
    client.database("admin").run_command(command).await.unwrap();
}

/// Lets it only count the commands that pass.
pub async fn watch(client: &Client, commands: &[&str]) {
    let what = doc! { "failCommands": commands, "blockConnection": true, "blockTimeMS": 0 };
    fail(client, "alwaysOn", what).await;
}

/// Turns it off, and tells how many commands it has met since the server started.
pub async fn met(client: &Client) -> i64 {
    let off = doc! { "configureFailPoint": "failCommand", "mode": "off" };
    let reply = client.database("admin").run_command(off).await.unwrap();
    reply.get_i64("count").or_else(|_| reply.get_i32("count").map(i64::from)).unwrap()
}

/// A count as servers give theirs.
pub fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap()
}

/// The program, with its results in a place of the test's own.
pub struct Program {
    place: Arc<TempDir>,
}

impl Program {
    /// No results yet.
    pub fn new() -> Self {
        Self { place: Arc::new(tempfile::tempdir().unwrap()) }
    }

    /// Where it runs and keeps its results.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// Runs it to its end.
    pub fn output(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_overdrive"))
            .args(arguments)
            .current_dir(self.place())
            .env_remove("OVERDRIVE_URI")
            .output()
            .unwrap()
    }

    /// The same; it must succeed. Returns what it printed.
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {:?}\n{stderr}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Loads the deployment and opens what was kept.
    pub fn run(&self, uri: &str, arguments: &[&str]) -> Results {
        let own = ["run", "--uri", uri, "--allow-faults=fail_command", "--ui", "none"];
        let printed = self.stdout(&[&own, arguments].concat());
        let path = printed.lines().find_map(|line| line.strip_prefix("Results: ")).expect("where it is");
        Results { path: self.place().join(path), _place: Arc::clone(&self.place) }
    }
}

/// What a run has left.
pub struct Results {
    /// The run's directory.
    pub path: PathBuf,
    /// Goes away with the last who looks at it.
    _place: Arc<TempDir>,
}

/// A row of a table, by column.
pub type Row = BTreeMap<String, String>;

impl Results {
    /// A table's rows.
    pub fn table(&self, name: &str) -> Vec<Row> {
        let mut reader = csv::Reader::from_path(self.path.join(name)).unwrap();
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    /// run.json
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.path.join("run.json")).unwrap()).unwrap()
    }
}

/// The sum of a column of whole numbers; an empty cell is none.
pub fn sum<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> u64 {
    rows.into_iter().map(|row| &row[column]).filter(|cell| !cell.is_empty()).map(|cell| whole(cell)).sum()
}

/// A whole number in a cell.
pub fn whole(cell: &str) -> u64 {
    cell.parse().unwrap_or_else(|_| panic!("'{cell}' is no whole number"))
}
