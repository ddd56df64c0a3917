//! The binary: parse, run, map the outcome to an exit code.

use std::process::ExitCode;

use clap::Parser;
use overdrive::cli::Cli;
use overdrive::command::{Outcome, UsageError};

#[tokio::main]
async fn main() -> ExitCode {
    overdrive::panics::install();
    match overdrive::run(Cli::parse()).await {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("overdrive: {error:#}");
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}
