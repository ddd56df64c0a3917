//! The coordinator: one trial from connecting to its summary. The engine makes the load; this applies the overloads,
//! asks the servers, shows progress and writes results.

pub mod child;
mod course;
mod groups;
mod knobs;
pub mod live;
pub mod prepare;
pub mod protocol;
mod rising;
mod sharing;
pub mod staleness;
mod start;
mod timeline;
mod underway;
pub mod watch;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::anyhow;
use futures_util::FutureExt;
use mongodb::{Client, Namespace};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::course::Course;
use self::staleness::Probe;
use self::underway::Engine;
use crate::client::merge::Resolved;
use crate::client::{connect, shut_down, wait_for_primary};
use crate::cluster::{Cluster, saying_so_if_long};
use crate::interrupts::Interrupts;
use crate::knobs::Turns;
use crate::lab::Lab;
use crate::overload::{self, Bench, Undone};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::results::resume::Earlier;
use crate::results::{self, Early, RunDirectory, Summary};
use crate::stub::process::StubProcess;
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
    /// The same for each client, where there are several.
    pub clients: Vec<Resolved>,
    /// Which of the run's trials it is.
    pub place: Place,
    /// The variant's name.
    pub variant: String,
    /// Every option that varies or is set anywhere in the run, with its value in this trial.
    pub params: Vec<(String, Option<String>)>,
    /// Where the knobs stand; empty where there are none.
    pub knobs: Vec<(String, String)>,
    /// Where the run's results go.
    pub keeping: Arc<Keeping>,
    /// What people should read beside the numbers.
    pub notes: Vec<String>,
    /// The lab that the target is, if it is one.
    pub lab: Option<Arc<Lab>>,
    /// The stub that the target is, if it is one.
    pub stub: Option<Arc<StubProcess>>,
}

/// Every option with its value and who decided it, as results have them: a list, or by client where there are several.
pub fn options_of(plan: &Plan, target: &Resolved, clients: &[Resolved]) -> serde_json::Value {
    let listed = |target: &Resolved| serde_json::to_value(&target.options).unwrap_or_default();
    if clients.is_empty() {
        return listed(target);
    }
    let names = plan.clients.iter().map(|group| group.name.clone());
    names.zip(clients.iter().map(listed)).collect()
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
    /// What an earlier start has left.
    earlier: Option<Earlier>,
}

impl Keeping {
    /// A run that has kept nothing yet.
    pub const fn new(out: PathBuf, label: Option<String>, profile_text: String) -> Self {
        Self { out, label, profile_text, directory: OnceLock::new(), earlier: None }
    }

    /// A run that goes on in the directory of an earlier start, from when the load of its first trial begins.
    pub fn going_on(earlier: Earlier) -> Self {
        let (out, text) = (earlier.directory.path().to_owned(), earlier.profile_text.clone());
        Self { earlier: Some(earlier), ..Self::new(out, None, text) }
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
        if let Some(earlier) = &self.earlier {
            earlier.keep_whole_trials()?;
            return Ok(self.directory.get_or_init(|| earlier.directory.clone()));
        }
        let text = self.profile_text.as_bytes();
        let directory = RunDirectory::create(&self.out, profile, self.label.as_deref(), text)?;
        Ok(self.directory.get_or_init(|| directory))
    }
}

/// What ran, however it went.
pub struct Finished {
    /// What each trial came to: one, and a live one more for each time that knobs were turned.
    pub summaries: Vec<Summary>,
    /// Whether the last one was ended early because a threshold said so.
    pub aborted: bool,
    /// What went wrong beside the load: an overload that could not be put on, or one that may still be on.
    pub trouble: Option<anyhow::Error>,
}

/// Runs a trial, and live ones after it as `turns` come, until it would have ended. The directory appears only once servers
/// were found and the data is there.
///
/// # Errors
/// When the trial could not run, or results could not be written.
pub async fn run(
    setup: Setup,
    progress: &mut dyn Progress,
    interrupts: &mut Interrupts,
    turns: Option<&mut Turns>,
) -> anyhow::Result<Finished> {
    let ground = Arc::new(interrupts.before_load(find(&setup, progress)).await?);
    // Trials that ended are whole whatever befalls the next.
    let mut summaries = Vec::new();
    let result = tokio::select! {
        // A panic is an error like others here: faults have to be undone first.
        result = AssertUnwindSafe(load(&setup, &ground, &mut summaries, progress, interrupts, turns)).catch_unwind() => {
            result.unwrap_or_else(|_| Err(anyhow!("overdrive itself failed: please report the message above")))
        }
        () = second(interrupts) => Err(anyhow!("left at once, as asked: results are not whole")),
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
    shut_down(ground.control.clone()).await;
    let trouble = match (result, undone) {
        (Ok(trouble), undone) => trouble.or(undone.err()),
        (Err(error), Ok(())) => Some(error),
        // Two things went wrong, and people have to know both.
        (Err(error), Err(left)) => Some(anyhow!("{error:#}; {left:#}")),
    };
    match trouble {
        Some(error) if summaries.is_empty() => Err(error),
        trouble => {
            let aborted = summaries.last().is_some_and(|last| last.early == Some(Early::Aborted));
            Ok(Finished { summaries, aborted, trouble })
        }
    }
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
    // What another shard puts on is for that one to undo, and so is what it finds.
    let (bench, probe) = if setup.plan.leads() {
        let bench = Bench::prepare(ground, &setup.plan.overloads, |text| progress.note(text)).await?;
        (bench, Probe::prepare(&setup.plan, &cluster, &control).await?.map(Arc::new))
    } else {
        (Bench::new(ground), None)
    };
    let (changes, end) = (TaskTracker::new(), CancellationToken::new());
    Ok(Ground { cluster, control, bench: Arc::new(bench), probe, changes, end })
}

/// Everything from the data on, during which faults may be on. What went wrong beside the load is no error.
async fn load(
    setup: &Setup,
    ground: &Arc<Ground>,
    summaries: &mut Vec<Summary>,
    progress: &mut dyn Progress,
    interrupts: &Interrupts,
    turns: Option<&mut Turns>,
) -> anyhow::Result<Option<anyhow::Error>> {
    if setup.plan.leads() {
        interrupts.before_load(ground.bench.arm(&setup.plan.overloads)).await?;
    }
    let preparing = async {
        wait_for_primary(&ground.control, &setup.target.uri).await?;
        sharing::prepare(&ground.control, &setup.plan, |data| progress.preparing(data)).await
    };
    interrupts.before_load(preparing).await?;
    let engine = interrupts.before_load(Engine::start(setup)).await?;
    if let Some(text) = start::announcement(&setup.plan) {
        progress.note(&text);
    }
    let clock = start::clock(&setup.plan, &ground.control).await;
    clock.iter().for_each(|note| progress.note(note));
    interrupts.before_load(start::approached(&setup.plan)).await?;
    let course = Course::begin(engine, setup, ground, progress, interrupts.clone(), turns).await?;
    course.noting(clock).run(summaries).await
}

async fn second(interrupts: &Interrupts) {
    interrupts.clone().reached(2).await;
}
