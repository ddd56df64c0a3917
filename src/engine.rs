//! One trial's load: connect, wait for Go, drive the operations through their phases, report.
//!
//! This is all that has to run where the driver is, be that this process or another: it knows nothing of labs, faults,
//! files or screens.

pub mod accord;
mod call;
mod dead_letters;
pub mod generator;
pub mod pacer;
pub mod parking;
pub mod schedule;
pub mod ticker;
pub mod worker;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::accord::Accord;
use self::dead_letters::LetterBox;
use self::parking::Parking;
use self::schedule::{Due, Schedule};
use self::ticker::{Observed, Ticker};
use self::worker::{Apart, Shared};
use crate::client::attempt::{self, Ledger};
use crate::client::errors::ErrorTable;
use crate::client::uri::Uri;
use crate::client::{connect, connect_observed, shut_down, wait_for_primary};
use crate::control::Control;
use crate::document::seed;
use crate::drain::Drain;
use crate::flow::restraint::Restraint;
use crate::operation::Workload;
use crate::operation::execute::Target;
use crate::plan::timeline::{nanos, segments};
use crate::plan::{Attempts, Driver, Model, Plan, WhenFull};
use crate::snapshot::Report;
use crate::stats::recorder::{Offered, Recorder};
use crate::units::Span;

/// Due operations that wait for a worker; the rest waits in the schedule.
const QUEUE: usize = 1024;

/// Why an operation was dropped that found no place in the queue.
const QUEUE_FULL: &str = "queue_full";

/// Workers that are there before the first operation is due.
const FIRST_WORKERS: usize = 16;

/// How long operations under way may take to end once a stop was asked for.
pub const DRAIN: Duration = Duration::from_secs(5);

/// Runs one trial's load. Everything it has to say goes through `reports`, ending with `Done`.
///
/// # Errors
/// When there is no server, or the load cannot be driven.
pub async fn run(
    plan: Arc<Plan>,
    uri: Uri,
    control: mpsc::Receiver<Control>,
    reports: mpsc::Sender<Report>,
) -> anyhow::Result<()> {
    run_with(Arc::new(Accord::of(1)), plan, uri, control, reports).await
}

/// The same for one of several engines in this process that make one load.
///
/// # Errors
/// As for [`run`]. The others wait for this one then, and have to be ended.
pub async fn run_with(
    accord: Arc<Accord>,
    plan: Arc<Plan>,
    uri: Uri,
    mut control: mpsc::Receiver<Control>,
    reports: mpsc::Sender<Report>,
) -> anyhow::Result<()> {
    let redact = uri.clone();
    let errors = ErrorTable::new(move |text| redact.redact(text));
    let ledger = Arc::new(Ledger::new(plan.attempts == Attempts::Full, errors));
    let client = connect_observed(&uri, &ledger, plan.attempts).await?;
    reports.send(Report::Hello(Driver::built_in())).await.context("nobody listens to the engine")?;

    // Over a client of its own: what it sends is no part of the load that is measured.
    let drain = match plan.flow.spool {
        Some(_) => Some(Drain::new(&connect(&uri).await?, &plan)),
        None => None,
    };
    // Or its first operations go elsewhere, or wait.
    wait_for_primary(&client, &uri).await?;
    reports.send(Report::Ready).await.context("nobody listens to the engine")?;
    let (first, spool) = match control.recv().await {
        Some(Control::Go { first, spool }) => (first, spool),
        Some(Control::Stop) | None => bail!("stopped before the load began"),
    };

    let place = Place { accord: &accord, first, spool: spool.zip(drain) };
    let totals = drive(&plan, &client, &ledger, place, &mut control, &reports).await?;
    shut_down(client).await;
    reports.send(Report::Done(totals)).await.context("nobody listens to the engine")
}

/// What an engine is told beside its plan.
struct Place<'a> {
    /// What it agrees on with the engines beside it.
    accord: &'a Accord,
    /// The number of its first operation.
    first: u64,
    /// Where operations are parked.
    spool: Option<(PathBuf, Drain)>,
}

async fn drive(
    plan: &Plan,
    client: &mongodb::Client,
    ledger: &Arc<Ledger>,
    Place { accord, first, spool }: Place<'_>,
    control: &mut mpsc::Receiver<Control>,
    reports: &mpsc::Sender<Report>,
) -> anyhow::Result<crate::snapshot::Totals> {
    let (workload, mix) = Workload::new(plan);
    let mix = Arc::new(mix);
    let segments = segments(plan);
    accord.meet().await;
    let go = accord.go();
    ledger.arm();
    let restraint = Restraint::new(&plan.flow, seed(plan), go).map(Arc::new);
    restraint.iter().for_each(|restraint| ledger.tell(restraint));
    let parking = match (&plan.flow.spool, spool) {
        (Some(settings), Some((path, drain))) => {
            let (parking, spooler) = Parking::open(&path, settings, plan)?;
            Some((parking, (spooler, drain)))
        }
        (Some(_), None) => bail!("nobody says where operations are to be parked"),
        (None, _) => None,
    };
    let (parking, spooling) = parking.unzip();
    let shared = Arc::new(Shared {
        parking,
        workload,
        mix: Arc::clone(&mix),
        segments: segments.clone(),
        target: Target::new(client, &plan.data, plan.timeout.max_time.map(Span::duration)),
        ledger: Arc::clone(ledger),
        timeout: plan.timeout,
        background: TaskTracker::new(),
        cut: CancellationToken::new(),
        restraint: restraint.clone(),
        backoff: plan.backoff,
        dead_letters: LetterBox::default(),
        seed: seed(plan),
        go,
        next: Apart(first.into()),
        idle: Apart::default(),
        is_open: matches!(plan.load.model, Model::Open { .. }),
        stopping: AtomicBool::new(false),
    });
    let drain = match spooling {
        Some((spooler, drain)) => {
            let theirs = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("spool".to_owned());
            thread.spawn(move || spooler.run(&theirs)).context("no thread for the spool")?;
            Some(drain)
        }
        None => None,
    };
    let crew = Crew { tasks: TaskTracker::new(), hands: Arc::default(), shared: Arc::clone(&shared) };
    // However this ends, its tasks end with it.
    let _dismissal = Dismissal(Arc::clone(&crew.hands), Arc::clone(&shared));
    let (offered, mut load) = start(plan, first, &crew)?;
    // Pool events alone tell the end of a call, and so of an attempt only where a call is one command.
    let full = plan.attempts == Attempts::Full;
    let told_apart = plan.operations.iter().map(|o| full || o.action.is_single_command()).collect();
    let recorder = Recorder::new(Arc::clone(ledger), mix, segments, offered, told_apart);
    let observed = Observed {
        shared: Arc::clone(&shared),
        tasks: crew.tasks.clone(),
        queue: load.queue().filter(|_| plan.flow.producer.is_some()),
    };
    let ticker = Ticker::start(recorder, observed, reports.clone())?;

    let measured_until_ns = nanos(plan.load.warmup.duration() + plan.load.duration.duration());
    let measured_until = go + Duration::from_nanos(measured_until_ns);
    let draining = drain.zip(load.queue()).map(|(drain, queue)| {
        AbortOnDropHandle::new(tokio::spawn(Arc::clone(&shared).drain(drain, queue, plan.flow.spool)))
    });
    let phases = async {
        wait_until(measured_until, control).await
            || cool_down(
                measured_until + plan.load.cooldown.duration(),
                || ticker.is_resolved(measured_until_ns),
                accord,
                control,
            )
            .await
    };
    let stopped = tokio::select! {
        stopped = phases => stopped,
        error = load.failed() => return Err(error),
    };
    accord.meet().await;

    drop(draining);
    load.close();
    shared.stopping.store(true, Ordering::Relaxed);
    accord.meet().await;
    ticker.freeze(accord.frozen_ns());
    let left = load.leftover(&shared).await?;
    reports.send(Report::Closed(left.next)).await.context("nobody listens to the engine")?;
    crew.tasks.close();
    shared.background.close();
    let all = async { tokio::join!(crew.tasks.wait(), shared.background.wait()) };
    let drained = tokio::time::timeout(DRAIN, all).await.is_ok();
    if !drained {
        // What the driver does about operations that are taken away is not the load's doing.
        ledger.disarm();
        crew.hands.dismiss();
        crew.tasks.wait().await;
        shared.cut.cancel();
        shared.background.wait().await;
    }
    if let Some(parking) = &shared.parking {
        parking.end().await;
    }
    ticker.finish(&left, stopped).await
}

/// The load's source: a pacer in the open model, nothing in the closed one.
enum Load {
    Open {
        queue: async_channel::Sender<Due>,
        left: async_channel::Receiver<Due>,
        pacer: AbortOnDropHandle<std::io::Result<u64>>,
    },
    Closed {
        workers: u32,
    },
}

/// The tasks that carry operations.
#[derive(Clone)]
struct Crew {
    tasks: TaskTracker,
    hands: Arc<Hands>,
    shared: Arc<Shared>,
}

/// How to take work away from those who do it. Handles, because a token that each task watches would be a lock that all
/// of them take whenever they are polled.
#[derive(Default)]
struct Hands(Mutex<Vec<AbortHandle>>);

impl Hands {
    fn add(&self, hand: AbortHandle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hand);
    }

    /// Takes all work away: it is dropped, and its traces note what was under way.
    fn dismiss(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(|hand| hand.abort());
    }
}

/// Dismisses when it is dropped.
struct Dismissal(Arc<Hands>, Arc<Shared>);

impl Drop for Dismissal {
    fn drop(&mut self) {
        self.0.dismiss();
        self.1.cut.cancel();
        self.1.parking.iter().for_each(Parking::leave);
    }
}

impl Crew {
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        let traced = attempt::traced(Arc::clone(&self.shared.ledger), self.shared.go, work);
        self.hands.add(self.tasks.spawn(traced).abort_handle());
    }

    fn spawn_server(&self, queue: &async_channel::Receiver<Due>) {
        self.spawn(Arc::clone(&self.shared).serve(queue.clone()));
    }
}

fn start(plan: &Plan, first: u64, crew: &Crew) -> anyhow::Result<(Offered, Load)> {
    match &plan.load.model {
        Model::Closed { workers } => {
            for _ in 0..*workers {
                crew.spawn(Arc::clone(&crew.shared).repeat());
            }
            Ok((Offered::Closed, Load::Closed { workers: *workers }))
        }
        Model::Open { stages, arrivals, max_in_flight } => {
            let schedule =
                Schedule::new(plan.load.warmup, stages, *arrivals, seed(plan)).numbered_from(first);
            let schedule = match plan.shard {
                Some(shard) => schedule.in_shard(shard),
                None => schedule,
            };
            let producer = plan.flow.producer;
            let (queue, due) = async_channel::bounded(match producer {
                Some(producer) => usize::try_from(producer.queue)?,
                None => QUEUE,
            });
            let ceiling = plan.flow.limit.map_or(u32::MAX, |limit| limit.ceiling);
            let most = usize::try_from((*max_in_flight).min(ceiling))?;
            for _ in 0..FIRST_WORKERS.min(most) {
                crew.spawn_server(&due);
            }
            let hands = crew.clone();
            let left = due.clone();
            let keeps_back = producer.is_some_and(|producer| producer.when_full != WhenFull::Block);
            let full = crew.shared.clone();
            let beyond = keeps_back.then_some(move |due| full.keep_back(due, QUEUE_FULL));
            let pacer = pacer::pace(schedule.clone(), queue.clone(), crew.shared.go, beyond, move || {
                let waiting = due.len().saturating_sub(hands.shared.idle.0.load(Ordering::Relaxed));
                let room = most.saturating_sub(hands.tasks.len());
                for _ in 0..waiting.min(room) {
                    hands.spawn_server(&due);
                }
            });
            let pacer = AbortOnDropHandle::new(tokio::spawn(pacer));
            let load = Load::Open { queue, left, pacer };
            let cursor = Box::new(schedule);
            Ok((Offered::Open { due: cursor.clone(), taken: cursor, first }, load))
        }
    }
}

/// Operations that are due and that no worker will take.
#[derive(Default)]
pub struct Leftover {
    /// Handed out, but not taken.
    taken_back: Vec<Due>,
    /// The number of the first one that was never handed out.
    next: u64,
}

impl Load {
    /// Waits for the pacer to fail, which it does not unless the system gives it no timer.
    async fn failed(&mut self) -> anyhow::Error {
        match self {
            Self::Open { pacer, .. } => match pacer.await {
                Ok(Err(error)) => anyhow!("the pacer has no timer: {error}"),
                Ok(Ok(_)) => anyhow!("the pacer ended before the load"),
                Err(died) => anyhow!("the pacer died: {died}"),
            },
            Self::Closed { .. } => std::future::pending().await,
        }
    }

    /// Where operations wait that were handed out.
    fn queue(&self) -> Option<async_channel::Receiver<Due>> {
        match self {
            Self::Open { left, .. } => Some(left.clone()),
            Self::Closed { .. } => None,
        }
    }

    /// Nothing more is handed out.
    fn close(&self) {
        if let Self::Open { queue, .. } = self {
            queue.close();
        }
    }

    /// What is left of a load that was closed. What was handed out and not taken is taken back.
    async fn leftover(self, shared: &Shared) -> anyhow::Result<Leftover> {
        let (left, pacer) = match self {
            Self::Open { left, pacer, .. } => (left, pacer),
            Self::Closed { workers } => {
                // A worker that has not seen the end yet takes one more.
                let next = shared.next.0.load(Ordering::Relaxed) + u64::from(workers);
                return Ok(Leftover { taken_back: Vec::new(), next });
            }
        };
        let next = pacer.await.context("the pacer died")?.context("the pacer has no timer")?;
        Ok(Leftover { taken_back: std::iter::from_fn(|| left.try_recv().ok()).collect(), next })
    }
}

/// Waits; true when a stop was asked for before.
async fn wait_until(end: Instant, control: &mut mpsc::Receiver<Control>) -> bool {
    let timer = tokio::time::sleep_until(end.into());
    tokio::pin!(timer);
    loop {
        tokio::select! {
            () = &mut timer => return false,
            asked = control.recv() => match asked {
                Some(Control::Go { .. }) => {}
                Some(Control::Stop) | None => return true,
            }
        }
    }
}

/// Keeps the load on until every measured operation is resolved: ending it at once would let the last retries succeed
/// in a silence that the first ones never met. So would it be for those of the other engines.
async fn cool_down(
    end: Instant,
    is_resolved: impl Fn() -> bool,
    accord: &Accord,
    control: &mut mpsc::Receiver<Control>,
) -> bool {
    let mut told = false;
    while Instant::now() < end {
        if !told && is_resolved() {
            accord.resolve();
            told = true;
        }
        if accord.is_resolved() {
            break;
        }
        if wait_until(Instant::now() + Duration::from_millis(50), control).await {
            return true;
        }
    }
    false
}
