//! `overdrive calibrate`: what this machine's generator can do, against a server that costs as little as one can.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

use super::{Outcome, UsageError, print, stub};
use crate::cache;
use crate::calibration::{Calibration, Key};
use crate::cli::CalibrateArgs;
use crate::client::merge::resolve_options;
use crate::client::options;
use crate::client::uri::Uri;
use crate::interrupts::Interrupts;
use crate::plan::Plan;
use crate::profile::{Overrides, Profile, Source, resolve};
use crate::progress::Silent;
use crate::report::calibration::{Step, render};
use crate::results::HostFacts;
use crate::stderr::tell;
use crate::stub::Script;
use crate::stub::process::StubProcess;
use crate::trial::{self, Keeping, Setup};
use crate::units::{Rate, Span};
use crate::variants::Place;

/// Workers that find the ceiling: enough to keep the processors busy, too few to wait for each other.
const WORKERS: u32 = 32;

/// The shares of the ceiling at which it is looked how late operations start.
const SHARES: [f64; 3] = [0.25, 0.5, 0.8];

/// What is done: the cheapest thing an application does. The rest of [load] comes last.
const PROFILE: &str = r#"
[data]
documents = 100
[client]
maxPoolSize = 100
[op.find.find_one]
filter = { _id = { "^Key" = "uniform" } }
[load]
warmup = "1s"
"#;

/// Measures, shows and keeps what this machine can do.
///
/// # Errors
/// When the load cannot be made, or the result not be kept.
pub async fn run(args: CalibrateArgs) -> Result<Outcome> {
    if args.duration == Span::ZERO {
        return Err(UsageError::new("--duration must be longer than 0, like 2s").into());
    }
    let mut interrupts = Interrupts::listen()?;
    let Some(steps) = measure(args.duration, &mut interrupts).await? else {
        tell("Stopped: nothing is kept.");
        return Ok(Outcome::Interrupted);
    };
    // The first step is the one without a rate.
    let ceiling = steps[0].ops_per_s;
    let calibration = Calibration {
        key: Key::here(),
        at: Timestamp::now(),
        ceiling_ops_per_s: ceiling,
        cpu_us_per_op: steps[0].cpu_us_per_op,
    };
    print(&render(&calibration, &HostFacts::detect(), &steps))?;
    let cache = cache::directory();
    let cache = cache.context("it cannot be kept for later runs: neither XDG_CACHE_HOME nor HOME is set")?;
    let file = calibration.store(&cache)?;
    tell(&format!("Kept in {}", file.display()));
    Ok(Outcome::Done)
}

/// All steps; `None` when an end was asked for.
async fn measure(length: Span, interrupts: &mut Interrupts) -> Result<Option<Vec<Step>>> {
    let base = plan(&format!("model = \"closed\"\nworkers = {WORKERS}\nduration = \"{length}\""))?;
    let stub = Arc::new(stub::start(Script::default(), &base).await?);
    let Some(ceiling) = step(base, format!("{WORKERS} workers"), &stub, interrupts).await? else {
        return Ok(None);
    };
    let mut steps = vec![ceiling];
    for share in SHARES {
        let rate = Rate::per_second((steps[0].ops_per_s * share).round())?;
        let plan = plan(&format!("rate = \"{rate}\"\nduration = \"{length}\""))?;
        let name = format!("{:.0}% of it", share * 100.0);
        match step(plan, name, &stub, interrupts).await? {
            Some(step) => steps.push(step),
            None => return Ok(None),
        }
    }
    Ok(Some(steps))
}

fn plan(load: &str) -> Result<Plan> {
    let name = "calibrate".to_owned();
    let source = Source { name: name.clone(), shown: name, text: format!("{PROFILE}{load}\n") };
    let profile = Profile::read(source, &options::check)?;
    Ok(resolve(&profile, &Overrides::default(), &options::check)?)
}

/// One load; `None` when an end was asked for.
async fn step(
    plan: Plan,
    name: String,
    stub: &Arc<StubProcess>,
    interrupts: &mut Interrupts,
) -> Result<Option<Step>> {
    tell(&format!("calibrating: {name}, {} after {} of warm-up", plan.load.duration, plan.load.warmup));
    // As in a real run, results are written; nobody wants to keep these.
    let out = tempfile::tempdir().context("there is no place for temporary files")?;
    let setup = Setup {
        target: resolve_options(&Uri::parse(stub.uri())?, &plan.client, None, &plan.driver())?,
        clients: Vec::new(),
        plan: Arc::new(plan),
        place: Place::ONLY,
        variant: "base".to_owned(),
        params: Vec::new(),
        knobs: Vec::new(),
        keeping: Arc::new(Keeping::new(out.path().to_owned(), None, String::new())),
        notes: Vec::new(),
        lab: None,
        stub: Some(Arc::clone(stub)),
    };
    let finished = trial::run(setup, &mut Silent, interrupts, None).await;
    if interrupts.any() {
        return Ok(None);
    }
    let finished = finished?;
    finished.trouble.map_or(Ok(()), Err)?;
    let summary = finished.summaries.into_iter().next().context("no trial ended")?;
    ensure!(summary.broken.is_empty(), "the numbers do not add up: {}", summary.broken.join("; "));
    let step = Step::of(name, &summary);
    ensure!(step.ops_per_s > 0.0, "no operation succeeded in that time: give it more with --duration");
    Ok(Some(step))
}
