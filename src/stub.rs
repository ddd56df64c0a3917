//! A server that does nothing but answer, as a script says: for measuring what measures. It speaks the protocol to any
//! driver, as a standalone server or as a replica set of one, takes exactly as long as it is told, and knows afterwards
//! what it was asked.

mod answers;
mod script;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::timer::Timer;
use crate::wire::reply::{Form, reply};
use crate::wire::request::{Command, flags_of};
use crate::wire::{Header, MORE_TO_COME, MessageReader};
pub use script::{Failures, Pick, Role, Script, Service, Stall};
use script::{Performance, Turn};

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

/// What a stub was asked since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// What the connections share.
#[derive(Debug)]
struct Stage {
    address: SocketAddr,
    script: Script,
    performance: Mutex<Performance>,
    started: Instant,
    next_id: AtomicI32,
    connections: AtomicU64,
    served: AtomicU64,
    failed: AtomicU64,
    aside: AtomicU64,
}

impl Stub {
    /// Starts one on any free port of the loopback interface. The script's times count from now.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let role = script.role;
        let stage = Arc::new(Stage {
            address,
            performance: Mutex::new(Performance::new(&script)),
            script,
            started: Instant::now(),
            next_id: AtomicI32::new(1),
            connections: AtomicU64::new(0),
            served: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            aside: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stage)));
        Ok(Self { address, role, stage, accepting })
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
        let document = if answers::is_aside(&command) {
            self.aside.fetch_add(1, Ordering::Relaxed);
            answers::aside(&command, self.address, self.script.role)
        } else {
            let turn = {
                let mut performance = self.performance.lock().unwrap_or_else(PoisonError::into_inner);
                performance.next(&self.script, self.started.elapsed())
            };
            match turn {
                Turn::Serve { until } => {
                    timer.sleep(until.saturating_sub(self.started.elapsed())).await?;
                    self.served.fetch_add(1, Ordering::Relaxed);
                    answers::success(&command)
                }
                Turn::Fail => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    answers::failure(self.script.failures.as_ref())
                }
            }
        };
        reply(form, self.next_id.fetch_add(1, Ordering::Relaxed), header.request_id, &document)
    }
}
