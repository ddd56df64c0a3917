//! The servers' rate limiter as a pure state machine: it is told what time it is, in nanoseconds since any instant, and
//! says who may pass. One kind does for requests and for connections, as in the server.
//!
//! A token bucket starts full and refills continuously up to its capacity. Whoever takes a whole token passes at once.
//! With a queue, whoever comes too early may borrow the token that is to come, and waits until it has. All arithmetic
//! is in whole billionths of a token, of which a rate of r/s yields r each nanosecond: nothing is ever rounded.

use serde::{Deserialize, Serialize};

use crate::plan::Limit;

/// One token, in the bucket's units.
const TOKEN: i128 = 1_000_000_000;

/// What becomes of somebody who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Admit,
    /// A token is reserved: go on at this time, then call [`Limiter::leave_queue`].
    WaitUntil(u64),
    /// Go away.
    Reject,
}

/// What a limiter has done, in the words of `serverStatus`. Admissions count from the limiter's making, and only while a
/// limit was set; attempted = successful + rejected + interrupted + `queue_length`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimiterCounters {
    /// Asked without being exempt.
    pub attempted: u64,
    /// Passed, at once or after waiting.
    pub successful: u64,
    /// Were sent away.
    pub rejected: u64,
    /// Passed without asking.
    pub exempted: u64,
    /// Went away while they were waiting.
    pub interrupted: u64,
    /// Are waiting now.
    pub queue_length: u32,
    /// Whole tokens in the bucket now; 0 while no limit is set, too.
    pub available_tokens: u64,
}

/// A token bucket with a queue. Without a limit everybody passes and nothing is counted.
#[derive(Clone, Debug)]
pub struct Limiter {
    limit: Option<Limit>,
    bucket: Bucket,
    counters: LimiterCounters,
}

impl Limiter {
    /// With a full bucket.
    pub fn new(limit: Option<Limit>, now_ns: u64) -> Self {
        Self { limit, bucket: Bucket::full(limit, now_ns), counters: LimiterCounters::default() }
    }

    /// Sets another limit. A limiter that had none starts with a full bucket; otherwise the tokens stay, as far as they
    /// fit the new capacity, so that setting the same limit again changes nothing. Those who wait keep their times.
    pub fn configure(&mut self, limit: Option<Limit>, now_ns: u64) {
        if self.limit.is_none() {
            self.bucket = Bucket::full(limit, now_ns);
        } else {
            self.bucket.refill(now_ns);
            let level = self.bucket.level;
            self.bucket = Bucket::full(limit, now_ns);
            self.bucket.level = level.min(self.bucket.capacity);
        }
        self.limit = limit;
    }

    /// Whether there is a limit.
    pub const fn is_on(&self) -> bool {
        self.limit.is_some()
    }

    /// Asks for a token. Times must not go back; one that does counts as the latest known.
    pub fn ask(&mut self, now_ns: u64) -> Decision {
        let Some(limit) = self.limit else { return Decision::Admit };
        self.counters.attempted += 1;
        self.bucket.refill(now_ns);
        if self.bucket.level >= TOKEN {
            self.bucket.level -= TOKEN;
            self.counters.successful += 1;
            Decision::Admit
        } else if self.counters.queue_length < limit.queue_depth {
            self.bucket.level -= TOKEN;
            self.counters.queue_length += 1;
            Decision::WaitUntil(self.bucket.solvent_at())
        } else {
            self.counters.rejected += 1;
            Decision::Reject
        }
    }

    /// Says that somebody who was to wait has `passed` now, or else has gone away, which returns the token.
    pub fn leave_queue(&mut self, passed: bool) {
        self.counters.queue_length = self.counters.queue_length.saturating_sub(1);
        if passed {
            self.counters.successful += 1;
        } else {
            self.counters.interrupted += 1;
            self.bucket.level = (self.bucket.level + TOKEN).min(self.bucket.capacity);
        }
    }

    /// Counts somebody who need not ask.
    pub const fn exempt(&mut self) {
        if self.is_on() {
            self.counters.exempted += 1;
        }
    }

    /// What has been done so far.
    pub fn counters(&mut self, now_ns: u64) -> LimiterCounters {
        self.bucket.refill(now_ns);
        let available_tokens = u64::try_from(self.bucket.level.max(0) / TOKEN).unwrap_or(u64::MAX);
        LimiterCounters { available_tokens, ..self.counters }
    }
}

/// The tokens alone, in billionths.
#[derive(Clone, Debug)]
struct Bucket {
    /// Per nanosecond. Zero, like the capacity, where there is no limit.
    rate: i128,
    capacity: i128,
    /// Below zero while tokens are borrowed.
    level: i128,
    at_ns: u64,
}

impl Bucket {
    fn full(limit: Option<Limit>, at_ns: u64) -> Self {
        let rate = limit.map_or(0, |limit| i128::from(limit.rate.get()));
        let burst_ns = limit.map_or(0, |limit| limit.burst.duration().as_nanos());
        // A burst is bounded by `Span`; one made by hand from the longest `Duration` still fits.
        let capacity = i128::try_from(burst_ns).unwrap_or(i128::MAX).saturating_mul(rate);
        Self { rate, capacity, level: capacity, at_ns }
    }

    /// Adds what has come since the last time. 2^32 a nanosecond for 2^64 nanoseconds is far from overflowing.
    fn refill(&mut self, now_ns: u64) {
        let elapsed = now_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(now_ns);
        self.level = self.level.saturating_add(i128::from(elapsed) * self.rate).min(self.capacity);
    }

    /// When nothing is borrowed any more.
    fn solvent_at(&self) -> u64 {
        let debt = (-self.level).max(0);
        let wait = if self.rate == 0 { 0 } else { (debt + self.rate - 1) / self.rate };
        self.at_ns.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
