//! One call of an application's, and what a driver does for it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bson::Document;
use futures_util::FutureExt;
use mongodb::error::{Error, ErrorKind};

use super::locked;
use crate::client::errors;

/// Characters of an error's text that are told.
const MESSAGE: usize = 80;

tokio::task_local! {
    static EVENTS: Arc<Mutex<Vec<(Instant, Event)>>>;
}

/// Whether this code runs within a call that is watched: a panic in it is the driver's, and kept.
pub fn is_watching() -> bool {
    EVENTS.try_with(|_| ()).is_ok()
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    CheckoutStarted,
    CheckoutFailed { server: String },
    Started { server: String, name: String, request: i32, command: Document },
    Ended { request: i32, end: End },
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No event has told.
    Unknown,
    /// With a reply that is no error.
    Served,
    /// With an error of these labels.
    Failed(Vec<String>),
    /// Before there was a command: no connection was had.
    NoConnection,
}

/// One try of a command on a server.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Where; as the driver prints it.
    pub server: String,
    /// The command's name; empty without a connection.
    pub name: String,
    /// The command as it was sent.
    pub command: Document,
    /// The number that its events have in common.
    pub request: i32,
    /// How it ended, by the events of that number; more than one is a mistake of the driver's.
    pub ends: Vec<End>,
    /// From the failure before it to the first sign of it; `None` for one that follows no failure.
    pub waited: Option<Duration>,
}

impl Attempt {
    /// In milliseconds, how long the driver waited before it.
    pub fn waited_ms(&self) -> Option<f64> {
        self.waited.map(|waited| waited.as_secs_f64() * 1000.0)
    }
}

/// How a call failed.
#[derive(Debug)]
pub enum Failure {
    /// With an error.
    Error(Box<Error>),
    /// The driver panicked.
    Panic,
}

impl Failure {
    /// The driver's error.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Error(error) => Some(error),
            Self::Panic => None,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => {
                let class = errors::classify(error);
                let code = class.code.map(|code| format!(" {code}")).unwrap_or_default();
                write!(f, "error {}{code} [{}]", class.kind, class.labels.join(", "))?;
                // What a driver says of a reply that it cannot read is a heap of its own errors.
                if matches!(error.kind.as_ref(), ErrorKind::InvalidResponse { .. }) {
                    return Ok(());
                }
                let message: String = errors::message(error).chars().take(MESSAGE).collect();
                write!(f, ": {message}")
            }
            Self::Panic => f.write_str("the driver panicked"),
        }
    }
}

/// A call that has ended, and what it took.
#[derive(Debug)]
pub struct Call<T> {
    /// What the driver returned.
    pub result: std::result::Result<T, Failure>,
    /// All attempts of all its commands, in order.
    pub attempts: Vec<Attempt>,
}

impl<T> Call<T> {
    /// The attempts of a command.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Attempt> {
        self.attempts.iter().filter(move |attempt| attempt.name == name)
    }

    /// What the driver waited before each retry, in milliseconds.
    pub fn waits(&self) -> Vec<f64> {
        self.attempts.iter().filter_map(Attempt::waited_ms).collect()
    }

    /// How it ended, in a few words.
    pub fn ended(&self) -> String {
        match &self.result {
            Ok(_) => "succeeded".to_owned(),
            Err(failure) => failure.to_string(),
        }
    }
}

/// Makes a call and keeps what the driver does for it.
pub async fn watch<T>(call: impl Future<Output = mongodb::error::Result<T>>) -> Call<T> {
    let events = Arc::new(Mutex::new(Vec::new()));
    let result = EVENTS.scope(Arc::clone(&events), AssertUnwindSafe(call).catch_unwind()).await;
    let result = match result {
        Ok(result) => result.map_err(|error| Failure::Error(Box::new(error))),
        Err(_) => Err(Failure::Panic),
    };
    let events = std::mem::take(&mut *locked(&events));
    Call { result, attempts: attempts(events) }
}

/// What the events of a call say of its attempts.
fn attempts(events: Vec<(Instant, Event)>) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let (mut failed, mut waited) = (None, None);
    let attempt = |server, waited| Attempt {
        server,
        name: String::new(),
        command: Document::new(),
        request: 0,
        ends: Vec::new(),
        waited,
    };
    for (at, event) in events {
        let since = |failed: Option<Instant>| failed.map(|failed| at - failed);
        match event {
            Event::CheckoutStarted => waited = since(failed.take()),
            Event::CheckoutFailed { server } => {
                let ends = vec![End::NoConnection];
                attempts.push(Attempt { ends, ..attempt(server, waited.take()) });
                failed = Some(at);
            }
            Event::Started { server, name, request, command } => {
                // Without a check-out the connection is pinned.
                let waited = waited.take().or_else(|| since(failed.take()));
                attempts.push(Attempt { name, request, command, ..attempt(server, waited) });
            }
            Event::Ended { request, end } => {
                failed = matches!(end, End::Failed(_)).then_some(at);
                let of = attempts.iter_mut().rev().find(|attempt| attempt.request == request);
                if let Some(attempt) = of {
                    attempt.ends.push(end);
                }
            }
        }
    }
    attempts
}

/// Outside a watched call nobody wants to know.
pub(super) fn note(event: Event) {
    let _ = EVENTS.try_with(|events| locked(events).push((Instant::now(), event)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_by_attempt() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let started = |request| Event::Started {
            server: "h:1".to_owned(),
            name: "find".to_owned(),
            request,
            command: Document::new(),
        };
        let failed = |request| Event::Ended { request, end: End::Failed(Vec::new()) };
        let attempts = attempts(vec![
            (at(0), Event::CheckoutStarted),
            (at(1), started(7)),
            (at(2), failed(7)),
            (at(52), Event::CheckoutStarted),
            (at(60), Event::CheckoutFailed { server: "h:1".to_owned() }),
            (at(61), Event::CheckoutStarted),
            (at(70), started(8)),
            (at(71), Event::Ended { request: 8, end: End::Served }),
        ]);
        let waits: Vec<_> = attempts.iter().map(|attempt| attempt.waited.map(|w| w.as_millis())).collect();
        assert_eq!(waits, [None, Some(50), Some(1)]);
        let ends: Vec<_> = attempts.iter().map(|attempt| attempt.ends.clone()).collect();
        assert_eq!(ends, [vec![End::Failed(Vec::new())], vec![End::NoConnection], vec![End::Served]]);
    }
}
