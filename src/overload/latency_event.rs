//! Many documents in the collection under query, and their end: scans become slow without a limit anywhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::anyhow;
use bson::{Document, doc};
use mongodb::{Collection, Namespace};
use tokio::sync::watch;

use super::Ground;
use super::applied::Applied;
use crate::client::errors;
use crate::plan::LatencyEvent;

/// The field of their keys, by which they are found again.
const KEY: &str = "overdrive_event";

/// Documents in one insert, and their bytes.
const BATCH: u64 = 1000;
const BATCH_BYTES: u64 = 4 << 20;

/// How long a batch under way is waited for before what was inserted is deleted.
const LAST_BATCH: Duration = Duration::from_secs(30);

/// The inserting, as long as it goes on.
pub struct Inserting {
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    ended: watch::Receiver<bool>,
}

/// Begins to insert the documents.
pub fn start(ground: &Ground, fault: &LatencyEvent) -> Applied {
    let (stop, failure) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    let (end, ended) = watch::channel(false);
    let (collection, fault) = (collection(ground, &ground.data), *fault);
    let (asked, why) = (Arc::clone(&stop), Arc::clone(&failure));
    // Never aborted: the server would go on with a batch that nobody waits for, and it would outlive the deletion.
    tokio::spawn(async move {
        if let Err(error) = insert(&collection, &fault, &asked).await {
            *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(errors::message(&error));
        }
        end.send_replace(true);
    });
    Applied::LatencyEvent(ground.data.clone(), Some(Arc::new(Inserting { stop, failure, ended })))
}

async fn insert(
    collection: &Collection<Document>,
    fault: &LatencyEvent,
    stop: &AtomicBool,
) -> mongodb::error::Result<()> {
    let text = "x".repeat(usize::try_from(fault.size).unwrap_or(0));
    let batch = (BATCH_BYTES / u64::from(fault.size.max(1))).clamp(1, BATCH);
    let mut first = 0;
    while first < fault.documents && !stop.load(Ordering::Relaxed) {
        let end = fault.documents.min(first + batch);
        let documents = (first..end).map(|n| doc! { "_id": { KEY: n.cast_signed() }, "text": text.as_str() });
        collection.insert_many(documents).await?;
        first = end;
    }
    Ok(())
}

/// Deletes them.
///
/// # Errors
/// When the deployment does not.
pub async fn undo(
    ground: &Ground,
    data: &Namespace,
    inserting: Option<&Inserting>,
) -> anyhow::Result<String> {
    if let Some(inserting) = inserting {
        inserting.stop.store(true, Ordering::Relaxed);
        let mut ended = inserting.ended.clone();
        // Whoever still inserts after that is looked for in the next round.
        let _ = tokio::time::timeout(LAST_BATCH, ended.wait_for(|&ended| ended)).await;
    }
    let mut deleted = 0;
    loop {
        let round = collection(ground, data)
            .delete_many(ours())
            .await
            .map_err(|error| anyhow!("deleting the event's documents: {}", errors::message(&error)))?
            .deleted_count;
        deleted += round;
        if round == 0 {
            break;
        }
    }
    let failure = inserting.and_then(|i| i.failure.lock().unwrap_or_else(PoisonError::into_inner).take());
    Ok(match failure {
        Some(failure) => format!("{deleted} documents inserted, until {failure}; all deleted"),
        None => format!("{deleted} documents inserted and deleted"),
    })
}

/// The event's documents by their keys. The bounds are of the keys' own type: documents are compared by the type of their
/// first field before its name, so that bounds of any other type would hold the load's own documents between them.
fn ours() -> Document {
    doc! { "_id": { "$gte": { KEY: 0_i64 }, "$lte": { KEY: i64::MAX } } }
}

fn collection(ground: &Ground, data: &Namespace) -> Collection<Document> {
    ground.control.database(&data.db).collection(&data.coll)
}
