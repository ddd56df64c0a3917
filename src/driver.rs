//! Drivers other than the one that this program is built with: where they are kept, how they are built, and how one is
//! started. Each makes the load in a child process; [`crate::trial::protocol`] is what that and overdrive say to each other.

mod build;
mod pymongo;
mod rust;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, anyhow};

pub use build::{Building, build};

use crate::cache;
use crate::plan::driver::NAMES;
use crate::plan::{Driver, Plan};
use crate::trial::child::Launch;

/// Where drivers are kept; names another directory than the cache's.
const HOME: &str = "OVERDRIVE_DRIVERS";

/// The directory in which each driver has one of its own; it may not be there yet.
///
/// # Errors
/// When nothing says where.
fn home() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os(HOME).filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = named.or_else(|| Some(cache::directory()?.join("drivers")));
    let home =
        home.with_context(|| format!("neither {HOME}, XDG_CACHE_HOME nor HOME says where drivers are kept"))?;
    Ok(std::path::absolute(home)?)
}

fn directory(driver: &Driver) -> anyhow::Result<PathBuf> {
    Ok(home()?.join(format!("{}-{}", driver.name, driver.version)))
}

/// How to start a driver's child.
///
/// # Errors
/// When it was not built here, with how to do that.
pub fn launch(driver: &Driver) -> anyhow::Result<Launch> {
    if *driver == Driver::built_in() {
        return rust::own();
    }
    let directory = directory(driver)?;
    let launch = if driver.is_rust() { rust::launch(&directory) } else { pymongo::launch(&directory)? };
    launch.ok_or_else(|| {
        anyhow!("driver {driver} is not there: build it with `overdrive driver build {driver}`")
    })
}

/// Makes a plan one that a driver's worker can carry out, and returns what people must know of that.
///
/// # Errors
/// What the worker cannot do at all.
pub fn fit(driver: &Driver, plan: &mut Plan) -> Result<Option<String>, String> {
    if driver.is_rust() { Ok(None) } else { pymongo::fit(plan) }
}

/// The drivers that were built here, in order.
///
/// # Errors
/// When their directory cannot be read.
pub fn built() -> anyhow::Result<Vec<Driver>> {
    let home = home()?;
    let entries = match fs::read_dir(&home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", home.display()))?,
    };
    let mut drivers: Vec<Driver> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let (name, version) = name.split_once('-')?;
            NAMES.contains(&name).then(|| format!("{name}:{version}").parse().ok())?
        })
        .filter(|driver| launch(driver).is_ok())
        .collect();
    let numbers = |driver: &Driver| -> Vec<u64> {
        driver.version.split(['.', '-']).map(|part| part.parse().unwrap_or(u64::MAX)).collect()
    };
    drivers.sort_by_key(|driver| {
        (driver.name != crate::plan::driver::RUST, driver.name.clone(), numbers(driver))
    });
    Ok(drivers)
}
