//! The recorder's clock: gathers records ten times a second and cuts snapshots at whole seconds, at segments' borders, and
//! where the load ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::Leftover;
use super::generator::Meter;
use super::schedule::Due;
use super::worker::Shared;
use crate::plan::timeline::nanos;
use crate::snapshot::{Report, Totals};
use crate::stats::recorder::{Application, Recorder};

/// The length of an interval, when no segment ends in it.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often records are gathered.
const GATHER: Duration = Duration::from_millis(100);

/// What is looked at when a snapshot is made.
#[derive(Clone)]
pub struct Observed {
    /// What workers share.
    pub shared: Arc<Shared>,
    /// The tasks that carry operations.
    pub tasks: TaskTracker,
    /// The producer's queue, where the plan has one.
    pub queue: Option<async_channel::Receiver<Due>>,
}

impl Observed {
    /// How the application stands, and what has happened to it since the last look.
    fn application(&self) -> Application {
        let (mut flow, mut events) =
            self.shared.restraint.as_ref().map(|restraint| restraint.report()).unwrap_or_default();
        if let Some(parking) = &self.shared.parking {
            let (backlog, more) = parking.report(nanos(self.shared.go.elapsed()));
            flow.spooled = Some(backlog);
            events.extend(more);
        }
        flow.queued = self.queue.as_ref().map(|queue| queue.len() as u64);
        Application { flow, events, dead_letters: self.shared.dead_letters.take() }
    }
}

/// The thread that owns the recorder.
pub struct Ticker {
    thread: Option<JoinHandle<(Recorder, Meter)>>,
    signals: Arc<Signals>,
    observed: Observed,
    reports: mpsc::Sender<Report>,
}

struct Signals {
    /// Measured operations without an outcome, as of the last gathering.
    measured_open: AtomicU64,
    /// The time up to which that gathering knows all, in nanoseconds since Go.
    known_until: AtomicU64,
    /// Nothing is due after this, in nanoseconds since Go.
    frozen_at: AtomicU64,
    /// The thread is to end.
    end: AtomicBool,
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        recorder: Recorder,
        observed: Observed,
        reports: mpsc::Sender<Report>,
    ) -> anyhow::Result<Self> {
        let signals = Arc::new(Signals {
            measured_open: AtomicU64::new(0),
            known_until: AtomicU64::new(0),
            frozen_at: AtomicU64::new(u64::MAX),
            end: AtomicBool::new(false),
        });
        let (theirs, their_observed, their_reports) =
            (Arc::clone(&signals), observed.clone(), reports.clone());
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || tick(recorder, &theirs, &their_observed, &their_reports))
            .context("no thread for the recorder")?;
        Ok(Self { thread: Some(thread), signals, observed, reports })
    }

    /// Whether all measured operations, the last of which is due at `measured_until_ns`, are known to have an outcome.
    pub fn is_resolved(&self, measured_until_ns: u64) -> bool {
        // The recorder stores the count first, so the one that is read is no older than the time.
        self.signals.known_until.load(Ordering::Acquire) > measured_until_ns
            && self.signals.measured_open.load(Ordering::Relaxed) == 0
    }

    /// From this moment on, which is now, nothing more becomes due.
    pub fn freeze(&self, now_ns: u64) {
        self.signals.frozen_at.store(now_ns, Ordering::Relaxed);
    }

    /// Ends the recording once no worker is left: the last snapshot, and what everything must add up to.
    ///
    /// `left` is what nobody will take any more.
    ///
    /// # Errors
    /// When the recorder died or nobody listens.
    pub async fn finish(mut self, left: &Leftover, stopped: bool) -> anyhow::Result<Totals> {
        let thread = self.end().context("the recorder has ended before")?;
        let (mut recorder, mut meter) = tokio::task::spawn_blocking(move || thread.join())
            .await?
            .map_err(|_| anyhow!("the recorder died: this run's numbers are not whole"))?;
        let clock = || nanos(self.observed.shared.go.elapsed());
        let send = async |snapshot| {
            let report = Report::Snapshot(Box::new(snapshot));
            self.reports.send(report).await.context("nobody listens to the engine")
        };
        let frozen_at = self.signals.frozen_at.load(Ordering::Relaxed);
        if recorder.start_ns() < frozen_at {
            recorder.absorb(clock, frozen_at, frozen_at);
            send(recorder.snapshot(
                frozen_at,
                meter.read(0, 0, recorder.in_flight()),
                self.observed.application(),
            ))
            .await?;
        }
        let end = recorder.absorb(clock, frozen_at, u64::MAX);
        recorder.cut(&left.taken_back, left.next);
        let mut application = self.observed.application();
        application.events.extend(self.observed.shared.parking.as_ref().map(|parking| parking.result(end)));
        send(recorder.snapshot(end, meter.read(0, 0, 0), application)).await?;
        Ok(recorder.finish(stopped))
    }

    fn end(&mut self) -> Option<JoinHandle<(Recorder, Meter)>> {
        self.signals.end.store(true, Ordering::Relaxed);
        self.thread.take().inspect(|thread| thread.thread().unpark())
    }
}

/// However the engine ends, its recorder does not outlive it.
impl Drop for Ticker {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs until the end is signalled, and hands the recorder back.
fn tick(
    mut recorder: Recorder,
    signals: &Signals,
    observed: &Observed,
    reports: &mpsc::Sender<Report>,
) -> (Recorder, Meter) {
    let shared = &*observed.shared;
    let mut meter = Meter::default();
    meter.read(0, 0, 0);
    let mut next_cut = next_boundary(shared, 0);
    while !signals.end.load(Ordering::Relaxed) {
        let wait = Duration::from_nanos(next_cut.saturating_sub(nanos(shared.go.elapsed())));
        std::thread::park_timeout(wait.min(GATHER));
        let frozen_at = signals.frozen_at.load(Ordering::Relaxed);
        if recorder.start_ns() < frozen_at {
            // What ends after the load is no part of an interval with load.
            next_cut = next_cut.min(frozen_at);
        }
        let known_until = recorder.absorb(|| nanos(shared.go.elapsed()), frozen_at, next_cut);
        signals.measured_open.store(recorder.measured_open(), Ordering::Relaxed);
        signals.known_until.store(known_until, Ordering::Release);
        if known_until < next_cut {
            continue;
        }
        let behind = if frozen_at < next_cut { 0 } else { recorder.behind_ns(next_cut) };
        let generator = meter.read(behind, observed.tasks.len() as u64, recorder.in_flight());
        let snapshot = recorder.snapshot(next_cut, generator, observed.application());
        if reports.blocking_send(Report::Snapshot(Box::new(snapshot))).is_err() {
            // Nobody listens: the trial is over, however it ended.
            break;
        }
        next_cut = next_boundary(shared, next_cut);
    }
    (recorder, meter)
}

/// The next whole interval or segment border after a time.
fn next_boundary(shared: &Shared, now_ns: u64) -> u64 {
    let interval = nanos(INTERVAL);
    let whole = (now_ns / interval + 1) * interval;
    shared.segments.iter().map(|segment| segment.end_ns).filter(|&end| end > now_ns).fold(whole, u64::min)
}
