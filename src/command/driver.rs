//! `overdrive driver`: builds and lists drivers.

use super::{Outcome, print};
use crate::cli::driver::{DriverBuildArgs, DriverCommand};
use crate::driver::{Building, build, built, launch};
use crate::plan::Driver;
use crate::stderr::tell;
use crate::trial::child::greet;

/// Does it.
///
/// # Errors
/// When a driver cannot be built, or those that are there cannot be listed.
pub async fn run(command: DriverCommand) -> anyhow::Result<Outcome> {
    match command {
        DriverCommand::Build(args) => build_all(args).await,
        DriverCommand::List => list().await,
    }
}

async fn build_all(args: DriverBuildArgs) -> anyhow::Result<Outcome> {
    let building = Building { source: args.source, debug: args.debug, python: args.python };
    for driver in &args.drivers {
        if *driver == Driver::built_in() {
            tell(&format!("{driver} is what this program is built with: nothing to build"));
            continue;
        }
        tell(&format!("building driver {driver}"));
        let directory = build(driver, &building)?;
        // Whether it is what this program can work with, which was perhaps built from other sources itself.
        greet(&launch(driver)?, driver).await?;
        print(&format!("{driver} {}\n", directory.display()))?;
    }
    Ok(Outcome::Done)
}

/// One a line: what `--driver` takes. Of one that is there and of no use it says why.
async fn list() -> anyhow::Result<Outcome> {
    let own = Driver::built_in();
    let others = built()?;
    print(&format!("{own}\n"))?;
    for driver in others.iter().filter(|driver| **driver != own) {
        match greet(&launch(driver)?, driver).await {
            Ok(()) => print(&format!("{driver}\n"))?,
            Err(error) => tell(&format!("{error:#}")),
        }
    }
    Ok(Outcome::Done)
}
