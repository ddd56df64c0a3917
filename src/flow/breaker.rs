//! A circuit breaker: after too large a share of rejections nothing is sent for a while, and then one operation, whose fate
//! decides whether everything else may follow.

use super::window::Window;
use super::{Reply, Verdict};
use crate::plan::Breaker;

/// What a breaker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Everything may go.
    Closed,
    /// Nothing may go.
    Open,
    /// A probe is under way, and nothing else may go.
    HalfOpen,
}

impl State {
    /// The name used in files and on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// A change of a breaker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
    /// When.
    pub at_ns: u64,
}

/// What becomes of an operation that is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may go.
    Pass,
    /// It may go as the one probe, and the breaker is now half open. When it has ended, [`Circuit::conclude`] must be told.
    Probe(Probe, Change),
    /// It may not go.
    Refuse,
}

/// The right, and the duty, to say how the probe has ended. There is never more than one of a breaker.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe(());

/// A breaker's state. Begins closed.
#[derive(Clone, Debug)]
pub struct Circuit {
    plan: Breaker,
    state: State,
    /// When that began.
    since_ns: u64,
    /// Endings, and the rejections among them, while it is closed.
    endings: Window,
}

impl Circuit {
    /// As it is at Go.
    pub fn new(plan: Breaker) -> Self {
        Self { plan, state: State::Closed, since_ns: 0, endings: Window::new(plan.window.duration()) }
    }

    /// The state, and when it began.
    pub const fn state(&self) -> (State, u64) {
        (self.state, self.since_ns)
    }

    /// When a probe may go; `None` unless open.
    pub fn probe_at(&self) -> Option<u64> {
        let cool_down = u64::try_from(self.plan.cool_down.duration().as_nanos()).unwrap_or(u64::MAX);
        (self.state == State::Open).then(|| self.since_ns.saturating_add(cool_down))
    }

    /// Asks whether an operation may go.
    pub fn ask(&mut self, now_ns: u64) -> Admission {
        match (self.state, self.probe_at()) {
            (State::Closed, _) => Admission::Pass,
            (State::Open, Some(at)) if now_ns >= at => {
                Admission::Probe(Probe(()), self.become_state(State::HalfOpen, now_ns))
            }
            _ => Admission::Refuse,
        }
    }

    /// Takes note of an ending; `Some` when that opens the breaker. Of endings while it is not closed, and of what was sent
    /// before it last closed, it takes none: they are about the time before. A probe's own may be told here, too.
    pub fn told(&mut self, reply: &Reply) -> Option<Change> {
        if self.state != State::Closed || reply.started_ns < self.since_ns {
            return None;
        }
        self.endings.add(reply.ended_ns, 1, u64::from(reply.verdict == Verdict::Rejected));
        let (endings, rejected) = self.endings.sums(reply.ended_ns);
        let enough = endings >= u64::from(self.plan.minimum);
        let opens = enough && rejected > 0 && share(rejected, endings) >= self.plan.threshold;
        opens.then(|| self.become_state(State::Open, reply.ended_ns))
    }

    /// Takes note of how the probe has ended: served closes the breaker, rejected opens it again. A probe that ended without
    /// a word from the servers has not been served.
    pub fn conclude(&mut self, probe: Probe, verdict: Verdict, now_ns: u64) -> Change {
        let Probe(()) = probe;
        let to = if verdict == Verdict::Served { State::Closed } else { State::Open };
        self.become_state(to, now_ns)
    }

    fn become_state(&mut self, to: State, now_ns: u64) -> Change {
        let change = Change { from: self.state, to, at_ns: now_ns.max(self.since_ns) };
        self.state = to;
        self.since_ns = change.at_ns;
        self.endings.clear();
        change
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a window are far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests;
