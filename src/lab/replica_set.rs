//! Makes a replica set of mongods that know nothing of each other yet, fast.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bson::{Document, doc};
use mongodb::Client;

/// A set that is not ready by then has a reason that waiting does not cure.
const READY_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// The control connection's clean-up is worth no more than this.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// The connection string of a replica set.
pub fn uri(name: &str, hosts: &[SocketAddr]) -> String {
    let hosts: Vec<_> = hosts.iter().map(SocketAddr::to_string).collect();
    format!("mongodb://{}/?replicaSet={name}", hosts.join(","))
}

/// Initiates a set of the mongods that listen at `listening` and that are known as `advertised`. Returns when the
/// first is primary, the others are secondaries, and a majority write has succeeded.
pub async fn initiate(name: &str, listening: &[SocketAddr], advertised: &[SocketAddr]) -> Result<()> {
    let mut members = Vec::with_capacity(listening.len());
    for address in listening {
        members.push(Control::connect(*address).await?);
    }
    let result = match tokio::time::timeout(READY_LIMIT, bring_up(name, &members, advertised)).await {
        Ok(result) => result,
        Err(_) => {
            let mut states = Vec::new();
            for member in &members {
                states.push(format!("{} is {}", member.address, member.state().await));
            }
            Err(anyhow!("the replica set is not ready after {READY_LIMIT:?}: {}", states.join(", ")))
        }
    };
    for member in members {
        member.close().await;
    }
    result
}

async fn bring_up(name: &str, members: &[Control], advertised: &[SocketAddr]) -> Result<()> {
    let Some((first, others)) = members.split_first() else { bail!("a lab needs at least one member") };
    first
        .command(doc! { "replSetInitiate": configuration(name, advertised) })
        .await
        .with_context(|| format!("cannot initiate the replica set at {}", first.address))?;
    make_primary(first).await;
    for other in others {
        other.wait_for("secondary").await;
    }
    // A note in the oplog is a write that leaves no collection behind.
    first
        .command(doc! {
            "appendOplogNote": 1, "data": { "overdrive": "the lab is ready" }, "writeConcern": { "w": "majority" },
        })
        .await
        .context("the replica set takes no majority writes")?;
    Ok(())
}

fn configuration(name: &str, advertised: &[SocketAddr]) -> Document {
    let members: Vec<_> = (0i32..)
        .zip(advertised)
        // The first is always the primary while it can be, so that 'the primary' is the same process in every trial.
        .map(|(id, host)| doc! { "_id": id, "host": host.to_string(), "priority": if id == 0 { 2 } else { 1 } })
        .collect();
    doc! { "_id": name, "members": members }
}

/// Has the first member stand for election at once: by itself it would wait for the election timeout, 10 s, which is
/// left as it is because a shorter one makes overloaded members lose elections that a real deployment would not hold.
async fn make_primary(first: &Control) {
    while !first.is("isWritablePrimary").await {
        // Refused until the others have heard of the configuration, which takes them a few tries.
        first.command(doc! { "replSetStepUp": 1 }).await.ok();
        tokio::time::sleep(POLL).await;
    }
}

/// A direct connection to one member, never measured.
struct Control {
    address: SocketAddr,
    client: Client,
}

impl Control {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let uri = format!("mongodb://{address}/?directConnection=true&appName=overdrive-control");
        let client =
            Client::with_uri_str(&uri).await.with_context(|| format!("cannot connect to {address}"))?;
        Ok(Self { address, client })
    }

    async fn command(&self, command: Document) -> mongodb::error::Result<Document> {
        self.client.database("admin").run_command(command).await
    }

    async fn is(&self, role: &str) -> bool {
        self.command(doc! { "hello": 1 }).await.is_ok_and(|hello| is_true(&hello, role))
    }

    async fn wait_for(&self, role: &str) {
        while !self.is(role).await {
            tokio::time::sleep(POLL).await;
        }
    }

    /// The member's own name for its state, for messages.
    async fn state(&self) -> String {
        let asked = tokio::time::timeout(SHUTDOWN_LIMIT, self.command(doc! { "replSetGetStatus": 1 })).await;
        let Ok(Ok(status)) = asked else { return "silent".to_owned() };
        let own = status.get_array("members").into_iter().flatten().filter_map(|member| member.as_document());
        let mut own = own.filter(|member| is_true(member, "self"));
        own.next().and_then(|member| member.get_str("stateStr").ok()).unwrap_or("in no state").to_owned()
    }

    async fn close(self) {
        tokio::time::timeout(SHUTDOWN_LIMIT, self.client.shutdown().immediate(true)).await.ok();
    }
}

fn is_true(document: &Document, field: &str) -> bool {
    document.get_bool(field).unwrap_or(false)
}
