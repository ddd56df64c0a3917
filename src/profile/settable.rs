//! The keys of a profile that `--set` and `--vary` change: leaves, spelt as their path in the profile.

mod flow;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::plan::gate::{LONGEST_BASE_BACKOFF_MS, MOST_WAITING};
use crate::plan::load::MOST_WORKERS;
use crate::plan::model::{MOST_CLIENTS, MOST_SERVERS};
use crate::plan::overload::{
    FEWEST_TICKETS, LARGEST_EXTRA, LONGEST_HOLD, MOST_EXTRA, MOST_HELD, MOST_TICKETS,
};
use crate::plan::{Attempts, Fault, Limit, Overload, Staleness, Timeout};
use crate::units::{Span, WholeRate};

use super::client::UNSET;
use super::clients::SAYS;
use super::data::{MOST_DOCUMENTS, collection_name, database_name};
use super::diagnostic::either;
use super::fault::fail_command::check_probability;
use super::load::{ARRIVALS, MODELS, MOST_IN_FLIGHT};
use super::model;
use super::operations::{MOST_WEIGHT, SCALE};
use super::overloads::MEMBERS;
use super::overrides::Draft;
use super::staleness::check_every;
use super::timeout::{ON_TIMEOUT, check_max_time};

/// Keys that need no table in front.
pub(super) const SHORT: [&str; 7] = ["rate", "workers", "duration", "warmup", "seed", "attempts", "driver"];

/// Keys that every profile has.
const FIXED: [&str; 24] = [
    "load.model",
    "load.rate",
    "load.workers",
    "load.max_in_flight",
    "load.warmup",
    "load.duration",
    "load.cooldown",
    "load.arrivals",
    "data.database",
    "data.collection",
    "data.documents",
    "timeout.operation",
    "timeout.on_timeout",
    "timeout.grace",
    "timeout.max_time",
    "staleness.every",
    "model.servers",
    "model.clients",
    "model.tickets",
    "model.max_queue",
    "model.service_time",
    "model.service_distribution",
    "model.rejection_cost",
    "model.rtt",
];

/// How many tickets there can be.
const TICKETS: RangeInclusive<u32> = FEWEST_TICKETS..=MOST_TICKETS;

/// Keys of an overload: those that all have, and those of its fault.
fn overload_keys(fault: &Fault) -> impl Iterator<Item = &'static str> {
    let own: &[&str] = match fault {
        Fault::LimitRequests(_) => &["members", "rate", "burst", "queue_depth", "base_backoff_ms"],
        Fault::LimitConnections(_) => &["members", "rate", "burst", "queue_depth"],
        Fault::FailCommand(_) => &["members", "probability", "code"],
        Fault::Tickets(_) => &["members", "read", "write"],
        Fault::HoldTickets(_) => &["members", "count", "hold"],
        Fault::LatencyEvent(_) => &["documents", "size"],
        Fault::Stall {} | Fault::Kill {} => &["members"],
        Fault::StepDown {} => &[],
    };
    ["at", "for"].iter().chain(own).copied()
}

/// Every key that can be set in a profile.
pub(super) fn keys(draft: &Draft) -> Vec<String> {
    let weights = draft.profile.operations.iter().map(|op| format!("op.{}.weight", op.name));
    let overloads = draft.profile.overloads.iter();
    let overloads =
        overloads.flat_map(|o| overload_keys(&o.fault).map(|key| format!("overload.{}.{key}", o.name)));
    FIXED
        .iter()
        .chain(&flow::KEYS)
        .chain(&SHORT)
        .map(|&key| key.to_owned())
        .chain(weights)
        .chain(overloads)
        .chain(draft.clients.iter().flat_map(|(name, client)| client_keys(name, client)))
        .collect()
}

/// Those of one of several clients.
fn client_keys(name: &str, client: &Draft) -> Vec<String> {
    const SHARED: [&str; 3] = ["load.warmup", "load.duration", "load.cooldown"];
    let own = |key: &&String| {
        let says = key.split_once('.').is_some_and(|(says, _)| SAYS.contains(&says));
        says && !SHARED.contains(&key.as_str())
    };
    keys(client).iter().filter(own).map(|key| format!("clients.{name}.{key}")).collect()
}

/// Sets a key; `None` when the profile has no such key.
pub(super) fn set(draft: &mut Draft, key: &str, value: &str) -> Option<Result<(), String>> {
    let parts: Vec<&str> = key.split('.').collect();
    match parts.as_slice() {
        // What may be there or not can be taken away.
        ["timeout", "operation"] if value == UNSET => Some(take(&mut draft.profile.timeout.operation)),
        ["timeout", "max_time"] if value == UNSET => Some(take(&mut draft.profile.timeout.max_time)),
        ["staleness", "every"] if value == UNSET => Some(take(&mut draft.profile.staleness)),
        ["driver"] if value == UNSET => Some(take(&mut draft.profile.driver)),
        ["driver"] => Some(put_some(&mut draft.profile.driver, value.parse())),
        ["seed"] => {
            Some(put(&mut draft.seed, value.parse().map_err(|_| format!("'{value}' is no whole number"))))
        }
        ["attempts"] => Some(put(
            &mut draft.attempts,
            word(value, &[("full", Attempts::Full), ("light", Attempts::Light)]),
        )),
        ["rate" | "workers" | "duration" | "warmup"] => set_load(draft, key, value),
        ["load", key] => set_load(draft, key, value),
        ["data", key] => set_data(draft, key, value),
        ["timeout", key] => set_timeout(&mut draft.profile.timeout, key, value),
        ["flow", path @ ..] => flow::set(draft, path, value),
        ["staleness", "every"] => Some(set_period(draft, value)),
        ["model", key] => set_model(draft, key, value),
        ["thresholds", "fail_if"] => Some(Err("it is a list: add to it with --fail-if".to_owned())),
        ["thresholds", "abort_when"] => Some(Err("it is a list: add to it with --abort-when".to_owned())),
        ["op", name, "weight"] => {
            let operation = draft.profile.operations.iter_mut().find(|op| op.name == *name)?;
            let weight = number(value, 0..=MOST_WEIGHT).map_err(|message| match value.parse::<f64>() {
                Ok(fraction) if fraction.fract() != 0.0 => format!("{message}; {SCALE}"),
                _ => message,
            });
            Some(put(&mut operation.weight, weight))
        }
        ["overload", name, key] => {
            let overload = draft.profile.overloads.iter_mut().find(|o| o.name == *name)?;
            set_overload(overload, key, value)
        }
        _ => None,
    }
}

fn set_load(draft: &mut Draft, key: &str, value: &str) -> Option<Result<(), String>> {
    let load = &mut draft.profile.load;
    Some(match key {
        "model" => word(value, &MODELS).map(|model| load.model = Some(model)),
        "rate" => quantity(value).map(|rate| load.make_open(rate)),
        "workers" => number(value, 1..=MOST_WORKERS).and_then(|workers| load.make_closed(workers)),
        "max_in_flight" => put_some(&mut load.max_in_flight, number(value, 1..=MOST_IN_FLIGHT)),
        "warmup" => put_some(&mut load.warmup, quantity(value)),
        "duration" => quantity(value).and_then(|duration| load.set_duration(duration)),
        "cooldown" => put_some(&mut load.cooldown, quantity(value)),
        "arrivals" => put_some(&mut load.arrivals, word(value, &ARRIVALS)),
        _ => return None,
    })
}

fn set_timeout(timeout: &mut Timeout, key: &str, value: &str) -> Option<Result<(), String>> {
    let told = |span: Span| check_max_time(span).map_err(|message| format!("it {message}"));
    Some(match key {
        "operation" => put_some(&mut timeout.operation, above_zero(value)),
        "on_timeout" => put(&mut timeout.on_timeout, word(value, &ON_TIMEOUT)),
        "grace" => put(&mut timeout.grace, quantity(value)),
        "max_time" => put_some(&mut timeout.max_time, quantity(value).and_then(told)),
        _ => return None,
    })
}

/// The first key that is set begins from the usual.
fn set_model(draft: &mut Draft, key: &str, value: &str) -> Option<Result<(), String>> {
    let mut model = draft.profile.model.clone().unwrap_or_default();
    let checked = |result: Result<(), String>| result.map_err(|message| format!("it {message}"));
    let result = match key {
        "servers" => put(&mut model.servers, number(value, 1..=MOST_SERVERS)),
        "clients" => put(&mut model.clients, number(value, 1..=MOST_CLIENTS)),
        "tickets" => put(&mut model.tickets, number(value, 1..=MOST_TICKETS)),
        "max_queue" if value == UNSET => take(&mut model.max_queue),
        "max_queue" => put_some(&mut model.max_queue, number(value, 0..=model::MOST_QUEUED)),
        "service_time" => put(&mut model.service_time, above_zero(value)),
        "service_distribution" => put(&mut model.service_distribution, word(value, &model::DISTRIBUTIONS)),
        "rejection_cost" => {
            let parsed = value.parse::<f64>().map_err(|_| format!("'{value}' is no number"));
            put(
                &mut model.rejection_cost,
                parsed.and_then(|cost| checked(model::check_cost(cost)).map(|()| cost)),
            )
        }
        "rtt" => {
            let parsed = quantity::<Span>(value);
            put(&mut model.rtt, parsed.and_then(|rtt| checked(model::check_rtt(rtt)).map(|()| rtt)))
        }
        _ => return None,
    };
    draft.profile.model = Some(model);
    Some(result)
}

fn set_data(draft: &mut Draft, key: &str, value: &str) -> Option<Result<(), String>> {
    let data = &mut draft.profile.data;
    let named = |check: fn(&str) -> Result<(), String>| check(value).map(|()| value.to_owned());
    Some(match key {
        "database" => put(&mut data.database, named(database_name)),
        "collection" => put(&mut data.collection, named(collection_name)),
        "documents" => put(&mut data.documents, number(value, 0..=MOST_DOCUMENTS)),
        _ => return None,
    })
}

/// Gives a profile that has no probe one, too.
fn set_period(draft: &mut Draft, value: &str) -> Result<(), String> {
    let every = quantity(value)?;
    check_every(every).map_err(|message| format!("it {message}"))?;
    draft.profile.staleness = Some(Staleness { every });
    Ok(())
}

fn set_overload(overload: &mut Overload, key: &str, value: &str) -> Option<Result<(), String>> {
    if !overload_keys(&overload.fault).any(|known| known == key) {
        return None;
    }
    Some(match key {
        "at" => put(&mut overload.at, quantity(value)),
        "for" => put(&mut overload.length, above_zero(value)),
        "members" => put(&mut overload.members, word(value, &MEMBERS)),
        _ => return set_fault(&mut overload.fault, key, value),
    })
}

fn set_fault(fault: &mut Fault, key: &str, value: &str) -> Option<Result<(), String>> {
    Some(match (fault, key) {
        (Fault::FailCommand(fault), "probability") => {
            let parsed = value.parse::<f64>().map_err(|_| format!("'{value}' is no number"));
            put(&mut fault.probability, parsed.and_then(|p| check_probability(p).map(|()| p)))
        }
        (Fault::FailCommand(fault), "code") => put(&mut fault.code, number(value, 1..=i32::MAX)),
        (Fault::LimitRequests(fault), "base_backoff_ms") => {
            put_some(&mut fault.base_backoff_ms, number(value, 1..=LONGEST_BASE_BACKOFF_MS))
        }
        (Fault::LimitRequests(fault), key) => return set_limit(&mut fault.limit, key, value),
        (Fault::LimitConnections(fault), key) => return set_limit(&mut fault.limit, key, value),
        (Fault::Tickets(fault), "read") => put_some(&mut fault.read, number(value, TICKETS)),
        (Fault::Tickets(fault), "write") => put_some(&mut fault.write, number(value, TICKETS)),
        (Fault::HoldTickets(fault), "count") => put(&mut fault.count, number(value, 1..=MOST_HELD)),
        (Fault::HoldTickets(fault), "hold") => put(&mut fault.hold, above_zero(value).and_then(brief)),
        (Fault::LatencyEvent(fault), "documents") => put(&mut fault.documents, number(value, 1..=MOST_EXTRA)),
        (Fault::LatencyEvent(fault), "size") => put(&mut fault.size, number(value, 0..=LARGEST_EXTRA)),
        _ => return None,
    })
}

fn set_limit(limit: &mut Limit, key: &str, value: &str) -> Option<Result<(), String>> {
    Some(match key {
        "rate" => put(&mut limit.rate, quantity::<WholeRate>(value).map(WholeRate::get)),
        "burst" => put(&mut limit.burst, above_zero(value)),
        "queue_depth" => put(&mut limit.queue_depth, number(value, 0..=MOST_WAITING)),
        _ => return None,
    })
}

fn brief(hold: Span) -> Result<Span, String> {
    if hold <= LONGEST_HOLD { Ok(hold) } else { Err(format!("it must be at most {LONGEST_HOLD}")) }
}

fn above_zero(value: &str) -> Result<Span, String> {
    match quantity(value)? {
        Span::ZERO => Err("it must be longer than 0".to_owned()),
        span => Ok(span),
    }
}

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

fn take<T>(slot: &mut Option<T>) -> Result<(), String> {
    *slot = None;
    Ok(())
}

fn put_some<T>(slot: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *slot = Some(value?);
    Ok(())
}

fn quantity<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn number<T: FromStr + PartialOrd + Display>(value: &str, range: RangeInclusive<T>) -> Result<T, String> {
    let parsed = value.trim().parse().ok().filter(|number| range.contains(number));
    parsed.ok_or_else(|| format!("'{value}' is no whole number from {} to {}", range.start(), range.end()))
}

fn word<T: Clone>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| meaning.clone());
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    found.ok_or_else(|| format!("it cannot be '{value}', only {}", either(&names)))
}
