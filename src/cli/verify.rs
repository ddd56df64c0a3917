//! `overdrive verify` on the command line.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::TargetArgs;
use crate::plan::Driver;

/// `overdrive verify`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Which deployment; without one, overdrive starts a lab.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The server program for the lab, also from $OVERDRIVE_MONGOD, if it is not on PATH
    #[arg(long, value_name = "PATH")]
    pub mongod: Option<PathBuf>,
    /// Check another version of the Rust driver, like 3.8.2; `overdrive driver build` builds one
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<Driver>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = VerifyFormat::Table)]
    pub format: VerifyFormat,
    /// Faults that may be put on a deployment that is not the lab: there it takes fail_command, which rejects commands of
    /// overdrive's own connections alone
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = PossibleValuesParser::new([FAIL_COMMAND]))]
    pub allow_faults: Vec<String>,
}

/// The one kind of fault that rules need.
pub const FAIL_COMMAND: &str = "fail_command";

const EXAMPLES: &str = "\
Examples:
  overdrive verify
  overdrive verify --driver 3.8.2
  overdrive verify --format junit > verify.xml
  overdrive verify --uri mongodb://127.0.0.1:27017 --allow-faults=fail_command

Exit codes: 0 no rule is broken, 1 the rules could not be checked, 2 usage, 3 a rule is broken,
130 interrupted";

/// How verdicts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerifyFormat {
    /// For people at a terminal
    Table,
    /// Everything, for programs
    Json,
    /// For what shows the results of tests
    Junit,
}
