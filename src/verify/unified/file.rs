//! Reading a file, and whether a deployment has what it needs.

use anyhow::{Context, Result};
use bson::{Array, Bson, Document};

/// A file of tests, its databases replaced by ours.
pub struct File {
    /// What the deployment has to be.
    pub requirements: Array,
    /// Clients, databases, collections and sessions by their kinds.
    pub entities: Array,
    /// What collections hold before each test.
    pub data: Array,
    /// The tests.
    pub tests: Vec<Document>,
}

impl File {
    /// Reads a file's text; `database` is where it may write.
    ///
    /// # Errors
    /// When it is no such file.
    pub fn read(text: &str, database: &str) -> Result<Self> {
        let json: serde_json::Value = serde_json::from_str(text)?;
        let mut file = Bson::try_from(json)?;
        let names = databases(&file);
        move_to(&mut file, &names, database);
        let Bson::Document(file) = file else { anyhow::bail!("it is no document") };
        let list = |key| file.get_array(key).cloned().unwrap_or_default();
        let tests = list("tests").into_iter().map(|test| match test {
            Bson::Document(test) => Some(test),
            _ => None,
        });
        Ok(Self {
            requirements: list("runOnRequirements"),
            entities: list("createEntities"),
            data: list("initialData"),
            tests: tests.collect::<Option<_>>().context("a test is no document")?,
        })
    }
}

/// The databases that a file's entities name.
fn databases(file: &Bson) -> Vec<String> {
    match file {
        Bson::Document(document) => {
            let own = document.get_document("database").and_then(|database| database.get_str("databaseName"));
            let own = own.ok().map(str::to_owned);
            own.into_iter().chain(document.values().flat_map(databases)).collect()
        }
        Bson::Array(list) => list.iter().flat_map(databases).collect(),
        _ => Vec::new(),
    }
}

/// Replaces those, wherever a database is named.
fn move_to(value: &mut Bson, names: &[String], database: &str) {
    match value {
        Bson::Document(document) => {
            for (key, value) in document.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("databaseName", Bson::String(name)) if names.contains(name) => database.clone_into(name),
                    ("namespace", Bson::String(namespace)) => {
                        if let Some((name, collection)) = namespace.split_once('.')
                            && names.iter().any(|known| known == name)
                        {
                            *namespace = format!("{database}.{collection}");
                        }
                    }
                    _ => move_to(value, names, database),
                }
            }
        }
        Bson::Array(list) => list.iter_mut().for_each(|value| move_to(value, names, database)),
        _ => {}
    }
}

/// Why a deployment is none of those that are required; `None` when it is one.
pub fn unmet(requirements: &Array, kind: &str, version: &str) -> Option<String> {
    let topology = match kind {
        "replica set" => "replicaset",
        "standalone server" => "single",
        _ => "sharded",
    };
    let missing = |requirement: &Bson| {
        let requirement = requirement.as_document()?;
        if let Ok(least) = requirement.get_str("minServerVersion")
            && numbers(version) < numbers(least)
        {
            return Some(format!("it takes a server {least} or later, and this one is {version}"));
        }
        let topologies = requirement.get_array("topologies").ok()?;
        let names: Vec<&str> = topologies.iter().filter_map(Bson::as_str).collect();
        (!names.contains(&topology))
            .then(|| format!("it takes one of topologies {}, and this is {topology}", names.join(", ")))
    };
    let reasons: Vec<Option<String>> = requirements.iter().map(missing).collect();
    // One that is met is enough.
    if reasons.iter().any(Option::is_none) { None } else { reasons.into_iter().flatten().next() }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::bson;

    #[test]
    fn every_file_is_read_and_stays_in_our_database() {
        for (_, name, text) in super::super::FILES {
            let file = File::read(text, "ours").unwrap();
            assert!(!file.tests.is_empty(), "{name}");
            for data in &file.data {
                let database = data.as_document().unwrap().get_str("databaseName").unwrap();
                assert_eq!(database, "ours", "{name}");
            }
            let text = format!("{:?}{:?}", file.entities, file.tests);
            for foreign in
                ["retryable-writes-tests\"", "transaction-tests", "sdam-tests", "retryable-writes-tests."]
            {
                // As a collection's or an entity's name it may stay.
                let stays =
                    text.contains(&format!("\"id\": String(\"{}", foreign.trim_end_matches(['"', '.'])));
                assert!(stays || !text.contains(foreign), "{name}: {foreign}");
            }
        }
    }

    #[test]
    fn requirements_are_met_by_one_of_them() {
        let requirements = |value: Bson| value.as_array().unwrap().clone();
        let old =
            requirements(bson!([{ "minServerVersion": "4.4", "topologies": ["replicaset", "sharded"] }]));
        assert_eq!(unmet(&old, "replica set", "6.0.5"), None);
        assert!(
            unmet(&old, "standalone server", "6.0.5").unwrap().contains("topologies replicaset, sharded")
        );
        let new = requirements(bson!([{ "minServerVersion": "8.0" }, { "serverless": "forbid" }]));
        assert_eq!(unmet(&new, "replica set", "6.0.5"), None, "the second is met");
        let new = requirements(bson!([{ "minServerVersion": "8.0" }]));
        assert!(unmet(&new, "replica set", "6.0.5").unwrap().contains("8.0"));
        assert_eq!(unmet(&new, "replica set", "10.0.0-rc1"), None);
        assert_eq!(unmet(&Array::new(), "replica set", "6.0.5"), None);
    }
}
