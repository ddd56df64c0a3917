//! Templates → BSON. A template is compiled once and rendered for every operation; what comes out is a pure function of
//! the template and a [`Draw`], so that the same seed gives the same n-th operation, and the same document k, on any
//! machine and in any language. Only `^Now` looks at the clock.
//!
//! # What draws when
//!
//! Everything is rendered in the order of keys and elements, from one random stream ([`Random`]):
//!
//! | generator | draws |
//! |-----------|-------|
//! | `^Key` | what its distribution takes ([`keys::Keys::pick`]); none when the draw fixes the key |
//! | `^Int` | one, [`Random::between`] |
//! | `^Double` | one, `min + unit_f64 × (max − min)`, in this order of operations |
//! | `^String` | its length; then one per character, `below(characters of the alphabet)` |
//! | `^Bytes` | its length; then one per 8 bytes begun, lowest byte first, the last one cut |
//! | `^Array` | its length; then each element's own draws |
//! | `^Choose` | one, `below(sum of the weights)` or `below(choices)` without weights; then the chosen one's own |
//! | `^ObjectId` | two: 8 bytes of the first and 4 of the second, lowest byte first |
//! | `^Join` | each part's own |
//! | `^Inc`, `^Now` | none |
//!
//! A length takes one draw, `min + below(max − min + 1)`, and none when min = max.
//!
//! # What `^Inc` counts
//!
//! Each `^Inc` counts by itself, whatever stands beside it: its value in rendering number n of its template is
//! start + step × n, from 0, and stays at the end of 64 bits should it get there. What is n is a matter of arithmetic,
//! not of a counter: a template of an operation is rendered once an execution, so it is the number of executions before;
//! one of `insert_many` is rendered for each document, so it is executions × count + the document's place; the document
//! with key k is number k however it comes to be. Inside an `^Array` of length m an `^Inc` is rendered m times: then it is
//! n × m + the element's place, the outermost array counting first.
//!
//! # In a shard
//!
//! A shard of a load draws, mixes and arrives by a seed of its own ([`seed`]; documents that are loaded keep the plan's). Of
//! what is counted, executions and new keys before, the shards take turns: what is the n-th here is number n × shards +
//! the shard's index of the whole ([`Draw::in_shard`]). One that takes several new keys goes on in steps of the number of shards.
//! Client groups of one load do likewise with what has to be unique, new keys and what `^Inc` counts ([`Draw::in_turn`]); the
//! keys in sequence each goes through by itself.

mod generators;
pub mod keys;
pub mod random;
#[cfg(test)]
mod tests;
mod zipfian;

use bson::{Bson, Document};

pub use random::{Random, Stream};

use crate::plan::{Plan, Shard, Template, Turn};
use generators::Node;
use keys::Keys;

/// A template made ready: what never varies is BSON already, and what a distribution needs is worked out.
#[derive(Clone, Debug)]
pub struct Compiled {
    root: Node,
}

impl Compiled {
    /// Makes a template ready for a collection that was loaded with `documents` documents.
    pub fn new(template: &Template, documents: u64) -> Self {
        Self { root: Node::new(template, documents, 1) }
    }

    /// A value.
    pub fn render(&self, draw: &mut Draw) -> Bson {
        self.root.render(draw)
    }

    /// A document. A template that renders something else (readers refuse it where a document is needed) becomes a
    /// document with that value under the empty key, which as a filter matches nothing.
    pub fn document(&self, draw: &mut Draw) -> Document {
        match self.render(draw) {
            Bson::Document(document) => document,
            other => Document::from_iter([(String::new(), other)]),
        }
    }
}

/// What everything that operations draw is seeded with, their order and their times: the plan's seed, or in one of several
/// shards the first output of the stream [`Stream::Shard`] with its index, so that no two do the same.
pub fn seed(plan: &Plan) -> u64 {
    match plan.shard.filter(|shard| shard.is_part()) {
        Some(shard) => Random::stream(plan.seed, Stream::Shard, shard.index.into()).next_u64(),
        None => plan.seed,
    }
}

/// Where the values of one operation, or of one loaded document, come from. An operation that renders several templates
/// renders them in their order in the plan with one draw.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The random stream.
    pub random: Random,
    /// How many times the same operation came before in the run: the place of `^Key = "sequential"`.
    pub occurrence: u64,
    /// The next key that no document had yet: what `^Key = "next"` takes, and one above what `latest` looks back from.
    pub next_key: u64,
    /// When given, what every `^Key` yields, whatever its distribution: this is the document with that key. Its `^Inc`s
    /// are then counted by the key, too.
    pub key: Option<u64>,
    /// Which execution of this entry of the mix it is for what counts them: the same as `occurrence` but where several take
    /// turns.
    execution: u64,
    /// How many renderings of the same template came before in the run.
    rendering: u64,
    /// Where in the arrays around it a generator is being rendered, as one number.
    element: u64,
    /// From one new key to the next: 1, or the number of those that take turns.
    key_step: u64,
    /// How many of the keys below the next new one are those of others' turns: `latest` looks back from before them,
    /// since nobody knows whether they are taken.
    keys_ahead: u64,
}

impl Draw {
    /// For the n-th operation of a run (from 0), which works on `documents` loaded documents. `occurrence` is how many
    /// executions of this entry of the mix came before, and `new_keys_before` how many new keys all operations before it
    /// took.
    pub const fn operation(seed: u64, n: u64, documents: u64, occurrence: u64, new_keys_before: u64) -> Self {
        Self {
            random: Random::for_operation(seed, n),
            occurrence,
            next_key: documents.wrapping_add(new_keys_before),
            key: None,
            execution: occurrence,
            rendering: occurrence,
            element: 0,
            key_step: 1,
            keys_ahead: 0,
        }
    }

    /// The same for a shard of a load: what has to be unique, new keys and what `^Inc` counts, is what the shard's turn
    /// gives; so is the place of `^Key = "sequential"`, which all shards go through together.
    pub const fn in_shard(mut self, shard: Shard, documents: u64) -> Self {
        self = self.in_turn(shard.turn(), documents);
        self.occurrence = self.execution;
        self
    }

    /// The same for one of several that take turns for what has to be unique, and for nothing else.
    pub const fn in_turn(mut self, turn: Turn, documents: u64) -> Self {
        self.execution = turn.of(self.occurrence);
        self.rendering = self.execution;
        let new_keys_before = self.next_key.wrapping_sub(documents);
        self.next_key = documents.wrapping_add(turn.of(new_keys_before));
        self.key_step = turn.count as u64;
        self.keys_ahead = turn.index as u64;
        self
    }

    /// For the document with a key, out of the `documents` that are loaded before the run.
    pub const fn loading(seed: u64, key: u64, documents: u64) -> Self {
        let random = Random::stream(seed, Stream::Document, key);
        Self {
            random,
            occurrence: key,
            next_key: documents,
            key: Some(key),
            execution: key,
            rendering: key,
            element: 0,
            key_step: 1,
            keys_ahead: 0,
        }
    }

    /// What is rendered next is number `place` of the `times` renderings of one template in this execution.
    pub const fn rendering(&mut self, place: u64, times: u64) {
        self.rendering = self.execution.saturating_mul(times).saturating_add(place);
    }

    /// Takes a new key and fixes it: what is rendered next is the document with that key.
    pub const fn take_new_key(&mut self) -> u64 {
        let key = self.next_key;
        self.next_key = key.wrapping_add(self.key_step);
        self.key = Some(key);
        key
    }

    fn pick(&mut self, keys: &Keys) -> u64 {
        if let Some(key) = self.key {
            return key;
        }
        let next_key =
            if keys.are_new() { self.next_key } else { self.next_key.wrapping_sub(self.keys_ahead) };
        let key = keys.pick(&mut self.random, self.occurrence, next_key);
        if keys.are_new() {
            self.next_key = key.wrapping_add(self.key_step);
        }
        key
    }

    /// start + step × how often this generator was rendered before, which it is so many times in each rendering of its
    /// template. Past the ends of 64 bits it stays there.
    fn increment(&self, start: i64, step: i64, times: u64) -> i64 {
        let rendering = self.key.unwrap_or(self.rendering);
        let number = rendering.saturating_mul(times).saturating_add(self.element);
        // 2^63 + 2^63 × 2^64 fits into 128 bits.
        let value = i128::from(start) + i128::from(step) * i128::from(number);
        i64::try_from(value).unwrap_or(if step < 0 { i64::MIN } else { i64::MAX })
    }

    /// Renders something for each element of an array, and tells the `^Inc`s in it which one that is.
    fn each_element<T>(&mut self, length: usize, mut render: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let around = self.element;
        let first = around.saturating_mul(length as u64);
        let rendered = (first..).take(length).map(|element| {
            self.element = element;
            render(self)
        });
        let rendered = rendered.collect();
        self.element = around;
        rendered
    }
}
