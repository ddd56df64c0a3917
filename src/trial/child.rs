//! An engine in another process: started, fed, listened to, and not trusted. It takes the same part as
//! [`crate::engine::run`], so that whoever runs a trial need not know which of the two makes the load.

mod check;
mod lines;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use self::check::{Check, greeted};
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

/// How long a child may take to get ready, however alive it says it is.
const CONNECTING: Duration = Duration::from_secs(120);

/// How much of a child's standard error is kept for the message about its end, and how much of that is the beginning.
const LAST_WORDS: usize = 2000;
const FIRST_WORDS: usize = 500;

/// The longest message about a child's end, in characters.
const LONGEST_ERROR: usize = 2500;

/// The largest number that a child may say: of an interval, no sum in nanoseconds comes to more (2^53).
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The longest text, histograms in base64 among them.
const LONGEST_TEXT: usize = 1 << 20;

/// The most items of a list.
const MOST_ITEMS: usize = 100_000;

/// How to start a driver's child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<PathBuf>,
}

/// What a driver's child says first, to somebody who wants nothing else of it.
///
/// # Errors
/// When it does not start, says something else, or is not the driver that was asked for.
pub async fn greet(launch: &Launch, driver: &Driver) -> anyhow::Result<()> {
    let greeting = async {
        let mut child = start(launch)?;
        let _group = Group(child.id());
        let mut lines = Lines::new(child.stdout.take().context("it has no pipes")?);
        let line = lines.next().await?.context("it says nothing")?;
        match read(&line)? {
            Message::Hello { protocol, driver: name, version, sources } => {
                greeted(driver, (protocol, &name, &version, &sources)).map_err(|why| anyhow!(why))
            }
            other => bail!("it says `{}` before it says what it is", other.name()),
        }
    };
    let greeted =
        tokio::time::timeout(SILENCE, greeting).await.unwrap_or_else(|_| Err(anyhow!("it says nothing")));
    greeted.with_context(|| format!("driver {driver}"))
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
    let mut group = Group(child.id());
    let said = Arc::<Mutex<Vec<u8>>>::default();
    let hearing = child.stderr.take().map(|stderr| tokio::spawn(last_words(stderr, Arc::clone(&said))));
    let hearing = hearing.map(AbortOnDropHandle::new);
    let led = lead(&mut child, &driver, &plan, &uri, control, &reports, SILENCE).await;
    let Err(error) = led else {
        // It has ended by itself.
        group.0 = None;
        return Ok(());
    };
    // It may have something to say about that; one that hangs has not, until it and all that it has started are dead.
    drop(group);
    if let Some(hearing) = hearing {
        let _ = tokio::time::timeout(Duration::from_secs(1), hearing).await;
    }
    let said = String::from_utf8_lossy(&said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
    let said = if said.trim().is_empty() { String::new() } else { format!("; it said: {}", said.trim()) };
    Err(anyhow!("driver {driver}: {}", plain(&uri.redact(&format!("{error:#}{said}")))))
}

/// A child's process group, which is killed when this is dropped: whatever the child has started ends with it.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(leader) = leader {
            // A group that is gone needs no killing.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// A text from elsewhere as a message can hold it.
fn plain(text: &str) -> String {
    let shown: String =
        text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
    match shown.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{} …", &shown[..end]),
        None => shown,
    }
}

fn start(launch: &Launch) -> anyhow::Result<Child> {
    Command::new(&launch.program)
        .args(&launch.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The connection string goes over standard input alone.
        .env_remove("OVERDRIVE_URI")
        // A group of its own: Ctrl-C in the terminal is for us, and the last operations are still to end. And the group can
        // be killed.
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
    let (begun, mut heard) = (Instant::now(), Instant::now());
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            asked = control.recv() => match asked {
                Some(Control::Go { first, spool }) => {
                    say(&mut down, &Request::Go { first, spool }, silence).await?;
                    check.gone();
                    continue;
                }
                Some(Control::Stop) => {
                    check.stopped();
                    say(&mut down, &Request::Stop {}, silence).await?;
                    continue;
                }
                None => bail!("nobody listens to it any more"),
            },
            () = tokio::time::sleep_until((heard + silence).into()) => {
                bail!("it has said nothing for {} s", silence.as_secs())
            }
        };
        let Some(line) = line else {
            let ended = tokio::time::timeout(FAREWELL, child.wait()).await;
            match ended {
                Ok(Ok(status)) => bail!("its process ended too early ({status})"),
                _ => bail!("it closed its output too early"),
            }
        };
        let message = read(&line)?;
        check.admit(&message).map_err(|why| anyhow!(why))?;
        // Under load it is not enough to be alive.
        if !(check.is_under_load() && matches!(message, Message::Alive {})) {
            heard = Instant::now();
        }
        let report = match message {
            Message::Hello { .. } => {
                // Only now: what it is was not known before.
                let start = Start::new(plan, uri.expose());
                say(&mut down, &Request::Start(Box::new(start)), silence).await?;
                Report::Hello(driver.clone())
            }
            Message::Ready {} => Report::Ready,
            Message::Snapshot(mut snapshot) => {
                snapshot
                    .errors
                    .iter_mut()
                    .for_each(|error| error.example = plain(&uri.redact(&error.example)));
                snapshot.events.iter_mut().for_each(|event| event.detail = plain(&uri.redact(&event.detail)));
                Report::Snapshot(snapshot)
            }
            Message::Closed { next } => Report::Closed(next),
            Message::Done(totals) => {
                drop(down);
                if tokio::time::timeout(FAREWELL, child.wait()).await.is_err() {
                    // It has said all that it had to say.
                    let _ = child.kill().await;
                }
                return reports.send(Report::Done(totals)).await.context("nobody listens to it any more");
            }
            Message::Failed { message } => bail!(message),
            Message::Alive {} => {
                ensure!(check.is_under_load() || begun.elapsed() < CONNECTING, "it does not get ready");
                continue;
            }
        };
        reports.send(report).await.context("nobody listens to it any more")?;
    }
}

/// Reads a line, if its numbers and texts are of a size that can be.
fn read(line: &str) -> anyhow::Result<Message> {
    let not_understood = |error: serde_json::Error| {
        anyhow!("it says what nobody understands ({}): {}", beginning(&error.to_string()), beginning(line))
    };
    let value: Value = serde_json::from_str(line).map_err(not_understood)?;
    ensure!(is_of_size(&value), "it says what cannot be: {}", beginning(line));
    serde_json::from_value(value).map_err(not_understood)
}

/// Sums over a whole trial must not overflow, nor its tables take all memory.
fn is_of_size(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= LARGEST),
        Value::String(text) => text.len() <= LONGEST_TEXT,
        Value::Array(items) => items.len() <= MOST_ITEMS && items.iter().all(is_of_size),
        Value::Object(fields) => fields.len() <= MOST_ITEMS && fields.values().all(is_of_size),
        Value::Null | Value::Bool(_) => true,
    }
}

async fn say(down: &mut ChildStdin, request: &Request, patience: Duration) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    // One that has ended is heard of next, with more than a broken pipe has to tell.
    let written = tokio::time::timeout(patience, down.write_all(&line)).await;
    written.map(drop).map_err(|_| anyhow!("it does not read what it is told"))
}

/// Keeps what the child says on standard error: its beginning, and the last of it, since one kind of report begins with
/// what matters and the other ends with it.
async fn last_words(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut more = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut more).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&more[..read]);
        let beyond = kept.len().saturating_sub(LAST_WORDS);
        if beyond > 0 {
            kept.drain(FIRST_WORDS..FIRST_WORDS + beyond);
        }
    }
}

/// As much of a line as a message can hold.
fn beginning(line: &str) -> String {
    line.chars().take(80).collect()
}
