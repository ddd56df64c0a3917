//! `overdrive export` on the command line.

use clap::{Args, ValueEnum};

/// `overdrive export`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// What to export: a run's directory, or several joined by commas or by a pattern in quotes; DIR:KEY=VALUE takes those
    /// trials of it that have this option, driver, variant, trial or repeat
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What the other tool reads
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// A segment of the measured time, like `before` or an overload's name, or `all` for the whole; benchfmt takes every one
    /// when none is given, and hgrm the whole
    #[arg(long, value_name = "NAME")]
    pub segment: Option<String>,
    /// An operation of the mix (of several clients like `critical/read`), or `all` for all together; benchfmt takes every one when none is given, and hgrm all together
    #[arg(long, value_name = "NAME")]
    pub op: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  overdrive export results/A --format benchfmt > a.txt     then: benchstat a.txt b.txt
  overdrive export results/A --format benchfmt --op all --segment all | benchstat -col /maxAdaptiveRetries -
  overdrive export results/A:trial=1 --format hgrm --op read --segment before > read.hgrm";

/// What another tool reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A line for each trial, segment and operation, as Go's benchmarks print them: for benchstat
    Benchfmt,
    /// The percentiles of the latencies in milliseconds, all trials together, as HdrHistogram prints them
    Hgrm,
}
