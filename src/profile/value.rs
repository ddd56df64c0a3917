//! TOML values as templates. TOML has no way to write a document's finer types, so they come as Extended JSON, and
//! what the template module says about a path in that JSON is shown at the place in the TOML it came from.

use std::ops::Range;

use serde_json::{Map, Number, Value as Json, json};
use toml::de::DeValue;
use toml::value::{Datetime, Time};

use crate::plan::Template;
use crate::plan::template::PathStep;

use super::diagnostic::Diagnostic;
use super::mistakes::Mistakes;
use super::reader::{Value, kind_of, whole};

/// Any value with generators in it.
pub fn template(mistakes: &Mistakes, value: &Value<'_>) -> Option<Template> {
    let json = to_json(mistakes, value)?;
    match Template::from_json(&json) {
        Ok(template) => Some(template),
        Err(errors) => {
            for error in errors {
                mistakes.add(Diagnostic::error(place_of(value, &error.path), error.message));
            }
            None
        }
    }
}

/// A document, or a choice among documents.
pub fn document(mistakes: &Mistakes, path: &str, value: &Value<'_>) -> Option<Template> {
    let wrong = |found: &str| {
        let message = format!("`{path}` must be a document, not {found}");
        mistakes.add(Diagnostic::error(value.span(), message).help("write it as a table: { field = value }"));
    };
    if !value.get_ref().is_table() {
        wrong(kind_of(value.get_ref()));
        return None;
    }
    let template = template(mistakes, value)?;
    if !template.is_document() {
        wrong("a single value");
        return None;
    }
    Some(template)
}

/// Warns where a dotted key made a table within a table but a field's path was probably meant: `a.b = 1` is the
/// subdocument `a` being exactly `{ b: 1 }`, `"a.b" = 1` the field `b` of it.
pub fn warn_of_dotted_keys(mistakes: &Mistakes, value: &Value<'_>) {
    let DeValue::Table(table) = value.get_ref() else { return };
    for (key, inner) in table {
        let DeValue::Table(fields) = inner.get_ref() else { continue };
        let is_name = |name: &str| !name.starts_with(['$', '^']);
        // Only a table that a dotted key implied has its key's own place.
        if inner.span() == key.span() && is_name(key.get_ref()) {
            for field in fields.keys().filter(|field| is_name(field.get_ref())) {
                let written = format!("{}.{}", key.get_ref(), field.get_ref());
                let warning = Diagnostic::warning(
                    key.span().start..field.span().end,
                    format!(
                        "`{written}` without quotes is a subdocument that holds `{}` alone",
                        field.get_ref()
                    ),
                );
                mistakes.add(warning.help(format!("for the field within it, write \"{written}\"")));
            }
        } else {
            warn_of_dotted_keys(mistakes, inner);
        }
    }
}

fn to_json(mistakes: &Mistakes, value: &Value<'_>) -> Option<Json> {
    let wrong = |message: &str| {
        mistakes.add(Diagnostic::error(value.span(), message));
        None
    };
    match value.get_ref() {
        DeValue::String(text) => Some(Json::from(text.as_ref())),
        DeValue::Boolean(flag) => Some(Json::from(*flag)),
        DeValue::Integer(integer) => match whole(integer) {
            Some(number) => Some(Json::from(number)),
            None => wrong("this number does not fit into 64 bits"),
        },
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(number) => Some(double(number)),
            Err(_) => wrong("this is no number"),
        },
        DeValue::Datetime(date) => match instant(date) {
            Some(text) => Some(json!({ "$date": text })),
            None => wrong("a date needs a time and an offset: 2026-01-31T12:00:00Z"),
        },
        // Every item is looked at before giving up: all mistakes are to be reported.
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| to_json(mistakes, item)).collect();
            items.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
        }
        DeValue::Table(table) => {
            let fields: Vec<_> = table
                .iter()
                .map(|(key, value)| Some((key.get_ref().clone().into_owned(), to_json(mistakes, value)?)))
                .collect();
            fields.into_iter().collect::<Option<Map<_, _>>>().map(Json::Object)
        }
    }
}

/// A double; JSON has no infinities and no NaN, Extended JSON has.
fn double(number: f64) -> Json {
    match Number::from_f64(number) {
        Some(number) => Json::Number(number),
        None if number.is_nan() => json!({ "$numberDouble": "NaN" }),
        None if number > 0.0 => json!({ "$numberDouble": "Infinity" }),
        None => json!({ "$numberDouble": "-Infinity" }),
    }
}

/// RFC 3339, which wants seconds where TOML does not.
fn instant(date: &Datetime) -> Option<String> {
    let (Some(_), Some(time), Some(_)) = (date.date, date.time, date.offset) else { return None };
    let time = Time { second: time.second.or(Some(0)), ..time };
    Some(Datetime { time: Some(time), ..*date }.to_string())
}

/// The place that a path through the JSON leads to in the TOML. It ends early within what was one TOML value; a name
/// that starts with `^` or `$` is pointed at itself, since it is what such messages are about.
fn place_of(value: &Value<'_>, path: &[PathStep]) -> Range<usize> {
    let mut here = value;
    let mut place = value.span();
    for step in path {
        match (here.get_ref(), step) {
            (DeValue::Table(table), PathStep::Key(name)) => {
                let Some((key, inner)) = table.get_key_value(name.as_str()) else { break };
                let is_operator = name.starts_with(['^', '$']);
                (here, place) = (inner, if is_operator { key.span() } else { inner.span() });
            }
            (DeValue::Array(items), PathStep::Index(index)) => {
                let Some(inner) = items.get(*index) else { break };
                (here, place) = (inner, inner.span());
            }
            _ => break,
        }
    }
    place
}
