//! `overdrive driver`: builds and lists drivers.

use super::{Outcome, print};
use crate::cli::driver::{DriverBuildArgs, DriverCommand};
use crate::driver::{Building, build, built};
use crate::plan::Driver;
use crate::stderr::tell;

/// Does it.
///
/// # Errors
/// When a driver cannot be built, or those that are there cannot be listed.
pub fn run(command: DriverCommand) -> anyhow::Result<Outcome> {
    match command {
        DriverCommand::Build(args) => build_all(args),
        DriverCommand::List => list(),
    }
}

fn build_all(args: DriverBuildArgs) -> anyhow::Result<Outcome> {
    let building = Building { source: args.source, debug: args.debug, python: args.python };
    for driver in &args.drivers {
        if *driver == Driver::built_in() {
            tell(&format!("{driver} is what this program is built with: nothing to build"));
            continue;
        }
        tell(&format!("building driver {driver}"));
        let directory = build(driver, &building)?;
        print(&format!("{driver} {}\n", directory.display()))?;
    }
    Ok(Outcome::Done)
}

/// One a line: what `--driver` takes.
fn list() -> anyhow::Result<Outcome> {
    let own = Driver::built_in();
    let others = built()?;
    let all = [own.clone()].into_iter().chain(others.into_iter().filter(|driver| *driver != own));
    print(&all.map(|driver| format!("{driver}\n")).collect::<String>())?;
    Ok(Outcome::Done)
}
