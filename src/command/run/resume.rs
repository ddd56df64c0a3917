//! Going on with a run that was interrupted: what it has left to do, if this is the same run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::matrix::Prepared;
use crate::command::{Outcome, UsageError};
use crate::compare::trial::in_effect;
use crate::plan::Driver;
use crate::results::resume::Earlier;
use crate::results::run_json::without_uris;
use crate::results::{HostFacts, RunFacts};
use crate::stderr::tell;
use crate::stub;
use crate::trial::options_of;
use crate::variants::Place;

/// Options that differ between two starts of one run: a lab or a fault is named anew.
const OF_THE_START: [&str; 2] = ["appName", "replicaSet"];

/// Those of the places whose trials are not whole.
///
/// # Errors
/// When what the directory holds was made by another profile, other arguments or another order.
pub fn left(
    earlier: &Earlier,
    profile_text: &str,
    variants: &[Prepared],
    places: &[Place],
) -> Result<Vec<Place>, UsageError> {
    let shown = earlier.directory.path().display();
    let refused = |what: String| {
        UsageError::new(format!(
            "--resume {shown}: {what}; give the profile and the arguments that it was started with"
        ))
    };
    if places.len() == 1 {
        return Err(refused("a run of one trial is run anew".to_owned()));
    }
    if earlier.profile_text != profile_text {
        return Err(refused("it was started with another profile".to_owned()));
    }
    for stored in &earlier.trials {
        let number = stored["trial"].as_u64();
        let place = places.iter().find(|place| Some(u64::from(place.trial)) == number);
        let Some(place) = place else {
            return Err(refused(format!("there is no trial {} now", stored["trial"])));
        };
        if let Some(what) = difference(stored, place, &variants[place.variant]) {
            return Err(refused(format!("trial {} would not be the same: {what}", place.trial)));
        }
    }
    let whole = earlier.numbers();
    Ok(places.iter().filter(|place| !whole.contains(&u64::from(place.trial))).copied().collect())
}

/// All trials are whole; but the start that brought the last to its end may have been killed before it said so.
pub fn nothing_left(earlier: &Earlier) -> anyhow::Result<Outcome> {
    let directory = &earlier.directory;
    if !earlier.is_finished() {
        let facts = RunFacts {
            started: earlier.started,
            ended: Timestamp::now(),
            complete: true,
            host: HostFacts::detect(),
            notes: Vec::new(),
            earlier: earlier.trials.clone(),
            search: None,
            shards: None,
        };
        directory.finish(&facts, &[])?;
    }
    tell(&format!("all {} trials of {} are whole", earlier.trials.len(), directory.path().display()));
    Ok(if earlier.has_crossed() { Outcome::ThresholdCrossed } else { Outcome::Done })
}

/// In what a trial that was stored differs from the one that would run in its place.
fn difference(stored: &Value, place: &Place, variant: &Prepared) -> Option<String> {
    if stored["variant"] != variant.variant.name.as_str() || stored["repeat"] != place.repeat {
        return Some(format!("it was {}", stored["variant"]));
    }
    let Driver { name, version } = variant.plan.driver();
    if stored["driver"] != name || stored["driver_version"] != version {
        return Some(format!("its driver was {}:{}", stored["driver"], stored["driver_version"]));
    }
    let notes = stored["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if script(notes) != script(variant.notes.iter().map(String::as_str)) {
        return Some("its stub answered otherwise, or there was none".to_owned());
    }
    let mut plan = serde_json::to_value(&*variant.plan).ok()?;
    without_uris(&mut plan);
    if let Some(key) = first_difference(&stored["plan"], &plan) {
        return Some(format!("its `{key}` differs"));
    }
    let options = options_of(&variant.plan, &variant.target, &variant.clients);
    let (was, is) = (values(&stored["options"]), values(&options));
    let changed = was.iter().chain(&is).find(|(name, _)| was.get(*name) != is.get(*name));
    changed.map(|(name, _)| format!("`{name}` was {}", was.get(name).map_or("not set", |value| value)))
}

/// How a stub answers, if there is one.
fn script<'a>(mut notes: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    notes.find_map(|note| note.strip_prefix(stub::NOTE))
}

fn first_difference(was: &Value, is: &Value) -> Option<String> {
    let (was, is) = (was.as_object()?, is.as_object()?);
    // Options are looked at where all have been put together.
    let differs = |key: &&String| *key != "client" && was.get(*key) != is.get(*key);
    was.keys().chain(is.keys()).find(differs).cloned()
}

fn values(options: &Value) -> BTreeMap<String, &str> {
    let told = in_effect(options).into_iter().filter(|(name, _)| {
        // Of several clients each has them.
        let own = name.rsplit('.').next().unwrap_or_default();
        !OF_THE_START.contains(&own)
    });
    told.filter_map(|(name, option)| Some((name, option["value"].as_str()?))).collect()
}
