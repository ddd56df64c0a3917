//! `overdrive man`: the help as manual pages.

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use super::{Outcome, UsageError, print};
use crate::cli::{Cli, ManArgs};

/// Prints the page of the program, or that of one of its commands.
///
/// # Errors
/// When there is no such command, or standard output cannot be written.
pub fn run(args: &ManArgs) -> Result<Outcome> {
    print(&page(args.command.as_deref())?)?;
    Ok(Outcome::Done)
}

fn page(command: Option<&str>) -> Result<String> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let about = match command {
        None => &program,
        Some(name) => {
            let mut shown = program.get_subcommands().filter(|command| !command.is_hide_set());
            shown.find(|command| command.get_name() == name).ok_or_else(|| unknown(name, &program))?
        }
    };
    let mut text = Vec::new();
    Man::new(about.clone()).render(&mut text).context("cannot make the page")?;
    Ok(as_written(&String::from_utf8_lossy(&text)))
}

/// With the lines of the examples, which are all that is extra, left as they are.
fn as_written(page: &str) -> String {
    page.replace(".SH EXTRA\n", ".SH EXTRA\n.nf\n").replace("\n.SH VERSION\n", "\n.fi\n.SH VERSION\n")
}

fn unknown(name: &str, program: &clap::Command) -> UsageError {
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    UsageError::new(format!("there is no command '{name}': there are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_and_hidden_ones_have_none() {
        let program = page(None).unwrap();
        assert!(
            program.contains(".TH overdrive 1") && program.contains("overdrive\\-report(1)"),
            "{program}"
        );
        for hidden in ["keeper", "stub"] {
            assert!(!program.contains(&format!("overdrive\\-{hidden}")), "{program}");
            assert!(page(Some(hidden)).unwrap_err().is::<UsageError>());
        }
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = page(Some(command.get_name())).unwrap();
            assert!(page.contains(&format!(".TH overdrive-{} 1", command.get_name())), "{page}");
        }
        let report = page(Some("report")).unwrap();
        assert_eq!(
            (report.matches("\n.nf\n").count(), report.matches("\n.fi\n").count()),
            (1, 1),
            "{report}"
        );
        let error = page(Some("fly")).unwrap_err().to_string();
        assert!(error.contains("no command 'fly': there are run, "), "{error}");
    }
}
