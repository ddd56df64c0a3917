//! The bootstrap: how far would the ratio have been another, had other trials of the same kind been run?

use super::{count, median};
use crate::document::Random;

/// Of how many such intervals one misses what it is about.
pub const MISSED: f64 = 0.05;

/// The percentile interval of the ratio of medians (`new` ÷ `base`), which covers 95 %: B. Efron and R. J. Tibshirani, "An
/// Introduction to the Bootstrap" (1993), chapter 13. Trials are drawn with replacement on each side by itself. A draw whose
/// base is 0 counts as 1 if the other is 0, too, and as boundless if not, so an end may be infinite. Neither side may be
/// empty, and there must be at least one draw.
pub fn ratio_interval(base: &[f64], new: &[f64], draws: usize, seed: u64) -> (f64, f64) {
    let mut random = Random::new(seed);
    let mut ratios: Vec<f64> = (0..draws)
        .map(|_| {
            let base = median_of_draw(base, &mut random);
            let new = median_of_draw(new, &mut random);
            ratio(base, new)
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let beyond = tail(draws);
    (ratios[beyond], ratios[draws - 1 - beyond])
}

fn ratio(base: f64, new: f64) -> f64 {
    match (base == 0.0, new == 0.0) {
        (true, true) => 1.0,
        (true, false) => f64::INFINITY,
        _ => new / base,
    }
}

/// How many draws lie beyond each end.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a small number of draws"
)]
fn tail(draws: usize) -> usize {
    (count(draws) * MISSED / 2.0) as usize
}

fn median_of_draw(values: &[f64], random: &mut Random) -> f64 {
    let drawn: Vec<f64> = values.iter().map(|_| values[index(random, values.len())]).collect();
    median(&drawn).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "less than a length")]
const fn index(random: &mut Random, length: usize) -> usize {
    random.below(length as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let (base, new) = ([10.0, 11.0, 12.0, 9.0, 10.5], [20.0, 21.0, 19.0, 22.0, 20.5]);
        let one = ratio_interval(&base, &new, 2000, 7);
        assert_eq!(one, ratio_interval(&base, &new, 2000, 7));
        assert!(one.0 < 20.5 / 10.5 && 20.5 / 10.5 < one.1, "{one:?}");
        assert!(
            one.0 >= 19.0 / 12.0 && one.1 <= 22.0 / 9.0,
            "no draw lies outside of what there is: {one:?}"
        );
    }

    #[test]
    fn what_does_not_vary_has_no_width() {
        assert_eq!(ratio_interval(&[4.0; 5], &[5.0; 6], 1000, 1), (1.25, 1.25));
        assert_eq!(ratio_interval(&[0.0; 5], &[0.0; 5], 1000, 1), (1.0, 1.0));
        assert_eq!(ratio_interval(&[0.0; 5], &[1.0; 5], 1000, 1), (f64::INFINITY, f64::INFINITY));
    }

    /// The median of a draw of three out of three has a distribution that is worked out by hand: the smallest is the median
    /// when at least two of three draws are it, 7 of 27; so is the largest; the middle one 13 of 27. Against a constant, the
    /// ends are the smallest and the largest, each of which has more than 2.5 %; of nine values the two outermost have less
    /// (a binomial sum: 0.1 % and 2.8 % together with the second).
    #[test]
    fn ends_are_the_percentiles_of_the_draws() {
        assert_eq!(ratio_interval(&[1.0], &[1.0, 2.0, 3.0], 10_000, 3), (1.0, 3.0));
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(ratio_interval(&[1.0], &nine, 10_000, 3), (2.0, 8.0));
    }

    /// Over many samples of a known distribution the interval covers the true ratio about as often as it says: medians of
    /// ten trials a side give a little more than 95 % (they are discrete).
    #[test]
    fn covers_the_truth() {
        let mut random = Random::new(5);
        let mut side =
            |scale: f64| -> Vec<f64> { (0..10).map(|_| scale * (0.9 + 0.2 * random.unit_f64())).collect() };
        let covered = (0..400)
            .filter(|&seed| {
                let (low, high) = ratio_interval(&side(1.0), &side(1.3), 400, seed);
                low <= 1.3 && 1.3 <= high
            })
            .count();
        assert!((370..=400).contains(&covered), "{covered} of 400");
    }
}
