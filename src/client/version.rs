//! Which driver this program runs on, and how its versions compare.

use std::fmt;

use crate::plan::Driver;

/// The version of the `mongodb` crate in this build's lock file, or `unknown`.
pub const DRIVER_VERSION: &str = env!("OVERDRIVE_DRIVER_VERSION");

impl Driver {
    /// The one that this program is built with.
    pub fn built_in() -> Self {
        Self::rust(DRIVER_VERSION)
    }
}

/// A driver's version, without what may follow after a hyphen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Changes when the interface breaks.
    pub major: u64,
    /// Changes with new options.
    pub minor: u64,
    /// Changes with repairs.
    pub patch: u64,
}

impl Version {
    /// A version from its three numbers.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `3.9.1` or `3.10.0-beta.1`; `None` when the text is no version, as `unknown` is not.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(['-', '+']).next()?;
        let mut numbers = numbers.split('.').map(str::parse);
        let version = Self::new(numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        let old = Version::parse("3.9.1").unwrap();
        let new = Version::parse("3.10.0-beta.1").unwrap();
        assert!(old < new);
        assert_eq!(new.to_string(), "3.10.0");
        for text in ["unknown", "", "3", "3.9", "3.9.1.2", "3.x.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_build_knows_its_driver() {
        assert!(DRIVER_VERSION == "unknown" || Version::parse(DRIVER_VERSION).is_some());
    }
}
