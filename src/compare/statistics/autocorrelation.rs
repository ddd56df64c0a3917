//! How much independent observations a series is worth whose values resemble their neighbours.

use super::{count, mean};

/// The effective sample size: n ÷ τ with τ = 1 + 2 Σ ρ(k), the sum of autocorrelations up to where those of two lags in a
/// row no longer add up to something positive: C. J. Geyer, "Practical Markov Chain Monte Carlo", Statistical Science 7
/// (1992), the initial positive sequence. Never more than n, so that values which alternate give no false precision. A series
/// that does not vary is worth n. 0 of nothing.
pub fn effective_sample_size(series: &[f64]) -> f64 {
    let n = count(series.len());
    let Some(mean) = mean(series) else { return 0.0 };
    let deviations: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let covariance =
        |lag: usize| deviations.iter().zip(&deviations[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
    let variance = covariance(0);
    if variance <= 0.0 {
        return n;
    }
    // Pairs of lags: (0, 1), (2, 3) …; τ = −1 + 2 Σ of the pairs' sums.
    let pairs =
        (0..series.len() / 2).map(|pair| (covariance(2 * pair) + covariance(2 * pair + 1)) / variance);
    let tau = 2.0 * pairs.take_while(|&sum| sum > 0.0).sum::<f64>() - 1.0;
    n / tau.max(1.0)
}

/// The relative variance of a series' mean, in parts: stretches (segments of a trial) between which the level changes.
/// Within each the autocorrelation is its own; a change of level between two is none. `None` when a stretch is shorter than
/// `shortest`, when there is none, or when the mean is 0.
pub fn relative_variance_of_mean(stretches: &[Vec<f64>], shortest: usize) -> Option<f64> {
    if stretches.is_empty() || stretches.iter().any(|stretch| stretch.len() < shortest) {
        return None;
    }
    let whole: f64 = stretches.iter().map(|stretch| count(stretch.len())).sum();
    let (mut level, mut variance) = (0.0, 0.0);
    // A stratified mean: W. G. Cochran, "Sampling Techniques" (3rd edition, 1977), section 5.3.
    for stretch in stretches {
        let weight = count(stretch.len()) / whole;
        let mean = mean(stretch)?;
        let squares: f64 = stretch.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = squares / (count(stretch.len()) - 1.0).max(1.0);
        level += weight * mean;
        variance += weight.powi(2) * spread / effective_sample_size(stretch).max(1.0);
    }
    (level > 0.0).then(|| variance / level.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Random;

    /// A series whose every value is φ times the one before and something new, so that ρ(k) = φᵏ.
    fn autoregressive(phi: f64, n: usize) -> Vec<f64> {
        let mut random = Random::new(11);
        let mut last = 0.0;
        let next = |_| {
            last = phi * last + (random.unit_f64() - 0.5);
            last
        };
        (0..n).map(next).collect()
    }

    /// For ρ(k) = φᵏ, τ = (1 + φ) ÷ (1 − φ).
    #[test]
    fn agrees_with_the_autoregressive_process() {
        for (phi, tau) in [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)] {
            let n = 20_000;
            let found = count(n) / effective_sample_size(&autoregressive(phi, n));
            assert!((found / tau - 1.0).abs() < 0.1, "φ = {phi}: {found}, not {tau}");
        }
    }

    #[test]
    fn small_series_are_worked_out_by_hand() {
        // ρ(1) = (1 + 1 − 1 + 1 + 1) ÷ 6 = 1/2, ρ(2) = 0 and ρ(3) = −1/2: one pair, of 1 + 1/2, and the next is negative.
        let steps = [1.0, 1.0, 1.0, -1.0, -1.0, -1.0];
        assert!((effective_sample_size(&steps) - 6.0 / (2.0 * 1.5 - 1.0)).abs() < 1e-12);
        assert_eq!(effective_sample_size(&[1.0, -1.0, 1.0, -1.0]), 4.0, "never more than there are");
        assert_eq!(effective_sample_size(&[2.0; 9]), 9.0);
        assert_eq!(effective_sample_size(&[]), 0.0);
    }

    #[test]
    fn a_change_of_level_between_stretches_is_no_autocorrelation() {
        let stretch = |level: f64| vec![level + 1.0, level - 1.0, level + 1.0, level - 1.0];
        let (low, high) = (stretch(10.0), stretch(100.0));
        // Each: s² = 4/3, n = 4, weight 1/2; together (1/4·1/3 + 1/4·1/3) ÷ 55².
        let apart = relative_variance_of_mean(&[low.clone(), high.clone()], 4).unwrap();
        assert!((apart - (1.0 / 6.0) / 55.0_f64.powi(2)).abs() < 1e-15, "{apart}");
        let together = relative_variance_of_mean(&[[low, high].concat()], 4).unwrap();
        assert!(together > 1000.0 * apart);
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(relative_variance_of_mean(&[], 4), None);
        assert_eq!(relative_variance_of_mean(&[vec![1.0; 10], vec![1.0; 3]], 4), None);
        assert_eq!(relative_variance_of_mean(&[vec![0.0; 10]], 4), None);
        assert_eq!(relative_variance_of_mean(&[vec![1.0; 10]], 4), Some(0.0));
    }
}
