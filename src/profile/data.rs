//! `[data]`: the namespace and what it holds before the load starts.

use serde_json::json;
use toml::de::DeValue;

use crate::plan::{Data, Template};

use super::diagnostic::Diagnostic;
use super::mistakes::Mistakes;
use super::reader::{Table, Value, kind_of, whole};
use super::value;

/// Databases that are the server's own.
const RESERVED: [&str; 3] = ["admin", "config", "local"];

/// Reads `[data]`; without one, everything has its default.
pub fn read(root: &mut Table<'_>) -> Option<Data> {
    let mistakes = root.mistakes();
    let mut data = defaults()?;
    let Some(mut table) = root.table("data") else { return Some(data) };
    for (key, check, slot) in [
        ("database", database_name as fn(&str) -> Result<(), String>, &mut data.database),
        ("collection", collection_name, &mut data.collection),
    ] {
        let Some(name) = table.text(key) else { continue };
        match check(name.get_ref()) {
            Ok(()) => *slot = name.into_inner(),
            Err(message) => table.wrong(name.span(), message),
        }
    }
    if let Some(documents) = table.integer("documents", 0, MOST_DOCUMENTS) {
        data.documents = documents;
    }
    let path = table.path_of("document");
    if let Some(document) = table.take("document").and_then(|v| value::document(mistakes, &path, v)) {
        data.document = document;
    }
    if let Some(indexes) = table.array("indexes") {
        data.indexes = indexes.filter_map(|index| read_index(mistakes, index)).collect();
    }
    table.finish();
    Some(data)
}

/// The most documents: beyond this, loading them would be the whole of a run.
pub const MOST_DOCUMENTS: u64 = 1_000_000_000;

/// A document with a counter to increment and something to read.
fn defaults() -> Option<Data> {
    let document =
        json!({ "_id": { "^Key": "sequential" }, "n": 0, "text": { "^String": { "length": 100 } } });
    Some(Data {
        database: "overdrive".to_owned(),
        collection: "load".to_owned(),
        documents: 1000,
        document: Template::from_json(&document).ok()?,
        indexes: Vec::new(),
    })
}

/// Whether a database may be worked in.
///
/// # Errors
/// Why it may not.
pub fn database_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is the server's own database: a load must have another"));
    }
    if name.is_empty() || name.len() > 63 || name.contains(['/', '\\', '.', ' ', '"', '$', '\0']) {
        return Err("a database name has 1 to 63 bytes, without / \\ . \" $ and spaces".to_owned());
    }
    Ok(())
}

/// Whether a collection may be worked in.
///
/// # Errors
/// Why it may not.
pub fn collection_name(name: &str) -> Result<(), String> {
    if name.starts_with("system.") {
        return Err(format!("`{name}` is the server's own collection: a load must have another"));
    }
    // Suffixes of collections beside it need room below the server's limit of 255 bytes for the namespace.
    if name.is_empty() || name.len() > 120 || name.contains(['$', '\0']) || name.starts_with('.') {
        return Err("a collection name has 1 to 120 bytes, no $, and no dot at its start".to_owned());
    }
    Ok(())
}

fn read_index(mistakes: &Mistakes, index: &Value<'_>) -> Option<Template> {
    let DeValue::Table(fields) = index.get_ref() else {
        let message = format!("an index is a table of field and direction, not {}", kind_of(index.get_ref()));
        mistakes.add(Diagnostic::error(index.span(), message).help("for example { group = 1, n = -1 }"));
        return None;
    };
    if fields.is_empty() {
        mistakes.add(Diagnostic::error(index.span(), "an index needs at least one field"));
        return None;
    }
    let mut all_fine = true;
    for direction in fields.values() {
        let fine = match direction.get_ref() {
            DeValue::Integer(number) => matches!(whole(number), Some(1 | -1)),
            DeValue::String(_) => true,
            _ => false,
        };
        if !fine {
            all_fine = false;
            let message = "an index's direction is 1, -1 or a text such as \"hashed\"";
            mistakes.add(Diagnostic::error(direction.span(), message));
        }
    }
    if all_fine { value::document(mistakes, "data.indexes", index) } else { None }
}
