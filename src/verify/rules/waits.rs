//! The specification's formula for waits, as it is and as it was, and whether waits fit it.

use crate::verify::finding::Seen;
use crate::verify::kolmogorov::{LEVEL, p_uniform};

/// The longest wait.
pub(super) const CAP_MS: f64 = 10_000.0;

/// What is doubled with each retry when the server says nothing.
pub(super) const BASE_MS: f64 = 100.0;

/// Waits that can be judged must be so many times as long as timers may be late.
const TIMES_LATENESS: f64 = 4.0;

/// How a version of the specification has waits grow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exponent {
    /// Since July 2026.
    Attempt,
    /// Before.
    AttemptLessOne,
}

impl Exponent {
    /// The longest wait before a retry, in milliseconds.
    pub(super) fn longest(self, base: f64, retry: usize) -> f64 {
        let exponent = match self {
            Self::Attempt => retry,
            Self::AttemptLessOne => retry - 1,
        };
        let exponent = i32::try_from(exponent).unwrap_or(i32::MAX);
        CAP_MS.min(base * 2_f64.powi(exponent))
    }

    fn formula(self, base: f64) -> String {
        let exponent = match self {
            Self::Attempt => "attempt",
            Self::AttemptLessOne => "(attempt − 1)",
        };
        format!("jitter·min(10 s, {base} ms·2^{exponent})")
    }
}

/// Whether waits before consecutive retries, of which the first has this number, fit the formula.
pub(super) fn judge(by_retry: &[&[f64]], base: f64, first: usize, late: f64) -> Seen {
    let judged: Vec<(usize, &[f64])> = (first..)
        .zip(by_retry.iter().copied())
        .filter(|(retry, waits)| {
            !waits.is_empty() && Exponent::Attempt.longest(base, *retry) >= TIMES_LATENESS * late
        })
        .collect();
    if judged.is_empty() {
        return Seen::untestable(format!(
            "timers are up to {late:.0} ms late here, too late for waits so short"
        ));
    }
    let lowest = |exponent: Exponent| {
        let each = judged.iter().map(|(retry, waits)| p_uniform(waits, exponent.longest(base, *retry), late));
        each.fold(1.0, f64::min)
    };
    let means: Vec<String> = judged
        .iter()
        .map(|(retry, waits)| format!("{:.0} ({retry})", waits.iter().sum::<f64>() / count(waits)))
        .collect();
    let seen = format!(
        "mean wait in ms, by retry: {}, of {} calls each, timers up to {late:.0} ms late",
        means.join(", "),
        judged.iter().map(|(_, waits)| waits.len()).min().unwrap_or(0)
    );
    let [now, before] =
        [Exponent::Attempt, Exponent::AttemptLessOne].map(|exponent| (exponent, lowest(exponent)));
    let (holds, which) = match (now.1 >= LEVEL, before.1 >= LEVEL) {
        (true, _) => (true, format!("fits {} (smallest p {:.3})", now.0.formula(base), now.1)),
        (false, true) => (
            false,
            format!(
                "fits {}, as the specification had it before July 2026, and not {} (p {:.0e})",
                before.0.formula(base),
                now.0.formula(base),
                now.1
            ),
        ),
        (false, false) => (
            false,
            format!(
                "fits neither {} (p {:.0e}) nor, as before July 2026, {} (p {:.0e})",
                now.0.formula(base),
                now.1,
                before.0.formula(base),
                before.1
            ),
        ),
    };
    Seen::judge(holds, format!("{seen}: {which}"))
}

fn count(waits: &[f64]) -> f64 {
    f64::from(u32::try_from(waits.len()).unwrap_or(u32::MAX))
}

/// Whether waits before a retry fit either formula.
pub(super) fn fits(waits: &[f64], base: f64, retry: usize, late: f64) -> bool {
    let exponents = [Exponent::Attempt, Exponent::AttemptLessOne];
    exponents.iter().any(|exponent| p_uniform(waits, exponent.longest(base, retry), late) >= LEVEL)
}
