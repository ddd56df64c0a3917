//! `overdrive merge`: one run of the shards of a load.

use anyhow::{Result, bail};

use super::{Outcome, UsageError, print, refuse_uri};
use crate::cli::MergeArgs;
use crate::compare::Error;
use crate::merge::merge;
use crate::report;
use crate::thresholds::{Verdict, evaluate};

/// Merges, prints what the load came to, and judges it.
///
/// # Errors
/// When the directories are not all shards of one load, files cannot be read or written, or the sums do not add up.
pub fn run(args: &MergeArgs) -> Result<Outcome> {
    refuse_uri("--label", args.label.as_deref().unwrap_or_default())?;
    refuse_uri("--out", &args.out.to_string_lossy())?;
    for directory in &args.shards {
        refuse_uri("merge", &directory.to_string_lossy())?;
    }
    let merged = merge(&args.shards, &args.out, args.label.as_deref());
    let (directory, summary) = merged.map_err(|error| match error {
        Error::Asked(what) => anyhow::Error::new(UsageError::new(what)),
        Error::Stored(_) => error.into(),
    })?;
    let trials = [summary];
    print(&report::render(&trials, directory.path()))?;
    if !trials[0].broken.is_empty() {
        bail!("the numbers do not add up, so this run cannot be trusted");
    }
    Ok(match evaluate(&trials[0]).iter().any(Verdict::failed) {
        true => Outcome::ThresholdCrossed,
        false => Outcome::Done,
    })
}
