//! Whether a value is what a test expects, by the rules of the unified test format that these files use.

use bson::{Array, Bson, Document};

/// What is known of sessions while matching: a session's id by its entity's name.
pub trait Sessions {
    /// The `lsid` of a session; `None` when there is no such session.
    fn lsid(&self, name: &str) -> Option<Document>;
}

/// The operators that are known; all others make a test untestable.
const OPERATORS: [&str; 3] = ["$$exists", "$$unsetOrMatches", "$$sessionLsid"];

/// An operator in a value that is not known here.
pub fn unknown_operator(value: &Bson) -> Option<&str> {
    match value {
        Bson::Document(document) => document.iter().find_map(|(key, value)| {
            let unknown = key.starts_with("$$") && !OPERATORS.contains(&key.as_str());
            if unknown { Some(key.as_str()) } else { unknown_operator(value) }
        }),
        Bson::Array(list) => list.iter().find_map(unknown_operator),
        _ => None,
    }
}

/// Whether a document is as expected. At its root it may have further fields.
///
/// # Errors
/// Where it is not.
pub fn document(expected: &Document, actual: &Document, sessions: &impl Sessions) -> Result<(), String> {
    expected.iter().try_for_each(|(key, expected)| {
        value(expected, actual.get(key), sessions).map_err(|why| format!("{key} {why}"))
    })
}

/// Whether a value, or that there is none, is as expected.
///
/// # Errors
/// Where it is not.
pub fn value(expected: &Bson, actual: Option<&Bson>, sessions: &impl Sessions) -> Result<(), String> {
    if let Bson::Document(operator) = expected
        && let Some((name, argument)) = operator.iter().next().filter(|(name, _)| name.starts_with("$$"))
    {
        return special(name, argument, actual, sessions);
    }
    let Some(actual) = actual else { return Err(format!("is missing, {expected} was to be")) };
    match (expected, actual) {
        (Bson::Document(expected), Bson::Document(actual)) => {
            document(expected, actual, sessions)?;
            match actual.keys().find(|key| !expected.contains_key(*key)) {
                Some(more) => Err(format!("has {more}, which was not to be")),
                None => Ok(()),
            }
        }
        (Bson::Array(expected), Bson::Array(actual)) => list(expected, actual, sessions),
        _ if expected == actual || same_number(expected, actual) => Ok(()),
        _ => Err(format!("is {actual}, {expected} was to be")),
    }
}

/// Documents of a result, each a root.
///
/// # Errors
/// Where they are not as expected.
pub fn documents(expected: &Array, actual: &Array, sessions: &impl Sessions) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!("has {} elements, {} were to be", actual.len(), expected.len()));
    }
    for (i, pair) in expected.iter().zip(actual).enumerate() {
        let matched = match pair {
            (Bson::Document(expected), Bson::Document(actual)) => document(expected, actual, sessions),
            (expected, actual) => value(expected, Some(actual), sessions),
        };
        matched.map_err(|why| format!("[{i}] {why}"))?;
    }
    Ok(())
}

fn list(expected: &Array, actual: &Array, sessions: &impl Sessions) -> Result<(), String> {
    if expected.len() != actual.len() {
        return Err(format!("has {} elements, {} were to be", actual.len(), expected.len()));
    }
    let mut pairs = expected.iter().zip(actual).enumerate();
    pairs.try_for_each(|(i, (expected, actual))| {
        value(expected, Some(actual), sessions).map_err(|why| format!("[{i}] {why}"))
    })
}

fn special(
    name: &str,
    argument: &Bson,
    actual: Option<&Bson>,
    sessions: &impl Sessions,
) -> Result<(), String> {
    match (name, argument) {
        ("$$exists", Bson::Boolean(exists)) => match (exists, actual) {
            (true, None) => Err("is missing".to_owned()),
            (false, Some(actual)) => Err(format!("is {actual}, and was not to be")),
            _ => Ok(()),
        },
        ("$$unsetOrMatches", expected) => match actual {
            None => Ok(()),
            // A result that a driver does not report is unset.
            Some(actual) => match (expected, actual) {
                (Bson::Document(expected), Bson::Document(actual)) if !is_operator(expected) => {
                    document(expected, actual, sessions)
                }
                _ => value(expected, Some(actual), sessions),
            },
        },
        ("$$sessionLsid", Bson::String(session)) => match sessions.lsid(session) {
            Some(lsid) => value(&Bson::Document(lsid), actual, sessions),
            None => Err(format!("there is no session {session}")),
        },
        _ => Err(format!("{name} {argument} is not understood")),
    }
}

fn is_operator(document: &Document) -> bool {
    document.keys().next().is_some_and(|key| key.starts_with("$$"))
}

/// Numbers are compared by value, whatever their types.
fn same_number(expected: &Bson, actual: &Bson) -> bool {
    let number = |value: &Bson| match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        // These files have no larger ones.
        Bson::Int64(number) => i32::try_from(*number).ok().map(f64::from),
        Bson::Double(number) => Some(*number),
        _ => None,
    };
    number(expected).is_some_and(|expected| number(actual) == Some(expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{bson, doc};

    struct One;

    impl Sessions for One {
        fn lsid(&self, name: &str) -> Option<Document> {
            (name == "session0").then(|| doc! { "id": 7 })
        }
    }

    fn check(expected: Document, actual: Document) -> Result<(), String> {
        document(&expected, &actual, &One)
    }

    #[test]
    fn a_root_may_have_more_and_what_is_in_it_may_not() {
        assert_eq!(check(doc! { "a": 1 }, doc! { "a": 1_i64, "b": 2 }), Ok(()));
        assert_eq!(check(doc! { "a": 1 }, doc! { "a": 1.0 }), Ok(()), "numbers are compared by value");
        assert_eq!(check(doc! { "a": { "b": 1 } }, doc! { "a": { "b": 1 } }), Ok(()));
        let more = check(doc! { "a": { "b": 1 } }, doc! { "a": { "b": 1, "c": 2 } });
        assert_eq!(more, Err("a has c, which was not to be".to_owned()));
        assert_eq!(check(doc! { "a": 1 }, doc! { "a": 2 }), Err("a is 2, 1 was to be".to_owned()));
        assert_eq!(check(doc! { "a": 1 }, doc! {}), Err("a is missing, 1 was to be".to_owned()));
        assert!(check(doc! { "a": [1, 2] }, doc! { "a": [1] }).is_err());
        assert!(check(doc! { "a": [1, { "b": 1 }] }, doc! { "a": [1, { "b": 1, "c": 1 }] }).is_err());
        let list = |value: Bson| value.as_array().unwrap().clone();
        let found = list(bson!([{ "_id": 1, "a": 1 }]));
        assert_eq!(
            documents(&list(bson!([{ "a": 1 }])), &found, &One),
            Ok(()),
            "documents of a result are roots"
        );
    }

    #[test]
    fn operators_say_what_else_may_be() {
        assert_eq!(check(doc! { "a": { "$$exists": true } }, doc! { "a": 1 }), Ok(()));
        assert!(check(doc! { "a": { "$$exists": true } }, doc! {}).is_err());
        assert!(check(doc! { "a": { "$$exists": false } }, doc! { "a": 1 }).is_err());
        assert_eq!(check(doc! { "a": { "$$exists": false } }, doc! {}), Ok(()));
        let unset = doc! { "a": { "$$unsetOrMatches": { "b": { "$$unsetOrMatches": 1 } } } };
        assert_eq!(check(unset.clone(), doc! {}), Ok(()));
        assert_eq!(check(unset.clone(), doc! { "a": { "b": 1, "c": 1 } }), Ok(()));
        assert!(check(unset, doc! { "a": { "b": 2 } }).is_err());
        assert_eq!(
            check(doc! { "lsid": { "$$sessionLsid": "session0" } }, doc! { "lsid": { "id": 7 } }),
            Ok(())
        );
        assert!(
            check(doc! { "lsid": { "$$sessionLsid": "session0" } }, doc! { "lsid": { "id": 8 } }).is_err()
        );
        assert!(
            check(doc! { "lsid": { "$$sessionLsid": "session1" } }, doc! { "lsid": { "id": 7 } }).is_err()
        );
        assert_eq!(unknown_operator(&bson!({ "a": [{ "$$type": "int" }] })), Some("$$type"));
        assert_eq!(unknown_operator(&bson!({ "a": [{ "$$exists": true }] })), None);
    }
}
