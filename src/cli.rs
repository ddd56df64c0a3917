//! The command line. Its comments are the help.

mod compare;
mod drain;
pub mod driver;
mod export;
mod limits;
mod merge;
mod report;
mod shard;
mod simulate;
pub mod verify;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use self::compare::{CompareArgs, Format};
pub use self::drain::DrainArgs;
pub use self::driver::DriverArgs;
pub use self::export::{ExportArgs, ExportFormat};
pub use self::limits::LimitArgs;
pub use self::merge::MergeArgs;
pub use self::report::ReportArgs;
pub use self::shard::{ShardArg, ShardArgs, in_bounds as shard_in_bounds};
pub use self::simulate::{SimulateArgs, SimulationUi};
pub use self::verify::{VerifyArgs, VerifyFormat};
use crate::plan::{Attempts, Driver};
use crate::profile::{FAULT_KINDS, condition, looks_like_uri, masked, masked_argument};
use crate::stderr::{flush, tell};
use crate::stub::Script;
use crate::thresholds::Condition;
use crate::units::{Rate, Span};
use crate::variants::Varied;

/// Loads a MongoDB deployment until it pushes back, and shows what the driver does about it
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  overdrive run                                    a first look, in a lab of overdrive's own
  overdrive run mixed --rate 800/s --duration 30s  another shipped profile
  overdrive run --set maxAdaptiveRetries=5         the same load, another setting
  overdrive run --vary maxAdaptiveRetries=0,2,5 --repeat 5
  overdrive run my.toml --uri mongodb://127.0.0.1:27017
  overdrive run read-heavy --stub=service=1ms      a server that is known: are the numbers true?
  overdrive run mixed --find-max 'error_rate<1%'   the largest rate that holds that
  overdrive run mixed --fail-if 'error_rate>1%'    end with exit code 3 if that is what it came to
  overdrive verify                                 does this driver keep the specification of backpressure?
  overdrive calibrate                              what this machine can do
  overdrive run --ui lines                         a line each second instead of the screen
  overdrive check my.toml                          what a profile comes to, without connecting
  overdrive simulate my.toml                       what it would come to, by a model, at any scale
  overdrive compare results/A results/B            what is better and what is worse
  overdrive report results/A -o report.html        a page to look at, print or pass on
  overdrive merge shards/*                         one run of what several machines have made

Exit codes: 0 ok, 1 the run failed, 2 usage or profile, 3 a threshold was crossed or no rate
confirmed (run), something got worse (compare --fail-on-regression), or a rule is broken (verify),
130 interrupted with results kept.
1 comes before all others; between 3 and 130 the first reason wins";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a deployment and keep what happened
    Run(Box<RunArgs>),
    /// Show what a profile comes to, without connecting
    Check(CheckArgs),
    /// Carry a profile out in virtual time, on a model of clients, drivers and servers
    Simulate(Box<SimulateArgs>),
    /// Say what is better and what is worse between runs, or within one
    Compare(CompareArgs),
    /// Make a page of runs: tables, plots and verdicts in one file, or Markdown
    Report(ReportArgs),
    /// Print what other tools read: Go's benchmark format, or HdrHistogram's percentiles
    Export(ExportArgs),
    /// Join the shards of one load, which several processes or machines have made, to a run like any other
    Merge(MergeArgs),
    /// List the profiles that come with overdrive
    Profiles,
    /// Measure what this machine can do, so that runs that ask for more can be told so
    Calibrate(CalibrateArgs),
    /// Start a replica set of three real servers, print its connection string, and keep it until Ctrl-C
    Lab(LabArgs),
    /// Put a gate before a server, which sheds load as the newest servers do, until Ctrl-C
    Gate(GateArgs),
    /// Build and list drivers in other versions or languages, which runs can load with
    Driver(DriverArgs),
    /// Send what a run has parked in its spool
    Drain(DrainArgs),
    /// Check whether a driver keeps the specification of backpressure, rule by rule
    Verify(VerifyArgs),
    /// Undo the faults that a run has left on servers because it was killed
    Restore(RestoreArgs),
    /// Print what a shell needs to complete these commands and their options
    Completions(CompletionsArgs),
    /// Print a manual page: that of overdrive, or of one of its commands
    Man(ManArgs),
    /// Make a trial's load (overdrive starts this itself)
    #[command(hide = true)]
    Child,
    /// Keep the lab's servers (overdrive starts this itself)
    #[command(hide = true)]
    Keeper,
    /// Answer as a script says (overdrive starts this itself)
    #[command(hide = true)]
    Stub,
}

/// `overdrive run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What and how much of it.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Which deployment; without one, overdrive starts a lab.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The server program for the lab, also from $OVERDRIVE_MONGOD, if it is not on PATH
    #[arg(long, value_name = "PATH")]
    pub mongod: Option<PathBuf>,
    /// Load a stub, a server that stores nothing and answers at once, or as SCRIPT says:
    /// service=1ms, service=exp:1ms, stall=5s+1s, fail=every:10 or fail=0.1 with code=462 and labels=A+B,
    /// joined by commas
    #[arg(long, value_name = "SCRIPT", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with_all = ["uri", "uri_file"])]
    pub stub: Option<Script>,
    /// Run a trial for each of these values of a connection-string option or a key of the profile, like
    /// maxAdaptiveRetries=0,2,5; several make every combination
    #[arg(long, value_name = "KEY=A,B,…")]
    pub vary: Vec<Varied>,
    /// Run each variant so often, there and back, so that drift meets all alike
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Search the largest rate at which this holds, like 'error_rate < 1%' or 'latency_p99 < 50ms': doubles the rate, from
    /// that of --rate or the profile, until a trial fails, then bisects to within 5 %, and waits after each failure until
    /// the deployment is back; in quotes, as often as wanted: all of them must hold. Exit code 3 if no rate was confirmed
    #[arg(long, value_name = "EXPR", value_parser = condition)]
    pub find_max: Vec<Condition>,
    /// With --find-max: how long the rate that was found is measured again, if that is longer than --duration
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        requires = "find_max",
        allow_hyphen_values = true
    )]
    pub confirm_for: Span,
    /// Go on with a run of several trials that was interrupted, in its directory: give the profile and the arguments that
    /// it was started with; trials that were whole are not run again, and --out and --label say nothing more
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Which part of it, when several processes make one load.
    #[command(flatten)]
    pub shard: ShardArgs,
    /// Load a deployment that is not on this machine without asking
    #[arg(long)]
    pub yes: bool,
    /// Faults that may be put on a deployment that is not the lab
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = PossibleValuesParser::new(FAULT_KINDS))]
    pub allow_faults: Vec<String>,
    /// What to show meanwhile
    #[arg(long, value_enum, default_value_t = Ui::Auto)]
    pub ui: Ui,
    /// Serve figures in Prometheus' format at http://ADDRESS:PORT/metrics during the run; without an address on this
    /// machine alone, and port 0 is any free one
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,
    /// Draw the screen with nothing but ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Where runs are kept, each in a directory of its own
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// A word for the run's directory
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Check all that needs no connection, print what would be done, where and with which options, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A deployment.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// The deployment, also from $OVERDRIVE_URI; `run` and `verify` start a lab when there is none
    #[arg(long, value_name = "URI", conflicts_with = "uri_file")]
    pub uri: Option<String>,
    /// A file that holds the connection string, so that it is on no command line
    #[arg(long, value_name = "FILE")]
    pub uri_file: Option<PathBuf>,
}

/// `overdrive restore`
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Which deployment.
    #[command(flatten)]
    pub target: TargetArgs,
}

/// What is to be done, and what differs from the profile.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// A file, or the name of a profile that comes with overdrive
    #[arg(value_name = "PROFILE", default_value = "quickstart")]
    pub profile: String,
    /// Set a connection-string option or a key of the profile: maxAdaptiveRetries=5, op.find.weight=3,
    /// of one of several clients clients.NAME.load.rate=50/s; the value `unset` takes an option away
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub sets: Vec<(String, String)>,
    /// Operations per second, like 500/s (open model)
    #[arg(long, value_name = "RATE", conflicts_with = "workers", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Workers that each start their next operation when the last has ended (closed model)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub workers: Option<u32>,
    /// The measured time, like 30s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Span>,
    /// The load before it, like 5s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warmup: Option<Span>,
    /// Fixes keys, documents, order and arrivals
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// End with exit code 3 if this holds for the measured time, like 'latency_p99 > 50ms' or
    /// 'op.read.error_rate > 1%', or if there is no such figure; in quotes, as often as wanted
    #[arg(long, value_name = "EXPR", value_parser = condition)]
    pub fail_if: Vec<Condition>,
    /// End a trial early, and with exit code 3, once this has held at the end of every interval for 5 s of the measured
    /// time, 100 operations or more being due by then
    #[arg(long, value_name = "EXPR", value_parser = condition)]
    pub abort_when: Vec<Condition>,
    /// The driver that makes the attempts, like 3.8.2 or pymongo:4.18.0, in a process of its own; `overdrive driver build`
    /// builds one
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<Driver>,
    /// How attempts are counted: `light` costs less and knows less
    #[arg(long, value_enum)]
    pub attempts: Option<AttemptsArg>,
}

/// Reads this program's arguments, or ends it: with the help that was asked for, or with what is wrong with them.
pub fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let text = error.render().to_string();
        let shown =
            without_secrets(&text, std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()));
        if shown != text && error.use_stderr() {
            tell(&shown);
            flush();
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// A message about arguments, of which it repeats some: a connection string may stand in any place, with its password.
fn without_secrets(message: &str, arguments: impl Iterator<Item = String>) -> String {
    let mut shown = message.to_owned();
    for argument in arguments.filter(|argument| argument.contains('@')) {
        let value = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => value,
            _ => argument.as_str(),
        };
        shown = shown.replace(value, &masked_argument(value));
    }
    masked(&shown)
}

/// `overdrive check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What to check.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Print the plan as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// `overdrive calibrate`
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The measured time of each of its four loads
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    pub duration: Span,
}

/// `overdrive completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overdrive completions bash > ~/.local/share/bash-completion/completions/overdrive
  overdrive completions fish > ~/.config/fish/completions/overdrive.fish")]
pub struct CompletionsArgs {
    /// Whose
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `overdrive man`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  overdrive man | man -l -
  overdrive man report > overdrive-report.1")]
pub struct ManArgs {
    /// Of which command; of overdrive as a whole when none is given
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// `overdrive lab`
#[derive(Debug, Args)]
pub struct LabArgs {
    /// The server program, also from $OVERDRIVE_MONGOD, if it is not on PATH
    #[arg(long, value_name = "PATH")]
    pub mongod: Option<PathBuf>,
    /// Put a gate before each server, which sheds load as the newest servers do; any limit implies it
    #[arg(long)]
    pub gate: bool,
    /// What they let through.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// `overdrive gate`
#[derive(Debug, Args)]
pub struct GateArgs {
    /// The server to stand before
    #[arg(long, value_name = "HOST:PORT", value_parser = limits::host_and_port)]
    pub upstream: String,
    /// Where to listen; port 0 is any free one. Whoever reaches this address reaches the server
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What it lets through.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// What to show during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ui {
    /// The screen on a terminal, lines elsewhere
    Auto,
    /// The screen; its key ? shows the others
    Tui,
    /// A line each second on standard error
    Lines,
    /// Nothing but warnings
    None,
}

/// How attempts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttemptsArg {
    /// By pool and command events
    Full,
    /// By pool events alone
    Light,
}

impl From<AttemptsArg> for Attempts {
    fn from(arg: AttemptsArg) -> Self {
        match arg {
            AttemptsArg::Full => Self::Full,
            AttemptsArg::Light => Self::Light,
        }
    }
}

/// Nobody else can listen in, unless an address was given.
fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| "write PORT or ADDRESS:PORT, like 9464 or 0.0.0.0:9464".to_owned())
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, _)) if looks_like_uri(key) => Err("a connection string goes to --uri".to_owned()),
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, like maxAdaptiveRetries=5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_repeat_no_password() {
        let told = |args: &[&str]| {
            let error = Cli::try_parse_from([&["overdrive"], args].concat()).unwrap_err();
            without_secrets(&error.render().to_string(), args.iter().map(|&arg| arg.to_owned()))
        };
        for uri in ["mongodb://u:s3cret@h:1/?w=1", "mongodb:u:s3c@ret@h:1", "u:s3cret@h:1"] {
            for args in [
                &["gate", "--upstream", uri][..],
                &["gate", "--upstream", "h:1", "--listen", uri],
                &["run", "--workers", uri],
                &["run", "mixed", uri],
                &["run", "--set", uri],
                &[uri],
            ] {
                let told = told(args);
                assert!(!told.contains("s3c") && !told.contains("ret@"), "{args:?}: {told}");
            }
            let joined = told(&["gate", &format!("--upstream={uri}")]);
            assert!(!joined.contains("s3c") && joined.contains("***@h"), "{joined}");
        }
    }
}
