//! What the servers say of themselves, asked on control connections of overdrive's own.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{anyhow, bail};
use bson::{Bson, Document, doc};
use futures_util::future::join_all;
use mongodb::Client;
use mongodb::options::ServerAddress;

use crate::client::uri::Uri;
use crate::client::{connect, errors, shut_down, wait_for_primary};
use crate::snapshot::{SERVER_COUNTERS, ServerFacts};
use crate::units::Span;

/// A member that does not answer within this is unreachable for this interval.
const PATIENCE: Duration = Duration::from_millis(900);

/// Silence that lasts longer is explained.
const LONG: Duration = Duration::from_secs(2);

/// How long the driver looks for a server when nobody says.
const SELECTION: Duration = Duration::from_secs(30);

/// Where each of [`SERVER_COUNTERS`] stands in the reply of serverStatus, in their order.
const PATHS: [&[&str]; SERVER_COUNTERS.len()] = [
    &["opcounters", "insert"],
    &["opcounters", "query"],
    &["opcounters", "update"],
    &["opcounters", "delete"],
    &["opcounters", "getmore"],
    &["opcounters", "command"],
    &["connections", "current"],
    &["connections", "totalCreated"],
    &["globalLock", "currentQueue", "readers"],
    &["globalLock", "currentQueue", "writers"],
    &["globalLock", "activeClients", "readers"],
    &["globalLock", "activeClients", "writers"],
    &["wiredTiger", "concurrentTransactions", "read", "available"],
    &["wiredTiger", "concurrentTransactions", "read", "out"],
    &["wiredTiger", "concurrentTransactions", "write", "available"],
    &["wiredTiger", "concurrentTransactions", "write", "out"],
    &["network", "ingressRequestRateLimiter", "attemptedAdmissions"],
    &["network", "ingressRequestRateLimiter", "successfulAdmissions"],
    &["network", "ingressRequestRateLimiter", "rejectedAdmissions"],
    &["network", "ingressRequestRateLimiter", "exemptedAdmissions"],
    &["network", "ingressRequestRateLimiter", "totalAvailableTokens"],
    &["network", "numRequests"],
    &["network", "bytesIn"],
    &["network", "bytesOut"],
    &["network", "ingressRequestRateLimiter", "queueLength"],
    &["queues", "ingressSessionEstablishment", "attemptedAdmissions"],
    &["queues", "ingressSessionEstablishment", "successfulAdmissions"],
    &["queues", "ingressSessionEstablishment", "rejectedAdmissions"],
    &["queues", "ingressSessionEstablishment", "exemptedAdmissions"],
    &["queues", "ingressSessionEstablishment", "queueLength"],
    &["queues", "ingressSessionEstablishment", "totalAvailableTokens"],
];

/// A deployment, seen from control connections.
pub struct Cluster {
    /// Its members, sorted by address; the one server of a standalone; the routers named in the URI of a sharded one.
    pub members: Vec<Member>,
    /// The version of the member that was asked first.
    pub version: String,
    /// `replica set`, `standalone server` or `sharded cluster`.
    pub kind: &'static str,
}

/// One server.
pub struct Member {
    /// host:port, as the deployment calls it.
    pub address: String,
    /// A direct connection to it.
    pub client: Client,
    /// The connection string of that.
    pub uri: Uri,
}

/// Does what may have to wait for servers that do not answer, and says so when they have been waited for a while: the
/// driver is silent until its patience ends.
///
/// # Errors
/// Those of the work.
pub async fn saying_so_if_long<T>(
    uri: &Uri,
    work: impl Future<Output = anyhow::Result<T>>,
    say: impl FnOnce(&str),
) -> anyhow::Result<T> {
    saying_so_after(LONG, uri, work, say).await
}

async fn saying_so_after<T>(
    long: Duration,
    uri: &Uri,
    work: impl Future<Output = anyhow::Result<T>>,
    say: impl FnOnce(&str),
) -> anyhow::Result<T> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(long) => {}
    }
    let patience =
        uri.option("serverSelectionTimeoutMS").and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
    say(&format!(
        "still looking for a primary at {}; the driver gives up after {} (serverSelectionTimeoutMS)",
        uri.hosts().join(", "),
        Span::from(patience.unwrap_or(SELECTION))
    ));
    work.await
}

impl Cluster {
    /// Finds the members and connects to each: by the address that `way` knows for it, else by its own.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn connect(uri: &Uri, way: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let client = connect(&uri.finding()).await?;
        wait_for_primary(&client, uri).await?;
        let admin = client.database("admin");
        let failed = |e| anyhow!("{uri} answers, but not to hello: {}", errors::message(&e));
        let hello = admin.run_command(doc! { "hello": 1 }).await.map_err(failed)?;
        if let Some(primary) = primary_elsewhere(&hello) {
            bail!(
                "{uri} is a direct connection to a secondary, where nothing can be written: connect to the primary \
                 ({primary}), or leave directConnection out and name the replica set (replicaSet={})",
                hello.get_str("setName").unwrap_or("NAME")
            );
        }
        let build = admin.run_command(doc! { "buildInfo": 1 }).await.map_err(failed)?;
        let kind = if hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid") {
            "sharded cluster"
        } else if hello.contains_key("setName") {
            "replica set"
        } else {
            "standalone server"
        };
        let mut addresses: Vec<String> = ["hosts", "passives"]
            .iter()
            .filter_map(|list| hello.get_array(*list).ok())
            .flatten()
            .filter_map(|host| host.as_str().map(str::to_owned))
            .collect();
        if addresses.is_empty() {
            // As the driver spells them, so that its word and the servers' own meet in one row.
            addresses = uri.hosts().iter().map(|host| spelt(host)).collect();
        }
        addresses.sort_unstable();
        let mut members = Vec::with_capacity(addresses.len());
        for address in addresses {
            let direct = way(&address).unwrap_or_else(|| address.clone());
            let uri = uri.with_direct(&direct);
            members.push(Member { address, client: connect(&uri).await?, uri });
        }
        shut_down(client).await;
        let version = build.get_str("version").unwrap_or("unknown").to_owned();
        Ok(Self { members, version, kind })
    }

    /// What every member says of itself now; unreachable ones are there with that role and without counters.
    pub async fn facts(&self) -> Vec<ServerFacts> {
        join_all(self.members.iter().map(Member::facts)).await
    }

    /// Which member is the primary now, by its place in `members`.
    pub async fn primary(&self) -> Option<usize> {
        self.facts().await.iter().position(|facts| facts.role == "primary")
    }
}

impl Member {
    async fn facts(&self) -> ServerFacts {
        let command = doc! { "serverStatus": 1, "metrics": 0, "tcmalloc": 0, "locks": 0 };
        let admin = self.client.database("admin");
        let reply = tokio::time::timeout(PATIENCE, async { admin.run_command(command).await }).await;
        match reply {
            Ok(Ok(status)) => ServerFacts {
                address: self.address.clone(),
                role: role(&status).to_owned(),
                counters: SERVER_COUNTERS
                    .iter()
                    .zip(PATHS)
                    .filter_map(|(name, path)| Some(((*name).to_owned(), number(&status, path)?)))
                    .collect(),
                staleness: None,
            },
            _ => ServerFacts {
                address: self.address.clone(),
                role: "unreachable".to_owned(),
                counters: BTreeMap::new(),
                staleness: None,
            },
        }
    }
}

/// host:port, the port written out.
fn spelt(host: &str) -> String {
    ServerAddress::parse(host).map_or_else(|_| host.to_owned(), |address| address.to_string())
}

/// What a member of a replica set that is not the primary says of that; a client that knows the set asks the primary.
fn primary_elsewhere(hello: &Document) -> Option<&str> {
    let writable = hello.get_bool("isWritablePrimary").unwrap_or(true);
    let member = hello.contains_key("setName");
    (member && !writable).then(|| hello.get_str("primary").unwrap_or("unknown at the moment"))
}

fn role(status: &Document) -> &'static str {
    let Ok(repl) = status.get_document("repl") else { return "standalone" };
    if repl.get_bool("isWritablePrimary").unwrap_or(false) {
        "primary"
    } else if repl.get_bool("secondary").unwrap_or(false) {
        "secondary"
    } else {
        "other"
    }
}

fn number(status: &Document, path: &[&str]) -> Option<i64> {
    let (last, parents) = path.split_last()?;
    let mut document = status;
    for parent in parents {
        document = document.get_document(parent).ok()?;
    }
    match document.get(last)? {
        Bson::Int32(value) => Some(i64::from(*value)),
        Bson::Int64(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_not_the_primary_says_who_is() {
        let member = doc! { "setName": "rs", "isWritablePrimary": false, "primary": "h:1" };
        assert_eq!(primary_elsewhere(&member), Some("h:1"));
        let lonely = doc! { "setName": "rs", "isWritablePrimary": false };
        assert_eq!(primary_elsewhere(&lonely), Some("unknown at the moment"));
        for fine in [doc! { "setName": "rs", "isWritablePrimary": true }, doc! { "isWritablePrimary": true }]
        {
            assert_eq!(primary_elsewhere(&fine), None);
        }
    }

    #[tokio::test]
    async fn what_takes_long_is_told_and_goes_on() {
        let uri = Uri::parse("mongodb://a,b:1/?serverSelectionTimeoutMS=9000").unwrap();
        let told = async |millis| {
            let mut said = Vec::new();
            let work = async {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(millis)
            };
            let long = Duration::from_millis(100);
            let done = saying_so_after(long, &uri, work, |text| said.push(text.to_owned())).await.unwrap();
            (done, said)
        };
        assert_eq!(told(0).await, (0, Vec::new()));
        let text =
            "still looking for a primary at a, b:1; the driver gives up after 9s (serverSelectionTimeoutMS)";
        assert_eq!(told(200).await, (200, vec![text.to_owned()]));
    }

    #[test]
    fn servers_are_spelt_as_the_driver_spells_them() {
        let spelt = ["h", "h:1", "[::1]:2", "/tmp/mongodb.sock"].map(spelt);
        assert_eq!(spelt, ["h:27017", "h:1", "::1:2", "/tmp/mongodb.sock"]);
    }
}
