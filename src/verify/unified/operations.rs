//! The operations of these files, through the driver's own methods.

use bson::{Array, Bson, Document, bson, doc};
use futures_util::TryStreamExt;
use mongodb::error::Error;
use mongodb::options::{IndexOptions, InsertOneModel};
use mongodb::{Client, Collection, Database, IndexModel, Namespace};

use super::entities::Entities;
use crate::verify::finding::Seen;

/// What came of an operation: the driver's result, as far as tests look at it, or its error.
pub type Outcome = Result<Bson, Error>;

/// Does what a test says with an entity.
///
/// # Errors
/// When that cannot be done here; an error of the driver's is an outcome.
pub async fn run(
    entities: &mut Entities<'_>,
    name: &str,
    object: &str,
    arguments: &Document,
) -> Result<Outcome, Seen> {
    let outcome = match entities.kind(object)? {
        "client" => on_client(&entities.client(object).await?, name, arguments).await,
        "database" => on_database(&entities.database(object).await?, name, arguments).await,
        "session" => on_session(entities.session(object).await?, name).await,
        "collection" => {
            let collection = entities.collection(object).await?;
            match arguments.get_str("session") {
                Ok(session) => {
                    let session = entities.session(session).await?;
                    in_session(&collection, session, name, arguments).await
                }
                Err(_) => match on_collection(&collection, name, arguments).await {
                    None => find_and_modify(&collection, name, arguments).await,
                    outcome => outcome,
                },
            }
        }
        kind => return Err(Seen::untestable(format!("the runner does nothing with a {kind}"))),
    };
    outcome.ok_or_else(|| match name {
        "bulkWrite" => Seen::untestable("this driver has no Collection::bulk_write"),
        _ => Seen::untestable(format!("the runner has no operation {name} on {object}")),
    })
}

async fn on_client(client: &Client, name: &str, arguments: &Document) -> Option<Outcome> {
    Some(match name {
        "listDatabases" => nothing(client.list_databases().filter(filter(arguments)).await),
        "listDatabaseNames" => nothing(client.list_database_names().await),
        "createChangeStream" => nothing(client.watch().pipeline(pipeline(arguments)).await),
        "clientBulkWrite" => {
            let models = arguments.get_array("models").ok()?.iter();
            let models = models.map(insert_model).collect::<Option<Vec<_>>>()?;
            nothing(client.bulk_write(models).await)
        }
        _ => return None,
    })
}

fn insert_model(model: &Bson) -> Option<InsertOneModel> {
    let insert = model.as_document()?.get_document("insertOne").ok()?;
    let namespace: Namespace = insert.get_str("namespace").ok()?.parse().ok()?;
    let document = insert.get_document("document").ok()?.clone();
    Some(InsertOneModel::builder().namespace(namespace).document(document).build())
}

async fn on_database(database: &Database, name: &str, arguments: &Document) -> Option<Outcome> {
    Some(match name {
        "aggregate" => {
            let aggregating =
                async { database.aggregate(pipeline(arguments)).await?.try_collect::<Vec<_>>().await };
            nothing(aggregating.await)
        }
        "listCollections" => {
            let listing = async {
                database.list_collections().filter(filter(arguments)).await?.try_collect::<Vec<_>>().await
            };
            nothing(listing.await)
        }
        "listCollectionNames" => nothing(database.list_collection_names().filter(filter(arguments)).await),
        "runCommand" => nothing(database.run_command(arguments.get_document("command").ok()?.clone()).await),
        "createChangeStream" => nothing(database.watch().pipeline(pipeline(arguments)).await),
        _ => return None,
    })
}

async fn on_session(session: &mut mongodb::ClientSession, name: &str) -> Option<Outcome> {
    Some(match name {
        "startTransaction" => nothing(session.start_transaction().await),
        "commitTransaction" => nothing(session.commit_transaction().await),
        "abortTransaction" => nothing(session.abort_transaction().await),
        _ => return None,
    })
}

async fn in_session(
    collection: &Collection<Document>,
    session: &mut mongodb::ClientSession,
    name: &str,
    arguments: &Document,
) -> Option<Outcome> {
    Some(match name {
        "insertOne" => {
            inserted(collection.insert_one(document(arguments, "document")).session(session).await)
        }
        "find" => {
            let finding = async {
                let mut cursor = collection.find(filter(arguments)).session(&mut *session).await?;
                cursor.stream(session).try_collect::<Vec<_>>().await
            };
            listed(finding.await)
        }
        _ => return None,
    })
}

async fn on_collection(
    collection: &Collection<Document>,
    name: &str,
    arguments: &Document,
) -> Option<Outcome> {
    let filter = || filter(arguments);
    Some(match name {
        "createChangeStream" => nothing(collection.watch().pipeline(pipeline(arguments)).await),
        "aggregate" => {
            let aggregating =
                async { collection.aggregate(pipeline(arguments)).await?.try_collect::<Vec<_>>().await };
            listed(aggregating.await)
        }
        "countDocuments" => nothing(collection.count_documents(filter()).await),
        "estimatedDocumentCount" => nothing(collection.estimated_document_count().await),
        "distinct" => nothing(collection.distinct(arguments.get_str("fieldName").ok()?, filter()).await),
        "find" => {
            let mut find = collection.find(filter());
            if let Ok(size) = arguments.get_i32("batchSize") {
                find = find.batch_size(u32::try_from(size).ok()?);
            }
            if let Ok(sort) = arguments.get_document("sort") {
                find = find.sort(sort.clone());
            }
            let finding = async { find.await?.try_collect::<Vec<_>>().await };
            listed(finding.await)
        }
        "findOne" => nothing(collection.find_one(filter()).await),
        "listIndexes" => {
            nothing(async { collection.list_indexes().await?.try_collect::<Vec<_>>().await }.await)
        }
        "listIndexNames" => nothing(collection.list_index_names().await),
        "insertOne" => inserted(collection.insert_one(document(arguments, "document")).await),
        "insertMany" => {
            let documents = arguments.get_array("documents").ok()?.iter();
            let documents: Vec<Document> = documents.filter_map(|one| one.as_document().cloned()).collect();
            nothing(collection.insert_many(documents).await)
        }
        "deleteOne" => nothing(collection.delete_one(filter()).await),
        "deleteMany" => nothing(collection.delete_many(filter()).await),
        "replaceOne" => nothing(collection.replace_one(filter(), document(arguments, "replacement")).await),
        "updateOne" => nothing(collection.update_one(filter(), document(arguments, "update")).await),
        "updateMany" => nothing(collection.update_many(filter(), document(arguments, "update")).await),
        "createIndex" => {
            let name = arguments.get_str("name").ok().map(str::to_owned);
            let options = IndexOptions::builder().name(name).build();
            let index = IndexModel::builder().keys(document(arguments, "keys")).options(options).build();
            nothing(collection.create_index(index).await)
        }
        "dropIndex" => nothing(collection.drop_index(arguments.get_str("name").ok()?).await),
        "dropIndexes" => nothing(collection.drop_indexes().await),
        _ => return None,
    })
}

async fn find_and_modify(
    collection: &Collection<Document>,
    name: &str,
    arguments: &Document,
) -> Option<Outcome> {
    let filter = filter(arguments);
    Some(match name {
        "findOneAndDelete" => nothing(collection.find_one_and_delete(filter).await),
        "findOneAndReplace" => {
            nothing(collection.find_one_and_replace(filter, document(arguments, "replacement")).await)
        }
        "findOneAndUpdate" => {
            nothing(collection.find_one_and_update(filter, document(arguments, "update")).await)
        }
        _ => return None,
    })
}

/// A result that no test looks at.
fn nothing<T>(result: mongodb::error::Result<T>) -> Outcome {
    result.map(|_| Bson::Null)
}

fn inserted(result: mongodb::error::Result<mongodb::results::InsertOneResult>) -> Outcome {
    result.map(|result| bson!({ "insertedId": result.inserted_id }))
}

fn listed(result: mongodb::error::Result<Vec<Document>>) -> Outcome {
    result.map(|documents| documents.into_iter().map(Bson::Document).collect::<Array>().into())
}

fn document(arguments: &Document, field: &str) -> Document {
    arguments.get_document(field).cloned().unwrap_or_default()
}

fn filter(arguments: &Document) -> Document {
    arguments.get_document("filter").cloned().unwrap_or_else(|_| doc! {})
}

fn pipeline(arguments: &Document) -> Vec<Document> {
    let stages = arguments.get_array("pipeline").into_iter().flatten();
    stages.filter_map(|stage| stage.as_document().cloned()).collect()
}
