//! The coordinator: one trial from connecting to its summary. The engine makes the load; this applies the overloads,
//! asks the servers, shows progress and writes results.

pub mod timeline;
pub mod watch;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use futures_util::FutureExt;
use jiff::Timestamp;
use mongodb::{Client, Namespace};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::watch::Watch;
use crate::client::merge::Resolved;
use crate::client::{connect, shut_down};
use crate::cluster::Cluster;
use crate::control::Control;
use crate::engine;
use crate::interrupts::Interrupts;
use crate::lab::Lab;
use crate::overload::{self, Bench};
use crate::plan::{OptionSetting, Plan};
use crate::progress::Progress;
use crate::results::{EndFacts, RunDirectory, Summary, TrialFacts, Writer};
use crate::snapshot::{Driver, Report, Totals};

/// Reports that may wait for the coordinator.
const REPORTS: usize = 64;

/// How long a change of the timeline that is under way when the load ends may take.
const HANDOVER: Duration = Duration::from_secs(5);

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
    /// The lab that the target is, if it is one.
    pub lab: Option<Arc<Lab>>,
}

/// A trial that ran, however it went.
pub struct Finished {
    /// Where its results are.
    pub directory: RunDirectory,
    /// What it came to.
    pub summary: Summary,
    /// What went wrong beside the load: an overload that could not be put on, or one that may still be on.
    pub trouble: Option<anyhow::Error>,
}

/// Runs a trial. The directory appears only once servers were found and the data is there.
///
/// # Errors
/// When the trial could not run, or results could not be written.
pub async fn run(
    setup: Setup,
    progress: &mut dyn Progress,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Finished> {
    let ground = interrupts.before_load(find(&setup, progress)).await?;
    let result = tokio::select! {
        // A panic is an error like others here: faults have to be undone first.
        result = AssertUnwindSafe(load(&setup, &ground, progress, interrupts)).catch_unwind() => {
            result.unwrap_or_else(|_| Err(anyhow!("overdrive itself failed: please report the message above")))
        }
        () = second(interrupts) => Err(anyhow!("left at the second request: results are not whole")),
    };
    // Whatever happened, and before anything else is said about it.
    let undone = ground.bench.undo_all().await.complete();
    shut_down(ground.control).await;
    let mut finished = result?;
    finished.trouble = finished.trouble.or(undone.err());
    Ok(finished)
}

/// The deployment, found and in order.
struct Ground {
    cluster: Arc<Cluster>,
    control: Client,
    bench: Arc<Bench>,
}

async fn find(setup: &Setup, progress: &mut dyn Progress) -> anyhow::Result<Ground> {
    let uri = &setup.target.uri;
    let lab = setup.lab.as_deref();
    // Gates are for those who are to be limited.
    let round_the_gates = |address: &str| {
        let lab = lab?;
        Some(lab.addresses()[lab.number_of(address)?].to_string())
    };
    let cluster = Arc::new(Cluster::connect(uri, round_the_gates).await?);
    progress.found(&cluster);
    let control = connect(&uri.control()).await?;
    let data = &setup.plan.data;
    let ground = overload::Ground {
        cluster: Arc::clone(&cluster),
        lab: setup.lab.clone(),
        control: control.clone(),
        data: Namespace::new(&data.database, &data.collection),
        app: uri.option("appName").unwrap_or_default(),
    };
    let bench = Bench::prepare(ground, &setup.plan.overloads, |text| progress.note(text)).await?;
    Ok(Ground { cluster, control, bench: Arc::new(bench) })
}

/// Everything from the data on, during which faults may be on.
async fn load(
    setup: &Setup,
    ground: &Ground,
    progress: &mut dyn Progress,
    interrupts: &Interrupts,
) -> anyhow::Result<Finished> {
    interrupts.before_load(ground.bench.arm(&setup.plan.overloads)).await?;
    let mut running = interrupts.before_load(Running::start(setup, progress)).await?;
    running.drive(setup, ground, progress, interrupts.clone()).await
}

async fn second(interrupts: &Interrupts) {
    interrupts.clone().reached(2).await;
}

/// An engine that has prepared everything and waits for Go.
struct Running {
    engine: AbortOnDropHandle<anyhow::Result<()>>,
    control: mpsc::Sender<Control>,
    reports: mpsc::Receiver<Report>,
    driver: Driver,
}

impl Running {
    async fn start(setup: &Setup, progress: &mut dyn Progress) -> anyhow::Result<Self> {
        let (control, requests) = mpsc::channel(4);
        let (sender, reports) = mpsc::channel(REPORTS);
        let engine = engine::run(Arc::clone(&setup.plan), setup.target.uri.clone(), requests, sender);
        let engine = AbortOnDropHandle::new(tokio::spawn(engine));
        let driver = Driver { name: String::new(), version: String::new() };
        let mut running = Self { engine, control, reports, driver };
        loop {
            match running.reports.recv().await {
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
        ground: &Ground,
        progress: &mut dyn Progress,
        interrupts: Interrupts,
    ) -> anyhow::Result<Finished> {
        let directory = RunDirectory::create(
            &setup.out,
            &setup.plan.profile,
            setup.label.as_deref(),
            setup.profile_text.as_bytes(),
        )?;
        let facts = self.facts(setup, ground);
        progress.started(&facts, directory.path());
        let mut writer = Writer::start(&directory, facts)?;
        let followed = self.follow(setup, ground, &mut writer, progress, interrupts).await;
        let ended = match followed {
            Ok(ended) => ended,
            Err(error) => {
                // The error tells more than what may befall the rest of the files.
                let _ = tokio::task::spawn_blocking(move || writer.abandon()).await;
                return Err(error);
            }
        };
        let notes = setup.notes.clone();
        let end = EndFacts { ended: Some(Timestamp::now()), stopped_ns: ended.stopped_ns, notes };
        // Files are written and synced on the writer's thread; waiting for it must not hold up a runtime thread.
        let summary = tokio::task::spawn_blocking(move || writer.finish(ended.totals, end)).await??;
        Ok(Finished { directory, summary, trouble: ended.trouble })
    }

    /// Lets the load run and passes on what is heard, until the engine is done and nothing of ours is on any more.
    async fn follow(
        &mut self,
        setup: &Setup,
        ground: &Ground,
        writer: &mut Writer,
        progress: &mut dyn Progress,
        mut interrupts: Interrupts,
    ) -> anyhow::Result<Ended> {
        self.control.send(Control::Go).await.context("the engine is gone")?;
        let go = Instant::now();
        let (events_sender, mut events) = mpsc::channel(REPORTS);
        let (plan, bench, end) =
            (Arc::clone(&setup.plan), Arc::clone(&ground.bench), CancellationToken::new());
        let timeline = timeline::follow(plan, bench, go, events_sender, end.clone());
        // However this ends, nothing is put on any more: what is on is about to be undone.
        let mut timeline = AbortOnDropHandle::new(tokio::spawn(timeline));
        let mut watch = Watch::default();
        let (mut stopped_ns, mut trouble, mut timeline_over) = (None, None, false);
        let totals = loop {
            tokio::select! {
                report = self.reports.recv() => match report {
                    Some(Report::Snapshot(snapshot)) => {
                        progress.snapshot(&setup.plan, &snapshot);
                        // Asked now, so that what they say is of this interval's end; none is waited for a second.
                        let facts = ground.bench.facts().await;
                        progress.servers(&facts);
                        for event in watch.events(&snapshot, &facts) {
                            progress.event(&event);
                            writer.event(event)?;
                        }
                        writer.snapshot(*snapshot, facts)?;
                    }
                    Some(Report::Done(totals)) => break totals,
                    Some(_) => {}
                    None => return Err(self.why().await),
                },
                Some(event) = events.recv() => {
                    progress.event(&event);
                    writer.event(event)?;
                }
                result = &mut timeline, if !timeline_over => {
                    timeline_over = true;
                    trouble = result.context("the timeline died")?.err();
                    if let Some(why) = &trouble {
                        progress.note(&format!("stopping: {why:#}"));
                        stopped_ns = self.stop(go).await;
                    }
                }
                () = interrupts.reached(1), if stopped_ns.is_none() => {
                    progress.note("stopping: no new operations; those under way may end (again to leave at once)");
                    stopped_ns = self.stop(go).await;
                }
            }
        };
        if !timeline_over {
            // A command that it has sent must not come after those that undo it.
            end.cancel();
            if tokio::time::timeout(HANDOVER, &mut timeline).await.is_err() {
                timeline.abort();
                let _ = timeline.await;
            }
        }
        // What is on is undone before the files say how it ended.
        let undone = ground.bench.undo_all().await;
        events.close();
        while let Some(event) = events.recv().await {
            writer.event(event)?;
        }
        for event in timeline::ended(&undone, go) {
            progress.event(&event);
            writer.event(event)?;
        }
        Ok(Ended { totals, stopped_ns, trouble })
    }

    /// Asks the engine to end before its time, and returns when that was.
    async fn stop(&self, go: Instant) -> Option<u64> {
        let now = u64::try_from(go.elapsed().as_nanos()).ok();
        // One that is gone has a reason, which is heard next.
        let _ = self.control.send(Control::Stop).await;
        now
    }

    fn facts(&self, setup: &Setup, ground: &Ground) -> TrialFacts {
        TrialFacts {
            trial: 1,
            variant: "base".to_owned(),
            repeat: 1,
            plan: (*setup.plan).clone(),
            driver: self.driver.clone(),
            server_versions: vec![ground.cluster.version.clone()],
            mechanism: ground.bench.mechanism(),
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

/// How the load ended.
struct Ended {
    totals: Totals,
    stopped_ns: Option<u64>,
    trouble: Option<anyhow::Error>,
}
