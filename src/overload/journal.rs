//! What is on, written down on the cluster, for the start after a kill.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;
use mongodb::{Client, Collection, Namespace};

use super::applied::Applied;
use super::limiter::EXEMPTIONS_KIND;
use crate::client::errors;
use crate::cluster::Cluster;
use crate::owner;
use crate::profile::FAULT_KINDS;

/// Where it is kept: in one place on a cluster, whatever namespace a run loads, so that every run finds what any left.
const DATABASE: &str = "overdrive";
/// The collection in it.
const COLLECTION: &str = "overdrive.faults";

/// The code of a server that does not let us look.
const UNAUTHORIZED: i32 = 13;

/// The code of an entry that is there already.
const DUPLICATE_KEY: i32 = 11000;

/// Nothing waits longer for the journal; a majority write on an overloaded cluster takes its time.
const PATIENCE: Duration = Duration::from_secs(15);

/// The journal of a cluster.
pub struct Journal(Collection<Document>);

/// Something that an earlier run has left on.
pub struct Leftover {
    /// Its entry's key.
    pub entry: String,
    /// Its kind.
    pub kind: &'static str,
    /// The member's number.
    pub member: usize,
    /// What turns it off.
    pub applied: Applied,
}

impl Journal {
    /// That of the cluster which `control` reaches.
    pub fn new(control: &Client) -> Self {
        Self(control.database(DATABASE).collection(COLLECTION))
    }

    /// The key of a fault's entry.
    pub fn entry(address: &str, kind: &str) -> String {
        format!("{address} {kind}")
    }

    /// Writes down that something is about to be on. What ends by itself needs no entry.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub async fn write_down(&self, address: &str, kind: &str, applied: &Applied) -> anyhow::Result<()> {
        let Some(particulars) = particulars(applied) else { return Ok(()) };
        let key = Self::entry(address, kind);
        let mut entry = doc! { "_id": &key, "member": address, "kind": kind };
        entry.extend(owner::this());
        entry.extend(particulars);
        let writing = async {
            match self.0.insert_one(&entry).await {
                // Ours from before, or of a run that has ended since: whoever still needs it is left alone.
                Err(error) if errors::classify(&error).code == Some(DUPLICATE_KEY) => {
                    let theirs = self.0.find_one(doc! { "_id": &key }).await?.unwrap_or_default();
                    match owner::running(&theirs) {
                        Some(process) => Ok(Some(process)),
                        None => {
                            self.0.replace_one(doc! { "_id": &key }, &entry).upsert(true).await.map(|_| None)
                        }
                    }
                }
                result => result.map(|_| None),
            }
        };
        let written: mongodb::error::Result<Option<i64>> =
            tokio::time::timeout(PATIENCE, writing).await.context("writing the fault down took too long")?;
        match written.map_err(|e| anyhow!("writing the fault down failed: {}", errors::message(&e)))? {
            Some(process) => {
                bail!("another run on this machine (process {process}) has {kind} on at {address}")
            }
            None => Ok(()),
        }
    }

    /// Crosses out what is off. An entry that stays only makes the next start turn it off again.
    pub async fn cross_out(&self, entry: &str) {
        let key = doc! { "_id": entry };
        let _ = tokio::time::timeout(PATIENCE, async { self.0.delete_one(key).await }).await;
    }

    /// What is written down of these members, in the order in which to undo it.
    ///
    /// # Errors
    /// When it cannot be read, its run still runs, or this version does not know it.
    pub async fn leftovers(
        &self,
        cluster: &Cluster,
        mut say: impl FnMut(&str),
    ) -> anyhow::Result<Vec<Leftover>> {
        let failed = |e: mongodb::error::Error| {
            anyhow!("reading the journal of faults failed: {}", errors::message(&e))
        };
        let entries = async { self.0.find(doc! {}).await?.try_collect::<Vec<Document>>().await }.await;
        let entries = match entries {
            // Who may not look may not have written either.
            Err(error) if errors::classify(&error).code == Some(UNAUTHORIZED) => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut leftovers = Vec::new();
        for entry in entries {
            let address = entry.get_str("member").unwrap_or_default();
            // A server that stands alone may be spelt in several ways, and is always the one that is meant.
            let only = (cluster.members.len() == 1).then_some(0);
            let member = cluster.members.iter().position(|member| member.address == address).or(only);
            let Some(member) = member else {
                say(&format!(
                    "{address} is written down with a fault on, but is no member any more: see to it there"
                ));
                continue;
            };
            if let Some(process) = owner::running(&entry) {
                bail!(
                    "another run on this machine (process {process}) has a fault on at {address}: let it end first"
                );
            }
            let kind = entry.get_str("kind").unwrap_or_default();
            let known = FAULT_KINDS.into_iter().chain([EXEMPTIONS_KIND]).find(|known| *known == kind);
            let (kind, applied) = known.zip(applied(kind, &entry)).with_context(|| {
                format!("{address} has '{kind}' on, which this version does not know how to undo")
            })?;
            let key = entry.get_str("_id").unwrap_or_default().to_owned();
            leftovers.push(Leftover { entry: key, kind, member, applied });
        }
        leftovers.sort_by_key(|left| left.kind == EXEMPTIONS_KIND);
        Ok(leftovers)
    }
}

/// What undoing takes, beside the kind; `None` for what ends by itself.
fn particulars(applied: &Applied) -> Option<Document> {
    match applied {
        Applied::FailCommand { .. } | Applied::StepDown => Some(Document::new()),
        Applied::LatencyEvent(data, _) => Some(doc! { "database": &data.db, "collection": &data.coll }),
        Applied::Parameters(before) => {
            let list: Vec<Bson> =
                before.iter().map(|(name, value)| doc! { "name": name, "value": value }.into()).collect();
            Some(doc! { "before": list })
        }
        // Holders stop with us; the others are of the lab, which does, too.
        Applied::HoldTickets(_) | Applied::Gate(..) | Applied::Stall | Applied::Kill => None,
    }
}

/// The same back.
fn applied(kind: &str, entry: &Document) -> Option<Applied> {
    Some(match kind {
        "fail_command" => Applied::FailCommand { before: None },
        "latency_event" => {
            let text = |field| entry.get_str(field).ok();
            Applied::LatencyEvent(Namespace::new(text("database")?, text("collection")?), None)
        }
        "step_down" => Applied::StepDown,
        _ => {
            let before = entry.get_array("before").ok()?.iter().map(|setting| {
                let setting = setting.as_document()?;
                Some((setting.get_str("name").ok()?.to_owned(), setting.get("value")?.clone()))
            });
            Applied::Parameters(before.collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_can_be_read_again() {
        let before = vec![("a".to_owned(), Bson::Boolean(false)), ("b".to_owned(), Bson::Int32(7))];
        let entry = particulars(&Applied::Parameters(before.clone())).unwrap();
        let Some(Applied::Parameters(again)) = applied("tickets", &entry) else { panic!("{entry}") };
        assert_eq!(again, before);
        assert!(applied("tickets", &Document::new()).is_none(), "without them it cannot be undone");
        assert!(particulars(&Applied::Stall).is_none());
    }
}
