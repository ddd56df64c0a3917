//! What the application does about calls that take too long, about calls that fail, and about servers that reject.

use serde::{Deserialize, Serialize};

use crate::units::{Rate, Span};

/// How long the application waits for one call of an operation, and servers work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    /// How long the application waits; `None` waits as long as the driver does. Above zero.
    pub operation: Option<Span>,
    /// What becomes of a call that has passed its deadline.
    pub on_timeout: OnTimeout,
    /// How long such a call may go on in the background, for its reply to come.
    pub grace: Span,
    /// What servers are told (`maxTimeMS`), with reads and run_command: the driver has no such option for writes. `None`
    /// tells them nothing, and neither does one above the largest that they take. Above zero.
    pub max_time: Option<Span>,
}

/// What becomes of a call that has passed its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Its future is dropped: the driver closes the connection, if a command was on the wire, and the server may or may
    /// not go on with it.
    #[default]
    Cancel,
    /// The attempt under way goes on in the background until its reply has come or the grace is over: then the
    /// connection can be used again. Nothing else of the call goes on.
    ReadInBackground,
}

impl Default for Timeout {
    fn default() -> Self {
        Self { operation: None, on_timeout: OnTimeout::Cancel, grace: Span::seconds(1), max_time: None }
    }
}

/// What an application does about rejection, beside further calls. Nothing, unless a part is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flow {
    /// How many operations may be under way at once.
    pub limit: Option<ConcurrencyLimit>,
    /// When it stops sending for a while.
    pub breaker: Option<Breaker>,
    /// What it may spend on servers that reject.
    pub budget: Option<Budget>,
    /// What stands between arrivals and the operations under way. `None` is a queue that nobody notices: what does not fit
    /// stays in the schedule.
    pub producer: Option<Producer>,
    /// Where operations are kept that cannot be sent now; there when the producer spools.
    pub spool: Option<SpoolPlan>,
}

/// Further calls of an operation that has failed or passed its deadline, on top of the driver's own retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// How the pauses grow.
    pub kind: BackoffKind,
    /// Calls in all, the first included; at least 1.
    pub max_attempts: u32,
    /// The pause that the others are made of.
    pub base: Span,
    /// The longest pause.
    pub cap: Span,
}

/// How pauses before further calls grow. b is the base, c the cap, n the number of the retry, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffKind {
    /// No pause.
    Immediate,
    /// b.
    Fixed,
    /// min(c, b·2^n).
    Exponential,
    /// Drawn from 0 to the exponential pause.
    FullJitter,
    /// Half of the exponential pause, and a part drawn from 0 to the other half.
    EqualJitter,
    /// min(c, a draw from b to three times the pause before), which is b at first.
    Decorrelated,
    /// As full jitter, b being what the server asked for in its rejection (`baseBackoffMS`), where it did.
    ServerGuided,
}

/// The endings that a limit, a breaker or a budget goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Those of operations: what an application sees without looking closer. Rejections that the driver's own retries have
    /// overcome stay hidden.
    #[default]
    Operation,
    /// Those of attempts: every rejection, whether or not the driver tries again.
    Attempt,
}

/// How many operations may be under way at once, found out as the load goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyLimit {
    /// What it goes by.
    pub signal: Signal,
    /// Operations at first; from `floor` to `ceiling`.
    pub initial: u32,
    /// Operations at least; at least 1.
    pub floor: u32,
    /// Operations at most; not below `floor`.
    pub ceiling: u32,
    /// What moves it.
    pub law: LimitLaw,
}

/// What moves a limit of concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitLaw {
    /// Additive increase, multiplicative decrease: a full window of successes in a row, as many as the limit, adds; a
    /// rejection multiplies.
    Aimd {
        /// Added after a full window; at least 1.
        increase: u32,
        /// What a rejection multiplies by; above 0 and below 1.
        decrease: f64,
        /// Whether rejections of what was sent before the last decrease are overlooked, as TCP does it: they are answers to
        /// the old limit. Otherwise a burst of them takes the limit to its floor at once.
        once_per_round_trip: bool,
    },
    /// By latency: round trips of late against the shortest of a long time.
    Gradient {
        /// The share of the way that the limit goes to where a round of replies points; above 0, at most 1.
        smoothing: f64,
        /// How many times as long as the shortest round trips may take before the limit shrinks; at least 1.
        tolerance: f64,
        /// How long the shortest is remembered before it is measured anew at a lower limit; above zero.
        memory: Span,
    },
}

impl LimitLaw {
    /// Up by one, down by half, at every rejection.
    pub const AIMD: Self = Self::Aimd { increase: 1, decrease: 0.5, once_per_round_trip: false };

    /// A fifth of the way at a time, towards round trips that are half as long again as the shortest of a minute.
    pub const GRADIENT: Self = Self::Gradient { smoothing: 0.2, tolerance: 1.5, memory: Span::seconds(60) };
}

/// When an application stops sending for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    /// What it goes by.
    pub signal: Signal,
    /// The share of rejections that opens it; above 0, at most 1.
    pub threshold: f64,
    /// How far back endings count; above zero.
    pub window: Span,
    /// Endings within the window below which it stays closed; at least 1.
    pub minimum: u32,
    /// How long it stays open before one operation is let through as a probe.
    pub cool_down: Span,
}

/// What a client may spend on servers that reject.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// What it goes by.
    pub signal: Signal,
    /// How it is counted.
    pub law: BudgetLaw,
}

/// How a budget is counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLaw {
    /// A bucket of tokens, full at first: a retry takes one and is left out when there is none; a first call takes none.
    TokenBucket {
        /// Tokens at most; 0 allows no retry.
        capacity: u32,
        /// Tokens that come back with each success; from 0 to 1, kept to the billionth.
        per_success: f64,
    },
    /// The client leaves out calls by itself, the more of them the fewer the servers accept.
    Throttle {
        /// Calls per accepted one that it aims at; at least 1.
        k: f64,
        /// How far back calls count; above zero.
        window: Span,
    },
}

impl BudgetLaw {
    /// The numbers of the drivers' specification in its first version: a thousand retries, and one more for ten successes.
    pub const TOKEN_BUCKET: Self = Self::TokenBucket { capacity: 1000, per_success: 0.1 };

    /// The numbers of the chapter "Handling Overload" of "Site Reliability Engineering": twice what is accepted, over two
    /// minutes.
    pub const THROTTLE: Self = Self::Throttle { k: 2.0, window: Span::seconds(120) };
}

/// What stands between arrivals and the operations under way. Open model only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// Arrivals that wait at most; at least 1.
    pub queue: u32,
    /// What becomes of one that can neither go nor wait.
    pub when_full: WhenFull,
}

impl Default for Producer {
    fn default() -> Self {
        Self { queue: 64, when_full: WhenFull::Block }
    }
}

/// What becomes of an arrival that can neither go nor wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The producer waits with it; its intended start stays what it was.
    #[default]
    Block,
    /// It is never sent, and counted.
    Drop,
    /// It is written to the spool, to be sent later.
    Spool,
}

/// Where operations are kept that cannot be sent now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpoolPlan {
    /// Bytes on disk at most; what would go beyond is refused.
    pub max_bytes: u64,
    /// Bytes after which a file is left and the next one begun; above 0, at most `max_bytes`. Space is freed file by file.
    pub rotate_bytes: u64,
    /// Operations a second that are taken out again, at most.
    pub drain: Rate,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn laws_are_named_in_json_as_everything_else_is() {
        let limit = ConcurrencyLimit {
            signal: Signal::Attempt,
            initial: 4,
            floor: 1,
            ceiling: 32,
            law: LimitLaw::AIMD,
        };
        let text = json!({
            "signal": "attempt", "initial": 4, "floor": 1, "ceiling": 32,
            "law": { "aimd": { "increase": 1, "decrease": 0.5, "once_per_round_trip": false } },
        });
        assert_eq!(serde_json::to_value(limit).unwrap(), text);
        assert_eq!(serde_json::from_value::<ConcurrencyLimit>(text).unwrap(), limit);

        let budget = Budget { signal: Signal::Operation, law: BudgetLaw::THROTTLE };
        let text = json!({ "signal": "operation", "law": { "throttle": { "k": 2.0, "window": "2m" } } });
        assert_eq!(serde_json::to_value(budget).unwrap(), text);
        assert_eq!(serde_json::from_value::<Budget>(text).unwrap(), budget);
        assert_eq!(
            serde_json::to_value(Producer::default()).unwrap(),
            json!({ "queue": 64, "when_full": "block" })
        );
    }
}
