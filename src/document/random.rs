//! The random numbers behind everything that a seed fixes. Written out here, and not taken from a library, because
//! workers in other languages must draw the same numbers for the n-th operation.
//!
//! The generator is SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014),
//! in the public-domain form of Sebastiano Vigna (<https://prng.di.unimi.it/splitmix64.c>).

/// What random numbers are for. Each purpose has streams of its own, so that loading documents, drawing operations and
/// shuffling the mix under one seed have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// What an operation renders; the index is the operation's place in the run.
    Operation = u64::from_be_bytes(*b"operatio"),
    /// A document that is loaded; the index is its key.
    Document = u64::from_be_bytes(*b"document"),
    /// The order of the mix; the index is the number of the shuffle.
    Mix = u64::from_be_bytes(*b"shuffled"),
    /// When operations are due; the index is the stage.
    Arrivals = u64::from_be_bytes(*b"arrivals"),
    /// The application's pauses between calls; the index is the operation's place in the run.
    Backoff = u64::from_be_bytes(*b"backoffs"),
    /// What a throttle lets through; there is one stream.
    Budget = u64::from_be_bytes(*b"budgeted"),
    /// What a simulated client draws for an operation; the index is the operation's place in the run.
    Client = u64::from_be_bytes(*b"a client"),
    /// What a simulated server draws; the index is the server.
    Server = u64::from_be_bytes(*b"a server"),
    /// The seeds of shards; the index is the shard's.
    Shard = u64::from_be_bytes(*b"ofshards"),
    /// The seeds of client groups; the index is a hash of the group's name.
    Group = u64::from_be_bytes(*b"ofgroups"),
}

/// The golden ratio as an odd 64-bit fraction: the step of SplitMix64's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A SplitMix64 generator: eight bytes of state, so that one per operation costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// SplitMix64 as published, started at a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of one purpose and index: a generator whose seed is output number `index` (from 0) of the generator
    /// whose seed is the first output of the generator seeded with `seed XOR stream`. Takes the same time for any index.
    pub const fn stream(seed: u64, stream: Stream, index: u64) -> Self {
        let base = Self::new(seed ^ stream as u64).advanced().1;
        // Output number n only depends on the state before it, which is n steps from the start.
        let mut seeds = Self::new(base.wrapping_add(STEP.wrapping_mul(index)));
        Self::new(seeds.next_u64())
    }

    /// The stream of the n-th operation of a run.
    pub const fn for_operation(seed: u64, n: u64) -> Self {
        Self::stream(seed, Stream::Operation, n)
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        let (state, output) = self.advanced();
        self.state = state;
        output
    }

    const fn advanced(&self) -> (u64, u64) {
        let state = self.state.wrapping_add(STEP);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (state, z ^ (z >> 31))
    }

    /// A number in `0..bound`: the high half of the 128-bit product of 64 random bits and the bound. It favours some
    /// numbers by at most `bound` in 2⁶⁴, which no run is long enough to see, and always takes exactly one draw.
    /// 0 when the bound is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in `min..=max`, by one draw. `min` when the bounds are the wrong way round.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        let span = if max < min { 0 } else { max.wrapping_sub(min).cast_unsigned() };
        // All 2⁶⁴ numbers: their count is no u64, and every draw is one of them.
        let above = if span == u64::MAX { self.next_u64() } else { self.below(span + 1) };
        min.wrapping_add(above.cast_signed())
    }

    /// A number in `0.0..1.0`: the top 53 bits of one draw, divided by 2⁵³.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are just what an f64 holds exactly")]
    pub const fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first<const N: usize>(mut random: Random) -> [u64; N] {
        std::array::from_fn(|_| random.next_u64())
    }

    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(
            first(Random::new(1_234_567)),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
        assert_eq!(
            first(Random::new(0)),
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f,
                0xf88b_b8a8_724c_81ec,
                0x1b39_896a_51a8_749b
            ]
        );
    }

    #[test]
    fn a_stream_is_seeded_by_the_outputs_of_another_generator() {
        let base = Random::new(42 ^ 0x6f70_6572_6174_696f).next_u64();
        let mut seeds = Random::new(base);
        for n in 0..100 {
            let seed = seeds.next_u64();
            assert_eq!(Random::for_operation(42, n), Random::new(seed));
        }
    }

    #[test]
    fn streams_of_different_purpose_seed_or_index_differ() {
        let starts = [
            Random::for_operation(42, 0),
            Random::for_operation(42, 1),
            Random::for_operation(43, 0),
            Random::stream(42, Stream::Document, 0),
            Random::stream(42, Stream::Mix, 0),
            Random::stream(42, Stream::Arrivals, 0),
        ]
        .map(first::<1>);
        for (i, start) in starts.iter().enumerate() {
            assert!(!starts[i + 1..].contains(start));
        }
    }

    /// The first draws of consecutive operations must be as good as the draws of one generator: they pick the keys.
    #[test]
    fn first_draws_of_consecutive_operations_are_even() {
        let mut bins = [0_u32; 100];
        for n in 0..100_000 {
            bins[usize::try_from(Random::for_operation(7, n).below(100)).unwrap()] += 1;
        }
        let chi_square: f64 = bins.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        // Between the 0.1 % and 99.9 % points of the distribution with 99 degrees of freedom.
        assert!((60.0..148.2).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn the_widest_ranges_work() {
        let mut random = Random::new(1);
        let expected = Random::new(1).next_u64().wrapping_add(1 << 63).cast_signed();
        assert_eq!(random.between(i64::MIN, i64::MAX), expected);
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.between(5, 4), 5);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    proptest! {
        #[test]
        fn draws_stay_in_bounds(seed: u64, bound in 1_u64.., a: i64, b: i64) {
            let mut random = Random::new(seed);
            prop_assert!(random.below(bound) < bound);
            prop_assert!((a.min(b)..=a.max(b)).contains(&random.between(a.min(b), a.max(b))));
            prop_assert!((0.0..1.0).contains(&random.unit_f64()));
        }
    }
}
