//! What a client may spend on servers that reject: without a budget, retries multiply the load just when it is too high.

use super::window::Window;
use super::{Reply, Verdict};
use crate::document::Random;
use crate::plan::{Budget, BudgetLaw};

/// One token, in the bucket's units: whole billionths, so that no sum of returns is ever rounded.
const TOKEN: u64 = 1_000_000_000;

/// What a call is within its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The first one.
    First,
    /// Another one, after one that failed.
    Retry,
}

/// A budget as it stands.
#[derive(Clone, Debug)]
pub enum Allowance {
    /// By tokens for retries.
    Tokens(Tokens),
    /// By the share of calls that servers accept.
    Throttle(Throttle),
}

impl Allowance {
    /// As it is at Go.
    pub fn new(plan: &Budget) -> Self {
        match plan.law {
            BudgetLaw::TokenBucket { capacity, per_success } => {
                let capacity = u64::from(capacity) * TOKEN;
                Self::Tokens(Tokens { capacity, per_success: billionths(per_success), level: capacity })
            }
            BudgetLaw::Throttle { k, window } => {
                Self::Throttle(Throttle { k, calls: Window::new(window.duration()) })
            }
        }
    }

    /// Whether a call may be sent, which is taken note of either way. Draws only where chance decides.
    pub fn allows(&mut self, call: Call, now_ns: u64, random: &mut Random) -> bool {
        match self {
            Self::Tokens(tokens) => call == Call::First || tokens.take(),
            Self::Throttle(throttle) => throttle.allows(now_ns, random),
        }
    }

    /// Takes note of a retry that nobody asked about: one of the driver's own, which the budget pays for when it goes by
    /// attempts.
    pub fn retried(&mut self, now_ns: u64) {
        match self {
            Self::Tokens(tokens) => {
                tokens.take();
            }
            Self::Throttle(throttle) => throttle.calls.add(now_ns, 1, 0),
        }
    }

    /// Takes note of an ending.
    pub fn told(&mut self, reply: &Reply) {
        if reply.verdict == Verdict::Served {
            match self {
                Self::Tokens(tokens) => {
                    tokens.level = tokens.capacity.min(tokens.level + tokens.per_success);
                }
                Self::Throttle(throttle) => throttle.calls.add(reply.ended_ns, 0, 1),
            }
        }
    }
}

/// A bucket of tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    capacity: u64,
    per_success: u64,
    level: u64,
}

impl Tokens {
    /// Retries that it pays for now.
    pub const fn left(&self) -> u64 {
        self.level / TOKEN
    }

    const fn take(&mut self) -> bool {
        let enough = self.level >= TOKEN;
        if enough {
            self.level -= TOKEN;
        }
        enough
    }
}

/// The client's own throttle: "Handling Overload" in Beyer, Jones, Petoff and Murphy, "Site Reliability Engineering"
/// (2016). Calls that it leaves out count as requests, too; what is sent comes to k times what is accepted.
#[derive(Clone, Debug)]
pub struct Throttle {
    k: f64,
    /// Requests, and those that were accepted.
    calls: Window,
}

impl Throttle {
    /// The chance that the next call is left out: max(0, (requests − k × accepts) ÷ (requests + 1)).
    #[expect(clippy::cast_precision_loss, reason = "counts of a window are far below 2^53")]
    pub fn chance(&self, now_ns: u64) -> f64 {
        let (requests, accepts) = self.calls.sums(now_ns);
        let excess = requests as f64 - self.k * accepts as f64;
        (excess / (requests as f64 + 1.0)).max(0.0)
    }

    fn allows(&mut self, now_ns: u64, random: &mut Random) -> bool {
        let chance = self.chance(now_ns);
        self.calls.add(now_ns, 1, 0);
        chance <= 0.0 || random.unit_f64() >= chance
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share has at most a billion billionths, and a cast stays at the ends of its range"
)]
fn billionths(share: f64) -> u64 {
    (share * 1e9).round() as u64
}

#[cfg(test)]
mod tests;
