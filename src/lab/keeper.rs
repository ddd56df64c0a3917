//! This process's side of the keeper: starts it, tells it what to run, hears what becomes of it. The other side is
//! [`crate::command::keeper`]; they speak JSON lines: an [`Order`] and then [`Request`]s down, [`Report`]s up.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The hidden subcommand's name.
pub const SUBCOMMAND: &str = "keeper";

/// How long a keeper may take to end: its own grace for the mongods, and time to remove what they wrote.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// What the keeper is to start; it keeps that until its standard input ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The server's executable.
    pub mongod: PathBuf,
    /// How many to run.
    pub members: u8,
    /// The replica set they will belong to.
    pub replica_set: String,
}

/// What may be asked of a keeper that has carried out its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Start the member with this index again, on its old port with its old data; it is killed first if it runs.
    Restart(usize),
}

/// What the keeper says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// All members accept connections.
    Started {
        /// Where their data and logs are.
        directory: PathBuf,
        /// In order.
        members: Vec<Member>,
    },
    /// A member has ended that nobody asked to.
    Died(Death),
    /// A member runs again, as another process.
    Restarted(Member),
    /// What was ordered or requested last did not succeed.
    Failed {
        /// Why.
        message: String,
    },
}

/// One mongod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Where it listens; on loopback.
    pub address: SocketAddr,
    /// Its process id.
    pub pid: u32,
}

/// A member's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Death {
    /// Who.
    pub member: Member,
    /// How, as the system puts it.
    pub status: String,
    /// The last errors in its log, or its last lines.
    pub log: String,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, status, log } = self;
        write!(f, "the mongod at {} (process {}) died: {status}", member.address, member.pid)?;
        if log.is_empty() { Ok(()) } else { write!(f, "; its log says:\n{log}") }
    }
}

/// A running keeper.
#[derive(Debug)]
pub struct Keeper {
    /// None once somebody waits for it.
    child: Option<Child>,
    /// One question at a time.
    line: tokio::sync::Mutex<Line>,
    directory: PathBuf,
    members: Mutex<Vec<Member>>,
    deaths: Arc<Mutex<Vec<Death>>>,
}

/// The way to a keeper and back.
#[derive(Debug)]
struct Line {
    /// The pipe whose end means the end; requests go through it until then.
    lifeline: Option<ChildStdin>,
    /// Everything it says that is no death: one answer per line sent.
    answers: UnboundedReceiver<Report>,
    /// Answers to questions whose askers did not wait.
    owed: usize,
}

impl Keeper {
    /// Starts `program` as a keeper and returns when the mongods accept connections.
    pub async fn start(program: &Path, order: &Order) -> Result<Self> {
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C in the terminal is for us, and the members must outlive our last operation.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start the lab's keeper {}", program.display()))?;
        let (lifeline, reports) = (child.stdin.take(), child.stdout.take());
        let reports = reports.context("the lab's keeper has no output")?;
        let deaths = Arc::default();
        let (answer, answers) = unbounded_channel();
        let mut keeper = Self {
            child: Some(child),
            line: tokio::sync::Mutex::new(Line { lifeline, answers, owed: 0 }),
            directory: PathBuf::new(),
            members: Mutex::default(),
            deaths: Arc::clone(&deaths),
        };
        thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || listen(reports, &answer, &deaths))
            .context("cannot start the thread that listens to the lab's keeper")?;
        match keeper.ask(order).await.context("cannot start the lab")? {
            Report::Started { directory, members } => {
                keeper.directory = directory;
                keeper.members = Mutex::new(members);
                Ok(keeper)
            }
            Report::Failed { message } => bail!("cannot start the lab: {message}"),
            other => bail!("cannot start the lab: its keeper answers {other:?}"),
        }
    }

    /// Starts a member again, and returns when it accepts connections.
    pub async fn restart(&self, index: usize) -> Result<()> {
        let member = self.members().get(index).copied();
        let member = member.with_context(|| format!("the lab has no member {index}"))?;
        let address = member.address;
        match self.ask(&Request::Restart(index)).await.with_context(|| format!("cannot restart {address}"))? {
            Report::Restarted(member) => {
                let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
                members.iter_mut().filter(|known| known.address == address).for_each(|known| *known = member);
                Ok(())
            }
            Report::Failed { message } => bail!("cannot restart the mongod at {address}: {message}"),
            other => bail!("cannot restart the mongod at {address}: the lab's keeper answers {other:?}"),
        }
    }

    /// The mongods.
    pub fn members(&self) -> Vec<Member> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The keeper's own process id; 0 once it is being stopped.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Where the mongods write.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Who has died so far.
    pub fn deaths(&self) -> Vec<Death> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the keeper stop the mongods, and waits until it has ended.
    pub async fn stop(mut self) -> Result<()> {
        self.line.get_mut().lifeline = None;
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = child.id();
        // Not the runtime's own blocking thread: a runtime does not end before those do, and whoever stops waiting
        // here wants to leave at once.
        let (ended, waiting) = oneshot::channel();
        thread::Builder::new().spawn(move || ended.send(child.wait()))?;
        let status = match tokio::time::timeout(STOP_LIMIT, waiting).await {
            Ok(status) => status?.context("cannot wait for the lab's keeper")?,
            Err(_) => bail!("the lab's keeper (process {pid}) has not ended within {STOP_LIMIT:?}"),
        };
        if !status.success() {
            bail!(
                "the lab's keeper (process {pid}) ended badly ({status}): look for mongods and for {}",
                self.directory.display()
            );
        }
        Ok(())
    }

    /// Says a line and waits for the answer.
    async fn ask(&self, what: &impl Serialize) -> Result<Report> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        let line = &mut *self.line.lock().await;
        let pipe = line.lifeline.as_mut().context("the lab's keeper is being stopped")?;
        // A line is far smaller than a pipe's buffer, so this does not block.
        pipe.write_all(&text).context("the lab's keeper has ended")?;
        line.owed += 1;
        loop {
            let answer = line.answers.recv().await.context("the lab's keeper has ended without a word")?;
            line.owed -= 1;
            if line.owed == 0 {
                return Ok(answer);
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.line.get_mut().lifeline = None;
        if let Some(mut child) = self.child.take() {
            // Only so that it is no zombie while we live: it ends without us, and without this thread.
            thread::Builder::new().spawn(move || child.wait()).ok();
        }
    }
}

/// Sorts what the keeper says until it ends.
fn listen(reports: ChildStdout, answer: &UnboundedSender<Report>, deaths: &Mutex<Vec<Death>>) {
    for line in BufReader::new(reports).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Report::Died(death)) => deaths.lock().unwrap_or_else(PoisonError::into_inner).push(death),
            // Nobody waits any more when starting was cut short; the keeper is about to end.
            Ok(report) => drop(answer.send(report)),
            Err(_) => {}
        }
    }
}
