//! The facts that workers record: small, plain values. What they mean is worked out elsewhere, off the operation's path.

/// One fact, in the order a thread saw them.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// An operation was given to the driver.
    Started(Started),
    /// A try of a command has ended.
    Attempt(Attempt),
    /// An operation has ended.
    Ended(Ended),
    /// What became of a call that had passed its deadline.
    Late(Late),
    /// An operation was due and is not to be sent.
    Dropped(KeptBack),
    /// An operation was due and is to be sent later.
    Parked(KeptBack),
    /// An operation was taken away before it began.
    Untaken(Cell),
    /// An operation was taken away while under way.
    Abandoned(Cell),
}

/// Which operation, by its position in the plan, and the segment of its intended start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Position in the plan's operations.
    pub operation: u16,
    /// Position in the plan's segments.
    pub segment: u16,
}

/// An operation was given to the driver.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// Whose.
    pub cell: Cell,
    /// From its intended to its actual start.
    pub lag_ns: u64,
    /// When it started, since Go.
    pub at_ns: u64,
}

impl Record {
    /// When it happened, since Go; `None` for what only happens at the very end.
    pub const fn at_ns(&self) -> Option<u64> {
        match self {
            Self::Started(started) => Some(started.at_ns),
            Self::Attempt(attempt) => Some(attempt.at_ns),
            Self::Ended(ended) => Some(ended.at_ns),
            Self::Late(late) => Some(late.at_ns),
            Self::Dropped(kept_back) | Self::Parked(kept_back) => Some(kept_back.at_ns),
            Self::Untaken(_) | Self::Abandoned(_) => None,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The server did what was asked.
    Served,
    /// It failed with the SystemOverloadedError label.
    Rejected,
    /// It failed otherwise.
    Failed,
    /// No connection was had.
    NoConnection,
    /// It was given up before an answer came.
    NoAnswer,
    /// It ended, and pool events alone do not tell how.
    Unknown,
}

/// One try of a command on a server.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Whose.
    pub cell: Cell,
    /// Where: a position in the client's list of servers.
    pub server: u16,
    /// 0 for a command's first try, then 1, 2 …
    pub retry: u16,
    /// Whether its command belongs to the operation's first call.
    pub first_call: bool,
    /// How it ended.
    pub end: AttemptEnd,
    /// Whether it came from a rejection on another server.
    pub retargeted: bool,
    /// From the end of the failed attempt before it to its check-out's start; `None` for first tries.
    pub backoff_ns: Option<u64>,
    /// The wait for a connection; `None` when none was had.
    pub checkout_ns: Option<u64>,
    /// The command's round trip; `None` when it was not sent, or not answered.
    pub round_trip_ns: Option<u64>,
    /// Its error's class, where there was one.
    pub error: Option<u32>,
    /// When it ended, since Go.
    pub at_ns: u64,
}

/// An operation has ended. Times are sums over its attempts.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Whose.
    pub cell: Cell,
    /// How.
    pub outcome: Outcome,
    /// Calls made for it.
    pub calls: u32,
    /// Retries in all its commands.
    pub retries: u32,
    /// Intended to actual start.
    pub wait_ns: u64,
    /// Waiting for connections.
    pub checkout_ns: u64,
    /// Round trips.
    pub attempt_ns: u64,
    /// Backoffs.
    pub backoff_ns: u64,
    /// Actual start to end.
    pub service_ns: u64,
    /// Its error's class, where there was one.
    pub error: Option<u32>,
    /// When it ended, since Go.
    pub at_ns: u64,
}

/// An operation was due and was not sent.
#[derive(Clone, Copy, Debug)]
pub struct KeptBack {
    /// Whose.
    pub cell: Cell,
    /// The reason's class.
    pub error: u32,
    /// When, since Go.
    pub at_ns: u64,
}

/// What became of a call that had passed its deadline with a command on the wire, and went on in the background.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Whose.
    pub cell: Cell,
    /// How it ended.
    pub end: LateEnd,
    /// From the deadline to the reply, or to when it was given up.
    pub overshoot_ns: u64,
    /// When it ended, since Go.
    pub at_ns: u64,
}

/// How a late reply came, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateEnd {
    /// The server had done what was asked.
    Ok,
    /// It had not.
    Failed,
    /// There was none within the grace.
    Lost,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As wanted.
    Ok,
    /// With an error.
    Failed,
    /// With a retryable overload error as the last.
    GaveUp,
    /// Its last call passed its deadline.
    TimedOut,
}
