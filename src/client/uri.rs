//! A connection string, split textually and checked before the driver sees it: the driver's parser panics
//! on some passwords and prints others in its errors. Hosts and an SRV name stay byte for byte.

mod control;
pub(crate) mod encoding;
mod host;
mod option_list;
mod parse;
mod redact;

use std::fmt;

use super::conflicts::Shape;
use super::options::{self, OptionSpec};

/// A checked connection string. What it prints as holds no secret; only [`Uri::expose`] gives the driver's text.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    srv: bool,
    userinfo: Option<Userinfo>,
    hosts: Vec<String>,
    /// Percent-encoded, as it came; empty when there is none.
    database: String,
    options: Vec<UriOption>,
    /// All of the above as the driver gets it.
    text: String,
}

/// User name and password as they came, percent-encoded. It has no Debug, so that nothing can print it.
#[derive(Clone, PartialEq, Eq)]
struct Userinfo {
    user: String,
    password: Option<String>,
}

/// An option of a connection string, its value decoded. It has no Debug, so that nothing can print it.
#[derive(Clone)]
pub(crate) struct UriOption {
    pub(crate) spec: &'static OptionSpec,
    pub(crate) value: String,
}

impl PartialEq for UriOption {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && self.value == other.value
    }
}

impl Eq for UriOption {}

/// Everything that is wrong with a connection string or its options, one message each, without any secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct UriError(Vec<String>);

impl UriError {
    pub(crate) fn new(messages: Vec<String>) -> Self {
        Self(messages)
    }

    /// The messages, in the order of the text.
    pub fn messages(&self) -> &[String] {
        &self.0
    }
}

impl Uri {
    /// Splits and checks a connection string; white space around it is ignored. All mistakes are reported.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        parse::parse(text.trim())
    }

    /// The text for the driver, **with the password**. It goes to the driver or to a child's stdin, nowhere else.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The hosts as they were written, or the one name that SRV looks up.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether the hosts come from DNS (`mongodb+srv://`).
    pub fn is_srv(&self) -> bool {
        self.srv
    }

    /// The database after the hosts, decoded.
    pub fn database(&self) -> Option<String> {
        // It was decoded once already, by the check.
        let database = encoding::decode(&self.database).unwrap_or_default();
        (!database.is_empty()).then_some(database)
    }

    /// The value of an option as it may be shown (`***` for a secret); the first of several.
    pub fn option(&self, name: &str) -> Option<String> {
        let spec = options::find(name)?;
        let option = self.options.iter().find(|o| o.spec.name == spec.name)?;
        Some(spec.shown(&option.value))
    }

    /// Whether every host can only be this machine. Never true with SRV: DNS may answer anything.
    pub fn is_loopback(&self) -> bool {
        !self.srv && self.hosts.iter().all(|host| host::is_loopback(host))
    }

    pub(crate) fn options(&self) -> &[UriOption] {
        &self.options
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            srv: self.srv,
            hosts: self.hosts.len(),
            user: self.userinfo.is_some(),
            password: self.userinfo.as_ref().is_some_and(|userinfo| userinfo.password.is_some()),
        }
    }

    /// The same deployment with other options. The caller has checked them.
    pub(crate) fn with_options(&self, options: Vec<UriOption>) -> Self {
        let uri = Self { options, ..self.clone() };
        uri.rendered()
    }

    /// Brings `text` up to date with the parts.
    fn rendered(mut self) -> Self {
        let userinfo = match &self.userinfo {
            Some(Userinfo { user, password }) => match password {
                Some(password) => format!("{user}:{password}@"),
                None => format!("{user}@"),
            },
            None => String::new(),
        };
        self.text = self.render(&userinfo, |option| option.value.clone());
        self
    }

    fn render(&self, userinfo: &str, value: impl Fn(&UriOption) -> String) -> String {
        let scheme = if self.srv { "mongodb+srv" } else { "mongodb" };
        let hosts = self.hosts.join(",");
        let mut text = format!("{scheme}://{userinfo}{hosts}/{}", self.database);
        for (i, option) in self.options.iter().enumerate() {
            text.push(if i == 0 { '?' } else { '&' });
            text.push_str(option.spec.name);
            text.push('=');
            text.push_str(&encoding::encode_value(&value(option)));
        }
        text
    }
}

impl std::str::FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        Self::parse(text)
    }
}

/// With `***` for the password and for every secret option.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let userinfo = match &self.userinfo {
            Some(Userinfo { user, password }) => match password {
                Some(_) => format!("{user}:***@"),
                None => format!("{user}@"),
            },
            None => String::new(),
        };
        f.write_str(&self.render(&userinfo, |option| option.spec.shown(&option.value)))
    }
}

/// As [`Display`](fmt::Display), so that a derived Debug around it tells nothing more.
impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uri({self})")
    }
}

#[cfg(test)]
mod tests;
