//! One mongod, as a child of the keeper. Blocking code.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};

use super::keeper::{Death, Member, Order};
use super::log::Log;

/// A mongod that is not up by then never will be.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How mongod exits when it cannot have its port.
const PORT_TAKEN: i32 = 48;
/// How often to look whether something has come about.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// A mongod that was started.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) member: Member,
    child: Child,
    home: PathBuf,
    pub(super) log: Log,
    /// Its death is no news any more.
    mourned: bool,
}

/// Why members did not start.
#[derive(Debug)]
pub enum Refused {
    /// Somebody else has one of their ports; others will do.
    PortTaken,
    /// Anything that trying again does not cure.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Refused {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl Running {
    pub(super) fn start(order: &Order, address: SocketAddr, home: PathBuf) -> Result<Self> {
        fs::create_dir(&home).with_context(|| format!("cannot create {}", home.display()))?;
        let log = Log::at(home.with_extension("log"));
        let child = spawn(order, address, &home, &log)?;
        let member = Member { address, pid: child.id() };
        Ok(Self { member, child, home, log, mourned: false })
    }

    /// Starts it again, as it was; does not wait until it is up.
    pub(super) fn restart(&mut self, order: &Order) -> Result<()> {
        self.kill();
        // What it said in its former life is not about this one.
        self.log.clear().with_context(|| format!("cannot write {}", self.log.path().display()))?;
        self.child = spawn(order, self.member.address, &self.home, &self.log)?;
        self.member.pid = self.child.id();
        self.mourned = false;
        Ok(())
    }

    pub(super) fn wait_until_up(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), Refused> {
        let deadline = Instant::now() + START_LIMIT;
        while !self.is_up() {
            if let Some(status) = self.ended() {
                let taken = status.code() == Some(PORT_TAKEN);
                return Err(if taken {
                    Refused::PortTaken
                } else {
                    anyhow!("{}", self.death(status)).into()
                });
            }
            if cancelled() {
                return Err(anyhow!("starting was cut short").into());
            }
            if Instant::now() > deadline {
                let (address, log) = (self.member.address, self.log.last_words());
                let error = format!("the mongod at {address} accepts no connections after {START_LIMIT:?}");
                return Err(anyhow!("{error}; its log says:\n{log}").into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// By its own word: a connection could be to somebody else who took the port first.
    fn is_up(&self) -> bool {
        self.log.contains("Waiting for connections")
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its end, if that is news.
    pub(super) fn news(&mut self) -> Option<Death> {
        let status = self.ended().filter(|_| !self.mourned)?;
        self.mourned = true;
        Some(self.death(status))
    }

    fn death(&self, status: ExitStatus) -> Death {
        Death { member: self.member, status: status.to_string(), log: self.log.last_words() }
    }

    pub(super) fn kill(&mut self) {
        // Both fail only for a child that has ended and been waited for.
        self.child.kill().ok();
        self.child.wait().ok();
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        // Until it has been waited for, its process id is nobody else's.
        if self.ended().is_none() {
            kill_process(Pid::from_child(&self.child), signal).ok();
        }
    }
}

fn spawn(order: &Order, address: SocketAddr, home: &Path, log: &Log) -> Result<Child> {
    let output = log.create().with_context(|| format!("cannot write {}", log.path().display()))?;
    Command::new(&order.mongod)
        .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--port", &address.port().to_string()])
        .args(["--replSet", &order.replica_set, "--oplogSize", "256", "--wiredTigerCacheSizeGB", "0.25"])
        // Failpoints and the like.
        .args(["--setParameter", "enableTestCommands=1"])
        // An idle member is to be idle: what it does must be what the load made it do.
        .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
        .args(["--setParameter", "ttlMonitorEnabled=false"])
        // Overload means slow operations; a log line for each would slow them further.
        .args(["--quiet", "--slowms", "1000000", "--slowOpSampleRate", "0"])
        .arg("--dbpath")
        .arg(home)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot start {}", order.mongod.display()))
}
