//! The subcommands: each file is the recipe of one.

pub mod calibrate;
pub mod check;
pub mod gate;
pub mod keeper;
pub mod lab;
pub mod profiles;
pub mod restore;
pub mod run;
pub mod stub;
pub mod target;

use std::io::{ErrorKind, IsTerminal, Write};

use crate::cli::LoadArgs;
use crate::client::options;
use crate::plan::Plan;
use crate::profile::{Overrides, Profile, resolve};
use crate::stderr::tell;

/// How a command ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was meant to.
    Done,
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
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
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

fn resolve_plan(profile: &Profile, args: &LoadArgs) -> Result<Plan, UsageError> {
    let overrides = Overrides {
        rate: args.rate,
        workers: args.workers,
        duration: args.duration,
        warmup: args.warmup,
        seed: args.seed,
        attempts: args.attempts.map(Into::into),
        sets: args.sets.clone(),
        ..Overrides::default()
    };
    resolve(profile, &overrides, &options::check).map_err(UsageError::new)
}

/// Whether messages may carry colour.
fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
