//! Ranks whose popularity falls off as Zipf's law has it.

use std::sync::LazyLock;

/// The skew of every zipfian distribution here: YCSB's `ZIPFIAN_CONSTANT`.
pub(super) const THETA: f64 = 0.99;

/// Ranks `0..items`, rank r in proportion to 1/(r + 1)^0.99: the algorithm of Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases" (SIGMOD 1994), as YCSB's `ZipfianGenerator` has it. Ranks 0 and 1 are exact, the
/// others close (rank 2 comes 20 % too often, which evens out further down).
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipfian {
    pub(super) items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    pub(super) fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items))
    }

    pub(super) fn with_zeta(items: u64, zeta_of_items: f64) -> Self {
        let eta = (1.0 - (2.0 / real(items)).powf(1.0 - THETA)) / (1.0 - zeta(2) / zeta_of_items);
        Self { items, zeta: zeta_of_items, eta }
    }

    /// The rank at a place in `0.0..1.0` of the cumulated distribution; always below `items`, 0 when there are none.
    pub(super) fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta;
        if uz < 1.0 || self.items < 2 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(THETA) || self.items == 2 {
            return 1;
        }
        let rank = real(self.items) * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        floor(rank).min(self.items - 1)
    }
}

/// How many terms of zeta are summed one by one.
const SUMMED: usize = 1024;

/// The sums of the first n terms, for n up to `SUMMED`.
static SUMS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let terms = (1..=SUMMED as u64).map(|i| 1.0 / real(i).powf(THETA));
    let sums = terms.scan(0.0, |sum, term| {
        *sum += term;
        Some(*sum)
    });
    std::iter::once(0.0).chain(sums).collect()
});

/// The sum of 1/i^0.99 for i in 1..=n. Beyond the first 1024 terms it is the Euler–Maclaurin formula up to the first
/// derivative, f(x) = x^-0.99: ∫f + (f(n) − f(m))/2 + (f′(n) − f′(m))/12. The next term of it is below 10⁻¹⁴, less than
/// what adding ten million numbers loses by rounding; and it takes no time, so that `latest` can follow a growing n.
fn zeta(n: u64) -> f64 {
    if let Some(sum) = usize::try_from(n).ok().and_then(|n| SUMS.get(n)) {
        return *sum;
    }
    let (m, n) = (real(SUMMED as u64), real(n));
    let (m_power, n_power) = (m.powf(1.0 - THETA), n.powf(1.0 - THETA));
    let integral = (n_power - m_power) / (1.0 - THETA);
    let ends = (n_power / n - m_power / m) / 2.0;
    let slopes = THETA * (m_power / (m * m) - n_power / (n * n)) / 12.0;
    SUMS[SUMMED] + integral + ends + slopes
}

#[expect(clippy::cast_precision_loss, reason = "counts of documents are far below 2^53")]
pub(super) const fn real(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates; NaN becomes 0")]
pub(super) const fn floor(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Zeta by its definition.
    pub(in crate::document) fn summed_zeta(n: u64) -> f64 {
        // From the small end, which loses least.
        (1..=n).rev().map(|i| 1.0 / real(i).powf(THETA)).sum()
    }

    #[test]
    fn zeta_is_the_sum_at_any_size() {
        for n in [0, 1, 2, 3, 1023, 1024, 1025, 1026, 5000, 300_000] {
            assert!((zeta(n) - summed_zeta(n)).abs() < 1e-12, "{n}");
        }
        // YCSB's own constant was added up term by term, hence a little off.
        assert!((zeta(10_000_000_000) - 26.469_028_201_783_02).abs() < 1e-7);
    }

    proptest! {
        #[test]
        fn ranks_are_in_bounds_and_in_order(items in 0_u64..10_000, u in 0.0..1.0, v in 0.0..1.0) {
            let zipfian = Zipfian::new(items);
            let (low, high) = (zipfian.rank(f64::min(u, v)), zipfian.rank(f64::max(u, v)));
            prop_assert!(low <= high && high < items.max(1));
        }
    }
}
