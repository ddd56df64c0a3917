//! The subcommands: each file is the recipe of one.

pub mod calibrate;
pub mod check;
pub mod child;
pub mod compare;
pub mod completions;
pub mod drain;
pub mod driver;
pub mod export;
pub mod gate;
pub mod keeper;
pub mod lab;
pub mod man;
pub mod merge;
pub mod profiles;
pub mod report;
pub mod restore;
pub mod run;
pub mod simulate;
pub mod stub;
pub mod target;
pub mod verify;

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use crate::cli::LoadArgs;
use crate::client::options;
use crate::lab::mongod;
use crate::plan::Plan;
use crate::profile::{Overrides, Profile, looks_like_uri, masked_argument, resolve, stretched};
use crate::stderr::tell;

/// How a command ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was meant to.
    Done,
    /// Something got worse, and that was to be told by the exit code.
    Regression,
    /// A trial came to what it must not come to, or was ended early because of it.
    ThresholdCrossed,
    /// A search confirmed no rate.
    NothingFound,
    /// The driver breaks a rule of the specification.
    RuleBroken,
    /// The user asked for an end; what there is was kept.
    Interrupted,
}

/// A mistake in the arguments or the profile: the user's to mend, before anything is done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// From anything that says what is wrong.
    pub fn new(what: impl std::fmt::Display) -> Self {
        Self(what.to_string())
    }
}

/// Writes a command's result. A reader that has seen enough is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

fn open_profile(wanted: &str) -> Result<Profile, UsageError> {
    let profile = Profile::open(wanted, &options::check).map_err(|d| UsageError::new(d.render(colour())))?;
    if !profile.warnings.list.is_empty() {
        tell(&profile.warnings.render(colour()).to_string());
    }
    Ok(profile)
}

/// The plan, and what is to be known of how it came to be.
fn resolve_plan(
    profile: &Profile,
    args: &LoadArgs,
    varies: &[(String, String)],
) -> Result<(Plan, Option<String>), UsageError> {
    let overrides = Overrides {
        rate: args.rate,
        workers: args.workers,
        duration: args.duration,
        warmup: args.warmup,
        seed: args.seed,
        attempts: args.attempts.map(Into::into),
        driver: args.driver.clone(),
        fail_if: args.fail_if.clone(),
        abort_when: args.abort_when.clone(),
        sets: args.sets.clone(),
        varies: varies.to_owned(),
    };
    let plan = resolve(profile, &overrides, &options::check).map_err(UsageError::new)?;
    let note = stretched(profile, &overrides, &options::check).map_err(UsageError::new)?;
    Ok((plan, note))
}

/// Where a word or a file is wanted, a connection string is easily given; its password must not become a name.
fn refuse_uri(option: &str, given: &str) -> Result<(), UsageError> {
    if !looks_like_uri(given) || Path::new(given).exists() {
        return Ok(());
    }
    let shown = masked_argument(given);
    let why =
        format!("{option} {shown}: a connection string is given with --uri, --uri-file or $OVERDRIVE_URI");
    Err(UsageError::new(why))
}

/// The server program that somebody named is theirs to mend, before anything is done.
async fn check_mongod(named: Option<&Path>) -> Result<(), UsageError> {
    refuse_uri("--mongod", &named.unwrap_or(Path::new("")).to_string_lossy())?;
    mongod::by_name(named).await.map(drop).map_err(|error| UsageError::new(format!("{error:#}")))
}

/// Whether messages may carry colour.
fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
