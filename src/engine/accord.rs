//! What several engines of one load agree on: when it begins, that it goes on until the measured operations of all of them
//! are resolved, and when it ends.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::Barrier;

use crate::plan::timeline::nanos;

/// Shared by the engines of a load. One that is alone agrees with itself.
pub struct Accord {
    go: OnceLock<Instant>,
    /// Engines with measured operations that have no outcome yet.
    unresolved: AtomicUsize,
    /// All of them, at a point that none passes before the others.
    all: Barrier,
    frozen_ns: OnceLock<u64>,
}

impl Accord {
    /// Between so many engines.
    pub fn of(engines: usize) -> Self {
        Self {
            go: OnceLock::new(),
            unresolved: AtomicUsize::new(engines),
            all: Barrier::new(engines),
            frozen_ns: OnceLock::new(),
        }
    }

    /// Waits for all engines to come as far.
    pub async fn meet(&self) {
        self.all.wait().await;
    }

    /// The moment that the offsets of all engines count from.
    pub fn go(&self) -> Instant {
        *self.go.get_or_init(Instant::now)
    }

    /// The measured operations of one more engine have an outcome; each says so once.
    pub fn resolve(&self) {
        self.unresolved.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether those of all engines have.
    pub fn is_resolved(&self) -> bool {
        self.unresolved.load(Ordering::Relaxed) == 0
    }

    /// When nothing was due any more, in nanoseconds since Go: the same for all engines, so that their intervals end alike.
    pub fn frozen_ns(&self) -> u64 {
        *self.frozen_ns.get_or_init(|| nanos(self.go().elapsed()))
    }
}
