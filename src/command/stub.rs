//! The hidden `stub` subcommand: a stub for as long as standard input lasts. See [`crate::stub::process`] for who starts
//! it and why. And what `overdrive run --stub` does before it.

use std::env;
use std::io::{BufRead, Write, stdin, stdout};
use std::thread;

use anyhow::{Context, Result};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::plan::Plan;
use crate::stub::process::{Report, Request, StubProcess};
use crate::stub::{NOTE, Role, Script, Stub};

/// Makes a plan one for a stub, and returns what people must know of that.
pub fn adapt(plan: &mut Plan, script: &Script) -> Vec<String> {
    let script = script.to_string();
    let does = if script.is_empty() { "at once".to_owned() } else { format!("by its script ({script})") };
    let mut notes = vec![format!("{NOTE}{does}")];
    notes.extend(plan.overloads.drain(..).map(|overload| {
        format!(
            "overload '{}' was left out: {} is done to servers, and a stub is none; its script can have it fail or stall",
            overload.name,
            overload.fault.kind()
        )
    }));
    notes.extend(
        plan.staleness
            .take()
            .map(|_| "the staleness probe is off: a stub stores nothing that could be read late".to_owned()),
    );
    notes
}

/// Starts the stub for a plan.
///
/// # Errors
/// When it does not start.
pub async fn start(script: Script, plan: &Plan) -> Result<StubProcess> {
    let program = env::current_exe()
        .context("cannot tell where this program's file is, which a stub is started from")?;
    // A primary has sessions, and with them all kinds of operation.
    StubProcess::start(&program, Script { role: Role::Primary, seed: plan.seed, ..script }).await
}

/// Reads a script from standard input, answers as it says, and ends at end of file.
///
/// # Errors
/// When there is no script, or no port.
pub async fn run() -> Result<()> {
    let (sender, mut lines) = unbounded_channel();
    // A thread that may well never end, which a task of the runtime must not be.
    thread::spawn(move || hear(&sender));
    let script = lines.recv().await.unwrap_or_default();
    let script: Script = serde_json::from_str(&script).context(
        "standard input has no script: this subcommand is for overdrive's own use, see `overdrive run --stub`",
    )?;
    let stub = match Stub::waiting(script).await {
        Ok(stub) => stub,
        Err(error) => {
            report(&Report::Failed { message: format!("no port for the stub: {error}") });
            return Ok(());
        }
    };
    report(&Report::Started { uri: stub.uri() });
    while let Some(line) = lines.recv().await {
        report(&match serde_json::from_str(&line) {
            Ok(Request::Begin) => {
                stub.begin();
                Report::Begun
            }
            Ok(Request::Count) => Report::Counted(stub.counters()),
            Err(error) => Report::Failed { message: format!("no request: {error}") },
        });
    }
    Ok(())
}

/// Passes on lines until standard input ends.
fn hear(lines: &UnboundedSender<String>) {
    for line in stdin().lock().lines().map_while(Result::ok) {
        if lines.send(line).is_err() {
            return;
        }
    }
}

/// Says it if there is still somebody to hear it.
fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).ok();
    }
}
