//! `overdrive run`: resolve, find a deployment, run the trial, show what came of it.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::target::{check_tls_files, given_uri};
use super::{Outcome, UsageError, check_mongod, open_profile, print, refuse_uri, resolve_plan, stub};
use crate::cache;
use crate::calibration::{Calibration, Key};
use crate::cli::{RunArgs, Ui};
use crate::client::merge::{APP_NAME, Resolved, resolve_options};
use crate::client::uri::Uri;
use crate::client::version::DRIVER_VERSION;
use crate::interrupts::Interrupts;
use crate::lab::{Lab, LabOptions};
use crate::plan::staleness::HEARTBEATS;
use crate::plan::timeline::on_time;
use crate::plan::{GateSettings, Model, Overload, Plan};
use crate::profile::describe::{Destination, describe};
use crate::profile::estimate::{Options, doubts};
use crate::progress::{Lines, Progress, Silent};
use crate::report;
use crate::results::{HostFacts, RunFacts};
use crate::stderr::{flush, tell};
use crate::stub::process::StubProcess;
use crate::trial::{self, Finished, Setup};

/// What a dry run calls it.
const LAB: &str = "a lab: a replica set of three servers on this machine, which end with the run";

/// And a stub.
const STUB: &str = "a stub: a server that answers as its script says, in a process that ends with the run";

/// A connection string of the same shape as the lab's.
const LIKE_THE_LAB: &str = "mongodb://127.0.0.1/?replicaSet=overdrive";

/// Runs one trial.
///
/// # Errors
/// [`UsageError`] for what can be told from the arguments alone; anything else means that the run failed.
pub async fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    let profile = open_profile(&args.load.profile)?;
    let (mut written, note) = resolve_plan(&profile, &args.load)?;
    let (given, mut notes) = match &args.stub {
        Some(script) => (None, stub::adapt(&mut written, script)),
        None => (given_uri(&args.target)?, Vec::new()),
    };
    // What is never on needs no leave, no preparation, and no note beside the numbers.
    let mut plan = written.clone();
    plan.overloads.retain(|overload| on_time(&plan.load, overload).is_some());
    check_arguments(&args, given.is_some(), &plan).await?;
    // Options that no deployment would take are told before a lab is started for them.
    let target = match &given {
        Some(uri) => resolve_target(uri, &plan)?,
        None => resolve_target(&Uri::parse(LIKE_THE_LAB)?, &plan)?,
    };
    let doubts = doubts(&written, Options(Some(&target.options)));
    notes.extend(target.notices.iter().cloned().chain(note).chain(doubts).chain(beyond_this_machine(&plan)));
    if args.dry_run {
        let deployment = match (&given, &args.stub) {
            (Some(uri), _) => deployment(uri, args.yes),
            (None, Some(_)) => STUB.to_owned(),
            (None, None) => LAB.to_owned(),
        };
        let destination = Destination { deployment: &deployment, options: &target.options };
        print(&describe(&written, Some(destination), &notes))?;
        return Ok(Outcome::Done);
    }
    if let Some(uri) = &given {
        // While Ctrl-C still ends this program by itself: it is an answer, too.
        confirm(uri, &plan, args.yes)?;
    }
    let mut interrupts = Interrupts::listen()?;
    let mut progress: Box<dyn Progress + Send> = match args.ui {
        Ui::Auto | Ui::Lines => Box::new(Lines::default()),
        Ui::None => Box::new(Silent),
    };
    let stub = match args.stub {
        Some(script) => Some(Arc::new(interrupts.before_load(stub::start(script, &plan)).await?)),
        None => None,
    };
    let lab = match (given, &stub) {
        (None, None) => Some(Arc::new(start_lab(&plan, args.mongod.as_deref(), &interrupts).await?)),
        _ => None,
    };
    let ours = lab.as_deref().map(Lab::uri).or(stub.as_deref().map(StubProcess::uri));
    let target = match ours {
        Some(uri) => resolve_target(&Uri::parse(uri)?, &plan)?,
        None => target,
    };
    notes.iter().for_each(|note| progress.note(note));
    let setup = Setup {
        plan: Arc::new(plan),
        notes,
        target,
        profile_text: profile.text,
        out: args.out,
        label: args.label,
        lab: lab.clone(),
        stub,
    };
    let result = trial::run(setup, &mut *progress, &mut interrupts).await;
    let stopped = stop_lab(lab, &mut interrupts).await;
    let Finished { directory, summary, trouble } = result?;
    let facts = RunFacts {
        started: summary.facts.go,
        ended: Timestamp::now(),
        complete: trouble.is_none(),
        host: HostFacts::detect(),
        notes: trouble.iter().map(|trouble| format!("{trouble:#}")).collect(),
    };
    let trials = [summary];
    directory.finish(&facts, &trials)?;
    print(&report::render(&trials, directory.path()))?;
    if trials.iter().any(|trial| !trial.broken.is_empty()) {
        bail!("the numbers do not add up, so this run cannot be trusted");
    }
    trouble.map_or(Ok(()), Err)?;
    stopped?;
    Ok(if interrupts.any() { Outcome::Interrupted } else { Outcome::Done })
}

/// What can be told of the arguments without a connection.
async fn check_arguments(args: &RunArgs, given: bool, plan: &Plan) -> Result<(), UsageError> {
    refuse_uri("--label", args.label.as_deref().unwrap_or_default())?;
    refuse_uri("--out", &args.out.to_string_lossy())?;
    if args.stub.is_some() {
        return if args.mongod.is_none() {
            Ok(())
        } else {
            Err(UsageError::new("--stub and --mongod name two servers: leave one of them out"))
        };
    }
    if !given {
        return check_mongod(args.mongod.as_deref()).await;
    }
    if args.mongod.is_some() {
        return Err(UsageError::new(
            "--mongod is the lab's server, and there is a deployment (from --uri, --uri-file or $OVERDRIVE_URI): leave \
             one of them out",
        ));
    }
    check_faults(plan, &args.allow_faults)
}

/// The deployment as a dry run names it.
fn deployment(uri: &Uri, yes: bool) -> String {
    let hosts = uri.hosts().join(", ");
    let found = if uri.is_srv() { " (its hosts come from DNS)" } else { "" };
    let asks =
        if uri.is_loopback() || yes { "" } else { "; not on this machine: a run asks first, or wants --yes" };
    format!("{hosts}{found}{asks}")
}

/// Whether the plan asks for more than this machine was seen to make, if it was calibrated.
fn beyond_this_machine(plan: &Plan) -> Option<String> {
    match Calibration::load(&cache::directory()?, &Key::here()) {
        Ok(calibration) => calibration?.doubt(plan),
        Err(error) => Some(format!("{error:#}")),
    }
}

fn resolve_target(uri: &Uri, plan: &Plan) -> Result<Resolved, UsageError> {
    let faults_go_by_name = plan.overloads.iter().any(|overload| overload.fault.goes_by_name());
    let scope = faults_go_by_name.then(|| format!("{APP_NAME}-{:08x}", rand::random::<u32>()));
    let target =
        resolve_options(uri, &plan.client, scope.as_deref(), DRIVER_VERSION).map_err(UsageError::new)?;
    check_tls_files(&target.uri)?;
    Ok(target)
}

async fn start_lab(plan: &Plan, mongod: Option<&Path>, interrupts: &Interrupts) -> anyhow::Result<Lab> {
    // Gates that let everything through until the timeline says otherwise; without such an overload they would only cost.
    let gates =
        plan.overloads.iter().any(|overload| overload.fault.takes_gates()).then(GateSettings::default);
    let options = LabOptions { mongod: mongod.map(Path::to_owned), gates, ..LabOptions::new()? };
    let starting = async { Lab::start(&options, &tell).await.context("the lab did not start") };
    interrupts.before_load(starting).await
}

async fn stop_lab(lab: Option<Arc<Lab>>, interrupts: &mut Interrupts) -> anyhow::Result<()> {
    // Whoever should still hold it holds it no longer than this process: then its keeper ends it.
    let Some(lab) = lab.and_then(Arc::into_inner) else { return Ok(()) };
    tokio::select! {
        stopped = lab.stop() => stopped,
        // Leaving now is safe: the keeper ends the mongods without us.
        () = interrupts.reached(2) => Ok(()),
    }
}

/// Faults hit everyone who uses a deployment; on one that is not ours they have to be named.
fn check_faults(plan: &Plan, allowed: &[String]) -> Result<(), UsageError> {
    for Overload { name, fault, .. } in &plan.overloads {
        let kind = fault.kind();
        if fault.needs_lab() {
            return Err(UsageError::new(format!(
                "overload '{name}': {kind} is done to processes, so it takes the lab: leave the connection string out"
            )));
        }
        if !allowed.iter().any(|a| a == kind) {
            return Err(UsageError::new(format!(
                "overload '{name}' puts {kind} on servers that are not the lab: allow it with --allow-faults={kind}"
            )));
        }
    }
    Ok(())
}

/// Says what will be done to a deployment that is not on this machine, and asks.
fn confirm(uri: &Uri, plan: &Plan, yes: bool) -> anyhow::Result<()> {
    if uri.is_loopback() || yes {
        return Ok(());
    }
    tell(&intent(uri, plan));
    if !std::io::stdin().is_terminal() {
        return Err(UsageError::new("this deployment is not on this machine: say --yes to load it").into());
    }
    flush();
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("no answer could be read")?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        return Err(UsageError::new("nothing was done").into());
    }
    Ok(())
}

fn intent(uri: &Uri, plan: &Plan) -> String {
    let writes = plan.operations.iter().any(|o| o.weight > 0 && o.action.writes());
    let load = match &plan.load.model {
        Model::Open { stages, .. } => {
            let most = stages.iter().map(|s| s.from.get().max(s.to.get())).fold(0.0, f64::max);
            format!("up to {most} operations/s")
        }
        Model::Closed { workers } => format!("{workers} workers"),
    };
    format!(
        "About to load {uri}\n  namespace {}.{}: {} documents are stored there, and the load {}\n  {load} for {} \
         after {} of warm-up",
        plan.data.database,
        plan.data.collection,
        plan.data.documents,
        match (writes, plan.staleness) {
            (true, _) => "writes to it".to_owned(),
            (false, None) => "only reads it".to_owned(),
            (false, Some(_)) =>
                format!("only reads it; the staleness probe writes to {HEARTBEATS} beside it"),
        },
        plan.load.duration,
        plan.load.warmup,
    )
}
