//! The gate: a proxy in front of one server that sheds load as the newest servers do, so that any server can be seen
//! under real overload: rejections that depend on the load, and on nothing else.
//!
//! ```text
//!            ┌──────────────── one task a connection ────────────────┐
//!  client ──▶│ MessageReader ─▶ limiter ─▶ forwarded as it is ───────│──▶ server
//!            │                     └─▶ rejected: the gate's own reply│
//!  client ◀──│◀── between two of the server's messages ◀─┴───────────│◀── server
//!            └────────────────────────────────────────────────────────┘
//! ```
//!
//! What is let through is never changed, in either direction; a replica set whose members are known by their gates'
//! addresses works as if there were none. A connection holds 16 KiB each way, whatever passes through it, and whoever
//! does not read makes the other side wait.

mod connection;
mod limits;
mod rejection;
mod visitor;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::limiter::LimiterCounters;
use crate::plan::GateSettings;
use limits::Limits;

/// How long nobody is accepted after the system had no room for one more, which waiting may cure.
const NO_ROOM: Duration = Duration::from_millis(20);

/// A running gate. Dropping it closes it and every connection through it.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    limits: Arc<Limits>,
    accepting: JoinHandle<()>,
}

/// What a gate has seen since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateCounters {
    /// Messages.
    pub requests: LimiterCounters,
    /// New connections.
    pub connections: LimiterCounters,
    /// Connections accepted, limited or not.
    pub accepted: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Among the rejected requests, those that wanted no reply and got none.
    pub dropped: u64,
    /// Connections that were closed because somebody sent what is no message.
    pub malformed: u64,
}

impl fmt::Display for GateCounters {
    /// What there is to say for a person; limits that were never asked are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections, {} open", self.accepted, self.open)?;
        for (what, counters) in [("requests", &self.requests), ("connections", &self.connections)] {
            let LimiterCounters { attempted, successful, rejected, exempted, .. } = counters;
            if attempted + exempted > 0 {
                write!(
                    f,
                    "; {what}: {attempted} limited, of which {successful} passed and {rejected} were rejected"
                )?;
                write!(f, ", {exempted} exempt")?;
            }
        }
        Ok(())
    }
}

impl Gate {
    /// Opens a gate before the server at `upstream` (as `host:port`), which need not be up yet: whoever comes while it
    /// is not is let in and then closed. Port 0 takes any that is free.
    ///
    /// # Errors
    /// When the address to listen on is not to be had.
    pub async fn start(
        upstream: impl Into<Arc<str>>,
        listen: SocketAddr,
        settings: GateSettings,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let limits = Arc::new(Limits::new(settings)?);
        let accepting = tokio::spawn(accept(listener, upstream.into(), Arc::clone(&limits)));
        Ok(Self { address, limits, accepting })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does as these settings say from the next message on, on connections that are open, too. A limit that was set
    /// before keeps its tokens, as far as they fit; a new one starts full; without one, those who wait go on at once.
    ///
    /// # Errors
    /// When no rejection can be made of them: a label with a zero byte in it.
    pub fn configure(&self, settings: GateSettings) -> io::Result<()> {
        self.limits.configure(settings)
    }

    /// The settings in force.
    pub fn settings(&self) -> GateSettings {
        self.limits.settings()
    }

    /// What it has seen.
    pub fn counters(&self) -> GateCounters {
        self.limits.counters()
    }

    /// Closes it and every connection through it, and returns when they are closed.
    pub async fn stop(mut self) {
        self.accepting.abort();
        // The only way that it ends is having been aborted.
        (&mut self.accepting).await.ok();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts until it is aborted; its connections end with it.
async fn accept(listener: TcpListener, upstream: Arc<str>, limits: Arc<Limits>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let (upstream, limits) = (Arc::clone(&upstream), Arc::clone(&limits));
                    connections.spawn(async move { connection::serve(client, &upstream, &limits).await });
                }
                Err(_) => tokio::time::sleep(NO_ROOM).await,
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}
