//! `overdrive simulate`: a profile, or the plans of a run that was measured, carried out in virtual time.

mod against;
mod trials;

use std::time::Instant;

use anyhow::bail;

use self::against::Measured;
use self::trials::{Trials, Wanted};
use super::run::matrix::refuse_twice;
use super::{Outcome, UsageError, colour, open_profile, print, refuse_uri, resolve_plan};
use crate::cli::{SimulateArgs, SimulationUi};
use crate::interrupts::Interrupts;
use crate::progress::{Lines, Progress, Silent};
use crate::report;
use crate::simulate::pace::Speed;
use crate::simulate::settings;
use crate::tui::{self, Screen, Theme};
use crate::variants::variants;

/// Simulates.
///
/// # Errors
/// [`super::UsageError`] for mistakes in the arguments, the profile or what is to be simulated; anything else means that results
/// could not be written.
pub async fn run(args: SimulateArgs) -> anyhow::Result<Outcome> {
    refuse_uri("--label", args.label.as_deref().unwrap_or_default())?;
    refuse_uri("--out", &args.out.to_string_lossy())?;
    let measured = args.against.as_deref().map(|run| Measured::read(run, &args.load.sets)).transpose()?;
    let (profile, wanted) = match &measured {
        Some(measured) => (measured.profile.clone(), measured.wanted()?),
        None => {
            let profile = open_profile(&args.load.profile)?;
            refuse_twice(&args.vary)?;
            let mut wanted = Vec::new();
            for variant in variants(&args.vary) {
                let (plan, note) = resolve_plan(&profile, &args.load, &variant.settings)?;
                wanted.push(Wanted::new(variant, plan, note.into_iter().collect())?);
            }
            (profile, wanted)
        }
    };
    if args.ui == SimulationUi::Tui && !tui::is_possible() {
        return Err(UsageError::new("--ui tui needs a terminal on standard error").into());
    }
    if let Some(client) = profile.clients.first() {
        return Err(UsageError::new(format!(
            "several clients are not simulated yet, and this profile has client {}: simulate a profile without [clients], or \
             measure it with `overdrive run`",
            client.name
        ))
        .into());
    }
    let interrupts = Interrupts::listen()?;
    let progress: Box<dyn Progress> = match args.ui {
        SimulationUi::Tui => {
            Box::new(Screen::simulated(Theme::new(colour(), args.ascii), interrupts.clone())?)
        }
        SimulationUi::Lines => Box::new(Lines::default()),
        SimulationUi::None => Box::new(Silent),
    };
    let began = Instant::now();
    let mut trials = Trials::begin(&args, &profile, wanted, interrupts, progress)?;
    let summaries = trials.run()?;
    // At another speed than its own it says nothing of that.
    if args.speed == Speed::Max {
        trials.tell_speed(&summaries, began.elapsed());
    }
    let directory = trials.finish(&summaries)?;
    let outcome = trials.outcome();
    // The terminal has to be given back before anything is printed on it.
    drop(trials);
    print(&report::render(&summaries, &directory))?;
    if let Some(measured) = &measured {
        print(&measured.beside(&summaries))?;
    }
    if summaries.iter().any(|trial| !trial.broken.is_empty()) {
        bail!("the numbers do not add up, so this simulation cannot be trusted");
    }
    Ok(outcome)
}
