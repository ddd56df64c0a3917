//! The profiles that come with overdrive.

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),*]
    };
}

/// In the order in which a newcomer would look at them.
const PROFILES: &[(&str, &str)] = profiles![
    "quickstart",
    "mixed",
    "read-heavy",
    "write-heavy",
    "run-command",
    "scans",
    "transactions",
    "primary-preferred",
    "request-limit",
    "connection-storm",
    "retargeting-primary-preferred",
    "latency-event",
    "latency-event-timeouts",
    "ticket-queue",
    "metastable",
    "critical-and-batch",
    "retry-storm",
    "pool-wedged",
    "failover",
    "limiter-native",
    "model-retry-storm",
    "model-metastable",
    "model-retargeting",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
];

/// The text of a shipped profile.
pub fn find(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|&(_, text)| text)
}

/// Every shipped profile's name and description.
pub fn list() -> impl Iterator<Item = (&'static str, String)> {
    PROFILES.iter().map(|&(name, text)| (name, description(text)))
}

/// Read leniently: a list must not fail because of one of its entries, and tests read them in full.
fn description(text: &str) -> String {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let written = document.get_ref().get("description").and_then(|value| value.get_ref().as_str());
    written.unwrap_or_default().to_owned()
}
