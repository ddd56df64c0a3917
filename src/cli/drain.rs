//! `overdrive drain`

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;

/// `overdrive drain`
#[derive(Debug, Args)]
#[command(after_help = "\
Each operation is sent once, whatever happened before: a write goes in one transaction with a mark of its own in the
collection overdrive.drained beside the data, and one whose mark is there already is left at that.

Examples:
  overdrive drain results/RUN --uri mongodb://127.0.0.1:27017/?replicaSet=rs0")]
pub struct DrainArgs {
    /// The run's directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Which deployment.
    #[command(flatten)]
    pub target: TargetArgs,
}
