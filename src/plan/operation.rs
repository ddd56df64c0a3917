//! The operations of a mix, one struct per kind. The field names are those of profiles and of the JSON a worker gets.

use serde::{Deserialize, Serialize};

use super::template::Template;

/// One entry of the mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Its name in files and on screen; unique in the plan, never `all`.
    pub name: String,
    /// Its share: out of every sum-of-weights operations exactly this many are of this one. 0 leaves it out.
    pub weight: u32,
    /// What it does.
    pub action: Action,
}

/// What an operation does. Templates that must be documents were checked to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The first document that matches.
    FindOne(Find),
    /// A whole cursor, every batch of it.
    Find(Find),
    /// A pipeline and its whole cursor.
    Aggregate(Aggregate),
    /// How many documents match (an aggregate underneath).
    Count(Filter),
    /// The distinct values of a field.
    Distinct(Distinct),
    /// One new document.
    InsertOne(InsertOne),
    /// Many new documents in one call.
    InsertMany(InsertMany),
    /// The first match changed.
    UpdateOne(Update),
    /// Every match changed.
    UpdateMany(Update),
    /// The first match replaced.
    ReplaceOne(Replace),
    /// The first match removed.
    DeleteOne(Filter),
    /// Every match removed.
    DeleteMany(Filter),
    /// The first match changed and returned.
    FindOneAndUpdate(Update),
    /// Several writes in one command (servers from 8.0).
    BulkWrite(BulkWrite),
    /// Several of the others in one transaction.
    Transaction(Transaction),
    /// A new collection beside the data's, named `<collection>.overdrive.<suffix>`.
    CreateCollection(CollectionSuffix),
    /// Such a collection removed.
    Drop(CollectionSuffix),
    /// Any command.
    RunCommand(RunCommand),
}

/// Fields of find_one and find; `limit` and `batch_size` belong to find alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Find {
    /// Which documents.
    pub filter: Template,
    /// Which fields of them.
    pub projection: Option<Template>,
    /// In which order.
    pub sort: Option<Template>,
    /// How many at most: renders to an integer above 0.
    pub limit: Option<Template>,
    /// How many in each reply.
    pub batch_size: Option<u32>,
}

/// An aggregation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// Its stages, each a document.
    pub pipeline: Vec<Template>,
    /// How many documents in each reply.
    pub batch_size: Option<u32>,
}

/// What is meant by a filter alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Which documents.
    pub filter: Template,
}

/// Distinct values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distinct {
    /// The field's path.
    pub field: String,
    /// Of which documents.
    pub filter: Template,
}

/// One insert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertOne {
    /// The document; `None` takes the data's own template with a new key.
    pub document: Option<Template>,
}

/// Many inserts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertMany {
    /// How many documents; at least one.
    pub count: u32,
    /// The document, rendered `count` times; `None` takes the data's own template with a new key each.
    pub document: Option<Template>,
    /// Whether the first failure ends it.
    pub ordered: bool,
}

/// Fields of update_one, update_many and find_one_and_update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Which documents.
    pub filter: Template,
    /// The change: a document of operators, or an array of pipeline stages.
    pub update: Template,
    /// Whether a document is made when none matches.
    pub upsert: bool,
}

/// A replacement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replace {
    /// Which document.
    pub filter: Template,
    /// What takes its place.
    pub replacement: Template,
    /// Whether a document is made when none matches.
    pub upsert: bool,
}

/// Several writes in one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkWrite {
    /// insert_one, update_one, update_many, replace_one, delete_one and delete_many only; at least one.
    pub writes: Vec<Action>,
    /// Whether the first failure ends it.
    pub ordered: bool,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// Its statements, in order; no bulk_write, no transaction, nothing that makes or drops a collection; at least one.
    pub statements: Vec<Action>,
}

/// Which of the collections beside the data's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionSuffix {
    /// Renders to a string or an integer: the part after `<collection>.overdrive.`.
    pub suffix: Template,
}

/// Any command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCommand {
    /// Its first key is its name.
    pub command: Template,
    /// The database it runs in; `None` is the data's.
    pub database: Option<String>,
}

impl Action {
    /// The kind as profiles spell it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::FindOne(_) => "find_one",
            Self::Find(_) => "find",
            Self::Aggregate(_) => "aggregate",
            Self::Count(_) => "count",
            Self::Distinct(_) => "distinct",
            Self::InsertOne(_) => "insert_one",
            Self::InsertMany(_) => "insert_many",
            Self::UpdateOne(_) => "update_one",
            Self::UpdateMany(_) => "update_many",
            Self::ReplaceOne(_) => "replace_one",
            Self::DeleteOne(_) => "delete_one",
            Self::DeleteMany(_) => "delete_many",
            Self::FindOneAndUpdate(_) => "find_one_and_update",
            Self::BulkWrite(_) => "bulk_write",
            Self::Transaction(_) => "transaction",
            Self::CreateCollection(_) => "create_collection",
            Self::Drop(_) => "drop",
            Self::RunCommand(_) => "run_command",
        }
    }

    /// Whether one call of it always sends exactly one command. Cursors fetch more, bulk inserts may be split, and
    /// transactions are several by nature.
    pub const fn is_single_command(&self) -> bool {
        !matches!(
            self,
            Self::Find(_)
                | Self::Aggregate(_)
                | Self::InsertMany(_)
                | Self::BulkWrite(_)
                | Self::Transaction(_)
        )
    }
}

impl Action {
    /// The templates that one execution renders once each, in that order. Inserts, bulk writes and transactions, which
    /// render others or more often, have none here.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::FindOne(f) | Self::Find(f) => {
                std::iter::once(&f.filter).chain(&f.projection).chain(&f.sort).chain(&f.limit).collect()
            }
            Self::Aggregate(a) => a.pipeline.iter().collect(),
            Self::Count(f) | Self::DeleteOne(f) | Self::DeleteMany(f) => vec![&f.filter],
            Self::Distinct(d) => vec![&d.filter],
            Self::UpdateOne(u) | Self::UpdateMany(u) | Self::FindOneAndUpdate(u) => {
                vec![&u.filter, &u.update]
            }
            Self::ReplaceOne(r) => vec![&r.filter, &r.replacement],
            Self::CreateCollection(c) | Self::Drop(c) => vec![&c.suffix],
            Self::RunCommand(c) => vec![&c.command],
            Self::InsertOne(_) | Self::InsertMany(_) | Self::BulkWrite(_) | Self::Transaction(_) => {
                Vec::new()
            }
        }
    }

    /// Whether it changes documents of the data's collection, or may: a command is taken at its word only by its name.
    pub fn writes(&self) -> bool {
        match self {
            Self::FindOne(_) | Self::Find(_) | Self::Count(_) | Self::Distinct(_) => false,
            Self::Aggregate(a) => {
                let mut stages = a.pipeline.iter().filter_map(Template::as_document).flatten();
                stages.any(|(name, _)| matches!(name.as_str(), "$out" | "$merge"))
            }
            Self::Transaction(t) => t.statements.iter().any(Self::writes),
            Self::RunCommand(c) => {
                let name =
                    c.command.as_document().and_then(|fields| fields.first()).map(|(name, _)| name.as_str());
                !matches!(name, Some("ping" | "hello" | "find" | "count" | "distinct"))
            }
            _ => true,
        }
    }
}
