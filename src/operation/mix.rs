//! Which operation the n-th one is.
//!
//! The mix is stratified: every block of operations holds each operation exactly in its share, in an order shuffled by
//! (seed, block). So shares are exact over any long stretch, no two workers need to agree on anything, and how often an
//! operation (or a new key) came before the n-th is a matter of arithmetic: the same in any worker, driver or language.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::document::{Random, Stream};

/// Small mixes are repeated up to about this many operations a block, so that orders do not become regular.
const BLOCK: u64 = 1000;

/// One entry of the mix.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Its weight; 0 leaves it out.
    pub weight: u32,
    /// How many new keys one execution uses.
    pub new_keys: u64,
}

/// What the n-th operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The operation, by its position in the plan.
    pub operation: usize,
    /// How many of the same operation come before it.
    pub occurrence: u64,
    /// How many new keys all operations before it use.
    pub new_keys: u64,
}

/// The whole endless sequence.
#[derive(Debug)]
pub struct Mix {
    id: u64,
    seed: u64,
    /// Operation of each place of a block, before shuffling.
    block: Vec<usize>,
    per_block: Vec<u64>,
    new_keys: Vec<u64>,
    new_keys_per_block: u64,
}

/// A shuffled block; `Place` counts from the block's start.
struct Shuffled {
    mix: u64,
    number: u64,
    places: Vec<Place>,
}

thread_local! {
    /// Neighbouring numbers are asked for from one thread, so each block is shuffled about once a thread. Two, because
    /// around a border both sides are under way.
    static BLOCKS: RefCell<[Option<Shuffled>; 2]> = const { RefCell::new([None, None]) };
}

impl Mix {
    /// A mix of these shares; some weight must be above 0.
    ///
    /// # Panics
    /// When all weights are 0, which the profile refuses.
    pub fn new(seed: u64, shares: &[Share]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let divisor = shares.iter().fold(0, |d, share| gcd(d, u64::from(share.weight)));
        assert!(divisor > 0, "a mix needs a weight above 0");
        let total: u64 = shares.iter().map(|share| u64::from(share.weight) / divisor).sum();
        let repeat = BLOCK.div_ceil(total);
        let per_block: Vec<u64> = shares.iter().map(|s| u64::from(s.weight) / divisor * repeat).collect();
        let block = per_block
            .iter()
            .enumerate()
            .flat_map(|(operation, &count)| (0..count).map(move |_| operation))
            .collect();
        let new_keys: Vec<u64> = shares.iter().map(|share| share.new_keys).collect();
        let new_keys_per_block = per_block.iter().zip(&new_keys).map(|(count, keys)| count * keys).sum();
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            seed,
            block,
            per_block,
            new_keys,
            new_keys_per_block,
        }
    }

    /// What the n-th operation is.
    pub fn at(&self, n: u64) -> Place {
        let length = self.block.len() as u64;
        let (number, within) = (n / length, n % length);
        // Bounded by the block's length, which is a usize.
        let within = usize::try_from(within).unwrap_or(0);
        let place = BLOCKS.with_borrow_mut(|blocks| {
            let slot = &mut blocks[usize::from(number % 2 == 1)];
            match slot {
                Some(block) if block.number == number && block.mix == self.id => block.places[within],
                _ => slot.insert(self.shuffle(number)).places[within],
            }
        });
        Place {
            operation: place.operation,
            occurrence: number * self.per_block[place.operation] + place.occurrence,
            new_keys: number * self.new_keys_per_block + place.new_keys,
        }
    }

    /// Fisher–Yates from the last place down, then counts from the first place up.
    fn shuffle(&self, number: u64) -> Shuffled {
        let mut random = Random::stream(self.seed, Stream::Mix, number);
        let mut order = self.block.clone();
        for last in (1..order.len()).rev() {
            let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or(last);
            order.swap(last, other);
        }
        let mut seen = vec![0; self.per_block.len()];
        let mut keys = 0;
        let places = order
            .into_iter()
            .map(|operation| {
                let place = Place { operation, occurrence: seen[operation], new_keys: keys };
                seen[operation] += 1;
                keys += self.new_keys[operation];
                place
            })
            .collect();
        Shuffled { mix: self.id, number, places }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(seed: u64) -> Mix {
        let share = |weight, new_keys| Share { weight, new_keys };
        Mix::new(seed, &[share(70, 0), share(20, 1), share(0, 5), share(10, 3)])
    }

    #[test]
    fn counts_before_the_nth_are_what_counting_gives() {
        let mix = mix(9);
        let (mut seen, mut keys) = ([0; 4], 0);
        for n in 0..5000 {
            let place = mix.at(n);
            assert_eq!((place.occurrence, place.new_keys), (seen[place.operation], keys), "n = {n}");
            seen[place.operation] += 1;
            keys += [0, 1, 5, 3][place.operation];
        }
        assert_eq!(seen, [3500, 1000, 0, 500]);
    }

    #[test]
    fn any_order_of_asking_gives_the_same_and_seeds_differ() {
        let (a, b, other) = (mix(1), mix(1), mix(2));
        let forward: Vec<_> = (0..3000).map(|n| a.at(n)).collect();
        let mut backward: Vec<_> = (0..3000).rev().map(|n| b.at(n)).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        assert_ne!(forward, (0..3000).map(|n| other.at(n)).collect::<Vec<_>>());
        assert_ne!(
            (0..1000).map(|n| a.at(n).operation).collect::<Vec<_>>(),
            (1000..2000).map(|n| a.at(n).operation).collect::<Vec<_>>()
        );
    }
}
