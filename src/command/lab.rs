//! `overdrive lab`: a replica set to play with, until Ctrl-C.

use anyhow::Result;

use super::{Outcome, check_mongod, print};
use crate::cli::LabArgs;
use crate::interrupts::Interrupts;
use crate::lab::{Lab, LabOptions};
use crate::stderr::tell;

/// Starts a lab, prints its URI, and keeps it until a signal says otherwise.
///
/// # Errors
/// When no server is to be had, or it does not become a replica set.
pub async fn run(args: LabArgs) -> Result<Outcome> {
    check_mongod(args.mongod.as_deref()).await?;
    // Before anything is started: a Ctrl-C in the middle of starting undoes what there is.
    let mut interrupts = Interrupts::listen()?;
    let gates = (args.gate || args.limits.any()).then(|| args.limits.settings());
    let options = LabOptions { mongod: args.mongod, gates, ..LabOptions::new()? };
    let lab = tokio::select! {
        lab = Lab::start(&options, &tell) => lab?,
        () = interrupts.reached(1) => {
            tell("Stopped before the lab was ready.");
            return Ok(Outcome::Interrupted);
        }
    };
    // The only line on standard output, for scripts.
    print(&format!("{}\n", lab.uri()))?;
    tell(&format!("Ready. Try it from another terminal: overdrive run mixed --uri '{}'", lab.uri()));
    tell("Ctrl-C ends it, and its data with it.");
    interrupts.reached(1).await;
    for gate in lab.gates() {
        tell(&format!("The gate at {}: {}.", gate.address(), gate.counters()));
    }
    tell("Stopping the lab.");
    tokio::select! {
        stopped = lab.stop() => stopped?,
        // Leaving now is safe: the keeper ends the mongods without us.
        () = interrupts.reached(2) => {}
    }
    Ok(Outcome::Done)
}
