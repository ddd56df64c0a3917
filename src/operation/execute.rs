//! Running a statement through the driver, the way an application would.

use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf};
use mongodb::error::{Error, Result};
use mongodb::options::{UpdateModifications, WriteModel};
use mongodb::{Client, ClientSession, Collection, Database, Namespace};

use super::items::Items;
use super::{Find, NewDocument, Statement, Update};
use crate::client::attempt;
use crate::document::{Compiled, Draw};
use crate::plan::Data;

/// What stands between the data's collection and the suffix in the names of collections that operations make: nobody
/// else's are called so, and they may be dropped.
pub const BESIDE: &str = ".overdrive.";

/// The handles that statements run on; cheap to clone.
#[derive(Clone)]
pub struct Target {
    client: Client,
    database: Database,
    collection: Collection<RawDocumentBuf>,
    inserts: Collection<Document>,
    max_time: Option<Duration>,
}

/// Where a command has its time limit.
const MAX_TIME: &str = "maxTimeMS";

/// The longest time limit that servers take, in milliseconds.
const LONGEST_MAX_TIME: u128 = i32::MAX as u128;

impl Target {
    /// The data's namespace on a client. `max_time` is what servers are told, where the driver can tell them, and where it
    /// is not above what they take.
    pub fn new(client: &Client, data: &Data, max_time: Option<Duration>) -> Self {
        let database = client.database(&data.database);
        Self {
            client: client.clone(),
            collection: database.collection(&data.collection),
            inserts: database.collection(&data.collection),
            database,
            max_time: max_time.filter(|time| time.as_millis() <= LONGEST_MAX_TIME),
        }
    }

    /// Runs one statement to its end: whole cursors, whole transactions; of a bulk these items.
    ///
    /// # Errors
    /// What the driver returns; a template that renders to something else than its place takes is the driver's
    /// `InvalidArgument`.
    pub async fn execute(&self, statement: &Statement, items: &Items, draw: &mut Draw) -> Result<()> {
        match statement {
            Statement::Transaction(statements) => self.transaction(statements, draw).await,
            Statement::InsertMany { count, document, ordered } => {
                let documents = items.pick(document.render_many(*count, draw));
                self.inserts.insert_many(documents).ordered(*ordered).await.map(drop)
            }
            Statement::BulkWrite(writes, ordered) => {
                let namespace = self.collection.namespace();
                let models =
                    writes.iter().map(|write| model(write, &namespace, draw)).collect::<Result<Vec<_>>>()?;
                self.client.bulk_write(items.pick(models)).ordered(*ordered).await.map(drop)
            }
            Statement::CreateCollection(suffix) => {
                self.database.create_collection(self.beside(suffix, draw)).await
            }
            Statement::Drop(suffix) => {
                self.database.collection::<Document>(&self.beside(suffix, draw)).drop().await
            }
            _ => self.statement(statement, draw, None).await,
        }
    }

    /// Runs a statement that is not one of several as part of a transaction.
    ///
    /// # Errors
    /// As for [`Self::execute`].
    pub async fn execute_within(
        &self,
        statement: &Statement,
        draw: &mut Draw,
        session: &mut ClientSession,
    ) -> Result<()> {
        self.statement(statement, draw, Some(session)).await
    }

    async fn transaction(&self, statements: &[Statement], draw: &mut Draw) -> Result<()> {
        let mut session = self.client.start_session().await?;
        session.start_transaction().await?;
        for statement in statements {
            attempt::next_statement();
            if attempt::is_late() {
                return Err(Error::custom("the transaction ended with its call's deadline".to_owned()));
            }
            if let Err(error) = self.statement(statement, draw, Some(&mut session)).await {
                attempt::next_statement();
                // The transaction is lost either way; the statement's error is the one that tells why.
                let _ = session.abort_transaction().await;
                return Err(error);
            }
        }
        attempt::next_statement();
        session.commit_transaction().await
    }

    async fn statement(
        &self,
        statement: &Statement,
        draw: &mut Draw,
        session: Option<&mut ClientSession>,
    ) -> Result<()> {
        /// Ends an action inside the session, if there is one.
        macro_rules! within {
            ($action:expr) => {{
                let action = $action;
                match session {
                    Some(session) => action.session(session).await.map(drop),
                    None => action.await.map(drop),
                }
            }};
        }
        /// An action with the time limit, if there is one.
        macro_rules! limited {
            ($action:expr) => {{
                let action = $action;
                match self.max_time {
                    Some(time) => action.max_time(time),
                    None => action,
                }
            }};
        }
        /// Fetches every batch of an action's cursor, inside the session, if there is one; none after the deadline.
        macro_rules! drain {
            ($action:expr) => {{
                match session {
                    Some(session) => {
                        let mut cursor = $action.session(&mut *session).await?;
                        while !attempt::is_late() && cursor.advance(session).await? {}
                    }
                    None => {
                        let mut cursor = $action.await?;
                        while !attempt::is_late() && cursor.advance().await? {}
                    }
                }
                Ok(())
            }};
        }
        match statement {
            Statement::FindOne(find) => {
                let action = limited!(self.collection.find_one(find.filter.document(draw)));
                // Options are some 800 bytes; most reads have none.
                match find.is_plain() {
                    true => within!(action),
                    false => within!(limited!(action.with_options(find.one(draw)))),
                }
            }
            Statement::Find(find) => {
                let action = self.collection.find(find.filter.document(draw)).with_options(find.many(draw)?);
                drain!(limited!(action))
            }
            Statement::Aggregate(stages, batch_size) => {
                let pipeline: Vec<Document> = stages.iter().map(|stage| stage.document(draw)).collect();
                let mut action = self.collection.aggregate(pipeline);
                if let Some(size) = *batch_size {
                    action = action.batch_size(size);
                }
                drain!(limited!(action))
            }
            Statement::Count(filter) => {
                within!(limited!(self.collection.count_documents(filter.document(draw))))
            }
            Statement::Distinct(field, filter) => {
                within!(limited!(self.collection.distinct(field, filter.document(draw))))
            }
            Statement::InsertOne(document) => within!(self.inserts.insert_one(document.render(draw))),
            Statement::InsertMany { count, document, ordered } => {
                within!(self.inserts.insert_many(document.render_many(*count, draw)).ordered(*ordered))
            }
            Statement::UpdateOne(update) => {
                let (filter, change) = update.render(draw)?;
                within!(self.collection.update_one(filter, change).upsert(update.upsert))
            }
            Statement::UpdateMany(update) => {
                let (filter, change) = update.render(draw)?;
                within!(self.collection.update_many(filter, change).upsert(update.upsert))
            }
            Statement::FindOneAndUpdate(update) => {
                let (filter, change) = update.render(draw)?;
                let action = self.collection.find_one_and_update(filter, change).upsert(update.upsert);
                within!(limited!(action))
            }
            Statement::ReplaceOne(update) => {
                let filter = update.filter.document(draw);
                let replacement = update.change.document(draw);
                within!(self.inserts.replace_one(filter, replacement).upsert(update.upsert))
            }
            Statement::DeleteOne(filter) => within!(self.collection.delete_one(filter.document(draw))),
            Statement::DeleteMany(filter) => within!(self.collection.delete_many(filter.document(draw))),
            Statement::RunCommand(command, database) => {
                let database =
                    database.as_ref().map_or_else(|| self.database.clone(), |d| self.client.database(d));
                let mut command = command.document(draw);
                if let Some(time) = self.max_time.filter(|_| !command.contains_key(MAX_TIME)) {
                    command.insert(MAX_TIME, i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
                }
                within!(database.run_command(command))
            }
            Statement::BulkWrite(..)
            | Statement::Transaction(_)
            | Statement::CreateCollection(_)
            | Statement::Drop(_) => Err(invalid("this kind cannot be part of a transaction")),
        }
    }

    fn beside(&self, suffix: &Compiled, draw: &mut Draw) -> String {
        let suffix = match suffix.render(draw) {
            Bson::String(text) => text,
            other => other.to_string(),
        };
        format!("{}{BESIDE}{suffix}", self.collection.name())
    }
}

impl Find {
    /// Whether it is a filter and nothing else.
    const fn is_plain(&self) -> bool {
        self.projection.is_none() && self.sort.is_none()
    }

    fn one(&self, draw: &mut Draw) -> mongodb::options::FindOneOptions {
        let mut options = mongodb::options::FindOneOptions::default();
        options.projection = self.projection.as_ref().map(|p| p.document(draw));
        options.sort = self.sort.as_ref().map(|s| s.document(draw));
        options
    }

    fn many(&self, draw: &mut Draw) -> Result<mongodb::options::FindOptions> {
        let mut options = mongodb::options::FindOptions::default();
        options.projection = self.projection.as_ref().map(|p| p.document(draw));
        options.sort = self.sort.as_ref().map(|s| s.document(draw));
        options.batch_size = self.batch_size;
        options.limit = match self.limit.as_ref().map(|limit| limit.render(draw)) {
            None => None,
            Some(Bson::Int32(limit)) => Some(i64::from(limit)),
            Some(Bson::Int64(limit)) => Some(limit),
            Some(_) => return Err(invalid("limit renders to something that is no integer")),
        };
        Ok(options)
    }
}

impl Update {
    pub(super) fn render(&self, draw: &mut Draw) -> Result<(Document, UpdateModifications)> {
        let filter = self.filter.document(draw);
        let change = match self.change.render(draw) {
            Bson::Document(operators) => UpdateModifications::Document(operators),
            Bson::Array(stages) => UpdateModifications::Pipeline(
                stages
                    .into_iter()
                    .map(|stage| match stage {
                        Bson::Document(stage) => Ok(stage),
                        _ => Err(invalid("a stage of an update renders to something that is no document")),
                    })
                    .collect::<Result<_>>()?,
            ),
            _ => return Err(invalid("update renders to something that is no document")),
        };
        Ok((filter, change))
    }
}

impl NewDocument {
    /// So many of them, for one operation.
    pub(super) fn render_many(&self, count: u32, draw: &mut Draw) -> Vec<Document> {
        let times = u64::from(count);
        let each = (0..times).map(|place| {
            draw.rendering(place, times);
            self.render(draw)
        });
        let documents = each.collect();
        draw.rendering(0, 1);
        documents
    }

    pub(super) fn render(&self, draw: &mut Draw) -> Document {
        match self {
            Self::Own(template) => template.document(draw),
            Self::Data(template) => {
                draw.take_new_key();
                let document = template.document(draw);
                draw.key = None;
                document
            }
        }
    }
}

fn model(write: &Statement, namespace: &Namespace, draw: &mut Draw) -> Result<WriteModel> {
    use mongodb::options::{
        DeleteManyModel, DeleteOneModel, InsertOneModel, ReplaceOneModel, UpdateManyModel, UpdateOneModel,
    };
    let namespace = namespace.clone();
    Ok(match write {
        Statement::InsertOne(document) => {
            InsertOneModel::builder().namespace(namespace).document(document.render(draw)).build().into()
        }
        Statement::UpdateOne(update) => {
            let (filter, change) = update.render(draw)?;
            UpdateOneModel::builder()
                .namespace(namespace)
                .filter(filter)
                .update(change)
                .upsert(update.upsert)
                .build()
                .into()
        }
        Statement::UpdateMany(update) => {
            let (filter, change) = update.render(draw)?;
            UpdateManyModel::builder()
                .namespace(namespace)
                .filter(filter)
                .update(change)
                .upsert(update.upsert)
                .build()
                .into()
        }
        Statement::ReplaceOne(update) => ReplaceOneModel::builder()
            .namespace(namespace)
            .filter(update.filter.document(draw))
            .replacement(update.change.document(draw))
            .upsert(update.upsert)
            .build()
            .into(),
        Statement::DeleteOne(filter) => {
            DeleteOneModel::builder().namespace(namespace).filter(filter.document(draw)).build().into()
        }
        Statement::DeleteMany(filter) => {
            DeleteManyModel::builder().namespace(namespace).filter(filter.document(draw)).build().into()
        }
        _ => return Err(invalid("this kind cannot be part of a bulk write")),
    })
}

fn invalid(what: &str) -> Error {
    Error::custom(what.to_owned())
}
