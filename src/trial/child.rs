//! An engine in another process: started, fed, listened to, and not trusted. It takes the same part as
//! [`crate::engine::run`], so that whoever runs a trial need not know which of the two makes the load.

mod check;
mod lines;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use self::check::Check;
use self::lines::Lines;
use super::protocol::{Message, Request, Start};
use crate::client::uri::Uri;
use crate::control::Control;
use crate::plan::{Driver, Plan};
use crate::snapshot::Report;

/// A child that has said nothing for so long is given up. It is meant to say something every 5 s.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a child that has said its last may take to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How much of a child's standard error is kept for the message about its end.
const LAST_WORDS: usize = 2000;

/// How to start a driver's child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<PathBuf>,
}

/// Runs one trial's load in a child, as [`crate::engine::run`] does in this process. Dropping it kills the child.
///
/// # Errors
/// When the child cannot be started, is another driver than was asked for, says what it should not, falls silent, or
/// fails; with what it said on standard error last.
pub async fn run(
    launch: Launch,
    driver: Driver,
    plan: Arc<Plan>,
    uri: Uri,
    control: mpsc::Receiver<Control>,
    reports: mpsc::Sender<Report>,
) -> anyhow::Result<()> {
    let mut child = start(&launch).with_context(|| format!("driver {driver} does not start"))?;
    let words = child.stderr.take().map(|stderr| AbortOnDropHandle::new(tokio::spawn(last_words(stderr))));
    let led = lead(&mut child, &driver, &plan, &uri, control, &reports, SILENCE).await;
    let Err(error) = led else { return Ok(()) };
    // It may have something to say about that; one that hangs has not, until it is dead.
    let _ = child.kill().await;
    let said = match words {
        Some(words) => words.await.unwrap_or_default(),
        None => String::new(),
    };
    let said = uri.redact(said.trim()).to_string();
    let said = if said.is_empty() { said } else { format!("; it said: {said}") };
    Err(anyhow!("driver {driver}: {error:#}{said}"))
}

fn start(launch: &Launch) -> anyhow::Result<Child> {
    Command::new(&launch.program)
        .args(&launch.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The connection string goes over standard input alone.
        .env_remove("OVERDRIVE_URI")
        // A group of its own: Ctrl-C in the terminal is for us, and the last operations are still to end.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", launch.program.display()))
}

async fn lead(
    child: &mut Child,
    driver: &Driver,
    plan: &Plan,
    uri: &Uri,
    mut control: mpsc::Receiver<Control>,
    reports: &mpsc::Sender<Report>,
    silence: Duration,
) -> anyhow::Result<()> {
    let (down, up) = (child.stdin.take(), child.stdout.take());
    let (mut down, up) = down.zip(up).context("it has no pipes")?;
    let mut lines = Lines::new(up);
    let mut check = Check::new(driver, plan);
    let mut heard = Instant::now();
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            asked = control.recv() => match asked {
                Some(Control::Go { first }) => {
                    check.gone();
                    say(&mut down, &Request::Go { first }).await?;
                    continue;
                }
                Some(Control::Stop) => {
                    say(&mut down, &Request::Stop {}).await?;
                    continue;
                }
                None => bail!("nobody listens to it any more"),
            },
            () = tokio::time::sleep_until((heard + silence).into()) => {
                bail!("it has said nothing for {} s", silence.as_secs())
            }
        };
        heard = Instant::now();
        let Some(line) = line else {
            let ended = tokio::time::timeout(FAREWELL, child.wait()).await;
            match ended {
                Ok(Ok(status)) => bail!("its process ended too early ({status})"),
                _ => bail!("it closed its output too early"),
            }
        };
        let message: Message = serde_json::from_str(&line)
            .map_err(|error| anyhow!("it says what nobody understands ({error}): {}", beginning(&line)))?;
        check.admit(&message).map_err(|why| anyhow!(why))?;
        let report = match message {
            Message::Hello { .. } => {
                // Only now: what it is was not known before.
                say(&mut down, &Request::Start(Box::new(Start::new(plan, uri.expose())))).await?;
                Report::Hello(driver.clone())
            }
            Message::Ready {} => Report::Ready,
            Message::Snapshot(snapshot) => Report::Snapshot(snapshot),
            Message::Closed { next } => Report::Closed(next),
            Message::Done(totals) => {
                drop(down);
                if tokio::time::timeout(FAREWELL, child.wait()).await.is_err() {
                    // It has said all that it had to say.
                    let _ = child.kill().await;
                }
                return reports.send(Report::Done(totals)).await.context("nobody listens to it any more");
            }
            Message::Failed { message } => bail!("{}", uri.redact(&message)),
            Message::Alive {} => continue,
        };
        reports.send(report).await.context("nobody listens to it any more")?;
    }
}

async fn say(down: &mut ChildStdin, request: &Request) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    // One that has ended is heard of next, with more than a broken pipe has to tell.
    let _ = down.write_all(&line).await;
    Ok(())
}

/// What the child says on standard error: the last of it, since a traceback ends with what matters.
async fn last_words(mut stderr: ChildStderr) -> String {
    let (mut kept, mut more) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stderr.read(&mut more).await {
        kept.extend_from_slice(&more[..read]);
        let beyond = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..beyond);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// As much of a line as a message can hold.
fn beginning(line: &str) -> String {
    line.chars().take(80).collect()
}
