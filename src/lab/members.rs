//! The mongods as the keeper has them: its own children, in one temporary directory. Blocking code; it runs in the
//! keeper only.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use super::keeper::{Death, Member, Order};
pub use super::process::Refused;
use super::process::{POLL, Running};

/// How the directories are named, so that people know whose they are.
pub const DIRECTORY_PREFIX: &str = "overdrive-lab-";

/// Somebody may take a port between our looking and mongod's binding it; not this often in a row.
const START_TRIES: usize = 5;
/// How long a mongod has to end by itself. Nothing in it is worth waiting for: the data goes away next.
const GRACE: Duration = Duration::from_millis(500);

/// Running mongods. Dropping them stops them and removes what they wrote.
#[derive(Debug)]
pub struct Members {
    running: Vec<Running>,
    directory: TempDir,
}

impl Members {
    /// Starts what is ordered, and returns when all accept connections. Gives up early when `cancelled` says so.
    pub fn start(order: &Order, cancelled: &dyn Fn() -> bool) -> Result<Self> {
        for _ in 0..START_TRIES {
            match Self::start_at(order, free_addresses(order.members)?, cancelled) {
                Ok(members) => return Ok(members),
                Err(Refused::PortTaken) => {}
                Err(Refused::Other(error)) => return Err(error),
            }
        }
        bail!(
            "free ports on 127.0.0.1 were taken by others before mongod could use them, {START_TRIES} times in a row"
        )
    }

    /// The same at these addresses.
    pub fn start_at(
        order: &Order,
        addresses: Vec<SocketAddr>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Refused> {
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir().with_context(|| {
            let place = std::env::temp_dir();
            format!("cannot make the lab's directory in {} (TMPDIR chooses another place)", place.display())
        })?;
        let mut members = Self { running: Vec::new(), directory };
        for (index, address) in addresses.into_iter().enumerate() {
            let home = members.directory.path().join(format!("member-{index}"));
            members.running.push(Running::start(order, address, home)?);
        }
        for running in &mut members.running {
            running.wait_until_up(cancelled)?;
        }
        Ok(members)
    }

    /// Starts one again, as it was.
    pub fn restart(&mut self, order: &Order, index: usize, cancelled: &dyn Fn() -> bool) -> Result<Member> {
        let running = self.running.get_mut(index).with_context(|| format!("there is no member {index}"))?;
        running.restart(order)?;
        match running.wait_until_up(cancelled) {
            Ok(()) => Ok(running.member),
            Err(Refused::PortTaken) => bail!("its port was taken by somebody else meanwhile"),
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Where they write.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// In order.
    pub fn list(&self) -> Vec<Member> {
        self.running.iter().map(|running| running.member).collect()
    }

    /// Who has died since the last look. Cuts logs that have grown too long.
    pub fn look_after(&mut self) -> Vec<Death> {
        for running in &self.running {
            running.log.cut();
        }
        self.running.iter_mut().filter_map(Running::news).collect()
    }

    /// Stops all and removes what they wrote.
    pub fn stop(mut self) -> Result<()> {
        self.end_all();
        let path = self.directory.path().to_owned();
        // Not `close`: it needs the directory by value, which a type with a Drop does not give away.
        fs::remove_dir_all(&path)
            .with_context(|| format!("cannot remove the lab's directory {}", path.display()))
    }

    fn end_all(&mut self) {
        for running in &mut self.running {
            running.signal(Signal::TERM);
            // A stopped process gets no other signal before it goes on.
            running.signal(Signal::CONT);
        }
        let deadline = Instant::now() + GRACE;
        for running in &mut self.running {
            while running.ended().is_none() && Instant::now() < deadline {
                thread::sleep(POLL);
            }
            running.kill();
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// Ports that nobody listens on now. All are held until the last is found, so that they differ.
fn free_addresses(count: u8) -> Result<Vec<SocketAddr>> {
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .context("cannot find free ports on 127.0.0.1 for the lab")?;
    held.iter().map(|listener| listener.local_addr().context("a bound port has no address")).collect()
}
