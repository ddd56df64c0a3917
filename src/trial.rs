//! The coordinator: one trial from connecting to its summary. The engine makes the load; this applies the overloads,
//! asks the servers, shows progress and writes results.

pub mod staleness;
pub mod timeline;
pub mod watch;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use futures_util::FutureExt;
use jiff::Timestamp;
use mongodb::{Client, Namespace};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::staleness::Probe;
use self::watch::Watch;
use crate::client::merge::Resolved;
use crate::client::{connect, shut_down};
use crate::cluster::{Cluster, saying_so_if_long};
use crate::control::Control;
use crate::engine;
use crate::interrupts::Interrupts;
use crate::lab::Lab;
use crate::overload::{self, Bench, Undone};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::results::{self, EndFacts, RunDirectory, Summary, TrialFacts, Writer};
use crate::snapshot::{Driver, Report, Totals};
use crate::stub::process::StubProcess;
use crate::thresholds::hopeless::{self, Hopeless};
use crate::variants::Place;

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
    /// Which of the run's trials it is.
    pub place: Place,
    /// The variant's name.
    pub variant: String,
    /// Every option that varies or is set anywhere in the run, with its value in this trial.
    pub params: Vec<(String, Option<String>)>,
    /// Where the run's results go.
    pub keeping: Arc<Keeping>,
    /// What people should read beside the numbers.
    pub notes: Vec<String>,
    /// The lab that the target is, if it is one.
    pub lab: Option<Arc<Lab>>,
    /// The stub that the target is, if it is one.
    pub stub: Option<Arc<StubProcess>>,
}

/// Where a run's results go: a directory that appears when the load of its first trial begins.
pub struct Keeping {
    /// Where runs are kept.
    pub out: PathBuf,
    /// A word for the run; empty for none.
    pub label: Option<String>,
    /// The profile as it was read.
    pub profile_text: String,
    directory: OnceLock<RunDirectory>,
}

impl Keeping {
    /// A run that has kept nothing yet.
    pub const fn new(out: PathBuf, label: Option<String>, profile_text: String) -> Self {
        Self { out, label, profile_text, directory: OnceLock::new() }
    }

    /// The run's directory, once there is one.
    pub fn found(&self) -> Option<&RunDirectory> {
        self.directory.get()
    }

    /// The run's directory.
    ///
    /// # Errors
    /// When it cannot be made.
    fn directory(&self, profile: &str) -> Result<&RunDirectory, results::Error> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let text = self.profile_text.as_bytes();
        let directory = RunDirectory::create(&self.out, profile, self.label.as_deref(), text)?;
        Ok(self.directory.get_or_init(|| directory))
    }
}

/// A trial that ran, however it went.
pub struct Finished {
    /// What it came to.
    pub summary: Summary,
    /// Whether it was ended early because a threshold said so.
    pub aborted: bool,
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
    let undone = tokio::select! {
        undone = ground.undo_all() => undone.complete(),
        // Whoever asks a third time wants to leave, whatever stays behind.
        () = interrupts.reached(3) => Err(ground.bench.left_on()),
    };
    if let Some(probe) = &ground.probe {
        probe.clear().await;
    }
    shut_down(ground.control).await;
    let mut finished = match (result, &undone) {
        (Ok(finished), _) => finished,
        (Err(error), Ok(())) => return Err(error),
        // Two things went wrong, and people have to know both.
        (Err(error), Err(left)) => bail!("{error:#}; {left:#}"),
    };
    finished.trouble = finished.trouble.or(undone.err());
    Ok(finished)
}

/// The deployment, found and in order.
struct Ground {
    cluster: Arc<Cluster>,
    control: Client,
    bench: Arc<Bench>,
    probe: Option<Arc<Probe>>,
    /// The timeline's changes.
    changes: TaskTracker,
    /// Says that none is to be begun any more.
    end: CancellationToken,
}

impl Ground {
    /// Undoes everything, once what is being put on is on: a command that was sent must not come after the one that
    /// undoes it.
    async fn undo_all(&self) -> Undone {
        self.end.cancel();
        self.changes.close();
        let _ = tokio::time::timeout(HANDOVER, self.changes.wait()).await;
        self.bench.undo_all().await
    }
}

async fn find(setup: &Setup, progress: &mut dyn Progress) -> anyhow::Result<Ground> {
    let uri = &setup.target.uri;
    let lab = setup.lab.as_deref();
    // Gates are for those who are to be limited.
    let round_the_gates = |address: &str| {
        let lab = lab?;
        Some(lab.addresses()[lab.number_of(address)?].to_string())
    };
    let looking = Cluster::connect(uri, round_the_gates);
    let cluster = Arc::new(saying_so_if_long(uri, looking, |text| progress.note(text)).await?);
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
    let probe = Probe::prepare(&setup.plan, &cluster, &control).await?.map(Arc::new);
    let (changes, end) = (TaskTracker::new(), CancellationToken::new());
    Ok(Ground { cluster, control, bench: Arc::new(bench), probe, changes, end })
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
        let directory = setup.keeping.directory(&setup.plan.profile)?.clone();
        let facts = self.facts(setup, ground);
        progress.started(&facts, directory.path());
        let hopeless = Hopeless::of(&facts);
        let mut writer = Writer::start(&directory, facts)?;
        let followed = self.follow(setup, ground, &mut writer, progress, interrupts, hopeless).await;
        let ended = match followed {
            Ok(ended) => ended,
            Err(error) => {
                // The error tells more than what may befall the rest of the files.
                let _ = tokio::task::spawn_blocking(move || writer.abandon()).await;
                return Err(error);
            }
        };
        let notes = ended.aborted.iter().map(|why| format!("ended early: {why}"));
        let notes = notes.chain(setup.notes.iter().cloned()).collect();
        let end = EndFacts { ended: Some(Timestamp::now()), stopped_ns: ended.stopped_ns, notes };
        // Files are written and synced on the writer's thread; waiting for it must not hold up a runtime thread.
        let summary = tokio::task::spawn_blocking(move || writer.finish(ended.totals, end)).await??;
        Ok(Finished { summary, aborted: ended.aborted.is_some(), trouble: ended.trouble })
    }

    /// Lets the load run and passes on what is heard, until the engine is done and nothing of ours is on any more.
    async fn follow(
        &mut self,
        setup: &Setup,
        ground: &Ground,
        writer: &mut Writer,
        progress: &mut dyn Progress,
        mut interrupts: Interrupts,
        mut hopeless: Option<Hopeless>,
    ) -> anyhow::Result<Ended> {
        if let Some(stub) = &setup.stub {
            stub.begin().await?;
        }
        self.control.send(Control::Go).await.context("the engine is gone")?;
        let go = Instant::now();
        let probing = ground.probe.as_ref().map(|probe| probe.start(go));
        let (events_sender, mut events) = mpsc::channel(REPORTS);
        let (plan, bench) = (Arc::clone(&setup.plan), Arc::clone(&ground.bench));
        let timeline = timeline::follow(plan, bench, go, events_sender, ground.end.clone());
        let (ended, mut timeline_end) = oneshot::channel();
        ground.changes.spawn(async move { ended.send(timeline.await) });
        let mut watch = Watch::default();
        let (mut stopped_ns, mut aborted, mut trouble, mut timeline_over) = (None, None, None, false);
        let totals = loop {
            tokio::select! {
                report = self.reports.recv() => match report {
                    Some(Report::Snapshot(snapshot)) => {
                        progress.snapshot(&setup.plan, &snapshot);
                        // Asked now, so that what they say is of this interval's end; none is waited for a second.
                        let mut facts = ground.bench.facts().await;
                        if let Some(probing) = &probing {
                            probing.add_to(&mut facts, snapshot.end_ns);
                        }
                        progress.servers(&facts);
                        for event in watch.events(&snapshot, &facts) {
                            progress.event(&event);
                            writer.event(event)?;
                        }
                        let crossed = hopeless.as_mut().and_then(|hopeless| hopeless.see(&snapshot));
                        writer.snapshot(*snapshot, facts)?;
                        if let (Some(crossed), None) = (crossed, stopped_ns) {
                            let (condition, held) = (crossed.condition.to_string(), hopeless::held(&crossed));
                            progress.note(&format!("ending this trial early: {condition} {held}"));
                            writer.event(timeline::event(go, "aborted", &condition, held.clone()))?;
                            stopped_ns = self.stop(go).await;
                            aborted = Some(format!("{condition} {held}"));
                        }
                    }
                    Some(Report::Done(totals)) => break totals,
                    Some(_) => {}
                    None => return Err(self.why().await),
                },
                Some(event) = events.recv() => {
                    progress.event(&event);
                    writer.event(event)?;
                }
                result = &mut timeline_end, if !timeline_over => {
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
        // What is on is undone before the files say how it ended.
        let undone = ground.undo_all().await;
        events.close();
        while let Some(event) = events.recv().await {
            writer.event(event)?;
        }
        for event in timeline::ended(&undone, go) {
            progress.event(&event);
            writer.event(event)?;
        }
        if let Some(stub) = &setup.stub {
            match stub.counters().await {
                Ok(counters) => {
                    let event = timeline::event(go, "stub_counted", "", counters.to_string());
                    progress.event(&event);
                    writer.event(event)?;
                }
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        Ok(Ended { totals, stopped_ns, aborted, trouble })
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
            trial: setup.place.trial,
            variant: setup.variant.clone(),
            repeat: setup.place.repeat,
            plan: (*setup.plan).clone(),
            driver: self.driver.clone(),
            server_versions: vec![ground.cluster.version.clone()],
            mechanism: match &setup.stub {
                Some(stub) => stub.script().mechanism().to_owned(),
                None => ground.bench.mechanism(),
            },
            params: setup.params.clone(),
            options: serde_json::to_value(&setup.target.options).unwrap_or_default(),
            go: Timestamp::now(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// How the load ended.
struct Ended {
    totals: Totals,
    stopped_ns: Option<u64>,
    /// By which threshold, in words.
    aborted: Option<String>,
    trouble: Option<anyhow::Error>,
}
