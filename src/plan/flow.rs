//! What the application does about calls that take too long, and about calls that fail.

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// How long the application waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    /// For one call of an operation. Then its future is dropped: the driver closes the connection, if a command was on
    /// the wire, and the server may or may not go on with it.
    pub operation: Span,
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
}
