//! What is looked at, and asked, before a run begins.

use std::io::IsTerminal;

use anyhow::Context;

use crate::cli::RunArgs;
use crate::client::uri::Uri;
use crate::command::{UsageError, check_mongod, refuse_uri};
use crate::driver;
use crate::lab::SIZE;
use crate::plan::staleness::HEARTBEATS;
use crate::plan::{Driver, Members, Model, Overload, Plan};
use crate::stderr::{flush, tell};
use crate::trial::child::greet;

/// What can be told of the arguments without a connection.
pub async fn arguments(args: &RunArgs, given: bool) -> Result<(), UsageError> {
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
    Ok(())
}

/// Each driver is asked what it is: one that was built from other sources would take a plan for another.
pub async fn drivers<'a>(plans: impl Iterator<Item = &'a Plan>) -> Result<(), UsageError> {
    let mut asked: Vec<&Driver> = Vec::new();
    for driver in plans.filter_map(|plan| plan.driver.as_ref()) {
        if asked.contains(&driver) {
            continue;
        }
        asked.push(driver);
        let greeted = async { greet(&driver::launch(driver)?, driver).await };
        greeted.await.map_err(|error| UsageError::new(format!("{error:#}")))?;
    }
    Ok(())
}

/// Faults hit everyone who uses a deployment; on one that is not ours they have to be named.
pub fn faults(plan: &Plan, allowed: &[String]) -> Result<(), UsageError> {
    if let Some(Overload { name, fault, .. }) =
        plan.overloads.iter().find(|overload| overload.fault.needs_lab())
    {
        return Err(UsageError::new(format!(
            "overload '{name}': {} is done to processes, so it takes the lab: leave the connection string out",
            fault.kind()
        )));
    }
    let refused: Vec<&Overload> = plan
        .overloads
        .iter()
        .filter(|overload| !allowed.iter().any(|a| a == overload.fault.kind()))
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    let each: Vec<String> = refused
        .iter()
        .map(|Overload { name, fault, .. }| {
            format!("overload '{name}' puts {} on servers that are not the lab", fault.kind())
        })
        .collect();
    let mut kinds: Vec<&str> = refused.iter().map(|overload| overload.fault.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Err(UsageError::new(format!("{}: allow it with --allow-faults={}", each.join("; "), kinds.join(","))))
}

/// The lab's members are known before it is there.
pub fn members(plan: &Plan) -> Result<(), UsageError> {
    for Overload { name, members, .. } in &plan.overloads {
        let Members::Numbers(numbers) = members else { continue };
        if let Some(beyond) = numbers.iter().find(|&&number| number >= usize::from(SIZE)) {
            return Err(UsageError::new(format!(
                "overload '{name}': there is no member {beyond}, the lab has {SIZE}: 0 to {}",
                SIZE - 1
            )));
        }
    }
    Ok(())
}

/// Says what will be done to a deployment that is not on this machine, and asks. `more` is what plans do not say.
pub fn confirm<'a>(
    uri: &Uri,
    plans: impl Iterator<Item = &'a Plan>,
    more: Option<String>,
    yes: bool,
) -> anyhow::Result<()> {
    if uri.is_loopback() || yes {
        return Ok(());
    }
    let mut each: Vec<String> = plans.map(|plan| intent(uri, plan)).collect();
    each.dedup();
    each.extend(more);
    tell(&each.join("\n"));
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

fn amount(model: &Model) -> String {
    match model {
        Model::Open { stages, .. } => {
            let most = stages.iter().map(|s| s.from.get().max(s.to.get())).fold(0.0, f64::max);
            format!("up to {most} operations/s")
        }
        Model::Closed { workers } => format!("{workers} workers"),
    }
}

fn intent(uri: &Uri, plan: &Plan) -> String {
    let writes = plan.operations.iter().any(|o| o.weight > 0 && o.action.writes());
    let load = match plan.clients.as_slice() {
        [] => amount(&plan.load.model),
        clients => {
            let each = clients.iter().map(|group| format!("{}: {}", group.name, amount(&group.model)));
            each.collect::<Vec<_>>().join(", ")
        }
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
