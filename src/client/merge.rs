//! Which options a run has in the end: `--vary` before `--set` before the profile before the connection
//! string before overdrive's own before the driver's defaults, and for each who decided.

use super::conflicts::{self, Given, source_name};
use super::options::{self, OPTIONS, OptionSpec};
use super::uri::{Uri, UriError, UriOption};
use super::version::Version;
use crate::plan::Driver;
use crate::plan::client::{OptionSetting, OptionSource, ResolvedOption};

/// The name by which servers know the measured connections, unless somebody gives another.
pub const APP_NAME: &str = "overdrive";

/// A connection string with every setting in it, and where each option came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What the driver gets.
    pub uri: Uri,
    /// Every option that is set, in the connection string's order, then the driver's defaults.
    pub options: Vec<ResolvedOption>,
    /// What was done differently than asked, and why.
    pub notices: Vec<String>,
}

/// Defaults that mean the same to every driver, and that some will not have said.
const UNSAID: [&str; 2] = ["maxIdleTimeMS", "maxStalenessSeconds"];

/// An option with all its values (several only for tags; none: removed), and who decided it.
struct Choice {
    spec: &'static OptionSpec,
    values: Vec<String>,
    from: OptionSource,
}

/// Puts settings into a connection string, for this driver (the version `unknown` counts as a new one). Another one than the
/// Rust driver gets the Rust driver's defaults as options: those that were left to it would be others.
///
/// `scope` is the application's name by which the servers have to tell this run from all others, whatever name anybody
/// gave: a fault that goes by the name must not hit the application whose connection string this was.
///
/// # Errors
/// With all that is wrong with the settings, alone or together.
pub fn resolve_options(
    uri: &Uri,
    settings: &[OptionSetting],
    scope: Option<&str>,
    driver: &Driver,
) -> Result<Resolved, UriError> {
    // Versions say something of the driver whose they are; other drivers pass over what they do not know.
    let version = Version::parse(&driver.version).filter(|_| driver.is_rust());
    let mut choices = from_uri(uri);
    let mistakes: Vec<_> = settings.iter().filter_map(mistake).collect();
    if !mistakes.is_empty() {
        return Err(UriError::new(mistakes));
    }
    for setting in settings {
        apply(setting, &mut choices);
    }
    let mut notices = Vec::new();
    if let Some(name) = scope
        && choices.iter().any(|choice| choice.spec.name == "appName")
    {
        choices.retain(|choice| choice.spec.name != "appName");
        notices.push(format!("`appName` is {name} in this run, so that its faults hit nobody else"));
    }
    own_app_name(scope.unwrap_or(APP_NAME), &mut choices);
    if !driver.is_rust() {
        pin_defaults(uri, &mut choices);
    }
    choices.retain(|choice| !choice.values.is_empty());
    notices.extend(leave_out_unknown(&mut choices, driver));

    let given: Vec<_> = choices.iter().flat_map(Choice::given).collect();
    let mut mistakes = conflicts::find(uri.shape(), &given);
    mistakes.extend(given.iter().filter_map(|given| {
        let reason = options::driver_limit(given.name, given.value, version).filter(|_| driver.is_rust())?;
        let (name, value, from) = (given.name, given.value, source_name(given.from));
        Some(format!("`{name}={value}` (from {from}): {reason}"))
    }));
    if !mistakes.is_empty() {
        return Err(UriError::new(mistakes));
    }

    let set = choices.iter().flat_map(Choice::options).collect();
    let uri = uri.with_options(set);
    let mut options: Vec<_> = choices.iter().map(Choice::resolved).collect();
    options.extend(
        defaults(&uri, version)
            .filter(|default| !choices.iter().any(|choice| choice.spec.name == default.name)),
    );
    Ok(Resolved { uri, options, notices })
}

impl Resolved {
    /// The same with other settings, which are stronger than all that was there.
    ///
    /// # Errors
    /// As for [`resolve_options`].
    pub fn with(&self, settings: &[OptionSetting], driver: &Driver) -> Result<Self, UriError> {
        let mut changed = resolve_options(&self.uri, settings, None, driver)?;
        for option in changed.options.iter_mut().filter(|option| option.from == OptionSource::Uri) {
            // It was in the connection string because somebody else had put it there.
            let before = self.options.iter().find(|b| (b.name, &b.value) == (option.name, &option.value));
            option.from = before.map_or(option.from, |before| before.from);
        }
        Ok(changed)
    }

    /// Every option that was varied or set, once, with its value: what results are told apart by. Those of the connection
    /// string are among them, but for what names the deployment or opens it.
    pub fn params(&self, settings: &[OptionSetting]) -> Vec<(String, Option<String>)> {
        let mut params: Vec<(String, Option<String>)> = Vec::new();
        for OptionSetting { name, value, .. } in settings {
            match params.iter_mut().find(|(known, _)| known == name) {
                // Tag sets, of which there may be several, are tried in turn.
                Some((_, before)) => {
                    let both = [before.take(), value.clone()].into_iter().flatten().collect::<Vec<_>>();
                    *before = Some(both.join(";"));
                }
                None => params.push((name.clone(), value.clone())),
            }
        }
        let from_uri = self.options.iter().filter(|option| option.from == OptionSource::Uri);
        for option in from_uri.filter(|option| !is_of_the_deployment(option.name)) {
            params.push((option.name.to_owned(), Some(option.value.clone())));
        }
        params
    }
}

/// Whether an option says which servers there are, or how to get in, rather than how the driver behaves.
fn is_of_the_deployment(name: &str) -> bool {
    const OTHERS: [&str; 4] = ["appName", "directConnection", "loadBalanced", "replicaSet"];
    ["auth", "srv", "tls"].iter().any(|group| name.starts_with(group)) || OTHERS.contains(&name)
}

fn from_uri(uri: &Uri) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for UriOption { spec, value } in uri.options() {
        match choices.iter_mut().find(|c| c.spec.name == spec.name) {
            Some(choice) => choice.values.push(value.clone()),
            None => choices.push(Choice { spec, values: vec![value.clone()], from: OptionSource::Uri }),
        }
    }
    choices
}

fn mistake(setting: &OptionSetting) -> Option<String> {
    let message = options::check(&setting.name, setting.value.as_deref()).err()?;
    Some(format!("{}: {message}", source_name(setting.from)))
}

/// A stronger source replaces a weaker one; within one source the last word counts, but tags add up.
fn apply(setting: &OptionSetting, choices: &mut Vec<Choice>) {
    let Some(spec) = options::find(&setting.name) else {
        return;
    };
    let values: Vec<_> = setting.value.iter().cloned().collect();
    let from = setting.from;
    match choices.iter_mut().find(|c| c.spec.name == spec.name) {
        None => choices.push(Choice { spec, values, from }),
        Some(choice) if choice.from == from && spec.repeats() && !values.is_empty() => {
            choice.values.extend(values);
        }
        Some(choice) if from <= choice.from => *choice = Choice { spec, values, from },
        Some(_) => {}
    }
}

/// Only if nobody said anything about the name, not even that there should be none.
fn own_app_name(name: &str, choices: &mut Vec<Choice>) {
    let own =
        OptionSetting { name: "appName".into(), value: Some(name.into()), from: OptionSource::Overdrive };
    apply(&own, choices);
}

/// Whatever nobody decided, not even that there should be none, is as with the Rust driver.
fn pin_defaults(uri: &Uri, choices: &mut Vec<Choice>) {
    let decided: Vec<&str> = choices.iter().map(|choice| choice.spec.name).collect();
    let open = defaults(uri, None).filter(|default| !decided.contains(&default.name));
    // These say where the servers are, or nothing at their default.
    let open = open.filter(|default| !is_of_the_deployment(default.name) && !UNSAID.contains(&default.name));
    let own = open.map(|default| OptionSetting {
        name: default.name.to_owned(),
        value: Some(default.value),
        from: OptionSource::Overdrive,
    });
    own.collect::<Vec<_>>().iter().for_each(|own| apply(own, choices));
}

/// Older drivers take an option that they do not know for a mistake, or pass over it without a word in the results.
fn leave_out_unknown(choices: &mut Vec<Choice>, driver: &Driver) -> Vec<String> {
    // PyMongo leaves a last 0 out.
    let version =
        Version::parse(&driver.version).or_else(|| Version::parse(&format!("{}.0", driver.version)));
    let mut notices = Vec::new();
    choices.retain(|choice| {
        let since = choice.spec.first_version_of(driver);
        let known = !matches!((since, version), (Some(since), Some(version)) if version < since);
        // Of what nobody but overdrive has asked for there is nothing to tell.
        if let (false, Some(since), true) = (known, since, choice.from != OptionSource::Overdrive) {
            notices.push(format!(
                "`{}` (from {}) is left out: driver {} does not know it, {since} is the first that does",
                choice.spec.name,
                source_name(choice.from),
                if driver.is_rust() { driver.version.clone() } else { driver.to_string() },
            ));
        }
        known
    });
    notices
}

fn defaults(uri: &Uri, driver: Option<Version>) -> impl Iterator<Item = ResolvedOption> + use<> {
    // SRV turns encryption on.
    let tls = if uri.is_srv() { "true" } else { "false" };
    let implied = uri.options().iter().any(|o| o.spec.name.starts_with("tls"));
    OPTIONS.iter().filter_map(move |spec| {
        let value = match spec.name {
            // Any other option of TLS turns it on, too.
            "tls" if implied => "true",
            "tls" => tls,
            _ => spec.default?,
        };
        spec.known_to(driver).then(|| ResolvedOption {
            name: spec.name,
            value: value.to_owned(),
            from: OptionSource::Default,
        })
    })
}

impl Choice {
    fn given(&self) -> impl Iterator<Item = Given<'_>> {
        self.values.iter().map(|value| Given { name: self.spec.name, value, from: self.from })
    }

    fn options(&self) -> impl Iterator<Item = UriOption> {
        self.values.iter().map(|value| UriOption { spec: self.spec, value: value.clone() })
    }

    fn resolved(&self) -> ResolvedOption {
        let shown: Vec<_> = self.values.iter().map(|v| self.spec.shown(v)).collect();
        ResolvedOption {
            name: self.spec.name,
            // Tag sets are tried in turn; a semicolon keeps them apart in one column.
            value: shown.join(";"),
            from: self.from,
        }
    }
}

#[cfg(test)]
mod tests;
