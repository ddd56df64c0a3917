//! The values that JSON and TOML have no form for: MongoDB Extended JSON v2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>), canonical when
//! written, canonical or relaxed when read.

use bson::Bson;
use serde_json::{Map, Value, json};

use super::Template;

/// The keys that make a table a value, and how such a table is written in a profile.
const FORMS: [(&str, &str); 16] = [
    ("$oid", r#"{ "$oid" = "507f1f77bcf86cd799439011" }"#),
    ("$date", r#"{ "$date" = "2026-01-31T12:00:00Z" }"#),
    ("$numberInt", r#"{ "$numberInt" = "42" }"#),
    ("$numberLong", r#"{ "$numberLong" = "42" }"#),
    ("$numberDouble", r#"{ "$numberDouble" = "0.5" }"#),
    ("$numberDecimal", r#"{ "$numberDecimal" = "0.10" }"#),
    ("$binary", r#"{ "$binary" = { base64 = "AQID", subType = "00" } }"#),
    ("$uuid", r#"{ "$uuid" = "73ffd264-44b3-4c69-90e8-e7d1dfc035d4" }"#),
    ("$regularExpression", r#"{ "$regularExpression" = { pattern = "^a", options = "i" } }"#),
    ("$timestamp", r#"{ "$timestamp" = { t = 1769860800, i = 1 } }"#),
    ("$minKey", r#"{ "$minKey" = 1 }"#),
    ("$maxKey", r#"{ "$maxKey" = 1 }"#),
    ("$undefined", r#"{ "$undefined" = true }"#),
    ("$symbol", r#"{ "$symbol" = "a" }"#),
    ("$code", r#"{ "$code" = "x + 1" }, perhaps with "$scope" = { x = 1 }"#),
    (
        "$dbPointer",
        r#"{ "$dbPointer" = { "$ref" = "db.c", "$id" = { "$oid" = "507f1f77bcf86cd799439011" } } }"#,
    ),
];

/// The key that makes a table a value, and the form the table should have; `None` when it is a plain table or one with
/// operators.
pub(super) fn form(table: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    FORMS.into_iter().find(|(key, _)| table.contains_key(*key))
}

/// The value that such a table is; `None` when it is malformed. A scope of code is not read here.
pub(super) fn read(table: &Map<String, Value>) -> Option<Bson> {
    Bson::try_from(table.clone()).ok()
}

/// Canonical Extended JSON.
pub(super) fn write(value: &Bson) -> Value {
    match value {
        // The shortest text that reads back to the same bits, however small or large the number is.
        Bson::Double(number) if number.is_finite() => json!({ "$numberDouble": format!("{number:?}") }),
        Bson::Double(number) if number.is_nan() => json!({ "$numberDouble": "NaN" }),
        // Templates keep these two apart from values; their keys may need escaping.
        Bson::Array(_) | Bson::Document(_) => Template::from(value.clone()).to_json(),
        Bson::JavaScriptCodeWithScope(code) => {
            json!({ "$code": code.code, "$scope": Template::from(Bson::Document(code.scope.clone())).to_json() })
        }
        value => value.clone().into_canonical_extjson(),
    }
}
