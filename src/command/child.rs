//! The hidden `child` subcommand: one trial's load with the driver that this program is built with, for an overdrive that
//! may be built with another one. See [`crate::trial::protocol`] for what the two say to each other.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;
use std::{process, thread};

use anyhow::{Context, anyhow, ensure};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::uri::Uri;
use crate::control::Control;
use crate::engine;
use crate::plan::Driver;
use crate::snapshot::Report;
use crate::trial::protocol::{Message, PROTOCOL, Request, Start};

/// How often it says that it lives.
const ALIVE: Duration = Duration::from_secs(5);

/// Lines that may wait for the parent.
const WAITING: usize = 64;

/// Makes the load that standard input asks for, and ends with it.
///
/// # Errors
/// When standard output is gone.
pub async fn run() -> anyhow::Result<()> {
    let (say, said) = mpsc::channel(WAITING);
    let writer = thread::spawn(move || write(said));
    say.send(Report::Hello(Driver::built_in()).into()).await?;
    let (ask, mut asked) = mpsc::channel(WAITING);
    // Whatever hangs, a parent that is gone ends it.
    thread::spawn(move || hear(&ask));
    if let Err(error) = load(&mut asked, &say).await {
        say.send(Message::Failed { message: format!("{error:#}") }).await?;
    }
    drop(say);
    tokio::task::spawn_blocking(move || writer.join()).await?.map_err(|_| anyhow!("nobody can be told"))
}

async fn load(asked: &mut mpsc::Receiver<String>, say: &mpsc::Sender<Message>) -> anyhow::Result<()> {
    let start = read_start(&asked.recv().await.context("nobody says what to do")?)?;
    let uri = Uri::parse(&start.uri)?;
    let (control, requests) = mpsc::channel(4);
    let (sender, mut reports) = mpsc::channel(WAITING);
    let engine = engine::run(Arc::new(start.plan), uri, requests, sender);
    tokio::pin!(engine);
    let mut alive = tokio::time::interval(ALIVE);
    let mut ended = None;
    loop {
        tokio::select! {
            report = reports.recv() => match report {
                // That was said before there was an engine.
                Some(Report::Hello(_)) => {}
                Some(report) => say.send(report.into()).await?,
                None => return ended.unwrap_or_else(|| Err(anyhow!("the engine fell silent"))),
            },
            result = &mut engine, if ended.is_none() => ended = Some(result),
            // An engine that has ended is not asked for anything.
            line = asked.recv() => match serde_json::from_str(&line.context("nobody listens")?)? {
                Request::Go { first } => drop(control.send(Control::Go { first }).await),
                Request::Stop {} => drop(control.send(Control::Stop).await),
                Request::Start(_) => {}
            },
            _ = alive.tick() => say.send(Message::Alive {}).await?,
        }
    }
}

/// The version first: of another one, the rest may not be understood.
fn read_start(line: &str) -> anyhow::Result<Start> {
    let request: Value = serde_json::from_str(line).context(
        "standard input does not say what to do: this subcommand is for overdrive's own use, see `overdrive driver`",
    )?;
    let protocol = &request["start"]["protocol"];
    ensure!(
        *protocol == PROTOCOL,
        "it is told what to do in version {protocol} of the protocol and knows version {PROTOCOL}"
    );
    match serde_json::from_value(request)? {
        Request::Start(start) => Ok(*start),
        Request::Go { .. } | Request::Stop {} => Err(anyhow!("it is not told what to do")),
    }
}

/// Passes on lines until standard input ends, and then ends the process.
fn hear(ask: &mpsc::Sender<String>) {
    for line in stdin().lock().lines().map_while(Result::ok) {
        if ask.blocking_send(line).is_err() {
            break;
        }
    }
    process::exit(1)
}

/// Writes what is said until there is no more, or nobody to hear it.
fn write(mut said: mpsc::Receiver<Message>) {
    let mut out = stdout().lock();
    while let Some(message) = said.blocking_recv() {
        let Ok(mut line) = serde_json::to_vec(&message) else { return };
        line.push(b'\n');
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
