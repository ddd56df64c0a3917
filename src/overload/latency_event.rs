//! Many documents in the collection under query, and their end: scans become slow without a limit anywhere.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use bson::{Bson, Document, doc};
use mongodb::Collection;
use tokio_util::task::AbortOnDropHandle;

use super::Ground;
use super::applied::Applied;
use crate::client::errors;
use crate::plan::LatencyEvent;

/// The field of their keys, by which they are found again; the load's own keys are no documents.
const KEY: &str = "overdrive_event";

/// Documents in one insert.
const BATCH: u64 = 1000;

/// The inserting, as long as it goes on.
pub struct Inserting {
    failure: Arc<Mutex<Option<String>>>,
    task: AbortOnDropHandle<()>,
}

/// Begins to insert the documents.
pub fn start(ground: &Ground, fault: &LatencyEvent) -> Applied {
    let failure = Arc::new(Mutex::new(None));
    let (collection, fault) = (collection(ground, &ground.data.coll), *fault);
    let why = Arc::clone(&failure);
    let task = tokio::spawn(async move {
        let text = "x".repeat(usize::try_from(fault.size).unwrap_or(0));
        for first in (0..fault.documents).step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let numbers = first..fault.documents.min(first + BATCH);
            let documents = numbers.map(|n| doc! { "_id": { KEY: n.cast_signed() }, "text": text.as_str() });
            // The control connection is exempt from limits; what hinders it is worth telling.
            if let Err(error) = collection.insert_many(documents).await {
                *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(errors::message(&error));
                return;
            }
        }
    });
    let task = AbortOnDropHandle::new(task);
    Applied::LatencyEvent(ground.data.coll.clone(), Some(Arc::new(Inserting { failure, task })))
}

/// Deletes them.
///
/// # Errors
/// When the deployment does not.
pub async fn undo(ground: &Ground, name: &str, inserting: Option<&Inserting>) -> anyhow::Result<String> {
    if let Some(inserting) = inserting {
        inserting.task.abort();
    }
    let all = doc! { "_id": { "$gte": { KEY: Bson::MinKey }, "$lte": { KEY: Bson::MaxKey } } };
    let deleted = collection(ground, name)
        .delete_many(all)
        .await
        .map_err(|error| anyhow!("deleting the event's documents: {}", errors::message(&error)))?
        .deleted_count;
    let failure = inserting.and_then(|i| i.failure.lock().unwrap_or_else(PoisonError::into_inner).take());
    Ok(match failure {
        Some(failure) => format!("{deleted} documents inserted, until {failure}; all deleted"),
        None => format!("{deleted} documents inserted and deleted"),
    })
}

fn collection(ground: &Ground, name: &str) -> Collection<Document> {
    ground.control.database(&ground.data.db).collection(name)
}
