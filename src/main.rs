//! The binary: parse, run, map the outcome to an exit code.

use std::process::ExitCode;

use overdrive::cli;
use overdrive::command::{Outcome, UsageError};
use overdrive::stderr::{flush, tell};

#[tokio::main]
async fn main() -> ExitCode {
    overdrive::panics::install();
    let outcome = overdrive::run(cli::parse()).await;
    overdrive::panics::ending();
    let code = match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Regression | Outcome::ThresholdCrossed | Outcome::NothingFound | Outcome::RuleBroken) => {
            ExitCode::from(3)
        }
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            let text = format!("{error:#}");
            // Mistakes in a profile come with their own heading.
            tell(&if text.starts_with("error") { text } else { format!("overdrive: {text}") });
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    };
    flush();
    code
}
