//! A limit by latency. When more is under way than the servers work on at once, the rest waits there, and round trips
//! grow with it: so the shortest round trip of a long time, divided by one of late, tells how much of what is under way
//! is worked on. The idea is TCP Vegas's (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", 1995), used for services by Netflix ("Performance Under Load", 2018).
//!
//! Here it goes in rounds of as many replies as the limit, at least ten, to what was sent within the round. With g,
//! the lesser of tolerance × shortest ÷ mean round trip and the share that was not rejected, held within ½ and 1, a round
//! points to g × limit, and √limit more if nothing was rejected and the limit was made use of. Without rejections the limit
//! L rests where L = g × L + √L: with c operations worked on at once, L − √L = tolerance × c.

use std::time::Duration;

use super::{Reply, Verdict};

/// Replies of a round at least: the mean of fewer says too little.
const FEWEST: u32 = 10;

/// A limit that follows round trips.
#[derive(Clone, Debug)]
pub struct Gradient {
    limit: f64,
    floor: f64,
    ceiling: f64,
    smoothing: f64,
    tolerance: f64,
    memory_ns: u64,
    /// The shortest mean round trip of a round. Means, because a mean is compared with it: the shortest of all would be
    /// undercut by luck. Endless while none is known.
    shortest_ns: f64,
    /// When that is to be measured anew.
    stale_ns: u64,
    /// The limit after this round, if this is a round that measures.
    resume: Option<f64>,
    round: Round,
}

#[derive(Clone, Debug, Default)]
struct Round {
    began_ns: u64,
    served: u32,
    rejected: u32,
    round_trips_ns: f64,
    most_in_flight: u32,
}

impl Gradient {
    /// At its initial limit, within `floor..=ceiling`. The rest as in [`LimitLaw::Gradient`](crate::plan::LimitLaw).
    pub fn new(
        (initial, floor, ceiling): (u32, u32, u32),
        smoothing: f64,
        tolerance: f64,
        memory: Duration,
    ) -> Self {
        let limit = f64::from(initial.min(ceiling).max(floor));
        Self {
            limit,
            floor: f64::from(floor),
            ceiling: f64::from(ceiling),
            smoothing,
            tolerance,
            memory_ns: u64::try_from(memory.as_nanos()).unwrap_or(u64::MAX),
            shortest_ns: f64::INFINITY,
            stale_ns: 0,
            resume: Some(limit),
            round: Round::default(),
        }
    }

    /// Operations that may be under way.
    pub const fn limit(&self) -> u32 {
        super::limit::whole(self.limit)
    }

    /// Takes note of an ending.
    pub fn told(&mut self, reply: &Reply) {
        // What was sent in the instant a round ended may have been sent before that.
        if reply.started_ns <= self.round.began_ns {
            return;
        }
        self.round.add(reply);
        if self.round.replies() >= self.limit().max(FEWEST) {
            let round = std::mem::take(&mut self.round);
            self.round.began_ns = reply.ended_ns;
            let next = self.after(&round, reply.ended_ns);
            self.limit = next.min(self.ceiling).max(self.floor);
        }
    }

    /// The limit that follows from a round.
    fn after(&mut self, round: &Round, now_ns: u64) -> f64 {
        let mean_ns = round.mean_ns();
        if let Some(limit) = self.resume.take() {
            self.shortest_ns = mean_ns;
            self.stale_ns = now_ns.saturating_add(self.memory_ns);
            return limit;
        }
        if now_ns >= self.stale_ns {
            // The shortest must not be measured in a queue of our own making, or it would creep up for ever. At rest the
            // limit is about tolerance times what the servers work on at once; at half of that there is no queue.
            self.resume = Some(self.limit);
            return self.limit / (2.0 * self.tolerance);
        }
        self.shortest_ns = self.shortest_ns.min(mean_ns);
        let target = round.gradient(self.tolerance * self.shortest_ns) * self.limit + self.headroom(round);
        self.limit + self.smoothing * (target - self.limit)
    }

    /// What is tried beyond what is known to go well.
    fn headroom(&self, round: &Round) -> f64 {
        let made_use_of = 2.0 * f64::from(round.most_in_flight) >= self.limit;
        if round.rejected == 0 && made_use_of { self.limit.sqrt() } else { 0.0 }
    }
}

impl Round {
    fn add(&mut self, reply: &Reply) {
        self.most_in_flight = self.most_in_flight.max(reply.in_flight);
        match reply.verdict {
            Verdict::Rejected => self.rejected += 1,
            Verdict::Served => {
                let round_trip = Duration::from_nanos(reply.ended_ns.saturating_sub(reply.started_ns));
                // One of no length at all would be the shortest for ever, and everything else too long.
                self.round_trips_ns += (round_trip.as_secs_f64() * 1e9).max(1.0);
                self.served += 1;
            }
        }
    }

    const fn replies(&self) -> u32 {
        self.served.saturating_add(self.rejected)
    }

    /// Endless when nothing was served: rejections come back faster than work, and say nothing about it.
    fn mean_ns(&self) -> f64 {
        if self.served == 0 { f64::INFINITY } else { self.round_trips_ns / f64::from(self.served) }
    }

    /// The share of the limit that went well.
    fn gradient(&self, tolerated_ns: f64) -> f64 {
        let share_served = f64::from(self.served) / f64::from(self.replies());
        let by_latency = if self.served == 0 { 0.0 } else { tolerated_ns / self.mean_ns() };
        by_latency.min(share_served).clamp(0.5, 1.0)
    }
}

#[cfg(test)]
mod tests;
