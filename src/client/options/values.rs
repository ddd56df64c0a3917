//! What an option's value may be, and how much of it may be shown.

use super::OptionSpec;

/// Which values an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`, in lower case.
    Bool,
    /// A whole number within these bounds.
    Int {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// `-1` for none, or at least 90 seconds, as the driver wants it.
    Staleness,
    /// Any text that is not empty.
    Text {
        /// The longest one.
        max_bytes: usize,
    },
    /// One of these, whatever the case.
    OneOf(&'static [&'static str]),
    /// One of these, in this very spelling.
    Exactly(&'static [&'static str]),
    /// Some of these, separated by commas.
    List(&'static [&'static str]),
    /// `key:value` pairs separated by commas; none for any member. May be given several times.
    Tags,
    /// `key:value` pairs separated by commas, of which some are secret.
    Properties,
    /// A number of members, `majority`, or a name that the replica set defines.
    WriteConcern,
}

/// The properties of an authentication mechanism that may be shown.
const HARMLESS: [&str; 6] = [
    "CANONICALIZE_HOST_NAME",
    "ENVIRONMENT",
    "SERVICE_HOST",
    "SERVICE_NAME",
    "SERVICE_REALM",
    "TOKEN_RESOURCE",
];

impl Kind {
    /// `Err` says what the value must be.
    pub(super) fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Bool => rule(matches!(value, "true" | "false"), || "true or false".into()),
            Self::Int { min, max } => rule(integer(value).is_some_and(|i| (min..=max).contains(&i)), || {
                format!("an integer from {min} to {max}")
            }),
            Self::Staleness => rule(
                integer(value).is_some_and(|i| i == -1 || (90..=i64::from(i32::MAX)).contains(&i)),
                || "-1 (none) or an integer of 90 or more".into(),
            ),
            Self::Text { max_bytes } => {
                rule((1..=max_bytes).contains(&value.len()), || format!("a text of 1 to {max_bytes} bytes"))
            }
            Self::OneOf(names) => rule(names.iter().any(|name| name.eq_ignore_ascii_case(value)), || {
                format!("one of {}", names.join(", "))
            }),
            Self::Exactly(names) => rule(names.contains(&value), || format!("one of {}", names.join(", "))),
            Self::List(names) => rule(
                value.split(',').all(|item| names.iter().any(|name| name.eq_ignore_ascii_case(item))),
                || format!("a list, separated by commas, of {}", names.join(", ")),
            ),
            Self::Tags => {
                rule(value.is_empty() || value.split(',').all(|tag| tag.matches(':').count() == 1), || {
                    "a list of `key:value` separated by commas".into()
                })
            }
            Self::Properties => rule(value.split(',').all(|property| property.contains(':')), || {
                "a list of `KEY:value` separated by commas".into()
            }),
            Self::WriteConcern => rule(
                match integer(value) {
                    Some(members) => (0..=i64::from(i32::MAX)).contains(&members),
                    None => !value.is_empty(),
                },
                || "a number of members from 0 on, majority, or a name".into(),
            ),
        }
    }
}

fn rule(holds: bool, rule: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule()) }
}

/// A whole number without a plus sign, which others that read connection strings take for a space, and
/// without the sign of `-0`, which the driver refuses.
fn integer(value: &str) -> Option<i64> {
    if value.starts_with('+') || value.starts_with("-0") {
        return None;
    }
    value.parse().ok()
}

/// A value as it may be shown.
pub(super) fn shown(option: &OptionSpec, value: &str) -> String {
    if option.secret {
        return "***".into();
    }
    if !matches!(option.kind, Kind::Properties) {
        return value.to_owned();
    }
    let properties = value.split(',').map(|property| match hidden(property) {
        Some(hidden) => {
            let key = property.strip_suffix(hidden).unwrap_or_default();
            format!("{key}***")
        }
        None => property.to_owned(),
    });
    properties.collect::<Vec<_>>().join(",")
}

/// The parts of a value that must not be shown anywhere.
pub(super) fn secrets<'a>(option: &OptionSpec, value: &'a str) -> Vec<&'a str> {
    if option.secret {
        return vec![value];
    }
    if !matches!(option.kind, Kind::Properties) {
        return Vec::new();
    }
    value.split(',').filter_map(hidden).collect()
}

/// What to hide of one property: its value, or all of it where it has no key that we know to be one
/// (the rest of a secret that holds a comma).
fn hidden(property: &str) -> Option<&str> {
    match property.split_once(':') {
        Some((key, _)) if HARMLESS.contains(&key) => None,
        Some(("AWS_SESSION_TOKEN", token)) => Some(token),
        _ => Some(property),
    }
}

/// A text from outside within a message: short, and without control characters.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut quoted: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn only_the_token_of_properties_is_hidden() {
        let option = find("authMechanismProperties").unwrap();
        let value = "SERVICE_NAME:x,AWS_SESSION_TOKEN:a:b,tail,Aws_Session_Token:c";
        assert_eq!(shown(option, value), "SERVICE_NAME:x,AWS_SESSION_TOKEN:***,***,***");
        assert_eq!(secrets(option, value), ["a:b", "tail", "Aws_Session_Token:c"]);
    }

    #[test]
    fn messages_stay_short_and_printable() {
        assert_eq!(quoted("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert_eq!(quoted(&"€".repeat(50)).chars().count(), 41);
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let int = Kind::Int { min: -1, max: 9 };
        for good in ["-1", "0", "9"] {
            assert!(int.check(good).is_ok(), "{good}");
        }
        for bad in ["-2", "-0", "10", "+1", "", " 1", "1.0", "99999999999999999999"] {
            assert!(int.check(bad).is_err(), "{bad}");
        }
    }
}
