//! A stub in a process of its own: this side starts it, tells it when its script begins, and asks what it has counted.
//! The other side is [`crate::command::stub`]. They speak JSON lines: a [`Script`] and then [`Request`]s down, one
//! [`Report`] for each up. The child ends when its standard input does, so however this process ends.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::{Script, StubCounters};

/// The hidden subcommand's name.
pub const SUBCOMMAND: &str = "stub";

/// No answer takes longer: each is the matter of a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// What may be asked of a stub that has been given its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The script begins, or begins again.
    Begin,
    /// What was it asked since?
    Count,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It accepts connections, and answers everything at once until its script begins.
    Started {
        /// The connection string for it.
        uri: String,
    },
    /// The script has begun.
    Begun,
    /// What it was asked since then.
    Counted(StubCounters),
    /// It could not do what it was told to.
    Failed {
        /// Why.
        message: String,
    },
}

/// A stub in another process. Dropping it ends it.
#[derive(Debug)]
pub struct StubProcess {
    /// Killed with this: it has nothing to tidy up.
    child: Child,
    /// One question at a time.
    line: Mutex<Line>,
    script: Script,
    uri: String,
}

/// The way there and back.
#[derive(Debug)]
struct Line {
    down: ChildStdin,
    up: Lines<BufReader<ChildStdout>>,
}

impl StubProcess {
    /// Starts `program`, which has the hidden subcommand, and returns when it accepts connections.
    ///
    /// # Errors
    /// When the program cannot be started, or finds no port.
    pub async fn start(program: &Path, script: Script) -> Result<Self> {
        let mut child = Command::new(program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C in the terminal is for us, and the last operations still want their answers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start a stub with {}", program.display()))?;
        let (down, up) = (child.stdin.take(), child.stdout.take());
        let (down, up) = down.zip(up).context("the stub has no pipes")?;
        let mut line = Line { down, up: BufReader::new(up).lines() };
        match line.ask(&script).await.context("cannot start the stub")? {
            Report::Started { uri } => Ok(Self { child, line: Mutex::new(line), script, uri }),
            other => bail!("cannot start the stub: it answers {other:?}"),
        }
    }

    /// The connection string for it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// What it does.
    pub const fn script(&self) -> &Script {
        &self.script
    }

    /// Its process id; `None` when it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Its script begins, or begins again, and so does its count. Until then it answers everything at once.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn begin(&self) -> Result<()> {
        match self.line.lock().await.ask(&Request::Begin).await.context("the stub's script cannot begin")? {
            Report::Begun => Ok(()),
            other => bail!("the stub's script cannot begin: it answers {other:?}"),
        }
    }

    /// What it was asked since its script began.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn counters(&self) -> Result<StubCounters> {
        match self.line.lock().await.ask(&Request::Count).await.context("the stub's count is lost")? {
            Report::Counted(counters) => Ok(counters),
            other => bail!("the stub's count is lost: it answers {other:?}"),
        }
    }
}

impl Line {
    /// Says a line and waits for the answer.
    async fn ask(&mut self, what: &impl Serialize) -> Result<Report> {
        let mut text = serde_json::to_vec(what)?;
        text.push(b'\n');
        let answer = async {
            self.down.write_all(&text).await.context("it has ended before the run")?;
            self.up.next_line().await?.context("it has ended without a word")
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let answer = answer.with_context(|| format!("it has not answered within {PATIENCE:?}"))??;
        match serde_json::from_str(&answer).with_context(|| format!("it answers '{answer}'"))? {
            Report::Failed { message } => bail!(message),
            report => Ok(report),
        }
    }
}
