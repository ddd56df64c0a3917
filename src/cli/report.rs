//! `overdrive report` on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::compare::comparability::Part;

/// `overdrive report`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// What to report on, the first being what the others are held against: a run's directory, or several joined by commas
    /// or by a pattern in quotes, whose trials count together; DIR:KEY=VALUE takes those trials of it that have this option,
    /// driver, variant, trial or repeat
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Where the page goes, `-` for standard output; without it to report.html in the run's directory, or here where there
    /// are several
    #[arg(short, long, value_name = "FILE", conflicts_with = "markdown")]
    pub output: Option<PathBuf>,
    /// Write each plot as an SVG file into this directory as well
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Print the tables and verdicts as Markdown, for a pull request, instead of a page
    #[arg(long)]
    pub markdown: bool,
    /// What may differ in the verdicts, beside the driver and its options, because it is what is compared
    #[arg(long, value_name = "PART", value_delimiter = ',', value_enum)]
    pub across: Vec<Part>,
}

const EXAMPLES: &str = "\
Examples:
  overdrive report results/A                           a page in results/A/report.html
  overdrive report results/A results/B -o report.html  two runs, the second against the first
  overdrive report results/A:maxAdaptiveRetries=0 results/A:maxAdaptiveRetries=5 -o report.html
  overdrive report 'results/*-old-*' 'results/*-new-*' --svg plots -o report.html
  overdrive report results/A results/B --markdown | gh pr comment 123 --body-file -";
