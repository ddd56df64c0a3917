//! Additive increase, multiplicative decrease: the law by which TCP finds out how much a path carries.

use super::{Reply, Verdict};

/// A limit that goes up by a constant and down by a factor.
#[derive(Clone, Debug)]
pub struct Aimd {
    limit: u32,
    floor: u32,
    ceiling: u32,
    increase: u32,
    decrease: f64,
    once_per_round_trip: bool,
    /// Served in a row since the last move or rejection.
    streak: u32,
    /// When a rejection was last heeded.
    decreased_ns: u64,
}

impl Aimd {
    /// At its initial limit, within `floor..=ceiling`. The rest as in [`LimitLaw::Aimd`](crate::plan::LimitLaw::Aimd).
    pub fn new(
        (initial, floor, ceiling): (u32, u32, u32),
        increase: u32,
        decrease: f64,
        once_per_round_trip: bool,
    ) -> Self {
        let limit = initial.min(ceiling).max(floor);
        Self { limit, floor, ceiling, increase, decrease, once_per_round_trip, streak: 0, decreased_ns: 0 }
    }

    /// Operations that may be under way.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes note of an ending.
    pub fn told(&mut self, reply: &Reply) {
        match reply.verdict {
            Verdict::Served => {
                self.streak += 1;
                if self.streak >= self.limit {
                    self.streak = 0;
                    self.limit = self.limit.saturating_add(self.increase).min(self.ceiling);
                }
            }
            Verdict::Rejected => {
                self.streak = 0;
                if self.once_per_round_trip && reply.started_ns < self.decreased_ns {
                    return;
                }
                self.decreased_ns = self.decreased_ns.max(reply.ended_ns);
                let decreased = super::limit::whole(f64::from(self.limit) * self.decrease);
                self.limit = decreased.max(self.floor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aimd(once_per_round_trip: bool) -> Aimd {
        Aimd::new((4, 1, 32), 1, 0.5, once_per_round_trip)
    }

    fn reply(verdict: Verdict, started_ns: u64, ended_ns: u64) -> Reply {
        Reply { verdict, started_ns, ended_ns, in_flight: 1 }
    }

    /// The limits after each of these endings: `+` served, `-` rejected.
    fn limits(endings: &str) -> Vec<u32> {
        let mut aimd = aimd(false);
        let verdict = |ending| if ending == '+' { Verdict::Served } else { Verdict::Rejected };
        endings
            .chars()
            .map(|ending| {
                aimd.told(&reply(verdict(ending), 0, 0));
                aimd.limit()
            })
            .collect()
    }

    #[test]
    fn a_full_window_of_successes_adds_one_and_a_rejection_halves() {
        assert_eq!(limits("+++++++++"), [4, 4, 4, 5, 5, 5, 5, 5, 6]);
        assert_eq!(limits("----"), [2, 1, 1, 1], "down to the floor");
        assert_eq!(limits("++++-"), [4, 4, 4, 5, 2], "a half is rounded down");
        assert_eq!(limits("+++-++"), [4, 4, 4, 2, 2, 3], "a rejection begins the window anew");
    }

    /// From l to l + 1 takes l successes: 4 + 5 + … + 31 of them from 4 to 32, which is 31·32/2 − 3·4/2.
    #[test]
    fn the_ceiling_is_reached_by_the_sum_of_the_windows_and_held() {
        let limits = limits(&"+".repeat(1000));
        assert_eq!(limits.iter().position(|&limit| limit == 32), Some(31 * 32 / 2 - 3 * 4 / 2 - 1));
        assert_eq!(limits.last(), Some(&32));
    }

    #[test]
    fn rejections_of_what_was_sent_before_a_decrease_say_nothing_new() {
        let mut once = aimd(true);
        let mut limit_after = |started_ns, ended_ns| {
            once.told(&reply(Verdict::Rejected, started_ns, ended_ns));
            once.limit()
        };
        assert_eq!(limit_after(0, 100), 2);
        assert_eq!(limit_after(50, 110), 2, "it was sent at the old limit");
        assert_eq!(limit_after(99, 500), 2, "however late it ends");
        assert_eq!(limit_after(100, 600), 1);
    }
}
