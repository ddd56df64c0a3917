//! What an application does about rejection. All but the spool are pure state machines: they are told what happened and
//! when, in nanoseconds since Go, and say what to do. They know no clock, and draw from random numbers passed in. Times
//! should not go back; one that does, as those of several workers may by a little, does no harm.

pub mod aimd;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod gradient;
pub mod limit;
pub mod recovery;
pub mod spool;
mod window;

/// How something that was sent has ended: an operation or an attempt, by the plan's [`Signal`](crate::plan::Signal). What
/// says nothing about the servers' load, like a call that was given up, is not told at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What the servers made of it.
    pub verdict: Verdict,
    /// When it was sent.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Operations under way at its end, its own included.
    pub in_flight: u32,
}

/// What the servers made of something that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was worked on. An error that has to do with the operation itself, like a duplicate key, counts: the work was done.
    Served,
    /// It was turned away for overload.
    Rejected,
}
