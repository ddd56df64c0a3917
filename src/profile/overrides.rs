//! What the command line changes in a profile.

use std::collections::BTreeSet;

use crate::plan::client::OptionSource;
use crate::plan::load::MOST_WORKERS;
use crate::plan::{Attempts, Driver};
use crate::thresholds::Condition;
use crate::units::{Rate, Span};

use super::client::{CheckOption, put, setting};
use super::clients::{PRODUCER, SAYS};
use super::diagnostic::{either, nearest};
use super::load::{ModelName, WrittenLoad};
use super::settable;
use super::thresholds::{Names, sentence};
use super::timeout::AFTER_DEADLINE;
use super::{Profile, WrittenClient};

/// Every run has the same keys, documents and arrivals unless it is told otherwise, so that two can be compared.
const SEED: u64 = 42;

/// What open loads alone have, and what does not make a load open that is closed.
const OPEN_ONLY: [&str; 4] = ["load.max_in_flight", "load.arrivals", "flow.queue", "flow.when_full"];

/// How the keys of one client begin.
const CLIENTS: &str = "clients.";

/// What the command line changes. Of two that change the same, the later in this list wins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--rate`: also makes the load open, and takes the place of stages.
    pub rate: Option<Rate>,
    /// `--workers`: also makes the load closed.
    pub workers: Option<u32>,
    /// `--duration`: cuts or extends the last of the stages.
    pub duration: Option<Span>,
    /// `--warmup`
    pub warmup: Option<Span>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--attempts`
    pub attempts: Option<Attempts>,
    /// `--driver`
    pub driver: Option<Driver>,
    /// `--fail-if`, beside the profile's own.
    pub fail_if: Vec<Condition>,
    /// `--abort-when`, beside the profile's own.
    pub abort_when: Vec<Condition>,
    /// `--set KEY=VALUE`, in order.
    pub sets: Vec<(String, String)>,
    /// The values of this variant from `--vary KEY=A,B,…`, in order.
    pub varies: Vec<(String, String)>,
}

/// Why the command line's changes cannot be made: one message each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct OverrideErrors(pub Vec<String>);

/// A profile while the command line changes it.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub profile: Profile,
    pub seed: u64,
    pub attempts: Attempts,
    /// The parts of `[flow]` that were taken away.
    pub gone: BTreeSet<&'static str>,
    /// Where there are several clients: each with what it comes to, and none in it.
    pub clients: Vec<(String, Self)>,
}

impl Draft {
    /// All changes made, or all that is wrong with them.
    pub fn new(
        profile: &Profile,
        changes: &Overrides,
        check: CheckOption<'_>,
    ) -> Result<Self, OverrideErrors> {
        let mut draft = Self {
            profile: profile.clone(),
            seed: changes.seed.unwrap_or(SEED),
            attempts: changes.attempts.unwrap_or_default(),
            gone: BTreeSet::new(),
            clients: Vec::new(),
        };
        let mut errors: Vec<String> = draft.apply_flags(changes).err().into_iter().collect();
        let sets = changes.sets.iter().map(|set| (OptionSource::Set, "--set", set));
        let varies = changes.varies.iter().map(|vary| (OptionSource::Vary, "--vary", vary));
        let (of_clients, of_all): (Vec<_>, Vec<_>) =
            sets.chain(varies).partition(|(_, _, (key, _))| key.starts_with(CLIENTS));
        // The value may be a secret; where it cannot be, the message repeats it.
        for (from, flag, (key, value)) in of_all {
            let heard = unheard(&draft.profile.clients, key);
            let set = heard.and_then(|()| draft.set(key, value, from, check));
            errors.extend(set.err().map(|message| format!("{flag} {key}: {message}")));
        }
        // What is said for one client is stronger than what is said for all.
        draft.clients = profile.clients.iter().map(|client| draft.of(client)).collect();
        for &(from, flag, (key, value)) in &of_clients {
            let set = draft.set_of_client(key, value, from, check);
            errors.extend(set.err().map(|message| format!("{flag} {key}: {message}")));
        }
        draft.keep_producers_open(|key| of_clients.iter().any(|(_, _, (set, _))| set == key));
        errors.extend(draft.after_no_deadline(changes));
        errors.extend(draft.add_thresholds(changes));
        if errors.is_empty() { Ok(draft) } else { Err(OverrideErrors(errors)) }
    }

    fn apply_flags(&mut self, changes: &Overrides) -> Result<(), String> {
        let load = &mut self.profile.load;
        if changes.rate.is_some() && changes.workers.is_some() {
            return Err(
                "--rate belongs to the open model and --workers to the closed one: give one".to_owned()
            );
        }
        if let Some(rate) = changes.rate {
            unheard(&self.profile.clients, "rate").map_err(|message| format!("--rate: {message}"))?;
            load.make_open(rate);
        }
        if let Some(workers) = changes.workers {
            unheard(&self.profile.clients, "workers").map_err(|message| format!("--workers: {message}"))?;
            load.make_closed(workers)?;
        }
        if let Some(duration) = changes.duration {
            load.set_duration(duration)?;
        }
        load.warmup = changes.warmup.or(load.warmup);
        if changes.driver.is_some() {
            self.profile.driver.clone_from(&changes.driver);
        }
        Ok(())
    }

    /// What is asked for when a deadline has passed although there is none; a variant may be without one.
    fn after_no_deadline(&self, changes: &Overrides) -> Vec<String> {
        let changed = |key: &str| {
            let mut keys = changes.sets.iter().chain(&changes.varies).map(|(key, _)| key.as_str());
            keys.any(|changed| changed.strip_prefix("timeout.") == Some(key))
        };
        let has_deadline = |draft: &Self| draft.profile.timeout.operation.is_some();
        if has_deadline(self)
            || self.clients.iter().any(|(_, client)| has_deadline(client))
            || changed("operation")
        {
            return Vec::new();
        }
        let idle = AFTER_DEADLINE.into_iter().filter(|key| changed(key));
        idle.map(|key| format!("timeout.{key} says nothing without a deadline: set timeout.operation, too"))
            .collect()
    }

    /// Takes the producer that a closed client has from the profile away: it is meant for those that are open.
    fn keep_producers_open(&mut self, is_set: impl Fn(&str) -> bool) {
        for ((name, client), written) in self.clients.iter_mut().zip(&self.profile.clients) {
            let set = PRODUCER.iter().any(|key| is_set(&format!("{CLIENTS}{name}.flow.{key}")));
            let closed = client.profile.load.model == Some(ModelName::Closed);
            if closed && !set && !written.says_producer() {
                (client.profile.flow.producer, client.profile.flow.spool) = (None, None);
            }
        }
    }

    /// What one of several clients comes to.
    fn of(&self, client: &WrittenClient) -> (String, Self) {
        let profile = client.over(&self.profile);
        (client.name.clone(), Self { profile, clients: Vec::new(), ..self.clone() })
    }

    /// Adds thresholds, and returns what is wrong with some.
    fn add_thresholds(&mut self, changes: &Overrides) -> Vec<String> {
        let Profile { operations, overloads, thresholds, .. } = &mut self.profile;
        let clients = self.clients.iter().map(|(name, of)| (name.as_str(), of.profile.operations.as_slice()));
        let names = Names::of(operations, clients, overloads);
        let mut errors = Vec::new();
        for (flag, added, all) in [
            ("--fail-if", &changes.fail_if, &mut thresholds.fail_if),
            ("--abort-when", &changes.abort_when, &mut thresholds.abort_when),
        ] {
            for condition in added {
                match names.check(condition) {
                    Ok(()) => all.push(condition.clone()),
                    Err(mistake) => errors.push(format!("{flag} '{condition}': {}", sentence(&mistake))),
                }
            }
        }
        errors
    }

    /// One `clients.NAME.KEY=VALUE`: what it says without `clients.NAME.`, for this client alone.
    fn set_of_client(
        &mut self,
        key: &str,
        value: &str,
        from: OptionSource,
        check: CheckOption<'_>,
    ) -> Result<(), String> {
        let Some((name, own)) = key.strip_prefix(CLIENTS).and_then(|rest| rest.split_once('.')) else {
            return Err(unknown_key(key, &settable::keys(self)));
        };
        let Some(index) = self.clients.iter().position(|(known, _)| known == name) else {
            return Err(no_client(name, &self.clients));
        };
        let client = &mut self.clients[index].1;
        if let Some((says, _)) = own.split_once('.')
            && SAYS.contains(&says)
        {
            if ["load.warmup", "load.duration", "load.cooldown"].contains(&own) {
                return Err(format!(
                    "it is not for one client to say: all of them share the time; set {own}"
                ));
            }
            if says == "client" || settable::keys(client).iter().any(|known| known == own) {
                return client.set(own, value, from, check);
            }
        }
        let meant = match check(own, None) {
            _ if ["rate", "workers"].contains(&own) => Some(format!("load.{own}")),
            Ok(option) if !own.contains('.') && !SAYS.contains(&own) => Some(format!("client.{option}")),
            _ => None,
        };
        if let Some(meant) = meant {
            return Err(format!("there is no such key; did you mean `{CLIENTS}{name}.{meant}`?"));
        }
        Err(unknown_key(key, &settable::keys(self)))
    }

    /// One `KEY=VALUE`: a key of the profile, or else a connection-string option.
    fn set(
        &mut self,
        key: &str,
        value: &str,
        from: OptionSource,
        check: CheckOption<'_>,
    ) -> Result<(), String> {
        if let Some(result) = settable::set(self, key, value) {
            return result;
        }
        let option = key.strip_prefix("client.").unwrap_or(key);
        if let Some(message) = of_clients_alone(&self.profile.clients, key) {
            return Err(message);
        }
        if option.contains('.') {
            return Err(unknown_key(key, &settable::keys(self)));
        }
        match setting(option, value, from, check) {
            Ok(setting) => {
                put(&mut self.profile.client, setting);
                Ok(())
            }
            // A mistyped `rate` is no option, but it is not meant to be one.
            Err(message) => match nearest(key, settable::SHORT) {
                Some(name) if option == key => Err(format!("{message}; or did you mean `{name}`?")),
                _ => Err(message),
            },
        }
    }
}

/// Whether some client takes what is said for all of them.
fn unheard(clients: &[WrittenClient], key: &str) -> Result<(), String> {
    if clients.is_empty() || !clients.iter().all(|client| client.says(key)) {
        return Ok(());
    }
    let own = match key {
        "rate" | "workers" => format!("load.{key}"),
        key if key.contains('.') => key.to_owned(),
        option => format!("client.{option}"),
    };
    // What closed loads do not have can be set for the others alone.
    let open_only = OPEN_ONLY.contains(&key);
    let able = clients.iter().filter(|client| !open_only || !client.says_closed());
    let names: Vec<String> = able.map(|client| format!("clients.{}.{own}", client.name)).collect();
    if names.is_empty() {
        return Err("it belongs to the open model, and the load of each client is closed".to_owned());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(format!("each client says that for itself; set {}", either(&names)))
}

/// What to say of an operation's key where some clients alone have such an operation.
fn of_clients_alone(clients: &[WrittenClient], key: &str) -> Option<String> {
    let name = key.strip_prefix("op.")?.strip_suffix(".weight")?;
    let has =
        |client: &&WrittenClient| client.operations().unwrap_or_default().iter().any(|op| op.name == name);
    let keys: Vec<String> =
        clients.iter().filter(has).map(|client| format!("{CLIENTS}{}.{key}", client.name)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    (!keys.is_empty()).then(|| format!("there is no such key; did you mean `{}`?", keys.join("` or `")))
}

fn no_client(name: &str, clients: &[(String, Draft)]) -> String {
    let known: Vec<&str> = clients.iter().map(|(known, _)| known.as_str()).collect();
    let message = format!("there is no client `{name}`");
    match nearest(name, known.iter().copied()) {
        _ if known.is_empty() => format!("{message}: the profile has no [clients]"),
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => format!("{message}; there are {}", known.join(", ")),
    }
}

fn unknown_key(key: &str, known: &[String]) -> String {
    match nearest(key, known.iter().map(String::as_str)) {
        Some(name) => format!("there is no such key; did you mean `{name}`?"),
        None => format!("there is no such key; there are {}", known.join(", ")),
    }
}

impl WrittenLoad {
    /// A steady rate for as long as the load lasts.
    pub fn make_open(&mut self, rate: Rate) {
        self.duration = self.duration.or(self.staged());
        self.stages.clear();
        (self.model, self.rate) = (Some(ModelName::Open), Some(rate));
    }

    /// So many workers for as long as the load lasts.
    ///
    /// # Errors
    /// When the number is out of bounds.
    pub fn make_closed(&mut self, workers: u32) -> Result<(), String> {
        if !(1..=MOST_WORKERS).contains(&workers) {
            return Err(format!("workers must be from 1 to {MOST_WORKERS}"));
        }
        self.duration = self.duration.or(self.staged());
        (self.model, self.workers) = (Some(ModelName::Closed), Some(workers));
        Ok(())
    }

    /// Another length of the measured time.
    ///
    /// # Errors
    /// When it is 0.
    pub fn set_duration(&mut self, duration: Span) -> Result<(), String> {
        if duration == Span::ZERO {
            return Err("the duration must be longer than 0".to_owned());
        }
        self.duration = Some(duration);
        Ok(())
    }
}
