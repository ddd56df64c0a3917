//! The specification's connection strings: what the driver makes of each.

use bson::{Bson, Document};
use mongodb::options::ClientOptions;

use super::finding;
use crate::client::errors;
use crate::verify::finding::{Finding, Seen};

const NAME: &str = "client-backpressure-options";

const TEXT: &str = include_str!("../data/client-backpressure-options.json");

/// Gives the driver each of them.
pub async fn look() -> Vec<Finding> {
    let parsed =
        serde_json::from_str(TEXT).ok().and_then(|json: serde_json::Value| Bson::try_from(json).ok());
    let tests = parsed.as_ref().and_then(|file| file.as_document()?.get_array("tests").ok());
    let mut findings = Vec::new();
    for test in tests.into_iter().flatten().filter_map(Bson::as_document) {
        let text = |field| test.get_str(field).unwrap_or_default();
        let options = ClientOptions::parse(text("uri")).await;
        let seen = match options {
            Ok(options) => parsed_as(test, &format!("{options:?}")),
            Err(error) => Seen::judge(false, format!("the driver refuses it: {}", errors::message(&error))),
        };
        findings.push(finding("uri-options", NAME, text("description"), seen));
    }
    findings
}

/// The options are looked for in what the driver prints of them: not every version has fields for them.
fn parsed_as(test: &Document, printed: &str) -> Seen {
    let all = ["maxAdaptiveRetries", "enableOverloadRetargeting"];
    let wanted = test.get_document("options").cloned().unwrap_or_default();
    let known = all.iter().filter(|name| printed.contains(&format!("{}: ", snake(name))));
    if known.count() < all.len() {
        return Seen::judge(false, "the driver has no such option");
    }
    let parts = all.map(|name| {
        let value = wanted.get(name).map_or_else(|| "None".to_owned(), |value| format!("Some({value})"));
        (format!("{}: {value}", snake(name)), value)
    });
    match parts.iter().find(|(part, _)| !has(printed, part)) {
        None => Seen::judge(true, format!("taken as {}", parts.map(|(part, _)| part).join(", "))),
        Some((part, _)) => Seen::judge(false, format!("{part} was to be, and is not")),
    }
}

/// Whether a field has exactly this value in a printed struct.
fn has(printed: &str, part: &str) -> bool {
    printed.split(part).skip(1).any(|rest| rest.starts_with([',', ' ', '}']))
}

/// `maxAdaptiveRetries` as a field of Rust's.
fn snake(name: &str) -> String {
    name.chars()
        .flat_map(|c| c.is_ascii_uppercase().then_some('_').into_iter().chain([c.to_ascii_lowercase()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::finding::Verdict;
    use bson::doc;

    #[test]
    fn options_are_found_in_what_is_printed() {
        let printed =
            "ClientOptions { max_adaptive_retries: Some(3), enable_overload_retargeting: None, tls: None }";
        let verdict = |options: Document| parsed_as(&doc! { "options": options }, printed).verdict;
        assert_eq!(verdict(doc! { "maxAdaptiveRetries": 3 }), Verdict::Holds);
        assert_eq!(verdict(doc! { "maxAdaptiveRetries": 2 }), Verdict::Broken);
        assert_eq!(verdict(doc! {}), Verdict::Broken);
        assert_eq!(verdict(doc! { "enableOverloadRetargeting": true }), Verdict::Broken);
        assert_eq!(parsed_as(&doc! {}, "ClientOptions { tls: None }").seen, "the driver has no such option");
    }
}
