//! `overdrive simulate`'s arguments.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::LoadArgs;
use crate::simulate::pace::Speed;
use crate::variants::Varied;

/// `overdrive simulate`
#[derive(Debug, Args)]
#[command(after_help = "\
The same files as of a run come of it, with `simulated` for driver, server and mechanism, so that
`overdrive compare` and `overdrive report` take them. What profiles say of clients, network and
servers is in their table [model]; the README tells its keys.

Examples:
  overdrive simulate metastable                    does it recover? an answer in a second
  overdrive simulate metastable --set flow.backoff.max_attempts=1
  overdrive simulate request-limit --vary maxAdaptiveRetries=0,1,2,5 --vary rate=100/s,240/s,400/s
  overdrive simulate mixed --rate 500k/s --set model.clients=100000 --set model.tickets=10000
  overdrive simulate quickstart --ui tui --speed 5 on the screen, five times as fast as it would go
  overdrive simulate request-limit --vary driver=3.8.2,3.9.1,pymongo:4.17.0
  overdrive simulate --against results/RUN         how near to what was measured?")]
pub struct SimulateArgs {
    /// What and how much of it.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Simulate the plans of a run that was measured instead of a profile, with the options that were in effect, and print
    /// both; of all keys only those of the model can be set
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "profile", "rate", "workers", "duration", "warmup", "seed", "fail_if", "abort_when", "attempts", "vary", "repeat",
    ])]
    pub against: Option<PathBuf>,
    /// Simulate a trial for each of these values of a connection-string option or a key of the profile, like
    /// maxAdaptiveRetries=0,2,5; several make every combination
    #[arg(long, value_name = "KEY=A,B,…")]
    pub vary: Vec<Varied>,
    /// Simulate each variant so often, each time with the next seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// What to show meanwhile
    #[arg(long, value_enum, default_value_t = SimulationUi::Lines)]
    pub ui: SimulationUi,
    /// Simulated seconds that pass in a real one at most: 1 is real time; max is as many as this machine can
    #[arg(long, value_name = "TIMES", default_value_t = Speed::Max)]
    pub speed: Speed,
    /// Draw the screen with nothing but ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Where runs are kept, each in a directory of its own
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// A word for the run's directory
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

/// What to show during a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulationUi {
    /// The screen of a run; its key ? shows the others
    Tui,
    /// A line for each simulated second on standard error
    Lines,
    /// Nothing but warnings
    None,
}
