//! From a plan to the driver that is simulated, and what has to be known of what is not.

use super::application::not_simulated;
use super::driver::{Driver, ReadPreference};
use super::rules::{MOST_OVERLOADS, is_simulated};
use crate::client::merge::{Resolved, resolve_options};
use crate::client::uri::Uri;
use crate::client::version::Version;
use crate::plan::flow::OnTimeout;
use crate::plan::{self, Action, Assumptions, Fault, Members, Plan};

/// A connection string of the same shape as a replica set's.
const REPLICA_SET: &str = "mongodb://127.0.0.1/?replicaSet=simulated";

/// What a driver's version does about rejections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Generation {
    /// Nothing.
    None,
    /// Retries; delays grow from the base.
    First,
    /// Delays grow from twice the base, which may be the server's.
    Based,
}

/// By the first versions of either. A build that does not know its driver's version has a new one.
fn generation(driver: &plan::Driver) -> Generation {
    let (first, based) = match driver.is_rust() {
        true => (Version::new(3, 6, 0), Version::new(3, 9, 0)),
        false => (Version::new(4, 17, 0), Version::new(4, 18, 0)),
    };
    match Version::parse(&driver.version) {
        Some(version) if version < first => Generation::None,
        Some(version) if version < based => Generation::First,
        _ => Generation::Based,
    }
}

/// The plan's options, put together and checked as for a run with its driver.
///
/// # Errors
/// All that is wrong with them.
pub fn options(plan: &Plan) -> Result<Resolved, String> {
    let uri = Uri::parse(REPLICA_SET).map_err(|error| error.to_string())?;
    resolve_options(&uri, &plan.client, None, &plan.driver()).map_err(|error| error.to_string())
}

/// The driver with these options.
///
/// # Errors
/// When no server could ever be selected.
pub fn driver(options: &Resolved, plan: &Plan, model: &Assumptions) -> Result<Driver, String> {
    let value =
        |name: &str| options.options.iter().find(|option| option.name == name).map(|option| &*option.value);
    let number = |name: &str| value(name).and_then(|value| value.parse::<u32>().ok());
    let is_on = |name: &str| value(name) == Some("true");
    let generation = generation(&plan.driver());
    let prefers = match value("readPreference").unwrap_or("primary").to_ascii_lowercase().as_str() {
        "primarypreferred" => ReadPreference::PrimaryPreferred,
        "secondary" => ReadPreference::Secondary,
        "secondarypreferred" => ReadPreference::SecondaryPreferred,
        "nearest" => ReadPreference::Nearest,
        _ => ReadPreference::Primary,
    };
    if prefers == ReadPreference::Secondary && model.servers < 2 {
        return Err("readPreference=secondary finds no server where there is none but the primary: set model.servers to 2 \
                    or more, or another readPreference"
            .to_owned());
    }
    Ok(Driver {
        max_retries: number("maxAdaptiveRetries").unwrap_or(2) * u32::from(generation >= Generation::First),
        first_exponent: u32::from(generation == Generation::Based),
        heeds_base: generation == Generation::Based,
        retargets: is_on("enableOverloadRetargeting") && generation >= Generation::First,
        prefers,
        retry_reads: is_on("retryReads"),
        retry_writes: is_on("retryWrites"),
        pool: number("maxPoolSize").unwrap_or(10),
    })
}

/// What cannot be simulated at all.
///
/// # Errors
/// What, and what to do about it.
pub fn check(plan: &Plan, model: &Assumptions) -> Result<(), String> {
    if plan.overloads.len() > MOST_OVERLOADS {
        return Err(format!(
            "a simulation takes at most {MOST_OVERLOADS} overloads, and there are {}",
            plan.overloads.len()
        ));
    }
    if plan.operations.len() > usize::from(u16::MAX) {
        return Err(format!("a simulation takes at most {} operations", u16::MAX));
    }
    for overload in &plan.overloads {
        let Members::Numbers(numbers) = &overload.members else { continue };
        if let Some(beyond) = numbers.iter().find(|&&number| number >= model.servers as usize) {
            return Err(format!(
                "overload '{}': there is no member {beyond}, the model has {}: 0 to {}; set model.servers",
                overload.name,
                model.servers,
                model.servers - 1
            ));
        }
    }
    Ok(())
}

/// What people have to know of the numbers beside that they are simulated.
pub fn notes(plan: &Plan) -> Vec<String> {
    let mut notes: Vec<String> = plan
        .overloads
        .iter()
        .filter(|overload| !is_simulated(&overload.fault))
        .map(|overload| {
            format!("{} is not simulated: nothing happens in '{}'", overload.fault.kind(), overload.name)
        })
        .collect();
    let cursors: Vec<&str> = plan
        .operations
        .iter()
        .filter(|operation| {
            operation.weight > 0 && matches!(operation.action, Action::Find(_) | Action::Aggregate(_))
        })
        .map(|operation| &*operation.name)
        .collect();
    if !cursors.is_empty() {
        notes.push(format!("a cursor is simulated as one batch: {}", cursors.join(", ")));
    }
    notes.extend(not_simulated(&plan.flow).map(str::to_owned));
    if plan.timeout.operation.is_some() && plan.timeout.on_timeout == OnTimeout::ReadInBackground {
        notes.push(
            "calls that pass their deadline are simulated as cancelled, not as read in the background"
                .to_owned(),
        );
    }
    if plan.timeout.max_time.is_some() {
        notes.push("timeout.max_time is not simulated: servers go on with what nobody waits for".to_owned());
    }
    if plan.staleness.is_some() {
        notes.push("staleness is not simulated".to_owned());
    }
    notes
}

/// What sheds load in the simulation, for the column of that name; a failpoint has a word of its own, since what it
/// rejects does not depend on the load.
pub fn mechanism(plan: &Plan) -> String {
    let failpoint = plan.overloads.iter().any(|overload| matches!(overload.fault, Fault::FailCommand(_)));
    if failpoint { "simulated+failpoint" } else { "simulated" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OptionSetting;
    use crate::plan::client::OptionSource;
    use crate::results::testing;

    fn of(version: &str, settings: &[(&str, &str)]) -> Driver {
        let mut plan = testing::plan();
        let setting = |&(name, value): &(&str, &str)| OptionSetting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            from: OptionSource::Set,
        };
        plan.client = settings.iter().map(setting).collect();
        plan.driver = Some(version.parse().unwrap());
        driver(&options(&plan).unwrap(), &plan, &Assumptions::default()).unwrap()
    }

    #[test]
    fn versions_retry_as_they_do() {
        let retries = |version| {
            let driver = of(version, &[("maxAdaptiveRetries", "5"), ("enableOverloadRetargeting", "true")]);
            (driver.max_retries, driver.first_exponent, driver.heeds_base, driver.retargets)
        };
        assert_eq!(retries("3.5.2"), (0, 0, false, false));
        assert_eq!(retries("3.6.0"), (5, 0, false, true));
        assert_eq!(retries("3.8.2"), (5, 0, false, true));
        assert_eq!(retries("3.9.0"), (5, 1, true, true));
        assert_eq!(retries("pymongo:4.16.0"), (0, 0, false, false));
        assert_eq!(retries("pymongo:4.17.0"), (5, 0, false, true));
        assert_eq!(retries("pymongo:4.18.0"), (5, 1, true, true));
    }

    #[test]
    fn what_nobody_sets_is_the_drivers_default() {
        let driver = of("3.9.1", &[]);
        assert_eq!((driver.max_retries, driver.retargets, driver.pool), (2, false, 10));
        assert!(driver.retry_reads && driver.retry_writes);
        assert_eq!(driver.prefers, ReadPreference::Primary);
        let set = of(
            "3.9.1",
            &[("readPreference", "secondaryPreferred"), ("maxPoolSize", "70"), ("retryReads", "false")],
        );
        assert_eq!((set.prefers, set.pool, set.retry_reads), (ReadPreference::SecondaryPreferred, 70, false));
    }
}
