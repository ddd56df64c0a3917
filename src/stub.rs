//! A server that does nothing but answer, as a script says: for measuring what measures. It speaks the protocol to any
//! driver, as a standalone server or as a replica set of one, takes exactly as long as it is told, and knows afterwards
//! what it was asked.
//!
//! Measuring takes one in a process of its own, so that the generator's CPU time is its own: see [`process`].

pub(crate) mod answers;
mod language;
pub mod process;
mod script;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::timer::Timer;
use crate::wire::reply::{Form, reply};
use crate::wire::request::{Command, flags_of};
use crate::wire::{Header, MORE_TO_COME, MessageReader};
pub use language::ScriptError;
pub use script::{Failures, Pick, Role, Script, Service, Stall};
use script::{Performance, Turn};

/// How the note begins by which results tell what the server was; how it answers follows.
pub const NOTE: &str = "the server was a stub, which stores nothing and answers ";

/// How much of a request is looked at; its command's name and collection come first.
const LOOK: usize = 4 * 1024;

/// How long nobody is accepted after the system had no room for one more.
const NO_ROOM: Duration = Duration::from_millis(20);

/// A running stub. Dropping it ends it and its connections.
#[derive(Debug)]
pub struct Stub {
    address: SocketAddr,
    role: Role,
    stage: Arc<Stage>,
    accepting: JoinHandle<()>,
}

/// What a stub was asked since its script began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubCounters {
    /// Connections accepted.
    pub connections: u64,
    /// Commands that took their time and were answered, or wanted no answer.
    pub served: u64,
    /// Commands that failed because the script says so.
    pub failed: u64,
    /// Handshakes, monitoring and what else is answered at once, outside the script.
    pub aside: u64,
}

impl fmt::Display for StubCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} commands served, {} failed, {} aside", self.served, self.failed, self.aside)
    }
}

/// What the connections share.
#[derive(Debug)]
struct Stage {
    address: SocketAddr,
    script: Script,
    /// None until the script begins.
    performance: Mutex<Option<Performance>>,
    next_id: AtomicI32,
    connections: AtomicU64,
    served: AtomicU64,
    failed: AtomicU64,
    aside: AtomicU64,
}

impl Stub {
    /// Starts one on any free port of the loopback interface, whose script begins now.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(script: Script) -> io::Result<Self> {
        let stub = Self::waiting(script).await?;
        stub.begin();
        Ok(stub)
    }

    /// The same, but it answers everything at once, outside the script, until [`Self::begin`].
    ///
    /// # Errors
    /// When there is no port.
    pub async fn waiting(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let role = script.role;
        let stage = Arc::new(Stage {
            address,
            performance: Mutex::default(),
            script,
            next_id: AtomicI32::new(1),
            connections: AtomicU64::new(0),
            served: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            aside: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stage)));
        Ok(Self { address, role, stage, accepting })
    }

    /// The script begins, or begins again: its times and counts, and the counters, start from here.
    pub fn begin(&self) {
        let stage = &self.stage;
        let mut performance = stage.performance.lock().unwrap_or_else(PoisonError::into_inner);
        for counter in [&stage.connections, &stage.served, &stage.failed, &stage.aside] {
            counter.store(0, Ordering::Relaxed);
        }
        *performance = Some(Performance::new(&stage.script, Instant::now()));
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connection string for it.
    pub fn uri(&self) -> String {
        match self.role {
            Role::Standalone => format!("mongodb://{}/?directConnection=true", self.address),
            Role::Primary => format!("mongodb://{}/?replicaSet={}", self.address, answers::REPLICA_SET),
        }
    }

    /// What it was asked.
    pub fn counters(&self) -> StubCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StubCounters {
            connections: read(&self.stage.connections),
            served: read(&self.stage.served),
            failed: read(&self.stage.failed),
            aside: read(&self.stage.aside),
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts until it is aborted; its connections end with it.
async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    stage.connections.fetch_add(1, Ordering::Relaxed);
                    let stage = Arc::clone(&stage);
                    // Whatever ends a connection, ending it is all that there is to do.
                    connections.spawn(async move { drop(stage.serve(client).await) });
                }
                Err(_) => tokio::time::sleep(NO_ROOM).await,
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

impl Stage {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let timer = Timer::new()?;
        let (from_client, mut to_client) = client.split();
        let mut requests = MessageReader::new(from_client);
        while let Some(header) = requests.header().await? {
            let beginning = requests.beginning(&header, LOOK).await?;
            let wants_reply = flags_of(&header, beginning).is_none_or(|flags| flags & MORE_TO_COME == 0);
            let reply = self.answer(&header, beginning, &timer).await?;
            requests.skip(&header).await?;
            if wants_reply {
                to_client.write_all(&reply).await?;
            }
        }
        Ok(())
    }

    /// The reply to a request, when it is time for it.
    async fn answer(&self, header: &Header, beginning: &[u8], timer: &Timer) -> io::Result<Vec<u8>> {
        // It offers no compression, so what it does not understand is not its client's language.
        let form = Form::of_request(header, beginning).ok_or(ErrorKind::InvalidData)?;
        let command = Command::find(header, beginning).ok_or(ErrorKind::InvalidData)?;
        let turn = match answers::is_aside(&command) {
            true => None,
            false => {
                let mut performance = self.performance.lock().unwrap_or_else(PoisonError::into_inner);
                performance.as_mut().map(|performance| performance.next(&self.script, Instant::now()))
            }
        };
        let (counter, document) = match turn {
            None => (&self.aside, answers::success(&command, self.address, self.script.role)),
            Some(Turn::Serve { until }) => {
                timer.sleep(until.saturating_duration_since(Instant::now())).await?;
                (&self.served, answers::success(&command, self.address, self.script.role))
            }
            Some(Turn::Fail) => (&self.failed, answers::failure(self.script.failures.as_ref())),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        reply(form, self.next_id.fetch_add(1, Ordering::Relaxed), header.request_id, &document)
    }
}
