//! `overdrive check`: what a profile comes to.

use super::{Outcome, open_profile, print, resolve_plan};
use crate::cli::CheckArgs;
use crate::profile::describe;
use crate::profile::estimate::{Options, doubts};

/// Prints the resolved plan.
///
/// # Errors
/// Every mistake in the profile or the arguments.
pub fn run(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let profile = open_profile(&args.load.profile)?;
    let (plan, note) = resolve_plan(&profile, &args.load, &[])?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&plan)?))?;
    } else {
        let doubts: Vec<String> = note.into_iter().chain(doubts(&plan, Options::default())).collect();
        print(&describe(&plan, None, &doubts))?;
    }
    Ok(Outcome::Done)
}
