//! From evidence to a verdict in words.

use super::statistics::count;
use crate::metric::Metric;

/// How often a whole comparison of equals may call anything better or worse.
pub const ALPHA: f64 = 0.05;

/// The fewest trials a side from which anything is concluded: with three, sides that lie apart have p = 0.1 at best.
pub const FEWEST_TRIALS: usize = 4;

/// What is said of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is a difference, beyond the noise threshold, to the better.
    Better,
    /// There is one to the worse.
    Worse,
    /// None was found. It may be there: the interval says how large it could be.
    NoDifference,
    /// Whatever the difference, so few trials could not have shown it.
    NotEnoughData,
    /// The figures do not measure what they seem to.
    NoVerdict,
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference seen",
            Self::NotEnoughData => "not enough data",
            Self::NoVerdict => "no verdict",
        }
    }
}

/// What is known of one metric on two sides, each with enough trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Which metric.
    pub metric: Metric,
    /// The medians.
    pub medians: (f64, f64),
    /// The interval of their ratio; `None` when that of the medians is not defined.
    pub interval: Option<(f64, f64)>,
    /// Of the rank test, corrected for the whole comparison.
    pub p_adjusted: f64,
    /// Whether the test could have come out below α, had the sides been as far apart as can be.
    pub decidable: bool,
}

/// The verdict, with a threshold below which a difference is none (0.02 is 2 %). A difference is called one when it is
/// significant over the whole comparison, its interval leaves out equality, and the medians are further apart than noise.
pub fn judge(evidence: &Evidence, noise: f64) -> Verdict {
    let (base, new) = evidence.medians;
    if evidence.interval.is_some_and(|(low, high)| low >= 1.0 - noise && high <= 1.0 + noise) {
        return Verdict::NoDifference;
    }
    if !evidence.decidable {
        return Verdict::NotEnoughData;
    }
    let apart = evidence.interval.is_none_or(|(low, high)| low > 1.0 || high < 1.0);
    let beyond_noise = (new - base).abs() > noise * base;
    if evidence.p_adjusted > ALPHA || !apart || !beyond_noise {
        return Verdict::NoDifference;
    }
    if (new < base) == evidence.metric.lower_is_better() { Verdict::Better } else { Verdict::Worse }
}

/// How many trials a side it takes so that so many figures can be told apart at all: the smallest p of n against n is
/// 2 ÷ C(2n, n), and Holm's first step multiplies it by the number of figures.
pub fn trials_needed(figures: usize) -> usize {
    let choices = |n: usize| (1..=n).fold(1.0, |all, k| all * count(n + k) / count(k));
    (FEWEST_TRIALS..).find(|&n| 2.0 / choices(n) * count(figures) <= ALPHA).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(metric: Metric, medians: (f64, f64), interval: (f64, f64), p_adjusted: f64) -> Evidence {
        Evidence { metric, medians, interval: Some(interval), p_adjusted, decidable: true }
    }

    #[test]
    fn lower_is_better_of_everything_but_goodput() {
        let lower = |metric| judge(&evidence(metric, (100.0, 80.0), (0.7, 0.9), 0.01), 0.02);
        let higher = |metric| judge(&evidence(metric, (100.0, 120.0), (1.1, 1.3), 0.01), 0.02);
        for metric in Metric::COMPARED {
            let is_goodput = metric == Metric::GoodputOpsPerS;
            let wanted = if is_goodput {
                (Verdict::Worse, Verdict::Better)
            } else {
                (Verdict::Better, Verdict::Worse)
            };
            assert_eq!((lower(metric), higher(metric)), wanted, "{metric:?}");
        }
    }

    #[test]
    fn a_difference_must_be_significant_and_beyond_noise() {
        let of = |new, interval, p| judge(&evidence(Metric::ErrorRate, (1.0, new), interval, p), 0.02);
        assert_eq!(of(1.1, (1.05, 1.15), 0.05), Verdict::Worse);
        assert_eq!(of(1.1, (1.05, 1.15), 0.051), Verdict::NoDifference);
        assert_eq!(of(1.1, (0.99, 1.2), 0.01), Verdict::NoDifference, "the interval has equality in it");
        assert_eq!(of(1.01, (1.001, 1.019), 0.001), Verdict::NoDifference, "the interval lies within noise");
        assert_eq!(of(1.015, (1.001, 1.03), 0.001), Verdict::NoDifference, "the medians differ by noise");
    }

    #[test]
    fn from_nothing_to_something_is_a_difference_without_a_ratio() {
        let of = |medians, p_adjusted| {
            let metric = Metric::ErrorRate;
            judge(&Evidence { metric, medians, interval: None, p_adjusted, decidable: true }, 0.02)
        };
        assert_eq!(of((0.0, 0.001), 0.01), Verdict::Worse);
        assert_eq!(of((0.0, 0.001), 0.2), Verdict::NoDifference);
        assert_eq!(of((0.0, 0.0), 0.01), Verdict::NoDifference);
    }

    #[test]
    fn what_could_not_be_shown_is_not_called_equal() {
        let undecidable = |interval| {
            let of = evidence(Metric::ErrorRate, (1.0, 1.5), interval, 0.4);
            judge(&Evidence { decidable: false, ..of }, 0.02)
        };
        assert_eq!(undecidable((1.3, 1.7)), Verdict::NotEnoughData);
        assert_eq!(undecidable((0.99, 1.01)), Verdict::NoDifference, "all there may be is noise");
    }

    #[test]
    fn more_figures_take_more_trials() {
        assert_eq!([1, 2, 6, 7, 13, 23, 24].map(trials_needed), [4, 5, 5, 6, 6, 6, 7]);
    }
}
