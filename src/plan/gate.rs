//! How a gate treats those who come through it.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// The server's code for a request that its rate limiter rejects.
pub const RATE_LIMIT_EXCEEDED: i32 = 462;

/// The longest time that clients can be told to base their backoff on: ten minutes. Drivers double it with each retry,
/// and some compute that in few bits.
pub const LONGEST_BASE_BACKOFF_MS: i64 = 600_000;

/// The most that can wait for a token.
pub const MOST_WAITING: u32 = 1_000_000;

/// Who a gate exempts from its limits unless told otherwise, by how application or driver call themselves in a
/// connection's first hello: the members of a replica set among themselves, and overdrive's control connections. A low
/// limit that shed heartbeats or the oplog would break the set instead of loading it.
pub const EXEMPT_APPS: [&str; 8] = [
    "MongoDB Internal Client",
    "NetworkInterfaceTL-",
    "ReplCoordExtern",
    "InitialSyncer",
    "Rollback",
    "Cloner",
    "OplogFetcher",
    "overdrive-control",
];

/// A token bucket, in the words of the server's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Tokens a second.
    pub rate: NonZeroU32,
    /// How many seconds' worth of tokens the bucket holds; below one token in all, everything is rejected.
    pub burst: Span,
    /// How many may wait for a token; 0 rejects at once, as servers do by default.
    #[serde(default)]
    pub queue_depth: u32,
}

/// Which servers' rejections are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// `SystemOverloadedError` and `RetryableError`.
    #[serde(rename = "8.2")]
    V8_2,
    /// `NoWritesPerformed` as well.
    #[default]
    #[serde(rename = "9.0")]
    V9_0,
}

/// Everything a gate can be told. The default lets everything through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GateSettings {
    /// What each message costs a token of; None lets all through, uncounted.
    pub requests: Option<Limit>,
    /// What each new connection costs a token of; None lets all in, uncounted.
    pub connections: Option<Limit>,
    /// Whose rejections to copy.
    pub generation: Generation,
    /// What clients are told to base their backoff on, in milliseconds; None leaves that to them.
    pub base_backoff_ms: Option<i64>,
    /// The rejections' error code.
    pub code: i32,
    /// The rejections' labels, instead of the generation's.
    pub labels: Option<Vec<String>>,
    /// Off, rejections lack the label `RetryableError`, as with the server's parameter of this name.
    pub allow_retries: bool,
    /// Sheds monitoring connections and handshakes as well, as a server without authentication does. Otherwise they are
    /// exempt, as they are where clients authenticate.
    pub literal: bool,
    /// Connections are exempt whose application or driver calls itself something that begins like one of these.
    pub exempt_apps: Vec<String>,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            requests: None,
            connections: None,
            generation: Generation::default(),
            base_backoff_ms: None,
            code: RATE_LIMIT_EXCEEDED,
            labels: None,
            allow_retries: true,
            literal: false,
            exempt_apps: EXEMPT_APPS.map(str::to_owned).to_vec(),
        }
    }
}

impl GateSettings {
    /// The labels that rejections carry, in the server's order.
    pub fn rejection_labels(&self) -> Vec<&str> {
        if let Some(labels) = &self.labels {
            return labels.iter().map(String::as_str).collect();
        }
        let mut labels = vec!["SystemOverloadedError"];
        if self.allow_retries {
            labels.push("RetryableError");
        }
        if self.generation == Generation::V9_0 {
            labels.push("NoWritesPerformed");
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_generation_unless_they_are_given() {
        let labels = |settings: &GateSettings| settings.rejection_labels().join(" ");
        let mut settings = GateSettings::default();
        assert_eq!(labels(&settings), "SystemOverloadedError RetryableError NoWritesPerformed");
        settings.generation = Generation::V8_2;
        assert_eq!(labels(&settings), "SystemOverloadedError RetryableError");
        settings.allow_retries = false;
        assert_eq!(labels(&settings), "SystemOverloadedError");
        settings.labels = Some(Vec::new());
        assert_eq!(labels(&settings), "");
    }

    #[test]
    fn settings_survive_json_and_may_be_partial() {
        let json = r#"{"requests": {"rate": 20, "burst": "500ms"}, "generation": "8.2"}"#;
        let settings: GateSettings = serde_json::from_str(json).unwrap();
        assert_eq!(settings.requests.map(|limit| (limit.rate.get(), limit.queue_depth)), Some((20, 0)));
        assert_eq!(settings.exempt_apps.len(), EXEMPT_APPS.len());
        let again = serde_json::from_str(&serde_json::to_string(&settings).unwrap()).unwrap();
        assert_eq!(settings, again);
        for wrong in [r#"{"requests": {"rate": 0, "burst": "1s"}}"#, r#"{"rate": 20}"#] {
            assert!(serde_json::from_str::<GateSettings>(wrong).is_err(), "{wrong}");
        }
    }
}
