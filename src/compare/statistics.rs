//! The statistics of comparisons: pure functions of numbers, seeded where they draw.

pub mod autocorrelation;
pub mod bootstrap;
pub mod holm;
pub mod normal;
pub mod rank_sum;

/// The median: the middle value, or the mean of the two in the middle. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The mean. `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values.len()))
}

/// A number of values as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 values")]
pub const fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 5.0, 2.0]), Some(3.5));
        assert_eq!(mean(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(mean(&[]), None);
    }
}
