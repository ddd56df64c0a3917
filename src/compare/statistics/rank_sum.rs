//! The Mann–Whitney U test: do two sides' values come from one distribution?

use super::{count, normal};

/// Up to so many values on both sides together the distribution is counted out; beyond it, the normal one is close.
const EXACT: usize = 40;

/// What the test comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// Mann and Whitney's U of the first side: of all pairs, in how many its value is the larger; equal ones count half.
    pub u: f64,
    /// Two-sided: how often equal sides would differ as much or more.
    pub p: f64,
    /// The smallest p that these values could have given, whichever side they had been on: what cannot be below α cannot
    /// show anything.
    pub least_p: f64,
}

/// Compares two sides, of which none is empty. H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random
/// Variables is Stochastically Larger than the Other", Annals of Mathematical Statistics 18 (1947).
pub fn test(a: &[f64], b: &[f64]) -> RankSum {
    let ranks = doubled_midranks(a, b);
    // Twice the rank sum of the first side, and twice what it is on average.
    let sum: usize = ranks[..a.len()].iter().sum();
    let average = a.len() * (ranks.len() + 1);
    let u = count(sum) / 2.0 - count(a.len() * (a.len() + 1)) / 2.0;
    let (p, least_p) = if ranks.len() <= EXACT {
        exact(&ranks, a.len(), sum.abs_diff(average), average)
    } else {
        approximate(&ranks, a.len(), sum.abs_diff(average))
    };
    RankSum { u, p, least_p }
}

/// Twice the rank of each value among all, those of the first side first; equal values share the mean of their ranks,
/// of which the double is whole.
fn doubled_midranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let last = first + group.len();
        group.iter().for_each(|&i| ranks[i] = first + 1 + last);
        first = last;
    }
    ranks
}

/// The p-value and the smallest possible one, by counting in how many of all ways to choose the first side's values their
/// ranks sum up to what: the shift algorithm of B. Streitberg and J. Röhmel, "Exact Distributions for Permutation and Rank
/// Tests", Statistical Software Newsletter 12 (1986), which takes ties as they are.
fn exact(ranks: &[usize], chosen: usize, distance: usize, average: usize) -> (f64, f64) {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    // No choice has a larger sum than that of the largest ranks.
    let width = sorted[..chosen].iter().sum::<usize>() + 1;
    // ways[k · width + s]: choices of k values whose ranks sum up to s. They stay below C(40, 20), far below 2^53.
    let mut ways = vec![0.0; (chosen + 1) * width];
    ways[0] = 1.0;
    for (before, &rank) in sorted.iter().enumerate() {
        // No more can have been chosen than there were, and what is still to be chosen must be there.
        let left = sorted.len() - before - 1;
        for k in (chosen.saturating_sub(left).max(1)..=chosen.min(before + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(k * width);
            let fewer = &fewer[(k - 1) * width..];
            for (way, before) in more[rank.min(width)..width].iter_mut().zip(fewer) {
                *way += before;
            }
        }
    }
    let ways = &ways[chosen * width..];
    let total: f64 = ways.iter().sum();
    let at_least = |distance: usize| {
        let far = ways.iter().enumerate().filter(|(sum, _)| sum.abs_diff(average) >= distance);
        far.map(|(_, ways)| ways).sum::<f64>() / total
    };
    let farthest = ways.iter().enumerate().filter(|(_, ways)| **ways > 0.0);
    let farthest = farthest.map(|(sum, _)| sum.abs_diff(average)).max().unwrap_or(0);
    (at_least(distance), at_least(farthest))
}

/// The same by the normal distribution with the same variance, corrected for ties and for continuity: E. L. Lehmann,
/// "Nonparametrics: Statistical Methods Based on Ranks" (1975), section 1.3.
fn approximate(ranks: &[usize], chosen: usize, distance: usize) -> (f64, f64) {
    let (n, a) = (count(ranks.len()), count(chosen));
    let b = n - a;
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let ties: f64 =
        sorted.chunk_by(|x, y| x == y).map(|group| count(group.len()).powi(3) - count(group.len())).sum();
    let deviation = (a * b / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)))).max(0.0).sqrt();
    if deviation == 0.0 {
        return (1.0, 1.0);
    }
    // Ranks are doubled, so U is half as far from its mean.
    let p = |distance: f64| normal::two_sided((distance - 0.5).max(0.0) / deviation);
    (p(count(distance) / 2.0), p(a * b / 2.0))
}

#[cfg(test)]
mod tests;
