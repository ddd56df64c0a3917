//! The deployment that rules are looked at on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use bson::{Bson, Document, doc};
use mongodb::Client;

use super::faults::Faults;
use super::observe::Observed;
use crate::client::errors::{self, OVERLOADED, RETRYABLE};
use crate::client::uri::Uri;
use crate::client::{connect, shut_down};
use crate::cluster::{Cluster, Member, saying_so_if_long};
use crate::interrupts::Interrupts;
use crate::stderr::tell;

/// How the names of databases and applications begin that are ours.
const PREFIX: &str = "overdrive_verify_";

/// Nothing at the end is waited for longer.
const FAREWELL: Duration = Duration::from_secs(10);

/// A deployment, ready.
pub struct Stage {
    /// What clients connect by, options of the user's that would change the outcome left out.
    pub uri: Uri,
    /// Its members.
    pub cluster: Arc<Cluster>,
    /// A control connection, which no failpoint hits.
    pub control: Client,
    /// The only database that is written to, beside others whose names begin like it.
    pub database: String,
    /// Rejections.
    pub faults: Faults,
}

/// The collection that rules use.
pub const COLLECTION: &str = "things";

impl Stage {
    /// Finds the members, and makes sure that rejections can be had. `None` when an end was asked for while they were
    /// looked for; what is written down after that is not left half done.
    ///
    /// # Errors
    /// When nobody answers, or no rejections can be had.
    pub async fn prepare(uri: &Uri, lab: bool, interrupts: &mut Interrupts) -> Result<Option<Self>> {
        let cluster = tokio::select! {
            cluster = saying_so_if_long(uri, Cluster::connect(uri, |_| None), tell) => Arc::new(cluster?),
            () = interrupts.reached(1) => return Ok(None),
        };
        if cluster.kind == "sharded cluster" {
            bail!(
                "{uri} is a sharded cluster, where each router would have to be told to reject: name a replica set, or \
                 leave the connection string out for a lab"
            );
        }
        let control = connect(&uri.control()).await?;
        let database = format!("{PREFIX}{:08x}", rand::random::<u32>());
        let faults = Faults::begin(Arc::clone(&cluster), &control, &database, lab, tell).await?;
        let uri = uri.control().with("appName", &database);
        Ok(Some(Self { uri, cluster, control, database, faults }))
    }

    /// Turns off whatever is on, and drops what is ours.
    ///
    /// # Errors
    /// When a member does not obey.
    pub async fn end(&self) -> Result<()> {
        let ended = tokio::time::timeout(FAREWELL, self.faults.end()).await;
        let dropping = async { self.control.database(&self.database).drop().await };
        let dropped = tokio::time::timeout(FAREWELL, dropping).await;
        shut_down(self.control.clone()).await;
        ended.context("turning the failpoints off took too long: `overdrive restore` tries again")??;
        match dropped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                Err(anyhow!("{} could not be dropped: {}", self.database, errors::message(&error)))
            }
            Err(_) => Err(anyhow!("dropping {} took too long: see to it there", self.database)),
        }
    }

    /// A client that knows every member, with these options.
    ///
    /// # Errors
    /// When the driver does not take them, or a member is not found.
    pub async fn client(&self, options: &[(&str, &str)]) -> Result<Observed> {
        let uri = options.iter().fold(self.uri.clone(), |uri, (name, value)| uri.with(name, value));
        let client = Observed::connect(&uri).await?;
        // A direct connection knows one.
        let direct = uri.option("directConnection").is_some_and(|direct| direct == "true");
        client.knows(if direct { 1 } else { self.cluster.members.len() }).await?;
        Ok(client)
    }

    /// A client's view of the collection that rules use.
    pub fn collection(&self, client: &Observed) -> mongodb::Collection<Document> {
        client.client.database(&self.database).collection(COLLECTION)
    }

    /// The primary, or the only server, by number.
    ///
    /// # Errors
    /// When there is none at the moment.
    pub async fn primary(&self) -> Result<usize> {
        match self.cluster.members[..] {
            [_] => Ok(0),
            _ => self.cluster.primary().await.context("there is no primary at the moment"),
        }
    }

    /// Has the primary reject these commands with these labels.
    ///
    /// # Errors
    /// When it does not obey.
    pub async fn reject(&self, commands: &[&str], mode: Bson, labels: &[&str]) -> Result<()> {
        let data =
            doc! { "failCommands": commands.to_vec(), "errorCode": 462, "errorLabels": labels.to_vec() };
        self.faults.put(self.primary().await?, mode, &data).await
    }

    /// The same as a server that sheds load does.
    ///
    /// # Errors
    /// When it does not obey.
    pub async fn overload(&self, commands: &[&str], mode: Bson) -> Result<()> {
        self.reject(commands, mode, &[OVERLOADED, RETRYABLE]).await
    }

    /// What a member is called.
    pub fn address(&self, member: usize) -> &str {
        let Member { address, .. } = &self.cluster.members[member];
        address
    }
}

/// Every matching command.
pub fn always() -> Bson {
    "alwaysOn".into()
}

/// The first so many matching commands.
pub fn times(count: i32) -> Bson {
    doc! { "times": count }.into()
}
