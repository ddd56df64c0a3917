//! Connection-string options: which ones there are, what values they take, and what to say about the rest.
//!
//! The driver's own parser stops at the first mistake and repeats what it read; these checks come first,
//! name the option and the next step, and never repeat a secret.

mod table;
mod values;

use super::version::Version;
use crate::plan::Driver;

pub use table::OPTIONS;
pub use values::Kind;

/// One option as the driver knows it.
#[derive(Debug)]
pub struct OptionSpec {
    /// The driver's own spelling; the driver itself ignores case.
    pub name: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// The first driver version that knows it; `None` when every supported one does.
    pub since: Option<Version>,
    /// Whether the value must never be shown.
    pub secret: bool,
    /// What the driver does when nobody sets the option, where that is one fixed value.
    pub default: Option<&'static str>,
}

/// An option's entry in the table, whatever the case of its name; `ssl` is `tls`.
pub fn find(name: &str) -> Option<&'static OptionSpec> {
    let name = if name.eq_ignore_ascii_case("ssl") { "tls" } else { name };
    OPTIONS.iter().find(|option| option.name.eq_ignore_ascii_case(name))
}

/// Checks an option that a profile or the command line sets, or takes away when there is no value, and tells how the
/// driver spells it. The value is not percent-encoded.
///
/// Secrets are refused here: profiles are copied beside the results and arguments show in the process
/// list, so a secret belongs in the connection string and nowhere else.
pub fn check(name: &str, value: Option<&str>) -> Result<String, String> {
    let option = find(name).ok_or_else(|| unknown(name))?;
    let Some(value) = value else { return Ok(option.name.to_owned()) };
    if option.secret || values::shown(option, value) != value {
        return Err(format!(
            "`{}` would hold a secret here, and this text is copied beside the results; put it into the connection \
             string, and that into a file (--uri-file) or $OVERDRIVE_URI",
            option.name
        ));
    }
    option.validate(value).map(|()| option.name.to_owned())
}

/// What to say about a name that is no option of this driver: why, or which name was probably meant.
pub(crate) fn unknown(name: &str) -> String {
    if let Some((name, reason)) =
        table::UNSUPPORTED.iter().find(|(unsupported, _)| unsupported.eq_ignore_ascii_case(name))
    {
        return format!("`{name}` cannot be used: {reason}");
    }
    match nearest(name) {
        Some(near) => format!("unknown option `{}`; did you mean `{near}`?", values::quoted(name)),
        None => {
            format!("unknown option `{}`; the Rust driver has none that is spelt alike", values::quoted(name))
        }
    }
}

/// Whether a name belongs to the driver's world, so that repeating it in an error tells nothing.
pub(crate) fn is_known_name(name: &str) -> bool {
    find(name).is_some()
        || table::UNSUPPORTED.iter().any(|(unsupported, _)| unsupported.eq_ignore_ascii_case(name))
}

/// Whether what follows the name may be a secret, also where the name is only nearly right.
pub(crate) fn may_be_secret(name: &str) -> bool {
    if name.eq_ignore_ascii_case("proxyPassword") {
        return true;
    }
    find(name)
        .or_else(|| find(nearest(name)?))
        .is_some_and(|option| option.secret || matches!(option.kind, Kind::Properties))
}

fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    // A third of the letters may differ: `maxRetries` is no `maxIdleTimeMS`.
    let limit = (name.chars().count() / 3).max(2);
    OPTIONS
        .iter()
        .map(|option| {
            let distance = strsim::damerau_levenshtein(&option.name.to_lowercase(), &name);
            // `w` is near to every short word; a name with nothing in common is no help.
            (distance.min(option.name.len()), option.name)
        })
        .filter(|(distance, option)| *distance <= limit && *distance < option.len())
        .min()
        .map(|(_, option)| option)
        .or_else(|| {
            OPTIONS
                .iter()
                .map(|option| option.name)
                .find(|option| name.len() >= 5 && option.to_lowercase().contains(&name))
        })
}

impl OptionSpec {
    /// Checks a value, not percent-encoded, and repeats it in the message unless it may be a secret.
    pub(crate) fn validate(&self, value: &str) -> Result<(), String> {
        self.validate_quietly(value).map_err(|message| {
            if may_be_secret(self.name) {
                message
            } else {
                format!("{message}, not `{}`", values::quoted(value))
            }
        })
    }

    /// Checks a value without repeating it.
    pub(crate) fn validate_quietly(&self, value: &str) -> Result<(), String> {
        self.kind.check(value).map_err(|rule| format!("`{}` must be {rule}", self.name))
    }

    /// The value as it may be shown: `***` for a secret.
    pub(crate) fn shown(&self, value: &str) -> String {
        values::shown(self, value)
    }

    /// Those parts of the value that must never be shown.
    pub(crate) fn secrets<'a>(&self, value: &'a str) -> Vec<&'a str> {
        values::secrets(self, value)
    }

    /// Whether the option may be given several times, each adding to the others.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.kind, Kind::Tags)
    }

    /// The first version of a driver that knows the option; `None` when every supported one does.
    pub(crate) fn first_version_of(&self, driver: &Driver) -> Option<Version> {
        match (driver.is_rust(), self.name) {
            (true, _) => self.since,
            (false, "maxAdaptiveRetries" | "enableOverloadRetargeting") => Some(Version::new(4, 17, 0)),
            (false, "serverMonitoringMode") => Some(Version::new(4, 5, 0)),
            (false, _) => None,
        }
    }

    /// Whether a driver of this version knows the option; an unknown version is taken for a new one.
    pub(crate) fn known_to(&self, driver: Option<Version>) -> bool {
        match (self.since, driver) {
            (Some(since), Some(driver)) => since <= driver,
            _ => true,
        }
    }
}

/// Why a driver version cannot run with a value that is otherwise valid.
pub(crate) fn driver_limit(name: &str, value: &str, driver: Option<Version>) -> Option<&'static str> {
    // An unknown version may well be one of those.
    let overflows = driver.is_none_or(|driver| (driver.major, driver.minor) == (3, 9));
    let too_many = value.parse::<u64>().is_ok_and(|retries| retries > 31);
    (name == "maxAdaptiveRetries" && overflows && too_many).then_some(
        "driver 3.9 computes 2^attempt in 32 bits: from attempt 32 on a release build does not back off at all and a \
         debug build panics; use 31 or less",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(find("MAXADAPTIVERETRIES").map(|o| o.name), Some("maxAdaptiveRetries"));
        assert_eq!(find("ssl").map(|o| o.name), Some("tls"));
        assert!(find("sslx").is_none() && find("é").is_none());
    }

    #[test]
    fn mistakes_name_the_next_step() {
        let message = |name, value| check(name, Some(value)).unwrap_err();
        insta::assert_snapshot!(message("maxAdaptiveRetry", "1"), @"unknown option `maxAdaptiveRetry`; did you mean `maxAdaptiveRetries`?");
        insta::assert_snapshot!(message("adaptive", "1"), @"unknown option `adaptive`; did you mean `maxAdaptiveRetries`?");
        insta::assert_snapshot!(message("frobnicate", "1"), @"unknown option `frobnicate`; the Rust driver has none that is spelt alike");
        insta::assert_snapshot!(message("maxPoolSize", "ten"), @"`maxPoolSize` must be an integer from 1 to 4294967295, not `ten`");
        insta::assert_snapshot!(message("retryReads", "yes"), @"`retryReads` must be true or false, not `yes`");
        insta::assert_snapshot!(message("readPreference", "primry"), @"`readPreference` must be one of primary, primaryPreferred, secondary, secondaryPreferred, nearest, not `primry`");
        insta::assert_snapshot!(message("timeoutMS", "100"), @"`timeoutMS` cannot be used: the Rust driver has no such timeout (its parser refuses the option); leave it out. What can be bounded is the search for a server (`serverSelectionTimeoutMS`), connecting (`connectTimeoutMS`), and, by `maxTimeMS` in a run_command, a command's time on the server");
        insta::assert_snapshot!(message("tlsCertificateKeyFilePassword", "hush"), @"`tlsCertificateKeyFilePassword` would hold a secret here, and this text is copied beside the results; put it into the connection string, and that into a file (--uri-file) or $OVERDRIVE_URI");
        assert!(!message("authMechanismProperties", "AWS_SESSION_TOKEN:hush").contains("hush"));
        assert!(check("authMechanismProperties", Some("SERVICE_NAME:x")).is_ok());
        assert_eq!(check("MAXPOOLSIZE", Some("7")).unwrap(), "maxPoolSize");
        assert_eq!(check("ssl", None).unwrap(), "tls");
        assert!(check("maxPoolSise", None).is_err(), "what is taken away has to be known, too");
    }

    #[test]
    fn too_many_retries_are_refused_where_they_would_not_back_off() {
        let limit =
            |value, version| driver_limit("maxAdaptiveRetries", value, Version::parse(version)).is_some();
        assert!(limit("32", "3.9.1") && limit("32", "unknown"));
        assert!(!limit("31", "3.9.1") && !limit("32", "3.8.2") && !limit("32", "3.10.0"));
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for option in OPTIONS {
            if let Some(default) = option.default {
                assert_eq!(option.validate(default), Ok(()), "{}", option.name);
            }
        }
    }
}
