//! `overdrive run`: resolve, find a deployment, run the trial, show what came of it.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::target::given_uri;
use super::{Outcome, UsageError, colour, open_profile, print, resolve_plan};
use crate::cli::{RunArgs, Ui};
use crate::client::merge::{APP_NAME, Resolved, resolve_options};
use crate::client::uri::Uri;
use crate::client::version::DRIVER_VERSION;
use crate::interrupts::Interrupts;
use crate::lab::{Lab, LabOptions};
use crate::plan::{GateSettings, Model, Plan};
use crate::profile::describe;
use crate::profile::estimate::doubts;
use crate::progress::{Lines, Progress, Silent};
use crate::report;
use crate::results::{HostFacts, RunFacts};
use crate::stderr::{flush, tell};
use crate::trial::{self, Finished, Setup};
use crate::tui::{self, Screen, Theme};

/// A connection string of the same shape as the lab's.
const LIKE_THE_LAB: &str = "mongodb://127.0.0.1/?replicaSet=overdrive";

/// Runs one trial.
///
/// # Errors
/// [`UsageError`] for what can be told from the arguments alone; anything else means that the run failed.
pub async fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    let profile = open_profile(&args.load.profile)?;
    let plan = resolve_plan(&profile, &args.load)?;
    let given = given_uri(&args.target)?;
    // Options that no deployment would take are told before a lab is started for them.
    let target = match &given {
        Some(uri) => resolve_target(uri, &plan)?,
        None => resolve_target(&Uri::parse(LIKE_THE_LAB)?, &plan)?,
    };
    if args.dry_run {
        print(&describe(&plan))?;
        return Ok(Outcome::Done);
    }
    if args.ui == Ui::Tui && !tui::is_possible() {
        return Err(UsageError::new("--ui tui needs a terminal on standard error").into());
    }
    if let Some(uri) = &given {
        allow_faults(&plan, &args.allow_faults)?;
        // While Ctrl-C still ends this program by itself: it is an answer, too.
        confirm(uri, &plan, args.yes)?;
    }
    let mut interrupts = Interrupts::listen()?;
    let mut progress = progress(args.ui, args.ascii, &interrupts)?;
    let lab = match given {
        Some(_) => None,
        None => Some(Arc::new(start_lab(&plan, args.mongod.as_deref(), &interrupts).await?)),
    };
    let target = match &lab {
        Some(lab) => resolve_target(&Uri::parse(lab.uri())?, &plan)?,
        None => target,
    };
    let notes: Vec<String> = target.notices.iter().cloned().chain(doubts(&plan)).collect();
    notes.iter().for_each(|note| progress.note(note));
    let setup = Setup {
        plan: Arc::new(plan),
        notes,
        target,
        profile_text: profile.text,
        out: args.out,
        label: args.label,
        lab: lab.clone(),
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
    // The terminal has to be given back before anything is printed on it.
    drop(progress);
    print(&report::render(&trials, directory.path()))?;
    if trials.iter().any(|trial| !trial.broken.is_empty()) {
        bail!("the numbers do not add up, so this run cannot be trusted");
    }
    trouble.map_or(Ok(()), Err)?;
    stopped?;
    Ok(if interrupts.any() { Outcome::Interrupted } else { Outcome::Done })
}

fn progress(ui: Ui, ascii: bool, interrupts: &Interrupts) -> anyhow::Result<Box<dyn Progress + Send>> {
    Ok(match ui {
        Ui::None => Box::new(Silent),
        Ui::Auto if !tui::is_expected() => Box::new(Lines::default()),
        Ui::Lines => Box::new(Lines::default()),
        Ui::Auto | Ui::Tui => Box::new(Screen::new(Theme::new(colour(), ascii), interrupts.clone())?),
    })
}

fn resolve_target(uri: &Uri, plan: &Plan) -> Result<Resolved, UsageError> {
    let faults_go_by_name = plan.overloads.iter().any(|overload| overload.fault.goes_by_name());
    let scope = faults_go_by_name.then(|| format!("{APP_NAME}-{:08x}", rand::random::<u32>()));
    resolve_options(uri, &plan.client, scope.as_deref(), DRIVER_VERSION).map_err(UsageError::new)
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
fn allow_faults(plan: &Plan, allowed: &[String]) -> anyhow::Result<()> {
    for overload in &plan.overloads {
        let kind = overload.fault.kind();
        if !allowed.iter().any(|a| a == kind) {
            let why = format!(
                "overload '{}' puts {kind} on servers that are not the lab: allow it with --allow-faults={kind}",
                overload.name
            );
            return Err(UsageError::new(why).into());
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
        if writes { "writes to it" } else { "only reads it" },
        plan.load.duration,
        plan.load.warmup,
    )
}
