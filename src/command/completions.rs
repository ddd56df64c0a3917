//! `overdrive completions`: what a shell needs to complete this program's arguments.

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Outcome, print};
use crate::cli::{Cli, CompletionsArgs};

/// Prints a shell's script.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &CompletionsArgs) -> Result<Outcome> {
    print(&script(args.shell))?;
    Ok(Outcome::Done)
}

fn script(shell: Shell) -> String {
    // Scripts complete hidden commands as well, and there is no way to take one away; so this is a program of the others.
    let shown = Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect::<Vec<_>>();
    let mut program = Command::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .subcommands(shown);
    let mut script = Vec::new();
    generate(shell, &mut program, env!("CARGO_PKG_NAME"), &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_completes_what_is_shown_and_nothing_else() {
        for &shell in Shell::value_variants() {
            let script = script(shell);
            assert!(script.contains("report") && script.contains("vary"), "{shell}");
            assert!(!script.contains("keeper"), "{shell}");
        }
    }
}
