//! The tail of the normal distribution.

use std::f64::consts::PI;

/// From here on the continued fraction converges faster than the series.
const LARGE: f64 = 2.5;

/// The probability that a standard normal variable is at least `z` away from 0.
pub fn two_sided(z: f64) -> f64 {
    complementary_error_function(z.abs() / std::f64::consts::SQRT_2).min(1.0)
}

/// erfc of a number that is not negative, to about twelve digits. Abramowitz and Stegun, Handbook of Mathematical Functions:
/// the series 7.1.6 and the continued fraction 7.1.14.
fn complementary_error_function(x: f64) -> f64 {
    let scale = (-x * x).exp() / PI.sqrt();
    if x < LARGE {
        // erf x = 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1))
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term > sum * f64::EPSILON {
            odd += 2.0;
            term *= 2.0 * x * x / odd;
            sum += term;
        }
        1.0 - 2.0 * scale * sum
    } else {
        // erfc x = e^(−x²)/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …)))), from the inside out.
        let fraction = (1..=60).rev().fold(x, |inner, n| x + f64::from(n) / 2.0 / inner);
        scale / fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        // Quantiles as every table has them, and the far tail (5 and 6 standard deviations).
        for (z, p) in [
            (0.0, 1.0),
            (0.674_489_750_196, 0.5),
            (1.0, 0.317_310_507_863),
            (1.959_963_984_540, 0.05),
            (2.575_829_303_549, 0.01),
            (3.290_526_731_492, 0.001),
            (3.6, 3.182_171_803_151e-4),
            (5.0, 5.733_031_437_584e-7),
            (6.0, 1.973_175_290e-9),
        ] {
            let found = two_sided(z);
            assert!((found / p - 1.0).abs() < 1e-9, "{z}: {found}, not {p}");
            assert_eq!(found, two_sided(-z));
        }
    }
}
