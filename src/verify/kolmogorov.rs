//! Whether waits come from the distribution that the specification gives them: the one-sample Kolmogorov–Smirnov test,
//! made one that a late timer cannot fail.

/// Below this probability a sample is taken for one of another distribution.
pub const LEVEL: f64 = 1e-4;

/// The probability that `n` samples of a continuous distribution lie as far from it as `distance`, or farther. Stephens'
/// form of the limit, good to a percent of itself from 10 samples on.
pub fn p_value(distance: f64, n: usize) -> f64 {
    let root = float(n).sqrt();
    limit((root + 0.12 + 0.11 / root) * distance)
}

/// The limit distribution's upper tail.
fn limit(x: f64) -> f64 {
    // The series does not converge there, and the answer is 1 to sixteen digits.
    if x < 0.2 {
        return 1.0;
    }
    let term = |k: i32| (-2.0 * f64::from(k * k) * x * x).exp();
    let sum: f64 = (1..=100).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// How far waits lie from the uniform distribution between 0 and `longest`, at most. A wait is as long as it was meant to
/// be or up to `late` longer, so that it counts at its full length where it may be too short, and without `late` where it
/// may be too long.
pub fn distance_from_uniform(waits: &[f64], longest: f64, late: f64) -> f64 {
    let mut waits = waits.to_vec();
    waits.sort_by(f64::total_cmp);
    let n = float(waits.len());
    let share = |wait: f64| (wait / longest).clamp(0.0, 1.0);
    let each = waits.iter().enumerate().map(|(i, &wait)| {
        let too_short = float(i + 1) / n - share(wait);
        let too_long = share(wait - late) - float(i) / n;
        too_short.max(too_long)
    });
    each.fold(0.0, f64::max)
}

/// The probability that waits are uniform between 0 and `longest`, late timers aside, and lie as they do.
pub fn p_uniform(waits: &[f64], longest: f64, late: f64) -> f64 {
    p_value(distance_from_uniform(waits, longest, late), waits.len())
}

/// Samples are counted in thousands at most.
fn float(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::random::Random;

    #[test]
    fn the_limit_has_its_known_values() {
        // Critical values of Smirnov's table.
        for (x, p) in [(1.2238, 0.1), (1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001), (2.2253, 1e-4)] {
            assert!((limit(x) / p - 1.0).abs() < 1e-3, "{x}: {}", limit(x));
        }
        assert!((limit(0.5) - 0.9639).abs() < 1e-4, "{}", limit(0.5));
        assert!((limit(0.1) - 1.0).abs() < f64::EPSILON);
        // Of a table for small samples: n, D, p.
        for (n, d, p) in [(20, 0.294, 0.05), (35, 0.27, 0.01), (10, 0.409, 0.05)] {
            assert!((p_value(d, n) / p - 1.0).abs() < 0.12, "{n}: {}", p_value(d, n));
        }
    }

    #[test]
    fn the_distance_is_the_largest_on_either_side() {
        // The distribution function is 0.25 where the sample's is 1.
        assert!((distance_from_uniform(&[0.25], 1.0, 0.0) - 0.75).abs() < 1e-12);
        assert!((distance_from_uniform(&[0.9], 1.0, 0.0) - 0.9).abs() < 1e-12);
        assert!((distance_from_uniform(&[0.5, 0.1], 1.0, 0.0) - 0.5).abs() < 1e-12);
        assert!((distance_from_uniform(&[0.9], 1.0, 0.6) - 0.3).abs() < 1e-12, "it may have been late");
        assert!((distance_from_uniform(&[3.0], 1.0, 0.0) - 1.0).abs() < 1e-12, "longer than any");
    }

    fn drawn(seed: u64, n: usize, longest: f64, late: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..n).map(|_| random.unit_f64() * longest + random.unit_f64() * late).collect()
    }

    #[test]
    fn sound_waits_are_uniform_and_others_are_not() {
        let mut lowest = 1.0_f64;
        for seed in 0..2000 {
            lowest = lowest.min(p_uniform(&drawn(seed, 150, 200.0, 0.0), 200.0, 0.0));
        }
        // Of 2000 the lowest is about 1 in 2000, and below 1 in 10000 with a probability of a fifth: the seeds are fixed.
        assert!((1e-5..1e-2).contains(&lowest), "{lowest}");
        for seed in 0..200 {
            let late = drawn(seed, 150, 200.0, 30.0);
            assert!(p_uniform(&late, 200.0, 30.0) > LEVEL, "late by no more than was allowed for");
            for wrong in [100.0, 400.0] {
                assert!(p_uniform(&drawn(seed, 150, 200.0, 0.0), wrong, 10.0) < LEVEL, "{wrong}");
            }
            let equal: Vec<f64> = drawn(seed, 150, 100.0, 0.0).iter().map(|wait| wait + 100.0).collect();
            assert!(p_uniform(&equal, 200.0, 10.0) < LEVEL, "half fixed, half jitter");
        }
    }
}
