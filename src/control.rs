//! What may be asked of a running engine. Data only: the only thing that flows against the stream of snapshots.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A request to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Start the load now: every offset counts from here.
    Go {
        /// The number of the first operation. Above 0 where another trial worked on the same data before, so that no key
        /// is taken twice.
        first: u64,
        /// Where operations are parked that cannot be sent now; `None` where the plan has no spool.
        spool: Option<PathBuf>,
    },
    /// Start nothing more, let what is in flight end within a bounded time, report, and finish.
    Stop,
}
