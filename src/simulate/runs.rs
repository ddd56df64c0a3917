//! Times that are mostly the same: most waits for a connection are none, and most rejections come back in the same time.

use crate::stats::{Latencies, OpStats};

/// The same time again and again: counted here, and recorded when another one comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    ns: u64,
    count: u64,
}

/// Those of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// From intended to actual start.
    pub lag: Run,
    /// Waits for a connection.
    pub checkout: Run,
    /// Round trips of rejections.
    pub rejected: Run,
}

impl Run {
    /// Adds one; `times` gets those before it, if they were others.
    pub fn add(&mut self, ns: u64, times: &mut Latencies) {
        if ns != self.ns {
            self.end(times);
            self.ns = ns;
        }
        self.count += 1;
    }

    /// Gives `times` what is left.
    pub fn end(&mut self, times: &mut Latencies) {
        if self.count > 0 {
            times.record_many_ns(self.ns, std::mem::take(&mut self.count));
        }
    }
}

impl Runs {
    /// Gives the cell what is left.
    pub fn end(&mut self, stats: &mut OpStats) {
        self.lag.end(&mut stats.lag);
        self.checkout.end(&mut stats.checkout);
        self.rejected.end(&mut stats.attempt_rejected);
    }
}
