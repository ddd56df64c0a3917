//! What the servers say of themselves, asked on control connections of overdrive's own.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use bson::{Bson, Document, doc};
use futures_util::future::join_all;
use mongodb::Client;
use mongodb::options::ServerAddress;

use crate::client::uri::Uri;
use crate::client::{connect, errors, shut_down, wait_for_primary};
use crate::snapshot::{SERVER_COUNTERS, ServerFacts};

/// A member that does not answer within this is unreachable for this interval.
const PATIENCE: Duration = Duration::from_millis(900);

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
    fn servers_are_spelt_as_the_driver_spells_them() {
        let spelt = ["h", "h:1", "[::1]:2", "/tmp/mongodb.sock"].map(spelt);
        assert_eq!(spelt, ["h:27017", "h:1", "::1:2", "/tmp/mongodb.sock"]);
    }
}
