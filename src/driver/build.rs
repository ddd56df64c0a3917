//! Building drivers, one after the other.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};

use super::{home, pymongo, rust};
use crate::plan::Driver;

/// How drivers are built.
#[derive(Clone, Debug)]
pub struct Building {
    /// Overdrive's source tree, for versions of the Rust driver; `None` looks around.
    pub source: Option<PathBuf>,
    /// Whether the Rust driver is built without optimisation.
    pub debug: bool,
    /// The Python that PyMongo is installed beside.
    pub python: PathBuf,
}

/// Builds a driver, in place of one that was built before. Returns where it is kept.
///
/// # Errors
/// When it cannot be built; what the tools have to say about that is on standard error by then.
pub fn build(driver: &Driver, building: &Building) -> anyhow::Result<PathBuf> {
    let home = home()?;
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    // Two builds at once would take each other's programs for their own.
    let lock = File::create(home.join("lock")).context("cannot lock the drivers' directory")?;
    flock(&lock, FlockOperation::LockExclusive).context("cannot lock the drivers' directory")?;
    if driver.is_rust() {
        rust::build(driver, &home, building)
    } else {
        pymongo::build(driver, &home, building)
    }
}
