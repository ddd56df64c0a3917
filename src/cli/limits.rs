//! What a gate is told on the command line.

use std::num::NonZeroU32;

use clap::Args;

use crate::plan::gate::LONGEST_BASE_BACKOFF_MS;
use crate::plan::{GateSettings, Generation, Limit};
use crate::units::{Span, UnitError, WholeRate};

/// The limits of a gate; by default there are none.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits of the gate")]
pub struct LimitArgs {
    /// Requests per second, like 200/s; what comes beyond is rejected
    #[arg(long, value_name = "RATE", value_parser = whole_rate)]
    limit_rate: Option<NonZeroU32>,
    /// How much of that may come at once
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "limit_rate")]
    burst: Span,
    /// How many requests wait instead of being rejected
    #[arg(long, value_name = "N", default_value_t = 0, requires = "limit_rate")]
    queue_depth: u32,
    /// New connections per second; what comes beyond is closed without a word
    #[arg(long, value_name = "RATE", value_parser = whole_rate)]
    connection_rate: Option<NonZeroU32>,
    /// How many seconds' worth of connections may come at once
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "connection_rate")]
    connection_burst: Span,
    /// How many new connections wait instead of being closed
    #[arg(long, value_name = "N", default_value_t = 0, requires = "connection_rate")]
    connection_queue_depth: u32,
    /// Tell clients to base their backoff on this many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1..=LONGEST_BASE_BACKOFF_MS))]
    base_backoff_ms: Option<i64>,
    /// Whose rejections to copy: those of 9.0 also say that nothing was written
    #[arg(long, value_name = "VERSION", default_value = "9.0", value_parser = generation)]
    generation: Generation,
    /// Shed monitors and handshakes, too, as a server without authentication does
    #[arg(long)]
    literal: bool,
}

impl LimitArgs {
    /// Whether there is any limit.
    pub const fn any(&self) -> bool {
        self.limit_rate.is_some() || self.connection_rate.is_some()
    }

    /// The same as a gate wants it.
    pub fn settings(&self) -> GateSettings {
        let limit = |rate: Option<NonZeroU32>, burst, queue_depth| {
            rate.map(|rate| Limit { rate, burst, queue_depth })
        };
        GateSettings {
            requests: limit(self.limit_rate, self.burst, self.queue_depth),
            connections: limit(self.connection_rate, self.connection_burst, self.connection_queue_depth),
            generation: self.generation,
            base_backoff_ms: self.base_backoff_ms,
            literal: self.literal,
            ..GateSettings::default()
        }
    }
}

fn whole_rate(text: &str) -> Result<NonZeroU32, UnitError> {
    text.parse::<WholeRate>().map(WholeRate::get)
}

fn generation(text: &str) -> Result<Generation, String> {
    serde_json::from_value(text.into()).map_err(|_| "write 8.2 or 9.0".to_owned())
}

/// As the system's resolver takes it. A connection string is none: it may hold a password, which would be repeated.
pub(super) fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        _ if text.contains(['/', '@']) => {
            Err("write HOST:PORT alone, like 127.0.0.1:27017, and no connection string".to_owned())
        }
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, like 127.0.0.1:27017".to_owned()),
    }
}
