//! The specification's files of tests in the unified format, as far as these files use it, and its file of connection
//! strings. Each test is a rule.

mod entities;
mod events;
mod expect;
mod file;
mod matches;
mod operations;
mod test;
mod uri;

use super::finding::{Finding, Seen};
use super::stage::Stage;
use crate::stderr::tell;
use file::File;

/// How the source of such a finding begins.
pub const SOURCE: &str = "tests: ";

/// A file as it is in the repository of specifications: directory, name and text.
macro_rules! file {
    ($directory:literal, $name:literal) => {
        ($directory, $name, include_str!(concat!("data/", $name, ".json")))
    };
}

const FILES: [(&str, &str, &str); 13] = [
    file!("client-backpressure", "backpressure-retry-loop"),
    file!("client-backpressure", "backpressure-retry-max-attempts"),
    file!("client-backpressure", "getMore-retried"),
    file!("client-backpressure", "backpressure-connection-checkin"),
    file!("transactions", "backpressure-retryable-abort"),
    file!("transactions", "backpressure-retryable-commit"),
    file!("transactions", "backpressure-retryable-reads"),
    file!("transactions", "backpressure-retryable-writes"),
    file!("server-discovery-and-monitoring", "backpressure-network-error-fail-replicaset"),
    file!("server-discovery-and-monitoring", "backpressure-network-error-fail-single"),
    file!("server-discovery-and-monitoring", "backpressure-network-timeout-fail-replicaset"),
    file!("server-discovery-and-monitoring", "backpressure-network-timeout-fail-single"),
    file!(
        "server-discovery-and-monitoring",
        "backpressure-server-description-unchanged-on-min-pool-size-population-error"
    ),
];

/// Runs them all, one test after the other: a server has one failpoint.
pub async fn look(stage: &Stage) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, name, text) in FILES {
        tell(&format!("Tests of {directory}/{name} …"));
        let file = match File::read(text, &stage.database) {
            Ok(file) => file,
            Err(error) => {
                findings.push(finding(directory, name, "all", Seen::untestable(format!("{error:#}"))));
                continue;
            }
        };
        for test in &file.tests {
            let description = test.get_str("description").unwrap_or_default();
            let seen = test::run(stage, &file, test).await;
            findings.push(finding(directory, name, description, seen));
        }
    }
    findings.extend(uri::look().await);
    findings
}

fn finding(directory: &str, name: &str, test: &str, Seen { verdict, seen }: Seen) -> Finding {
    Finding { rule: format!("{name}: {test}"), source: format!("{SOURCE}{directory}/{name}"), verdict, seen }
}
