//! `overdrive merge` on the command line.

use std::path::PathBuf;

use clap::Args;

/// `overdrive merge`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// The directories of all shards of one load, in any order
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// Where runs are kept: the merged one gets a directory of its own there
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// A word for the merged run's directory
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  start=$(date +%s -d '1 minute')
  seq 0 3 | xargs -P 4 -I{} overdrive run my.toml --uri-file secret.uri --yes --ui none \\
      --shard {}/4 --start-at $start --out shards
  overdrive merge shards/*-shard-*-of-4-*
  overdrive report results/A                       the merged run is one like any other";
