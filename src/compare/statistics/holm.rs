//! Holm's correction: of however many true null hypotheses, none is rejected with a probability of 1 − α.

use super::count;

/// Adjusted p-values, in the order of the given ones: what is at most α may be rejected. Sture Holm, "A Simple Sequentially
/// Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6 (1979): the k-th smallest of m (k from 0) is
/// multiplied by m − k, and none is smaller than one before it. Whether the tests depend on each other does not matter.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max(p_values[i] * count(p_values.len() - rank)).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusts_step_by_step() {
        // By hand: 0.005·4, 0.01·3, 0.03·2, and 0.04·1, which is raised to the one before it.
        let close = |a: &[f64], b: &[f64]| {
            assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?}");
        };
        close(&adjusted(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        close(&adjusted(&[0.4, 0.5]), &[0.8, 0.8]);
        close(&adjusted(&[0.9, 0.9]), &[1.0, 1.0]);
        close(&adjusted(&[0.2]), &[0.2]);
        assert!(adjusted(&[]).is_empty());
    }
}
