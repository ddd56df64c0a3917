//! Which driver makes a trial's attempts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of the driver that overdrive itself is built with.
pub const RUST: &str = "rust";

/// The name of the driver that the worker in Python loads with.
pub const PYMONGO: &str = "pymongo";

/// The drivers that can be asked for.
pub const NAMES: [&str; 2] = [RUST, PYMONGO];

/// A driver in one of its versions. Written `rust:3.9.1`, or `3.9.1` for the Rust driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// `rust` or `pymongo`.
    pub name: String,
    /// Its version, like `3.9.1`.
    pub version: String,
}

impl Driver {
    /// A version of the Rust driver.
    pub fn rust(version: &str) -> Self {
        Self { name: RUST.to_owned(), version: version.to_owned() }
    }

    /// Whether it is the Rust driver, in whatever version.
    pub fn is_rust(&self) -> bool {
        self.name == RUST
    }
}

impl FromStr for Driver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once(':').unwrap_or((RUST, text));
        if !NAMES.contains(&name) {
            return Err(format!("there is no driver '{name}' here, only {}", NAMES.join(" and ")));
        }
        // The version becomes part of a path and of a package's name.
        let numbers = version.split('.').count();
        // PyMongo leaves a last 0 out: 4.9 and 4.9.1.
        let whole = numbers == 3 || (numbers == 2 && name == PYMONGO);
        if name == PYMONGO
            && version.split('.').next().is_some_and(|major| major.parse().is_ok_and(|major: u32| major < 4))
        {
            return Err(format!("the worker for PyMongo takes versions from 4.0 on, not {version}"));
        }
        let plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_digit())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        if !whole || !version.split('.').all(plain) {
            return Err(format!(
                "'{version}' is no version of a driver; write one like 3.9.1 or pymongo:4.16.0"
            ));
        }
        Ok(Self { name: name.to_owned(), version: version.to_owned() })
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_written_with_or_without_its_name() {
        for (text, shown) in [
            ("3.9.1", "rust:3.9.1"),
            ("rust:3.10.0-beta", "rust:3.10.0-beta"),
            ("pymongo:4.16.0", "pymongo:4.16.0"),
            ("pymongo:4.9", "pymongo:4.9"),
        ] {
            assert_eq!(text.parse::<Driver>().unwrap().to_string(), shown);
        }
        for (text, part) in [
            ("node:7.2.0", "no driver 'node'"),
            ("pymongo", "'pymongo' is no version"),
            ("3.9", "'3.9' is no version"),
            ("pymongo:3.9.0", "from 4.0 on"),
            ("rust:", "'' is no version"),
            ("3.9.1/../..", "no version"),
            ("../../x.1.1", "no version"),
        ] {
            let error = text.parse::<Driver>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
