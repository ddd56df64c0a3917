//! Which of the documents an operation is about: the distributions of YCSB (Cooper et al., "Benchmarking Cloud Serving
//! Systems with YCSB", `SoCC` 2010), as pure functions of a random stream, so that the n-th operation of a run is about
//! the same document whoever draws it.
//!
//! Another language gets the same keys from the same formulas. The only doubt is the last bit of its `pow`, which can
//! move about one zipfian draw in a million to another key.

use super::random::Random;
use super::zipfian::{Zipfian, floor, real};
use crate::plan::template::KeyDistribution;

/// YCSB's scrambled zipfian ranks this many items, however many documents there are, so that one sum serves all. YCSB
/// ranks the items `0..=ITEM_COUNT` with an `ITEM_COUNT` of 10¹⁰, hence the one more.
const SCRAMBLED_ITEMS: u64 = 10_000_000_001;

/// YCSB's `ZETAN`, the sum of 1/i^0.99 over those items.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// A distribution over the keys of a collection that was loaded with `0..documents`.
#[derive(Clone, Debug)]
pub struct Keys {
    documents: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipfian(Zipfian),
    /// Over the loaded documents; more of them need other sums.
    Latest(Zipfian),
    Sequential,
    Hotspot {
        hot: u64,
        hot_operations: f64,
    },
    Next,
}

impl Keys {
    /// Works out what does not change from draw to draw. `documents` is how many were loaded; with 0 of them every
    /// distribution but `next` and `latest` yields key 0, which matches nothing.
    pub fn new(distribution: &KeyDistribution, documents: u64) -> Self {
        let kind = match *distribution {
            KeyDistribution::Uniform => Kind::Uniform,
            KeyDistribution::Zipfian => Kind::Zipfian(Zipfian::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA)),
            KeyDistribution::Latest => Kind::Latest(Zipfian::new(documents)),
            KeyDistribution::Sequential => Kind::Sequential,
            KeyDistribution::Hotspot { hot_set, hot_operations } => {
                Kind::Hotspot { hot: floor(real(documents) * hot_set).min(documents), hot_operations }
            }
            KeyDistribution::Next => Kind::Next,
        };
        Self { documents, kind }
    }

    /// Whether each key is given away once, so that the caller has to count.
    pub const fn are_new(&self) -> bool {
        matches!(self.kind, Kind::Next)
    }

    /// A key. `occurrence` is how many times this operation came before; `next_key` is the lowest key that was never
    /// handed out (the loaded documents and the new ones so far). Draws from the stream: once for uniform, zipfian and
    /// latest, twice for hotspot (hot or cold, then which), never for sequential and next.
    pub fn pick(&self, random: &mut Random, occurrence: u64, next_key: u64) -> u64 {
        match &self.kind {
            Kind::Uniform => random.below(self.documents),
            Kind::Zipfian(ranks) => {
                // Popular documents lie scattered over the key space: YCSB's ScrambledZipfianGenerator.
                let rank = ranks.rank(random.unit_f64());
                fnv_hash(rank).checked_rem(self.documents).unwrap_or(0)
            }
            Kind::Latest(loaded) => {
                // The newest document is the most popular: YCSB's SkewedLatestGenerator.
                let u = random.unit_f64();
                let back =
                    if next_key == loaded.items { loaded.rank(u) } else { Zipfian::new(next_key).rank(u) };
                next_key.saturating_sub(1).saturating_sub(back)
            }
            Kind::Sequential => occurrence.checked_rem(self.documents).unwrap_or(0),
            Kind::Hotspot { hot, hot_operations } => {
                // The hot set is the low keys, hot and cold are each even: YCSB's HotspotIntegerGenerator, but for a
                // set without documents, which would divide by zero there and gives its share to the other one here.
                let cold = self.documents - hot;
                let wants_hot = random.unit_f64() < *hot_operations;
                if (wants_hot && *hot > 0) || cold == 0 {
                    random.below(*hot)
                } else {
                    hot + random.below(cold)
                }
            }
            Kind::Next => next_key,
        }
    }
}

/// YCSB's `fnvhash64`: FNV-1a over the eight octets of a number, the lowest first, and of the result (a signed number
/// there) the absolute value.
const fn fnv_hash(number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let octets = number.to_le_bytes();
    let mut i = 0;
    while i < octets.len() {
        hash = (hash ^ octets[i] as u64).wrapping_mul(1_099_511_628_211);
        i += 1;
    }
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::distr::Distribution;

    use crate::document::zipfian::{THETA, tests::summed_zeta};

    const DRAWS: u32 = 200_000;

    /// The share of keys that a test holds for, in many draws with a fixed seed.
    fn share(
        distribution: &KeyDistribution,
        documents: u64,
        next_key: u64,
        test: impl Fn(u64) -> bool,
    ) -> f64 {
        let keys = Keys::new(distribution, documents);
        let mut random = Random::new(2026);
        let hits = (0..DRAWS).filter(|_| test(keys.pick(&mut random, 0, next_key))).count();
        f64::from(u32::try_from(hits).unwrap()) / f64::from(DRAWS)
    }

    fn assert_close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() < tolerance, "{actual} is not {expected} ± {tolerance}");
    }

    #[test]
    fn hashes_as_ycsb_names_its_first_records() {
        // user6284781860667377211, user8517097267634966620, …
        assert_eq!(
            [0, 1, 2, 3].map(fnv_hash),
            [
                6_284_781_860_667_377_211,
                8_517_097_267_634_966_620,
                1_820_151_046_732_198_393,
                4_052_466_453_699_787_802
            ]
        );
    }

    #[test]
    fn uniform_is_even() {
        let keys = Keys::new(&KeyDistribution::Uniform, 100);
        let mut random = Random::new(2026);
        let mut bins = [0_u32; 100];
        for _ in 0..100_000 {
            bins[usize::try_from(keys.pick(&mut random, 0, 100)).unwrap()] += 1;
        }
        let chi_square: f64 = bins.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        assert!((60.0..148.2).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn zipfian_favours_the_hashes_of_the_first_ranks() {
        // Few documents share a hot one's place when there are many, so that its share is the rank's own.
        let documents = 1_000_003;
        for (ranks, tolerance) in [(0..1, 0.0015), (1..2, 0.0015), (0..10, 0.02), (0..100, 0.02)] {
            let expected = (summed_zeta(ranks.end) - summed_zeta(ranks.start)) / SCRAMBLED_ZETA;
            let popular: Vec<u64> = ranks.map(|rank| fnv_hash(rank) % documents).collect();
            let actual = share(&KeyDistribution::Zipfian, documents, documents, |key| popular.contains(&key));
            assert_close(actual, expected, tolerance);
        }
    }

    #[test]
    fn latest_follows_zipf_from_the_newest_key_down() {
        let (documents, next_key) = (10_000, 10_500);
        let sum = summed_zeta(next_key);
        let zipf = rand_distr::Zipf::new(real(next_key), THETA).unwrap();
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        let theirs: Vec<f64> = (0..DRAWS).map(|_| zipf.sample(&mut rng)).collect();
        for (ranks, tolerance) in
            [(1, 0.003), (2, 0.003), (10, 0.02), (100, 0.02), (1000, 0.02), (5000, 0.01)]
        {
            let ours = share(&KeyDistribution::Latest, documents, next_key, |k| next_key - k <= ranks);
            assert_close(ours, summed_zeta(ranks) / sum, tolerance);
            let hits = theirs.iter().filter(|&&rank| rank <= real(ranks)).count();
            assert_close(ours, f64::from(u32::try_from(hits).unwrap()) / f64::from(DRAWS), tolerance);
        }
    }

    #[test]
    fn hotspot_gives_the_hot_set_its_share() {
        let hotspot = KeyDistribution::Hotspot { hot_set: 0.1, hot_operations: 0.7 };
        assert_close(share(&hotspot, 1000, 1000, |k| k < 100), 0.7, 0.005);
        assert_close(share(&hotspot, 1000, 1000, |k| k < 50), 0.35, 0.005);
        assert_close(share(&hotspot, 1000, 1000, |k| k >= 900), 0.3 / 9.0, 0.002);
        // No document is hot, or all are.
        assert_close(share(&hotspot, 5, 5, |k| k < 5), 1.0, 1e-9);
        let all = KeyDistribution::Hotspot { hot_set: 1.0, hot_operations: 0.5 };
        assert_close(share(&all, 5, 5, |k| k < 5), 1.0, 1e-9);
    }

    #[test]
    fn sequential_and_next_count() {
        let mut random = Random::new(0);
        let sequential = Keys::new(&KeyDistribution::Sequential, 3);
        assert_eq!([0, 1, 2, 3, 4].map(|n| sequential.pick(&mut random, n, 3)), [0, 1, 2, 0, 1]);
        let next = Keys::new(&KeyDistribution::Next, 3);
        assert_eq!([3, 4].map(|n| next.pick(&mut random, 0, n)), [3, 4]);
        assert_eq!(random, Random::new(0));
    }

    proptest! {
        #[test]
        fn keys_exist(
            seed: u64, documents in 0_u64..100_000_000, more in 0_u64..1000, occurrence: u64,
            hot_set in 0.0..=1.0, hot_operations in 0.0..=1.0,
        ) {
            for distribution in [
                KeyDistribution::Uniform, KeyDistribution::Zipfian, KeyDistribution::Latest,
                KeyDistribution::Sequential, KeyDistribution::Hotspot { hot_set, hot_operations },
            ] {
                let end = if distribution == KeyDistribution::Latest { documents + more } else { documents };
                let key = Keys::new(&distribution, documents).pick(&mut Random::new(seed), occurrence, documents + more);
                prop_assert!(key < end.max(1), "{distribution:?} {key}");
            }
        }
    }
}
