//! Quantities as people write them: `2000/s`, `16 MiB`, `1m 30s`. Each parses from text, prints so that it parses
//! again to the same value, and travels through serde as that text.

mod bytes;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

pub use bytes::ByteCount;

/// Why a text is no quantity. The message names the text and shows what would have been understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

/// The longest time any setting takes: longer ones are mistakes, and would overflow clocks further on.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A length of time that is not negative. Text needs a unit: `10s`, `250ms`, `1m 30s`, `2h`; `0` alone is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(Duration);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// A whole number of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A whole number of milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The same length as the standard library has it.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let offset: Offset = text.parse()?;
        match Duration::try_from(offset.0) {
            Ok(duration) => Ok(Self(duration)),
            Err(_) => Err(UnitError(format!("'{text}' is negative: a length of time is wanted, like 10s"))),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bounded by LONGEST or measured by a clock, so the signed type holds it.
        fmt::Display::fmt(&Offset(SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX)), f)
    }
}

impl TryFrom<String> for Span {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

/// A place on a timeline relative to a zero point; may be negative (`-5s`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Offset(SignedDuration);

impl Offset {
    /// Whole seconds from the zero point.
    pub const fn seconds(seconds: i64) -> Self {
        Self(SignedDuration::from_secs(seconds))
    }

    /// Nanoseconds from the zero point.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(SignedDuration::from_nanos(nanos))
    }

    /// Nanoseconds from the zero point; text never goes beyond a year, which fits.
    pub fn nanos(self) -> i64 {
        i64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX)
    }
}

impl FromStr for Offset {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        if trimmed == "0" {
            return Ok(Self(SignedDuration::ZERO));
        }
        if trimmed.parse::<f64>().is_ok() {
            return Err(UnitError(format!(
                "'{trimmed}' has no unit: write {trimmed}s, {trimmed}ms or {trimmed}m"
            )));
        }
        let length: SignedDuration = trimmed.parse().map_err(|_| {
            UnitError(format!("'{trimmed}' is no length of time: write one like 250ms, 10s or 1m30s"))
        })?;
        if length.unsigned_abs() > LONGEST {
            return Err(UnitError(format!("'{trimmed}' is longer than a year")));
        }
        Ok(Self(length))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        if self.0.is_negative() {
            f.write_str("-")?;
        }
        let whole = self.0.unsigned_abs();
        let (mut seconds, nanos) = (whole.as_secs(), whole.subsec_nanos());
        for (unit, size) in [("h", 3600), ("m", 60), ("s", 1)] {
            if seconds >= size {
                write!(f, "{}{unit}", seconds / size)?;
                seconds %= size;
            }
        }
        for (unit, value) in [("ms", nanos / 1_000_000), ("us", nanos / 1_000 % 1_000), ("ns", nanos % 1_000)]
        {
            if value > 0 {
                write!(f, "{value}{unit}")?;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Offset {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Offset> for String {
    fn from(offset: Offset) -> Self {
        offset.to_string()
    }
}

/// Operations per second, above zero and at most ten million. Text may give another unit of time: `500/s`, `30/min`,
/// `2k/s`; a bare number is per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(f64);

impl Rate {
    /// The highest there is, in operations per second.
    pub const MOST: f64 = 1e7;

    /// A thousand per second, where nobody says.
    pub const THOUSAND: Self = Self(1000.0);

    /// Checks the bounds.
    ///
    /// # Errors
    /// When the number is not above 0, not finite, or beyond ten million.
    pub fn per_second(rate: f64) -> Result<Self, UnitError> {
        if rate > 0.0 && rate <= Self::MOST {
            Ok(Self(rate))
        } else {
            Err(UnitError(format!(
                "a rate of {rate}/s cannot be had: it must be above 0 and at most 10000000/s"
            )))
        }
    }

    /// Operations per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// A whole number per second, which is what servers' limits take. Text is that of a [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeRate(NonZeroU32);

impl WholeRate {
    /// Per second.
    pub const fn get(self) -> NonZeroU32 {
        self.0
    }
}

impl FromStr for WholeRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let rate = text.parse::<Rate>()?.get();
        // A whole number prints without a fraction, and parses again.
        rate.to_string().parse().map(Self).map_err(|_| {
            UnitError(format!("'{text}' is no whole number per second, which is what servers take"))
        })
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            || UnitError(format!("'{}' is no rate: write one like 500/s, 2k/s or 30/min", text.trim()));
        let (number, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1.0,
            "min" | "m" | "minute" => 60.0,
            "h" | "hour" => 3600.0,
            _ => return Err(wrong()),
        };
        let number = number.trim();
        let (digits, factor) = match number.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1000.0),
            None => (number, 1.0),
        };
        let value: f64 = digits.trim().parse().map_err(|_| wrong())?;
        Self::per_second(value * factor / seconds)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// A share of a whole, from nothing to all of it. Text is a percentage: `1%`, `0.5 %`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    /// As a share: 0.01 for 1 %.
    pub const fn share(self) -> f64 {
        self.0
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            // Twelve digits of the share: a hundredth of 0.7 is not 0.007 in binary.
            Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Self((percent * 1e10).round() / 1e12)),
            _ => Err(UnitError(format!(
                "'{}' is no percentage from 0% to 100%: write one like 2%",
                text.trim()
            ))),
        }
    }
}

impl TryFrom<String> for Rate {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_need_a_unit_and_stay_in_bounds() {
        assert_eq!("1m30s".parse(), Ok(Span::seconds(90)));
        assert_eq!("1m 30s".parse(), Ok(Span::seconds(90)));
        assert_eq!("0".parse(), Ok(Span::ZERO));
        assert_eq!("0.5s".parse::<Span>().map(Span::duration), Ok(Duration::from_millis(500)));
        for (text, part) in [
            ("10", "write 10s"),
            ("-1s", "negative"),
            ("584y", "no length of time"),
            ("", "no length of time"),
            ("ten seconds", "no length of time"),
            ("99999999h", "longer than a year"),
        ] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn rates_take_units_and_refuse_nonsense() {
        assert_eq!("30/min".parse::<Rate>().map(Rate::get), Ok(0.5));
        assert_eq!("2k/s".parse::<Rate>().map(Rate::get), Ok(2000.0));
        assert_eq!("7.5".parse::<Rate>().map(Rate::get), Ok(7.5));
        for text in ["0", "-3/s", "NaN", "inf/s", "5/fortnight", "fast", "1e9/s", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_are_shares_of_a_whole() {
        for (text, share) in [("2%", 0.02), ("0.5 %", 0.005), ("0%", 0.0), ("100%", 1.0), (" 0.7% ", 0.007)] {
            assert_eq!(text.parse::<Percent>().map(Percent::share), Ok(share), "{text}");
        }
        for text in ["2", "", "%", "-1%", "100.1%", "NaN%", "two%", "1%%"] {
            assert!(text.parse::<Percent>().unwrap_err().to_string().contains("like 2%"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn offsets_print_what_they_parse(nanos in -31_000_000_000_000_000_i64..31_000_000_000_000_000) {
            let offset = Offset(SignedDuration::from_nanos(nanos));
            prop_assert_eq!(offset.to_string().parse::<Offset>(), Ok(offset));
        }

        #[test]
        fn rates_print_what_they_parse(value in 1e-6_f64..1e7) {
            let rate = Rate::per_second(value).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Percent>();
        }
    }
}
