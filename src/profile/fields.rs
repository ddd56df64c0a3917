//! Fields that several kinds of operation share, each with what makes it sensible.

use bson::Bson;
use toml::de::{DeTable, DeValue};

use crate::plan::Template;
use crate::plan::template::Generator;

use super::diagnostic::Diagnostic;
use super::reader::{Table, Value, kind_of};
use super::value;

/// Whether a filter may be left out. Reading everything is harmless; changing everything is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filters {
    /// Left out, it means every document.
    Optional,
    /// It must be there, even if it is `{}`.
    Required,
}

/// `filter`
pub fn filter(table: &mut Table<'_>, need: Filters) -> Option<Template> {
    match (table.take("filter"), need) {
        (None, Filters::Optional) => Template::from_json(&serde_json::json!({})).ok(),
        (None, Filters::Required) => {
            let message = format!("`{}` lacks `filter`", table.path);
            let help = "filter = {} means every document";
            table.mistakes().add(Diagnostic::error(table.span.clone(), message).help(help));
            None
        }
        (Some(value), _) => checked_document(table, "filter", value),
    }
}

/// A document that may be left out.
pub fn document(table: &mut Table<'_>, key: &'static str) -> Option<Template> {
    let value = table.take(key)?;
    checked_document(table, key, value)
}

/// A text that must be there.
pub fn required_text(table: &mut Table<'_>, key: &'static str) -> Option<String> {
    let value = table.require(key)?;
    super::reader::text(table.mistakes(), &table.path_of(key), value).map(|text| text.into_inner())
}

/// `limit`: a number above 0, or a generator of such.
pub fn limit(table: &mut Table<'_>) -> Option<Template> {
    let value = table.take("limit")?;
    let template = value::template(table.mistakes(), value)?;
    if !is_count(&template) {
        let path = table.path_of("limit");
        table.wrong(value.span(), format!("`{path}` must be a whole number above 0, or a generator of such"));
        return None;
    }
    Some(template)
}

/// Whether every rendering is an integer above 0 that a command takes.
fn is_count(template: &Template) -> bool {
    let fits = |n: i64| (1..=i64::from(i32::MAX)).contains(&n);
    match template {
        Template::Value(Bson::Int32(n)) => fits((*n).into()),
        Template::Generator(generator) => match &**generator {
            Generator::Int { min, max } => fits(*min) && fits(*max),
            Generator::Choose { from, .. } => from.iter().all(is_count),
            _ => false,
        },
        _ => false,
    }
}

/// `suffix`: a text or whole number, or a generator of such.
pub fn suffix(table: &mut Table<'_>) -> Option<Template> {
    let value = table.require("suffix")?;
    let template = value::template(table.mistakes(), value)?;
    if !template.is_text_like() {
        let path = table.path_of("suffix");
        table.wrong(
            value.span(),
            format!("`{path}` must be a text or a whole number, or a generator of such"),
        );
        return None;
    }
    Some(template)
}

/// `pipeline`: a list of documents.
pub fn pipeline(table: &mut Table<'_>) -> Option<Vec<Template>> {
    if table.key_span("pipeline").is_none() {
        // Asked for all the same, so that a mistyped one is recognised.
        table.require("pipeline");
        return None;
    }
    let (mistakes, path) = (table.mistakes(), table.path_of("pipeline"));
    let stages: Vec<_> =
        table.array("pipeline")?.map(|stage| value::document(mistakes, &path, stage)).collect();
    stages.into_iter().collect()
}

/// `update`: a document of operators, or a list of pipeline stages.
pub fn update(table: &mut Table<'_>) -> Option<Template> {
    let value = table.require("update")?;
    let (mistakes, path) = (table.mistakes(), table.path_of("update"));
    match value.get_ref() {
        DeValue::Array(stages) => {
            let documents: Vec<_> =
                stages.iter().map(|stage| value::document(mistakes, &path, stage)).collect();
            documents.into_iter().collect::<Option<Vec<_>>>()?;
            value::template(mistakes, value)
        }
        DeValue::Table(fields) => {
            // A generator is left to the check for a document.
            if !first_key(fields).is_some_and(|key| key.starts_with(['$', '^'])) {
                let message = format!("`{path}` must consist of operators such as \"$set\" or \"$inc\"");
                let help = "to put another document in its place, use replace_one";
                mistakes.add(Diagnostic::error(value.span(), message).help(help));
                return None;
            }
            checked_document(table, "update", value)
        }
        other => {
            let message = format!("`{path}` must be a document or a list of stages, not {}", kind_of(other));
            mistakes.add(Diagnostic::error(value.span(), message));
            None
        }
    }
}

/// `replacement`: a document without operators.
pub fn replacement(table: &mut Table<'_>) -> Option<Template> {
    let value = table.require("replacement")?;
    let first = value.get_ref().as_table().and_then(first_key);
    if let Some(operator) = first.filter(|key| key.starts_with('$')) {
        let message = format!("a replacement is a whole document; `{operator}` belongs to an update");
        table.wrong(value.span(), message);
        return None;
    }
    checked_document(table, "replacement", value)
}

/// `command`: a document whose first key is the command's name.
pub fn command(table: &mut Table<'_>) -> Option<Template> {
    let value = table.require("command")?;
    if value.get_ref().as_table().is_some_and(|fields| fields.is_empty()) {
        table.wrong(value.span(), "a command needs a name: its first key, like { ping = 1 }");
        return None;
    }
    value::document(table.mistakes(), &table.path_of("command"), value)
}

/// A document in which dotted keys are suspicious.
fn checked_document(table: &Table<'_>, key: &str, value: &Value<'_>) -> Option<Template> {
    value::warn_of_dotted_keys(table.mistakes(), value);
    value::document(table.mistakes(), &table.path_of(key), value)
}

fn first_key<'t>(table: &'t DeTable<'_>) -> Option<&'t str> {
    table.keys().next().map(|key| &**key.get_ref())
}
