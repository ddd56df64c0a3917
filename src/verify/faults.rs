//! Rejections by the servers' own failpoint, for connections of one application name alone. What is on is written down
//! before it is, and undone at the end; the next start undoes what a killed one has left.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use bson::{Bson, Document, doc};
use mongodb::{Client, Namespace};

use crate::client::errors;
use crate::cluster::Cluster;
use crate::overload::applied::Applied;
use crate::overload::journal::Journal;
use crate::overload::{Bench, Ground, fail_command};

/// The kind of fault, as the journal and `--allow-faults` call it.
const KIND: &str = "fail_command";

/// The failpoints of a deployment.
pub struct Faults {
    cluster: Arc<Cluster>,
    /// None in a lab, whose servers end with us.
    journal: Option<Journal>,
    /// Whose commands are rejected.
    app: String,
}

impl Faults {
    /// Undoes what is left of others, checks that every member can do it, and writes down that they will.
    ///
    /// # Errors
    /// When a member cannot, or does it for somebody else.
    pub async fn begin(
        cluster: Arc<Cluster>,
        control: &Client,
        app: &str,
        lab: bool,
        say: impl FnMut(&str),
    ) -> Result<Self> {
        if !lab {
            let ground = Ground {
                cluster: Arc::clone(&cluster),
                lab: None,
                control: control.clone(),
                data: Namespace::new("", ""),
                app: String::new(),
            };
            Bench::new(ground).undo_leftovers(say).await?;
        }
        for member in &cluster.members {
            fail_command::check(&member.client, &member.address).await?;
        }
        let journal = (!lab).then(|| Journal::new(control));
        let faults = Self { cluster, journal, app: app.to_owned() };
        if let Err(error) = faults.write_down().await {
            faults.end().await?;
            return Err(error);
        }
        Ok(faults)
    }

    async fn write_down(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        for member in &self.cluster.members {
            journal.write_down(&member.address, KIND, &Applied::FailCommand { before: None }).await?;
        }
        Ok(())
    }

    /// Has a member, by number, do what `data` says, for us alone unless it says for whom.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn put(&self, member: usize, mode: Bson, data: &Document) -> Result<()> {
        let member = &self.cluster.members[member];
        let mut data = data.clone();
        data.entry("appName".to_owned()).or_insert_with(|| self.app.clone().into());
        let command = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        let put = member.client.database("admin").run_command(command).await;
        put.map(drop)
            .map_err(|error| anyhow!("failCommand at {}: {}", member.address, errors::message(&error)))
    }

    /// Turns it off everywhere.
    ///
    /// # Errors
    /// Names the members that did not obey.
    pub async fn off(&self) -> Result<()> {
        let mut failed = Vec::new();
        for member in &self.cluster.members {
            if let Err(error) = fail_command::undo(&member.client, &member.address).await {
                failed.push(format!("{error:#}"));
            }
        }
        ensure!(failed.is_empty(), "{}", failed.join("; "));
        Ok(())
    }

    /// Turns it off everywhere for good.
    ///
    /// # Errors
    /// As for [`Self::off`]; what did not obey stays written down, for `overdrive restore`.
    pub async fn end(&self) -> Result<()> {
        self.off().await?;
        if let Some(journal) = &self.journal {
            for member in &self.cluster.members {
                journal.cross_out(&Journal::entry(&member.address, KIND)).await;
            }
        }
        Ok(())
    }
}
