//! `overdrive drain`: sends what a run has parked and not sent again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::target::{check_tls_files, given_uri};
use super::{Outcome, UsageError, print};
use crate::cli::DrainArgs;
use crate::client::{connect, shut_down, wait_for_primary};
use crate::drain::{Drain, Order, Sent, read_plan};
use crate::flow::spool::{Parked, Spool};
use crate::plan::SpoolPlan;
use crate::stderr::tell;

/// Operations that are taken out of a spool at once.
const BATCH: usize = 500;

/// Sends all that the spools of a run's trials hold.
///
/// # Errors
/// [`UsageError`] when there is no spool; and when one cannot be read, or an operation cannot be sent.
pub async fn run(args: DrainArgs) -> anyhow::Result<Outcome> {
    let spools = spools(&args.directory)?;
    let Some(uri) = given_uri(&args.target)? else {
        let why =
            "say where to: --uri, --uri-file or $OVERDRIVE_URI. What was parked in a lab ended with the lab";
        return Err(UsageError::new(why).into());
    };
    check_tls_files(&uri)?;
    let client = connect(&uri).await?;
    wait_for_primary(&client, &uri).await?;
    for path in spools {
        let plan = read_plan(&path)?;
        let Some(settings) = plan.flow.spool else { continue };
        let mut spool = open(&path, &settings)?;
        let drain = Drain::new(&client, &plan);
        let sent = empty(&mut spool, &drain, settings.drain.get()).await;
        let (now, before, began) = sent.with_context(|| format!("the spool {}", path.display()))?;
        let seconds = began.elapsed().as_secs_f64();
        print(&format!(
            "{}: {now} operations sent in {seconds:.1} s, {before} had been sent before\n",
            path.display()
        ))?;
    }
    shut_down(client).await;
    Ok(Outcome::Done)
}

fn open(path: &Path, settings: &SpoolPlan) -> anyhow::Result<Spool> {
    let spool = Spool::open(path, settings.max_bytes.get(), settings.rotate_bytes.get());
    let spool = spool.with_context(|| format!("the spool {}", path.display()))?;
    tell(&format!("{}: {} operations are parked", path.display(), spool.backlog()));
    Ok(spool)
}

/// Returns how many were sent, how many had been before, and when it began.
async fn empty(spool: &mut Spool, drain: &Drain, per_second: f64) -> anyhow::Result<(u64, u64, Instant)> {
    let (mut now, mut before, began) = (0, 0, Instant::now());
    loop {
        let batch: Vec<Parked<Order>> = spool.oldest(BATCH)?;
        let Some(last) = batch.last() else { return Ok((now, before, began)) };
        let mut ids = Vec::new();
        for parked in &batch {
            tokio::time::sleep(Duration::from_secs_f64(1.0 / per_second)).await;
            match drain.send(parked).await? {
                Sent::Now => now += 1,
                Sent::Before => before += 1,
                Sent::Never(why) => tell(&format!("operation {} is left out: {why}", parked.operation.n)),
            }
            ids.push(parked.id.clone());
        }
        spool.done(last)?;
        // Nobody sends these again.
        drain.unmark(&ids).await;
    }
}

/// The spools in a run's directory, by trial.
fn spools(directory: &Path) -> Result<Vec<PathBuf>, UsageError> {
    let entries = fs::read_dir(directory)
        .map_err(|error| UsageError::new(format!("{}: {error}", directory.display())))?;
    let is_spool = |path: &PathBuf| {
        path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("spool-"))
    };
    let mut spools: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_spool).collect();
    spools.sort();
    if spools.is_empty() {
        return Err(UsageError::new(format!(
            "{}: no run has parked anything here; name the directory of one with when_full = \"spool\"",
            directory.display()
        )));
    }
    Ok(spools)
}
