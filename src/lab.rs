//! The lab: a real replica set on loopback that overdrive starts itself and that always ends with it.
//!
//! Who runs what: this process starts a **keeper** (a hidden subcommand of the same program), and the keeper starts
//! the mongods. The keeper's standard input is a pipe that only this process holds, so however this process ends
//! (normally, by a panic, by SIGKILL), the keeper reads end of file, stops the mongods and removes their directory.

pub mod keeper;
mod log;
pub mod members;
pub mod mongod;
mod process;
pub mod replica_set;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::gate::Gate;
use crate::plan::GateSettings;
pub use keeper::{Death, Member};
use keeper::{Keeper, Order};
pub use mongod::Mongod;

/// The replica set's name, as `replicaSet=` in a URI wants it.
pub const REPLICA_SET: &str = "overdrive";

/// How often somebody who waits for a member looks whether it still lives.
const LOOK: Duration = Duration::from_millis(200);

/// How progress is told: one finished sentence at a time.
pub type Say<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How many members it has unless told otherwise.
pub const SIZE: u8 = 3;

/// What kind of lab is wanted.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The server to run; without it, see [`mongod::find`].
    pub mongod: Option<PathBuf>,
    /// How many members; one is a replica set, too.
    pub members: u8,
    /// The program that has the hidden `keeper` subcommand.
    pub keeper: PathBuf,
    /// With these, a gate stands before each member, and drivers and the other members know it by its gate's address.
    pub gates: Option<GateSettings>,
}

impl LabOptions {
    /// Three members, any mongod that is found, kept by the program that is running.
    pub fn new() -> Result<Self> {
        let keeper = std::env::current_exe()
            .context("cannot tell where this program's file is, which the lab needs to start its keeper")?;
        Ok(Self::kept_by(keeper))
    }

    /// The same for programs that are not overdrive (tests, benches): they say where overdrive is.
    pub fn kept_by(keeper: impl Into<PathBuf>) -> Self {
        Self { mongod: None, members: SIZE, keeper: keeper.into(), gates: None }
    }
}

/// A running replica set. Dropping it ends it, a little later; [`Lab::stop`] also waits for that.
#[derive(Debug)]
pub struct Lab {
    keeper: Keeper,
    version: String,
    uri: String,
    gates: Vec<Gate>,
}

impl Lab {
    /// Starts a replica set and returns when it has a primary, all others are secondaries, and majority writes work.
    pub async fn start(options: &LabOptions, say: Say<'_>) -> Result<Self> {
        let mut lab = Self::launch(options, say).await?;
        let advertised = match &options.gates {
            Some(settings) => lab.open_gates(settings).await?,
            None => lab.addresses(),
        };
        lab.initiate(&advertised).await?;
        Ok(lab)
    }

    async fn open_gates(&mut self, settings: &GateSettings) -> Result<Vec<SocketAddr>> {
        for member in self.addresses() {
            let any_port = SocketAddr::new(member.ip(), 0);
            let gate = Gate::start(member.to_string(), any_port, settings.clone())
                .await
                .with_context(|| format!("cannot put a gate before {member}"))?;
            self.gates.push(gate);
        }
        Ok(self.gates.iter().map(Gate::address).collect())
    }

    /// The first half of [`Lab::start`]: the processes run, but are no replica set yet. Between the halves something
    /// can be put in front of the members.
    pub async fn launch(options: &LabOptions, say: Say<'_>) -> Result<Self> {
        let mongod = mongod::find(options.mongod.as_deref(), say).await?;
        say(&format!(
            "Starting a lab: a replica set of {} × mongod {} ({})",
            options.members,
            mongod.version,
            mongod.path.display()
        ));
        let order =
            Order { mongod: mongod.path, members: options.members, replica_set: REPLICA_SET.to_owned() };
        let keeper = Keeper::start(&options.keeper, &order).await?;
        Ok(Self { keeper, version: mongod.version, uri: String::new(), gates: Vec::new() })
    }

    /// The second half of [`Lab::start`]: makes a replica set of the members, which know each other, and are known to
    /// drivers, by `advertised` (in the members' order).
    pub async fn initiate(&mut self, advertised: &[SocketAddr]) -> Result<()> {
        let addresses = self.addresses();
        tokio::select! {
            initiated = replica_set::initiate(REPLICA_SET, &addresses, advertised) => initiated?,
            death = self.first_death() => bail!("the lab is no replica set: {death}"),
        }
        self.uri = replica_set::uri(REPLICA_SET, advertised);
        Ok(())
    }

    /// The connection string; without options beside the replica set's name. Empty until initiated.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The members in order; the first one has the highest priority, so it is the primary while it can be.
    pub fn members(&self) -> Vec<Member> {
        self.keeper.members()
    }

    /// The gates before the members, in their order; none unless asked for.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// By which addresses the members know each other, and drivers know them: their gates', or their own.
    pub fn advertised(&self) -> Vec<SocketAddr> {
        if self.gates.is_empty() { self.addresses() } else { self.gates.iter().map(Gate::address).collect() }
    }

    /// The place in the lab's order of the member that drivers know by this address.
    pub fn number_of(&self, advertised: &str) -> Option<usize> {
        self.advertised().iter().position(|address| address.to_string() == advertised)
    }

    /// Where the mongods listen; with gates, this is the way round them.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.members().iter().map(|member| member.address).collect()
    }

    /// The mongods' process ids, in the members' order.
    pub fn pids(&self) -> Vec<u32> {
        self.members().iter().map(|member| member.pid).collect()
    }

    /// The keeper's process id.
    pub fn keeper_pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// Where the members keep their data and logs; gone when the lab is.
    pub fn directory(&self) -> &Path {
        self.keeper.directory()
    }

    /// The server's version, as `6.0.5`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The members that have died so far, and the last words of each.
    pub fn deaths(&self) -> Vec<Death> {
        self.keeper.deaths()
    }

    /// Starts a member again that was killed (one that runs is killed first), under a new process id, with the data it
    /// had; returns when it accepts connections. It is a while until it is a secondary again.
    pub async fn restart(&self, index: usize) -> Result<()> {
        self.keeper.restart(index).await
    }

    /// Ends the lab, and returns when neither process nor file is left.
    pub async fn stop(self) -> Result<()> {
        self.keeper.stop().await
    }

    async fn first_death(&self) -> Death {
        loop {
            if let Some(death) = self.deaths().into_iter().next() {
                return death;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
