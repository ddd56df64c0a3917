//! The coordinator: one trial from connecting to its summary. The engine makes the load; this applies the overloads,
//! asks the servers, shows progress and writes results.

pub mod timeline;
pub mod watch;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::watch::Watch;
use crate::client::merge::Resolved;
use crate::client::{connect, shut_down};
use crate::cluster::Cluster;
use crate::control::Control;
use crate::engine;
use crate::interrupts::Interrupts;
use crate::overload::Bench;
use crate::plan::{OptionSetting, Plan};
use crate::progress::Progress;
use crate::results::{EndFacts, RunDirectory, Summary, TrialFacts, Writer};
use crate::snapshot::{Driver, Report, Totals};

/// Reports that may wait for the coordinator.
const REPORTS: usize = 64;

/// What a trial needs to know beside its plan.
pub struct Setup {
    /// What to do.
    pub plan: Arc<Plan>,
    /// Where, with all options in place.
    pub target: Resolved,
    /// The profile as it was read, for the run's directory.
    pub profile_text: String,
    /// Where runs are kept.
    pub out: PathBuf,
    /// A word for the run; empty for none.
    pub label: Option<String>,
    /// What people should read beside the numbers.
    pub notes: Vec<String>,
}

/// A trial that ran, however it went.
pub struct Finished {
    /// Where its results are.
    pub directory: RunDirectory,
    /// What it came to.
    pub summary: Summary,
}

/// Runs a trial. The directory appears only once servers were found and the data is there.
///
/// # Errors
/// When the trial could not run, a fault could not be undone, or results could not be written.
pub async fn run(
    setup: Setup,
    progress: &mut dyn Progress,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Finished> {
    let uri = &setup.target.uri;
    let cluster = Arc::new(Cluster::connect(uri).await?);
    let control = connect(&uri.control()).await?;
    let app = uri.option("appName").unwrap_or_default();
    let bench = Arc::new(Bench::new(Arc::clone(&cluster), &control, &setup.plan.data.database, app));
    for member in bench.undo_leftovers().await? {
        progress.note(&format!("{member}: undid a fault that an earlier run was killed over"));
    }
    bench.check(&setup.plan.overloads).await?;

    let mut running = Running::start(&setup, progress, interrupts).await?;
    let driving = running.drive(&setup, &cluster, &bench, progress, interrupts.clone());
    let result = tokio::select! {
        // A panic is an error like others here: faults have to be undone first.
        result = AssertUnwindSafe(driving).catch_unwind() => {
            result.unwrap_or_else(|_| Err(anyhow!("overdrive itself failed: please report the message above")))
        }
        () = second(interrupts) => Err(anyhow!("left at the second request: results are not whole")),
    };
    // Whatever happened, and before anything else is said about it.
    let undone = bench.undo_all().await;
    running.engine.abort();
    shut_down(control).await;
    let finished = result?;
    undone?;
    Ok(finished)
}

async fn second(interrupts: &Interrupts) {
    interrupts.clone().reached(2).await;
}

/// An engine that has prepared everything and waits for Go.
struct Running {
    engine: JoinHandle<anyhow::Result<()>>,
    control: mpsc::Sender<Control>,
    reports: mpsc::Receiver<Report>,
    driver: Driver,
}

impl Running {
    async fn start(
        setup: &Setup,
        progress: &mut dyn Progress,
        interrupts: &Interrupts,
    ) -> anyhow::Result<Self> {
        let (control, requests) = mpsc::channel(4);
        let (sender, reports) = mpsc::channel(REPORTS);
        let engine =
            tokio::spawn(engine::run(Arc::clone(&setup.plan), setup.target.uri.clone(), requests, sender));
        let driver = Driver { name: String::new(), version: String::new() };
        let mut running = Self { engine, control, reports, driver };
        let mut interrupts = interrupts.clone();
        loop {
            let report = tokio::select! {
                report = running.reports.recv() => report,
                () = interrupts.reached(1) => {
                    running.engine.abort();
                    bail!("stopped before the load began: nothing was measured, nothing is kept");
                }
            };
            match report {
                Some(Report::Hello(driver)) => running.driver = driver,
                Some(Report::Preparing(data)) => progress.preparing(data),
                Some(Report::Ready) => return Ok(running),
                Some(Report::Snapshot(_) | Report::Done(_)) => {
                    bail!("the engine began before it was told to")
                }
                None => return Err(running.why().await),
            }
        }
    }

    /// Why the engine has fallen silent.
    async fn why(&mut self) -> anyhow::Error {
        match (&mut self.engine).await {
            Ok(Err(error)) => error,
            Ok(Ok(())) => anyhow!("the engine ended without its totals"),
            Err(died) => anyhow!("the engine died: {died}"),
        }
    }

    async fn drive(
        &mut self,
        setup: &Setup,
        cluster: &Arc<Cluster>,
        bench: &Arc<Bench>,
        progress: &mut dyn Progress,
        mut interrupts: Interrupts,
    ) -> anyhow::Result<Finished> {
        let directory = RunDirectory::create(
            &setup.out,
            &setup.plan.profile,
            setup.label.as_deref(),
            setup.profile_text.as_bytes(),
        )?;
        progress.started(&setup.plan, directory.path());
        let facts = self.facts(setup, cluster);
        let mut writer = Writer::start(&directory, facts)?;
        self.control.send(Control::Go).await.context("the engine is gone")?;
        let go = Instant::now();
        let (events_sender, mut events) = mpsc::channel(REPORTS);
        let mut timeline =
            tokio::spawn(timeline::follow(Arc::clone(&setup.plan), Arc::clone(bench), go, events_sender));
        let mut watch = Watch::start(Arc::clone(cluster));
        let (mut stopped_ns, mut timeline_over, mut asked) = (None, false, false);
        loop {
            tokio::select! {
                report = self.reports.recv() => match report {
                    Some(Report::Snapshot(snapshot)) => {
                        for event in watch.events(&snapshot) {
                            progress.event(&event);
                            writer.event(event)?;
                        }
                        progress.snapshot(&setup.plan, &snapshot);
                        writer.snapshot(*snapshot, watch.facts())?;
                    }
                    Some(Report::Done(totals)) => {
                        timeline.abort();
                        // What is on is undone before the files say how it ended.
                        bench.undo_all().await?;
                        while let Ok(event) = events.try_recv() {
                            writer.event(event)?;
                        }
                        let summary = finish(writer, totals, stopped_ns, setup).await?;
                        return Ok(Finished { directory, summary });
                    }
                    Some(_) => {}
                    None => return Err(self.why().await),
                },
                Some(event) = events.recv() => {
                    progress.event(&event);
                    writer.event(event)?;
                }
                result = &mut timeline, if !timeline_over => {
                    timeline_over = true;
                    result.context("the timeline died")??;
                }
                () = interrupts.reached(1), if !asked => {
                    asked = true;
                    progress.note("stopping: no new operations; those under way may end (again to leave at once)");
                    stopped_ns = u64::try_from(go.elapsed().as_nanos()).ok();
                    self.control.send(Control::Stop).await.context("the engine is gone")?;
                }
            }
        }
    }

    fn facts(&self, setup: &Setup, cluster: &Cluster) -> TrialFacts {
        TrialFacts {
            trial: 1,
            variant: "base".to_owned(),
            repeat: 1,
            plan: (*setup.plan).clone(),
            driver: self.driver.clone(),
            server_versions: vec![cluster.version.clone()],
            params: params(&setup.plan.client),
            options: serde_json::to_value(&setup.target.options).unwrap_or_default(),
            go: Timestamp::now(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Every option that was set, once: tag sets, of which there may be several, are tried in turn.
fn params(settings: &[OptionSetting]) -> Vec<(String, Option<String>)> {
    let mut params: Vec<(String, Option<String>)> = Vec::new();
    for OptionSetting { name, value, .. } in settings {
        match params.iter_mut().find(|(known, _)| known == name) {
            Some((_, before)) => {
                let both = [before.take(), value.clone()].into_iter().flatten().collect::<Vec<_>>();
                *before = Some(both.join(";"));
            }
            None => params.push((name.clone(), value.clone())),
        }
    }
    params
}

async fn finish(
    writer: Writer,
    totals: Totals,
    stopped_ns: Option<u64>,
    setup: &Setup,
) -> anyhow::Result<Summary> {
    let end = EndFacts { ended: Some(Timestamp::now()), stopped_ns, notes: setup.notes.clone() };
    // Files are written and synced on the writer's thread; waiting for it must not hold up a runtime thread.
    Ok(tokio::task::spawn_blocking(move || writer.finish(totals, end)).await??)
}
