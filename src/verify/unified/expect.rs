//! What a test expects of an operation.

use bson::{Bson, Document};
use mongodb::error::{Error, ErrorKind};

use super::entities::Entities;
use super::matches;
use super::operations::Outcome;
use crate::client::errors;
use crate::verify::finding::Seen;

/// Whether an operation ended as expected.
///
/// # Errors
/// When it did not.
pub fn expect(entities: &Entities<'_>, operation: &Document, outcome: Outcome) -> Result<(), Seen> {
    let broken = |why: String| Err(Seen::judge(false, why));
    match (operation.get_document("expectError"), outcome) {
        (Ok(_), Ok(_)) => broken("it succeeded, and was to fail".to_owned()),
        (Ok(expected), Err(error)) => match unlike(expected, &error) {
            Some(why) => broken(format!("{why}: {}", told(&error))),
            None => Ok(()),
        },
        (Err(_), Err(error)) => broken(format!("it failed: {}", told(&error))),
        (Err(_), Ok(actual)) => {
            let Some(expected) = operation.get("expectResult") else { return Ok(()) };
            let matched = match (expected, &actual) {
                (Bson::Array(expected), Bson::Array(actual)) => {
                    matches::documents(expected, actual, entities)
                }
                _ => matches::value(expected, Some(&actual), entities),
            };
            matched.or_else(|why| broken(format!("its result {why}")))
        }
    }
}

/// In what an error differs from what is expected of it.
fn unlike(expected: &Document, error: &Error) -> Option<String> {
    for (key, value) in expected {
        let alike = match (key.as_str(), value) {
            ("isError", Bson::Boolean(_)) => true,
            ("isClientError", Bson::Boolean(client)) => *client != from_server(error),
            ("errorLabelsContain", Bson::Array(labels)) => {
                labels.iter().filter_map(Bson::as_str).all(|label| error.contains_label(label))
            }
            _ => false,
        };
        if !alike {
            return Some(format!("its error is not as {key}: {value} says"));
        }
    }
    None
}

fn from_server(error: &Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Command(_) | ErrorKind::Write(_) | ErrorKind::InsertMany(_) | ErrorKind::BulkWrite(_)
    )
}

fn told(error: &Error) -> String {
    let class = errors::classify(error);
    format!(
        "{} {} [{}]",
        class.kind,
        class.code.map_or_else(String::new, |code| code.to_string()),
        class.labels.join(", ")
    )
}
