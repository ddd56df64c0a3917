//! `overdrive profiles`: what comes with overdrive.

use super::{Outcome, print};
use crate::profile::shipped;

/// Prints a line for each shipped profile.
///
/// # Errors
/// When standard output cannot be written.
pub fn run() -> anyhow::Result<Outcome> {
    let profiles: Vec<_> = shipped::list().collect();
    let width = profiles.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String =
        profiles.iter().map(|(name, description)| format!("{name:width$}  {description}\n")).collect();
    print(&lines)?;
    Ok(Outcome::Done)
}
