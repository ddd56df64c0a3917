//! The hidden `keeper` subcommand: runs mongods for as long as its standard input lasts. See [`crate::lab`] for who
//! starts it and why.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::lab::keeper::{Order, Report, Request};
use crate::lab::members::Members;

/// How often the members are looked after.
const LOOK: Duration = Duration::from_millis(200);

/// What the loop hears.
enum Event {
    Requested(Request),
    /// The parent's end of the pipe closed, or a signal came.
    Ended,
}

/// The way into the loop. The flag is for those who cannot wait for the loop's next turn.
#[derive(Clone)]
struct Inbox {
    events: Sender<Event>,
    ended: Arc<AtomicBool>,
}

impl Inbox {
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        // Nobody listens any more: the end has come already.
        self.events.send(Event::Ended).ok();
    }
}

/// Reads an order from standard input, carries it out, and undoes it at end of file.
pub async fn run() -> Result<()> {
    let (sender, events) = channel();
    let inbox = Inbox { events: sender, ended: Arc::default() };
    let ends = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    for kind in ends {
        let (mut signals, inbox) = (signal(kind).context("cannot listen to signals")?, inbox.clone());
        tokio::spawn(async move {
            signals.recv().await;
            inbox.end();
        });
    }
    tokio::task::spawn_blocking(move || keep(inbox, &events)).await?
}

fn keep(inbox: Inbox, events: &Receiver<Event>) -> Result<()> {
    let mut order = String::new();
    stdin().read_line(&mut order).context("cannot read the order from standard input")?;
    let order: Order = serde_json::from_str(&order).context(
        "standard input has no order: this subcommand is for overdrive's own use, see `overdrive lab`",
    )?;
    let ended = Arc::clone(&inbox.ended);
    let cancelled = || ended.load(Ordering::Relaxed);
    // A thread that may well never end, which a task of the runtime must not be.
    thread::spawn(move || hear(&inbox));

    let mut members = match Members::start(&order, &cancelled) {
        Ok(members) => members,
        Err(error) => {
            report(&Report::Failed { message: format!("{error:#}") });
            return Ok(());
        }
    };
    report(&Report::Started { directory: members.directory().to_owned(), members: members.list() });
    loop {
        match events.recv_timeout(LOOK) {
            Ok(Event::Requested(Request::Restart(index))) => {
                tell_of_deaths(&mut members);
                report(&match members.restart(&order, index, &cancelled) {
                    Ok(member) => Report::Restarted(member),
                    Err(error) => Report::Failed { message: format!("{error:#}") },
                });
            }
            Err(RecvTimeoutError::Timeout) => tell_of_deaths(&mut members),
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return members.stop(),
        }
    }
}

/// Passes on requests until standard input ends, and then that.
fn hear(inbox: &Inbox) {
    for line in stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(request) => drop(inbox.events.send(Event::Requested(request))),
            Err(error) => report(&Report::Failed { message: format!("no request: {error}") }),
        }
    }
    inbox.end();
}

fn tell_of_deaths(members: &mut Members) {
    for death in members.look_after() {
        report(&Report::Died(death));
    }
}

/// Says it if there is still somebody to hear it: the parent may be gone, which is no reason to leave members behind.
fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).ok();
    }
}
