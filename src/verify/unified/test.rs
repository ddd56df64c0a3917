//! One test: what it needs, does and expects.

use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;

use super::entities::{Entities, own_app};
use super::expect::expect;
use super::file::{File, unmet};
use super::operations;
use super::{events, matches};
use crate::client::errors;
use crate::verify::finding::Seen;
use crate::verify::stage::Stage;

/// No test is run for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long events are waited for that a test names.
const EVENT: Duration = Duration::from_secs(10);

/// How long the last ones are waited for: a cursor's end is told by a task of its own.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// How often it is looked whether they have come.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a test of a file, and leaves nothing on.
pub async fn run(stage: &Stage, file: &File, test: &Document) -> Seen {
    let own = test.get_array("runOnRequirements").cloned().unwrap_or_default();
    for requirements in [&file.requirements, &own] {
        if let Some(reason) = unmet(requirements, stage.cluster.kind, &stage.cluster.version) {
            return Seen::untestable(reason);
        }
    }
    if let Some(operator) = matches::unknown_operator(&Bson::Document(test.clone())) {
        return Seen::untestable(format!("the runner does not know {operator}"));
    }
    let mut entities = Entities::new(stage);
    entities.want(&file.entities);
    let ran = tokio::time::timeout(PATIENCE, steps(stage, file, test, &mut entities)).await;
    let off = stage.faults.off().await;
    let sessions = entities.session_ids();
    if !sessions.is_empty() {
        // A transaction whose end was rejected would keep its locks for a minute. They are ours, and may have ended.
        let _ = stage.control.database("admin").run_command(doc! { "killSessions": sessions }).await;
    }
    entities.end().await;
    match (ran, off) {
        (_, Err(error)) => Seen::untestable(format!("{error:#}")),
        (Err(_), _) => Seen::untestable(format!("it did not end within {PATIENCE:?}")),
        (Ok(Err(seen)), _) => seen,
        (Ok(Ok(seen)), _) => Seen::judge(true, seen),
    }
}

async fn steps(
    stage: &Stage,
    file: &File,
    test: &Document,
    entities: &mut Entities<'_>,
) -> Result<String, Seen> {
    for data in file.data.iter().filter_map(Bson::as_document) {
        fill(stage, data).await.map_err(|error| Seen::untestable(errors::message(&error)))?;
    }
    let mut done = 0_usize;
    for operation in documents(test, "operations") {
        let name = operation.get_str("name").unwrap_or_default();
        step(stage, entities, operation)
            .await
            .map_err(|seen| Seen { seen: format!("{name}: {}", seen.seen), ..seen })?;
        done += 1;
    }
    let mut seen = 0_usize;
    for expected in documents(test, "expectEvents") {
        seen += expect_events(entities, expected).await?;
    }
    for expected in documents(test, "outcome") {
        expect_documents(stage, entities, expected).await?;
    }
    Ok(format!("{done} steps, {seen} events as expected"))
}

fn documents<'a>(document: &'a Document, field: &str) -> impl Iterator<Item = &'a Document> {
    document.get_array(field).into_iter().flatten().filter_map(Bson::as_document)
}

/// Gives a collection of ours the documents that it is to have.
async fn fill(stage: &Stage, data: &Document) -> mongodb::error::Result<()> {
    let name = data.get_str("collectionName").unwrap_or_default();
    let database = stage.control.database(&stage.database);
    let collection = database.collection::<Document>(name);
    collection.drop().await?;
    let documents: Vec<Document> = documents(data, "documents").cloned().collect();
    if documents.is_empty() {
        return database.create_collection(name).await;
    }
    collection.insert_many(documents).await.map(drop)
}

async fn step(stage: &Stage, entities: &mut Entities<'_>, operation: &Document) -> Result<(), Seen> {
    let [name, object] = ["name", "object"].map(|field| operation.get_str(field).unwrap_or_default());
    let arguments = operation.get_document("arguments").cloned().unwrap_or_default();
    if object != "testRunner" {
        let outcome = operations::run(entities, name, object, &arguments).await?;
        return expect(entities, operation, outcome);
    }
    match name {
        "failPoint" => put_failpoint(stage, &arguments).await,
        "createEntities" => {
            let wanted = arguments.get_array("entities").cloned().unwrap_or_default();
            entities.want(&wanted);
            for client in
                wanted.iter().filter_map(Bson::as_document).filter_map(|one| one.get_document("client").ok())
            {
                entities.client(client.get_str("id").unwrap_or_default()).await?;
            }
            Ok(())
        }
        "waitForEvent" => wait_for(entities, &arguments).await,
        _ => Err(Seen::untestable(format!("the runner has no step {name}"))),
    }
}

/// For connections of this test alone, whatever the test says.
async fn put_failpoint(stage: &Stage, arguments: &Document) -> Result<(), Seen> {
    let untestable = |error: anyhow::Error| Seen::untestable(format!("{error:#}"));
    let wanted = arguments.get_document("failPoint").cloned().unwrap_or_default();
    if !wanted.get_str("configureFailPoint").is_ok_and(|name| name == "failCommand") {
        return Err(Seen::untestable("it takes another failpoint than failCommand"));
    }
    let mode = wanted.get("mode").cloned().unwrap_or(Bson::Null);
    let mut data = wanted.get_document("data").cloned().unwrap_or_default();
    if let Ok(app) = data.get_str("appName") {
        let own = own_app(stage, app);
        data.insert("appName", own);
    }
    let primary = stage.primary().await.map_err(untestable)?;
    stage.faults.put(primary, mode, &data).await.map_err(untestable)
}

async fn wait_for(entities: &Entities<'_>, arguments: &Document) -> Result<(), Seen> {
    let client = arguments.get_str("client").unwrap_or_default();
    let wanted = arguments.get_document("event").cloned().unwrap_or_default();
    let count = usize::try_from(arguments.get_i32("count").unwrap_or(1)).unwrap_or(1);
    let deadline = Instant::now() + EVENT;
    loop {
        let seen = entities.events_named(client, events::name(&wanted));
        if seen.iter().filter(|event| matches_event(&wanted, event, entities).is_ok()).count() >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Seen::judge(false, format!("no {} within {EVENT:?}", events::name(&wanted))));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a client saw these events and no others, in this order; how many.
async fn expect_events(entities: &Entities<'_>, expected: &Document) -> Result<usize, Seen> {
    let client = expected.get_str("client").unwrap_or_default();
    let family = expected.get_str("eventType").unwrap_or("command");
    let wanted: Vec<&Document> = documents(expected, "events").collect();
    let deadline = Instant::now() + LAST_EVENTS;
    let mut seen = entities.events(client, family);
    while seen.len() < wanted.len() && Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
        seen = entities.events(client, family);
    }
    for (i, (wanted, seen)) in wanted.iter().zip(&seen).enumerate() {
        matches_event(wanted, seen, entities)
            .map_err(|why| Seen::judge(false, format!("event {}, {}: {why}", i + 1, events::shown(seen))))?;
    }
    if seen.len() != wanted.len() {
        let all: Vec<String> = seen.iter().map(events::shown).collect();
        let why = format!("{} {family} events, {} were to be: {}", seen.len(), wanted.len(), all.join(", "));
        return Err(Seen::judge(false, why));
    }
    Ok(seen.len())
}

/// An event's command is the root of a document, as its reply is.
fn matches_event(wanted: &Document, seen: &Document, entities: &Entities<'_>) -> Result<(), String> {
    let name = events::name(wanted);
    if events::name(seen) != name {
        return Err(format!("{} was to be", events::shown(wanted)));
    }
    let empty = Document::new();
    let [wanted, seen] = [wanted, seen].map(|event| event.get_document(name).unwrap_or(&empty));
    for (key, wanted) in wanted {
        let matched = match (wanted, seen.get(key)) {
            (Bson::Document(wanted), Some(Bson::Document(seen))) => matches::document(wanted, seen, entities),
            (wanted, seen) => matches::value(wanted, seen, entities),
        };
        matched.map_err(|why| format!("{key} {why}"))?;
    }
    Ok(())
}

/// Whether a collection holds these documents afterwards.
async fn expect_documents(stage: &Stage, entities: &Entities<'_>, expected: &Document) -> Result<(), Seen> {
    let name = expected.get_str("collectionName").unwrap_or_default();
    let collection = stage.control.database(&stage.database).collection::<Document>(name);
    let finding =
        async { collection.find(doc! {}).sort(doc! { "_id": 1 }).await?.try_collect::<Vec<_>>().await };
    let found = finding.await.map_err(|error| Seen::untestable(errors::message(&error)))?;
    let found: Vec<Bson> = found.into_iter().map(Bson::Document).collect();
    let wanted = expected.get_array("documents").cloned().unwrap_or_default();
    matches::documents(&wanted, &found, entities)
        .map_err(|why| Seen::judge(false, format!("in the end the collection {why}")))
}
