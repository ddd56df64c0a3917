//! Operations of our own that do nothing but occupy the storage engine: what everybody else has left is less.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use bson::{Document, doc};
use mongodb::Client;
use tokio_util::task::AbortOnDropHandle;

use super::applied::Applied;
use super::{Ground, patiently};
use crate::client::{connect, errors, shut_down};
use crate::cluster::Member;
use crate::plan::HoldTickets;

/// Between two tries after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// Those who hold.
pub struct Holders {
    held: Arc<AtomicU64>,
    tasks: Vec<AbortOnDropHandle<()>>,
    client: Client,
}

/// How a ticket is held.
#[derive(Clone, Copy)]
enum Way {
    /// By a test command.
    Sleep,
    /// By a script in a query, where there are no test commands.
    Script,
}

/// Whether every member can be made to hold tickets.
///
/// # Errors
/// When one cannot.
pub async fn check(ground: &Ground) -> anyhow::Result<()> {
    for member in &ground.cluster.members {
        patiently(member, way(ground, member)).await?;
    }
    Ok(())
}

/// Begins to hold tickets at a member. Nothing outlasts its holding time, so that nothing has to be undone after a kill.
///
/// # Errors
/// When the member cannot be made to.
pub async fn start(ground: &Ground, number: usize, fault: &HoldTickets) -> anyhow::Result<Applied> {
    let member = &ground.cluster.members[number];
    let way = patiently(member, way(ground, member)).await?;
    let held = Arc::new(AtomicU64::new(0));
    // Not the control connection's own pool: what undoes faults must not queue behind them.
    let client = connect(&member.uri.with_pool(fault.count)).await?;
    let holder = || {
        let (client, count) = (client.clone(), Arc::clone(&held));
        let (database, command) = command(way, ground, fault.hold.duration());
        AbortOnDropHandle::new(tokio::spawn(hold(client, database, command, fault.hold.duration(), count)))
    };
    let tasks = (0..fault.count).map(|_| holder()).collect();
    Ok(Applied::HoldTickets(Arc::new(Holders { held, tasks, client })))
}

impl Holders {
    /// Lets go; what is under way ends with its holding time, which is short.
    pub async fn stop(&self) -> String {
        self.tasks.iter().for_each(|task| task.abort());
        shut_down(self.client.clone()).await;
        format!(
            "{} tickets held at a time, {} times to the end",
            self.tasks.len(),
            self.held.load(Ordering::Relaxed)
        )
    }
}

async fn hold(client: Client, database: String, command: Document, hold: Duration, held: Arc<AtomicU64>) {
    loop {
        let since = Instant::now();
        match client.database(&database).run_command(command.clone()).await {
            Ok(_) if since.elapsed() >= hold => drop(held.fetch_add(1, Ordering::Relaxed)),
            // It came back at once, as a script does that finds no document: nothing was held.
            Ok(_) => tokio::time::sleep(PAUSE).await,
            // A server that refuses now may not later: the plan says that tickets are held.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn way(ground: &Ground, member: &Member) -> anyhow::Result<Way> {
    let admin = member.client.database("admin");
    let told = |e: &mongodb::error::Error| anyhow!("{}", errors::message(e));
    let hello = admin.run_command(doc! { "hello": 1 }).await.map_err(|e| told(&e))?;
    // On a secondary the test command's lock would hold up replication, and with it every majority write.
    let ways: &[Way] = match hello.get_bool("secondary") {
        Ok(true) => &[Way::Script],
        _ => &[Way::Sleep, Way::Script],
    };
    let mut failure = anyhow!("nothing was tried");
    for &way in ways {
        let (database, command) = command(way, ground, Duration::from_millis(1));
        match member.client.database(&database).run_command(command).await {
            Ok(_) => return Ok(way),
            Err(error) => failure = told(&error),
        }
    }
    Err(failure).with_context(|| {
        format!("{} has neither test commands nor scripts to hold tickets with", member.address)
    })
}

/// The database and the command that holds one ticket for this long.
fn command(way: Way, ground: &Ground, hold: Duration) -> (String, Document) {
    let ms = i64::try_from(hold.as_millis().max(1)).unwrap_or(i64::MAX);
    match way {
        // The intent to read one collection: it takes a ticket and is in nobody's way. A lock on everything, as the
        // command takes without a target, would block all writes, and reads behind them.
        Way::Sleep => {
            let target = format!("{}.{}", ground.data.db, ground.data.coll);
            ("admin".to_owned(), doc! { "sleep": 1, "millis": ms, "lock": "ir", "lockTarget": target })
        }
        // One document is looked at, so it sleeps once.
        Way::Script => (
            ground.data.db.clone(),
            doc! {
                "find": &ground.data.coll,
                "filter": { "$where": format!("sleep({ms}) || true") },
                "limit": 1,
                "singleBatch": true,
            },
        ),
    }
}
