//! The fields of each kind of operation.

use crate::plan::Action;
use crate::plan::operation::{
    Aggregate, BulkWrite, CollectionSuffix, Distinct, Filter, Find, InsertMany, InsertOne, Replace,
    RunCommand, Transaction, Update,
};

use super::diagnostic::{Diagnostic, either};
use super::fields::{self, Filters};
use super::mistakes::{Mistakes, unknown};
use super::reader::{Table, Value};

/// Every kind, as profiles spell it.
pub const KINDS: [&str; 18] = [
    "find_one",
    "find",
    "aggregate",
    "count",
    "distinct",
    "insert_one",
    "insert_many",
    "update_one",
    "update_many",
    "replace_one",
    "delete_one",
    "delete_many",
    "find_one_and_update",
    "bulk_write",
    "transaction",
    "create_collection",
    "drop",
    "run_command",
];

/// What a bulk write may hold.
const WRITES: [&str; 6] =
    ["insert_one", "update_one", "update_many", "replace_one", "delete_one", "delete_many"];

/// What a transaction may hold.
const STATEMENTS: [&str; 14] = [
    "find_one",
    "find",
    "aggregate",
    "count",
    "distinct",
    "insert_one",
    "insert_many",
    "update_one",
    "update_many",
    "replace_one",
    "delete_one",
    "delete_many",
    "find_one_and_update",
    "run_command",
];

/// The most documents of one insert, and the most items of a batch a server takes.
const MOST_ITEMS: u32 = 100_000;

/// Reads the fields of a kind; `None` when a mistake was reported.
pub fn read(kind: &str, table: &mut Table<'_>) -> Option<Action> {
    Some(match kind {
        "find_one" => Action::FindOne(find_one(table)?),
        "find" => Action::Find(find(table)?),
        "aggregate" => Action::Aggregate(Aggregate {
            pipeline: fields::pipeline(table)?,
            batch_size: table.integer("batch_size", 1, u32::MAX),
        }),
        "count" => Action::Count(Filter { filter: fields::filter(table, Filters::Optional)? }),
        "distinct" => Action::Distinct(Distinct {
            field: fields::required_text(table, "field")?,
            filter: fields::filter(table, Filters::Optional)?,
        }),
        "insert_one" => Action::InsertOne(InsertOne { document: fields::document(table, "document") }),
        "insert_many" => Action::InsertMany(insert_many(table)?),
        "update_one" => Action::UpdateOne(update(table)?),
        "update_many" => Action::UpdateMany(update(table)?),
        "replace_one" => Action::ReplaceOne(replace(table)?),
        "delete_one" => Action::DeleteOne(Filter { filter: fields::filter(table, Filters::Required)? }),
        "delete_many" => Action::DeleteMany(Filter { filter: fields::filter(table, Filters::Required)? }),
        "find_one_and_update" => Action::FindOneAndUpdate(update(table)?),
        "bulk_write" => Action::BulkWrite(BulkWrite {
            writes: several(table, "writes", &WRITES, "a bulk write")?,
            ordered: table.flag("ordered").unwrap_or(true),
        }),
        "transaction" => Action::Transaction(Transaction {
            statements: several(table, "statements", &STATEMENTS, "a transaction")?,
        }),
        "create_collection" => Action::CreateCollection(suffix(table)?),
        "drop" => Action::Drop(suffix(table)?),
        "run_command" => Action::RunCommand(run_command(table)?),
        _ => return None,
    })
}

fn find_one(table: &mut Table<'_>) -> Option<Find> {
    for key in ["limit", "batch_size"] {
        if let Some(place) = table.take(key).and_then(|_| table.key_span(key)) {
            table.wrong(place, format!("`{key}` belongs to find; find_one reads one document"));
        }
    }
    selection(table)
}

/// What find_one and find have in common.
fn selection(table: &mut Table<'_>) -> Option<Find> {
    let (filter, projection, sort) = (
        fields::filter(table, Filters::Optional),
        fields::document(table, "projection"),
        fields::document(table, "sort"),
    );
    Some(Find { filter: filter?, projection, sort, limit: None, batch_size: None })
}

fn find(table: &mut Table<'_>) -> Option<Find> {
    let selection = selection(table);
    let limit = fields::limit(table);
    let batch_size = table.integer("batch_size", 1, u32::MAX);
    Some(Find { limit, batch_size, ..selection? })
}

fn insert_many(table: &mut Table<'_>) -> Option<InsertMany> {
    let document = fields::document(table, "document");
    let ordered = table.flag("ordered").unwrap_or(true);
    let count = table.integer("count", 1, MOST_ITEMS);
    if table.key_span("count").is_none() {
        table.missing("count");
    }
    Some(InsertMany { count: count?, document, ordered })
}

fn update(table: &mut Table<'_>) -> Option<Update> {
    let (filter, update) = (fields::filter(table, Filters::Required), fields::update(table));
    let upsert = table.flag("upsert").unwrap_or(false);
    Some(Update { filter: filter?, update: update?, upsert })
}

fn replace(table: &mut Table<'_>) -> Option<Replace> {
    let (filter, replacement) = (fields::filter(table, Filters::Required), fields::replacement(table));
    let upsert = table.flag("upsert").unwrap_or(false);
    Some(Replace { filter: filter?, replacement: replacement?, upsert })
}

fn suffix(table: &mut Table<'_>) -> Option<CollectionSuffix> {
    Some(CollectionSuffix { suffix: fields::suffix(table)? })
}

fn run_command(table: &mut Table<'_>) -> Option<RunCommand> {
    let command = fields::command(table);
    let database = table.text("database").map(|name| name.into_inner());
    Some(RunCommand { command: command?, database })
}

/// A list of actions, each a table of one kind: `[{ find_one = { … } }, …]`.
fn several(table: &mut Table<'_>, key: &'static str, kinds: &[&str], whose: &str) -> Option<Vec<Action>> {
    let (mistakes, path) = (table.mistakes(), table.path_of(key));
    let Some(place) = table.key_span(key) else {
        table.missing(key);
        return None;
    };
    let items: Vec<&Value<'_>> = table.array(key)?.collect();
    if items.is_empty() {
        mistakes.add(Diagnostic::error(place, format!("`{path}` must not be empty")));
        return None;
    }
    // Every item is read before giving up, so that all mistakes are reported.
    let actions: Vec<_> = items.into_iter().map(|item| one(mistakes, item, &path, kinds, whose)).collect();
    actions.into_iter().collect()
}

fn one(mistakes: &Mistakes, item: &Value<'_>, path: &str, kinds: &[&str], whose: &str) -> Option<Action> {
    let fields = Table::of(mistakes, item, path.to_owned())?;
    let mut entries = fields.entries();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        let message =
            format!("an item of `{path}` is a table of one kind, like {{ {} = {{ … }} }}", kinds[0]);
        mistakes.add(Diagnostic::error(item.span(), message));
        return None;
    };
    let kind: &str = key.get_ref();
    if !kinds.contains(&kind) {
        let diagnostic = if KINDS.contains(&kind) {
            Diagnostic::error(key.span(), format!("{whose} cannot hold `{kind}`"))
                .help(format!("it may hold {}", either(kinds)))
        } else {
            unknown(key.span(), format!("unknown kind of operation `{kind}`"), kind, kinds)
        };
        mistakes.add(diagnostic);
        return None;
    }
    let mut table = Table::of(mistakes, value, format!("{path}.{kind}"))?;
    let action = read(kind, &mut table);
    table.finish();
    action
}

/// The commands that an action sends, as far as they can be told before it is rendered.
pub fn commands(action: &Action) -> Vec<String> {
    let names: &[&str] = match action {
        Action::FindOne(_) => &["find"],
        Action::Find(_) => &["find", "getMore"],
        Action::Aggregate(_) => &["aggregate", "getMore"],
        Action::Count(_) => &["aggregate"],
        Action::Distinct(_) => &["distinct"],
        Action::InsertOne(_) | Action::InsertMany(_) => &["insert"],
        Action::UpdateOne(_) | Action::UpdateMany(_) | Action::ReplaceOne(_) => &["update"],
        Action::DeleteOne(_) | Action::DeleteMany(_) => &["delete"],
        Action::FindOneAndUpdate(_) => &["findAndModify"],
        Action::BulkWrite(_) => &["bulkWrite"],
        Action::CreateCollection(_) => &["create"],
        Action::Drop(_) => &["drop"],
        Action::RunCommand(run) => {
            let first = run.command.as_document().and_then(|fields| fields.first());
            return first.map(|(name, _)| name.clone()).into_iter().collect();
        }
        Action::Transaction(transaction) => {
            let ends = ["commitTransaction", "abortTransaction"].map(str::to_owned);
            return transaction.statements.iter().flat_map(commands).chain(ends).collect();
        }
    };
    names.iter().map(|&name| name.to_owned()).collect()
}
