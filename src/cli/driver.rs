//! `overdrive driver`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::plan::Driver;

/// `overdrive driver`
#[derive(Debug, Args)]
pub struct DriverArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DriverCommand,
}

/// What can be done about drivers.
#[derive(Debug, Subcommand)]
pub enum DriverCommand {
    /// Build drivers, so that runs can load with them
    Build(DriverBuildArgs),
    /// List the drivers that are there
    List,
}

/// `overdrive driver build`
#[derive(Debug, Args)]
#[command(after_help = "\
Versions of the Rust driver are overdrive itself, built by cargo from its source tree with another lock file; the first
takes some minutes. Versions of PyMongo get a virtual environment each. All are kept in overdrive's cache, or in
$OVERDRIVE_DRIVERS.

Examples:
  overdrive driver build 3.5.2 3.8.2
  overdrive driver build pymongo:4.16.0 pymongo:4.18.0
  overdrive run --vary driver=3.8.2,3.9.1,pymongo:4.18.0")]
pub struct DriverBuildArgs {
    /// Which ones: a version of the Rust driver from 3.3.0 on, or pymongo:VERSION
    #[arg(value_name = "DRIVER", required = true)]
    pub drivers: Vec<Driver>,
    /// Overdrive's source tree, if neither this directory nor the program lies in one
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Build the Rust driver without optimisation: quicker to build, and no good for measuring
    #[arg(long)]
    pub debug: bool,
    /// The Python for PyMongo
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,
}
