//! What is on, written down on the cluster, for the start after a kill.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;
use mongodb::{Client, Collection};

use super::applied::Applied;
use crate::client::errors;
use crate::cluster::Cluster;
use crate::owner;
use crate::profile::FAULT_KINDS;

/// The collection, in the data's database.
pub const COLLECTION: &str = "overdrive.faults";

/// Nothing waits longer for the journal.
const PATIENCE: Duration = Duration::from_secs(3);

/// The list of applications that a limiter exempts: part of a fault, and the last to be undone.
const EXEMPTIONS: &str = "exemptions";

/// The journal of one database.
pub struct Journal(Collection<Document>);

/// Something that an earlier run has left on.
pub struct Leftover {
    /// Its kind.
    pub kind: &'static str,
    /// The member's number.
    pub member: usize,
    /// What turns it off.
    pub applied: Applied,
}

impl Journal {
    /// That of a database.
    pub fn new(control: &Client, database: &str) -> Self {
        Self(control.database(database).collection(COLLECTION))
    }

    /// Writes down that something is about to be on. What ends by itself needs no entry.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub async fn write_down(&self, address: &str, kind: &str, applied: &Applied) -> anyhow::Result<()> {
        let Some(particulars) = particulars(applied) else { return Ok(()) };
        let mut entry = owner::this();
        entry.extend(doc! { "member": address, "kind": kind });
        entry.extend(particulars);
        let written = self.0.update_one(key(address, kind), doc! { "$set": entry }).upsert(true);
        tokio::time::timeout(PATIENCE, async { written.await })
            .await
            .context("writing the fault down took too long")?
            .map(drop)
            .map_err(|e| anyhow!("writing the fault down failed: {}", errors::message(&e)))
    }

    /// Crosses out what is off. An entry that stays only makes the next start turn it off again.
    pub async fn cross_out(&self, address: &str, kind: &str) {
        let _ = tokio::time::timeout(PATIENCE, async { self.0.delete_one(key(address, kind)).await }).await;
    }

    /// What is written down of these members, in the order in which to undo it.
    ///
    /// # Errors
    /// When it cannot be read, its run still runs, or this version does not know it.
    pub async fn leftovers(&self, cluster: &Cluster) -> anyhow::Result<Vec<Leftover>> {
        let failed = |e: mongodb::error::Error| {
            anyhow!("reading the journal of faults failed: {}", errors::message(&e))
        };
        let entries: Vec<Document> =
            self.0.find(doc! {}).await.map_err(failed)?.try_collect().await.map_err(failed)?;
        let mut leftovers = Vec::new();
        for entry in entries {
            let address = entry.get_str("member").unwrap_or_default();
            let Some(member) = cluster.members.iter().position(|member| member.address == address) else {
                continue;
            };
            if let Some(process) = owner::running(&entry) {
                bail!(
                    "another run on this machine (process {process}) has a fault on at {address}: let it end first"
                );
            }
            let kind = entry.get_str("kind").unwrap_or_default();
            let known = FAULT_KINDS.into_iter().chain([EXEMPTIONS]).find(|known| *known == kind);
            let (kind, applied) = known.zip(applied(kind, &entry)).with_context(|| {
                format!("{address} has '{kind}' on, which this version does not know how to undo")
            })?;
            leftovers.push(Leftover { kind, member, applied });
        }
        leftovers.sort_by_key(|left| left.kind == EXEMPTIONS);
        Ok(leftovers)
    }
}

fn key(address: &str, kind: &str) -> Document {
    doc! { "_id": format!("{address} {kind}") }
}

/// What undoing takes, beside the kind; `None` for what ends by itself.
fn particulars(applied: &Applied) -> Option<Document> {
    match applied {
        Applied::FailCommand { .. } | Applied::StepDown => Some(Document::new()),
        Applied::LatencyEvent(collection, _) => Some(doc! { "collection": collection }),
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
        "latency_event" => Applied::LatencyEvent(entry.get_str("collection").ok()?.to_owned(), None),
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
