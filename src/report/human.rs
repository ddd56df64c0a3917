//! Numbers as people read them: three digits and a unit; `-` for what is not known.

/// Microseconds, as the unit that makes the number readable.
#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
pub fn micros(us: Option<u64>) -> String {
    us.map_or_else(none, |us| time(us as f64))
}

/// The same for a time that is no whole number.
pub fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0}us"),
        us if us < 1e4 => format!("{:.2}ms", us / 1e3),
        us if us < 1e5 => format!("{:.1}ms", us / 1e3),
        us if us < 1e6 => format!("{:.0}ms", us / 1e3),
        us if us < 1e7 => format!("{:.2}s", us / 1e6),
        us => format!("{:.1}s", us / 1e6),
    }
}

/// Something per second.
pub fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(none, |rate| if rate < 99.95 { format!("{rate:.1}/s") } else { format!("{rate:.0}/s") })
}

/// A share as a percentage. What is not nothing is never shown as nothing, and what is not all never as all.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(none, |share| match share * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1%".to_owned(),
        p if p < 100.0 && p > 99.95 => ">99.9%".to_owned(),
        p => format!("{p:.1}%"),
    })
}

/// A quotient of counts.
pub fn quotient(quotient: Option<f64>) -> String {
    quotient.map_or_else(none, |quotient| format!("{quotient:.2}"))
}

fn none() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [0, 850, 1_000, 3_214, 42_000, 217_400, 1_234_567, 61_000_000].map(|us| micros(Some(us)));
        assert_eq!(shown, ["0us", "850us", "1.00ms", "3.21ms", "42.0ms", "217ms", "1.23s", "61.0s"]);
        assert_eq!(
            [0.0, 12.34, 99.94, 99.96, 2000.4].map(|r| rate(Some(r))),
            ["0.0/s", "12.3/s", "99.9/s", "100/s", "2000/s"]
        );
        assert_eq!(quotient(Some(1.0 / 3.0)), "0.33");
    }

    #[test]
    fn little_is_not_nothing() {
        let shown = [0.0, 0.000_01, 0.123_4, 0.999_99, 1.0].map(|p| percent(Some(p)));
        assert_eq!(shown, ["0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%"]);
    }

    #[test]
    fn the_unknown_is_a_dash() {
        assert_eq!([micros(None), rate(None), percent(None), quotient(None)], ["-"; 4]);
    }
}
