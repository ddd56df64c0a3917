//! Before the load: the documents it works on.
//!
//! overdrive only writes in its own namespace. It knows its collection by the UUID that a marker document in
//! `overdrive.markers` of the same database names, written before the first document; another collection that holds
//! documents is somebody else's, and is left alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{anyhow, bail};
use bson::{Bson, Document, doc};
use futures_util::stream::{FuturesUnordered, StreamExt};
use mongodb::error::Error;
use mongodb::{Client, Collection, Database};
use sha2::{Digest, Sha256};

use crate::client::errors;
use crate::document::{Compiled, Draw};
use crate::operation::execute::BESIDE;
use crate::owner;
use crate::plan::{Data, Plan};
use crate::snapshot::Preparing;

/// Where markers live, beside the data.
pub const MARKERS: &str = "overdrive.markers";

/// Documents in one insert.
const BATCH: u64 = 500;

/// Inserts at a time.
const PARALLEL: usize = 4;

/// A batch that fails this often in a row, backing off each time, is given up: about a minute and a half.
const TRIES: u32 = 20;

/// Sees to it that the data is there as the plan wants it. `preparing` hears how the data load goes on.
///
/// # Errors
/// When the namespace is somebody else's, another run works on it, or documents cannot be stored.
pub async fn prepare(client: &Client, plan: &Plan, preparing: impl FnMut(Preparing)) -> anyhow::Result<()> {
    let database = client.database(&plan.data.database);
    let data: Collection<Document> = database.collection(&plan.data.collection);
    let marker = Marker { markers: database.collection(MARKERS), collection: plan.data.collection.clone() };
    let stored = marker.read().await?;
    let found = identity(&database, &plan.data.collection).await?;
    let ours = found.is_some() && stored.get("uuid") == found.as_ref();
    if !ours {
        refuse_strangers(&data, plan).await?;
    }
    let writes = plan.operations.iter().any(|o| o.weight > 0 && o.action.writes());
    let fingerprint = fingerprint(plan);
    let same = stored.get_str("fingerprint").is_ok_and(|stored| stored == fingerprint);
    if ours && same && flag(&stored, "pristine") && count(&data).await? == plan.data.documents {
        return marker.write(doc! { "pristine": !writes }).await;
    }
    if let Some(process) = owner::running(&stored) {
        bail!(
            "another run on this machine (process {process}) works on {}.{}, and this one wants other documents there: \
             name another collection with --set data.collection=NAME, or let it end first",
            plan.data.database,
            plan.data.collection
        );
    }
    marker.write(doc! { "pristine": false }).await?;
    drop_beside(&database, &plan.data.collection).await?;
    // Somebody else's collection that was found empty is emptied again, never dropped: it may have options and indexes.
    let made = found.is_none() || (ours && flag(&stored, "made"));
    if made {
        persist("dropping old data", || async { data.drop().await }).await?;
        create(&database, plan).await?;
    } else {
        persist("deleting old data", || async { data.delete_many(doc! {}).await.map(drop) }).await?;
    }
    index(&database, plan).await?;
    let uuid = identity(&database, &plan.data.collection).await?;
    marker.write(doc! { "uuid": uuid, "made": made, "fingerprint": &fingerprint }).await?;
    load(&data, plan, preparing).await?;
    marker.write(doc! { "pristine": !writes }).await
}

/// What is known of the collection from earlier runs.
struct Marker {
    markers: Collection<Document>,
    collection: String,
}

impl Marker {
    /// Empty when there was no run.
    async fn read(&self) -> anyhow::Result<Document> {
        let marker = self.markers.find_one(doc! { "_id": &self.collection }).await;
        Ok(marker.map_err(|e| failed(&e, "reading the marker"))?.unwrap_or_default())
    }

    /// Changes some of it; this run is the one that works on the collection now.
    async fn write(&self, mut fields: Document) -> anyhow::Result<()> {
        fields.extend(owner::this());
        persist("writing the marker", || async {
            let change = doc! { "$set": fields.clone() };
            self.markers.update_one(doc! { "_id": &self.collection }, change).upsert(true).await.map(drop)
        })
        .await
    }
}

/// The collection's UUID, which no other collection of that name has; `None` when there is none.
async fn identity(database: &Database, collection: &str) -> anyhow::Result<Option<Bson>> {
    let command = doc! { "listCollections": 1, "filter": { "name": collection } };
    let reply = database.run_command(command).await.map_err(|e| failed(&e, "looking at the collection"))?;
    let first = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"))
        .ok()
        .and_then(|batch| batch.first()?.as_document());
    Ok(first.and_then(|found| found.get_document("info").ok()?.get("uuid").cloned()))
}

async fn refuse_strangers(data: &Collection<Document>, plan: &Plan) -> anyhow::Result<()> {
    let held = data.find_one(doc! {}).await.map_err(|e| failed(&e, "looking at the collection"))?;
    if held.is_none() {
        return Ok(());
    }
    bail!(
        "{}.{} holds documents that overdrive did not put there: it is left alone. Name another one with \
         --set data.collection=NAME or --set data.database=NAME",
        plan.data.database,
        plan.data.collection
    );
}

async fn count(data: &Collection<Document>) -> anyhow::Result<u64> {
    data.estimated_document_count().await.map_err(|e| failed(&e, "counting documents"))
}

fn flag(marker: &Document, name: &str) -> bool {
    marker.get_bool(name).unwrap_or(false)
}

/// What makes stored documents what they are.
pub(super) fn fingerprint(plan: &Plan) -> String {
    let what = serde_json::json!([plan.seed, plan.data]);
    Sha256::digest(what.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What operations made beside the data's collection.
async fn drop_beside(database: &Database, collection: &str) -> anyhow::Result<()> {
    let beside = format!("{collection}{BESIDE}");
    let names = database.list_collection_names().await.map_err(|e| failed(&e, "listing collections"))?;
    for name in names.iter().filter(|name| name.starts_with(&beside)) {
        let old: Collection<Document> = database.collection(name);
        persist("dropping old data", || async { old.drop().await }).await?;
    }
    Ok(())
}

async fn create(database: &Database, plan: &Plan) -> anyhow::Result<()> {
    // Made at once, so that no operation of the load meets its creation.
    persist("creating the collection", || async {
        match database.create_collection(&plan.data.collection).await {
            Err(error) if errors::classify(&error).code == Some(NAMESPACE_EXISTS) => Ok(()),
            other => other,
        }
    })
    .await
}

async fn index(database: &Database, plan: &Plan) -> anyhow::Result<()> {
    let mut indexes = Vec::new();
    for template in &plan.data.indexes {
        let keys = Compiled::new(template, 0).document(&mut Draw::loading(plan.seed, 0, 0));
        let name: Vec<String> = keys.iter().map(|(field, kind)| format!("{field}_{kind}")).collect();
        indexes.push(doc! { "name": name.join("_").replace('"', ""), "key": keys });
    }
    if indexes.is_empty() {
        return Ok(());
    }
    let command = doc! { "createIndexes": &plan.data.collection, "indexes": indexes };
    persist("creating indexes", || async { database.run_command(command.clone()).await.map(drop) }).await
}

const NAMESPACE_EXISTS: i32 = 48;
const DUPLICATE_KEY: i32 = 11000;

async fn load(
    data: &Collection<Document>,
    plan: &Plan,
    mut preparing: impl FnMut(Preparing),
) -> anyhow::Result<()> {
    let wanted = plan.data.documents;
    let template = Compiled::new(&plan.data.document, wanted);
    let duplicates = AtomicBool::new(false);
    let store = |first: u64| {
        let documents: Vec<Document> = (first..wanted.min(first + BATCH))
            .map(|key| template.document(&mut Draw::loading(plan.seed, key, wanted)))
            .collect();
        let duplicates = &duplicates;
        async move {
            persist("storing documents", || async {
                match data.insert_many(&documents).ordered(false).await {
                    Err(error) if only_duplicates(&error) => {
                        duplicates.store(true, Ordering::Relaxed);
                        Ok(())
                    }
                    other => other.map(drop),
                }
            })
            .await
            .map(|()| documents.len() as u64)
        }
    };
    let mut starts = (0..wanted).step_by(usize::try_from(BATCH)?);
    let mut running: FuturesUnordered<_> = starts.by_ref().take(PARALLEL).map(store).collect();
    let mut stored = 0;
    while let Some(batch) = running.next().await {
        stored += batch?;
        running.extend(starts.next().map(store));
        preparing(Preparing { stored, wanted });
    }
    if duplicates.load(Ordering::Relaxed) { all_there(data, plan).await } else { Ok(()) }
}

/// Batches that were stored twice, as their first reply was lost, leave every document there; documents that have a key
/// in common do not.
async fn all_there(data: &Collection<Document>, plan: &Plan) -> anyhow::Result<()> {
    let there = data.count_documents(doc! {}).await.map_err(|e| failed(&e, "counting documents"))?;
    let (wanted, Data { database, collection, .. }) = (plan.data.documents, &plan.data);
    if there < wanted {
        bail!(
            "{there} of {wanted} documents are in {database}.{collection}: the others have a key that another one has \
             already. Give each an _id of its own in data.document, like _id = {{ \"^Key\" = \"sequential\" }}, or ask for \
             fewer with data.documents"
        );
    }
    Ok(())
}

/// A batch that was stored before its reply was lost: every failure is of a document that is there already.
fn only_duplicates(error: &Error) -> bool {
    matches!(error.kind.as_ref(), mongodb::error::ErrorKind::InsertMany(e)
        if e.write_concern_error.is_none()
            && e.write_errors.as_ref().is_some_and(|errors| errors.iter().all(|e| e.code == DUPLICATE_KEY)))
}

/// Tries until it is done, or until it is clear that it will not be: preparing is not what is measured, so a server that
/// rejects is asked again, with full-jitter backoff.
pub(super) async fn persist<F: Future<Output = mongodb::error::Result<()>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> anyhow::Result<()> {
    let mut tries = 0;
    loop {
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(error) if tries < TRIES && may_pass(&error) => {
                tries += 1;
                let most =
                    Duration::from_millis(100).saturating_mul(1 << tries.min(6)).min(Duration::from_secs(5));
                tokio::time::sleep(most.mul_f64(rand::random())).await;
            }
            Err(error) => return Err(failed(&error, what)),
        }
    }
}

fn may_pass(error: &Error) -> bool {
    errors::is_overload(error)
        || error.contains_label("RetryableWriteError")
        || matches!(errors::classify(error).kind.as_str(), "io" | "server_selection" | "pool_cleared")
}

pub(super) fn failed(error: &Error, what: &str) -> anyhow::Error {
    let class = errors::classify(error);
    let code = class.code.map(|code| format!(" (code {code} {})", class.code_name)).unwrap_or_default();
    anyhow!("{what} failed: {}{code}", errors::message(error))
}
