//! Numbers of bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::UnitError;

/// Binary units, then decimal ones, each from the largest down: the order in which one is looked for to print a number.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A number of bytes. Text may have a unit: `64MiB`, `1kB`, `512 B`; a bare number is of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteCount(u64);

impl ByteCount {
    /// No byte.
    pub const ZERO: Self = Self(0);

    /// A whole number of mebibytes.
    pub const fn mebibytes(number: u32) -> Self {
        // Shifted by 20, 32 bits become 52.
        Self((number as u64) << 20)
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let wrong = || UnitError(format!("'{trimmed}' is no number of bytes: write one like 64MiB or 500kB"));
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let size = match unit.trim() {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?.1,
        };
        if number.is_empty() {
            return Err(wrong());
        }
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(size));
        bytes.map(Self).ok_or_else(|| UnitError(format!("'{trimmed}' is more bytes than 64 bits can count")))
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        let (name, size) = unit.copied().unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / size)
    }
}

impl TryFrom<String> for ByteCount {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<ByteCount> for String {
    fn from(bytes: ByteCount) -> Self {
        bytes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_take_units_and_refuse_nonsense() {
        for (text, bytes, printed) in [
            ("64MiB", 64 << 20, "64MiB"),
            ("1kB", 1000, "1kB"),
            ("1 kb", 1000, "1kB"),
            ("1KIB", 1024, "1KiB"),
            ("1500", 1500, "1500B"),
            (" 512 B ", 512, "512B"),
            ("2048KiB", 2 << 20, "2MiB"),
            ("0", 0, "0B"),
            ("18446744073709551615", u64::MAX, "18446744073709551615B"),
        ] {
            let parsed = text.parse::<ByteCount>().unwrap();
            assert_eq!((parsed.get(), parsed.to_string().as_str()), (bytes, printed), "{text}");
        }
        assert_eq!("3MiB".parse(), Ok(ByteCount::mebibytes(3)));
        for (text, part) in [
            ("", "like 64MiB"),
            ("MiB", "like 64MiB"),
            ("-1", "like 64MiB"),
            ("1.5GiB", "like 64MiB"),
            ("8Mbit", "like 64MiB"),
            ("16777216TiB", "64 bits"),
            ("18446744073709551616", "64 bits"),
        ] {
            let error = text.parse::<ByteCount>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn bytes_print_what_they_parse(number in any::<u64>(), unit in 0_usize..9) {
            let bytes = ByteCount(number / UNITS[unit].1 * UNITS[unit].1);
            prop_assert_eq!(bytes.to_string().parse::<ByteCount>(), Ok(bytes));
            let json = serde_json::to_string(&bytes).unwrap();
            prop_assert_eq!(serde_json::from_str::<ByteCount>(&json).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<ByteCount>();
        }
    }
}
