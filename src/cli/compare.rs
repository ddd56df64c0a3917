//! `overdrive compare` on the command line.

use clap::{Args, ValueEnum};

use crate::compare::comparability::Part;
use crate::metric::Metric;
use crate::units::Percent;

/// `overdrive compare`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// What the others are held against; alone, a run whose trials differ in one thing, and are compared across it.
    /// A side is a run's directory, or several joined by commas or by a pattern in quotes, whose trials count together;
    /// DIR:KEY=VALUE takes those trials of it that have this option, driver, variant, trial or repeat
    #[arg(value_name = "BASE")]
    pub base: String,
    /// Sides to hold against it, each by itself
    #[arg(value_name = "NEW")]
    pub new: Vec<String>,
    /// How much of a difference does not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = share)]
    pub noise: f64,
    /// Compare these alone, joined by commas: fewer figures take fewer trials
    #[arg(long, value_name = "METRIC", value_delimiter = ',', value_enum)]
    pub metrics: Vec<Metric>,
    /// Compare a segment of the measured time, like `before` or an overload's name
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub segment: String,
    /// Compare one operation of the mix; of several clients like `critical/read`, or `critical/all`
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub op: String,
    /// What the sides may differ in, beside the driver and its options, because it is what is compared
    #[arg(long, value_name = "PART", value_delimiter = ',', value_enum)]
    pub across: Vec<Part>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// End with exit code 3 when anything is worse
    #[arg(long)]
    pub fail_on_regression: bool,
}

const EXAMPLES: &str = "\
Examples:
  overdrive compare results/A results/B                    two runs
  overdrive compare 'results/*-old-*' 'results/*-new-*'    all runs with a label against all with another
  overdrive compare A:maxAdaptiveRetries=0 A:maxAdaptiveRetries=2
  overdrive compare A1,A2,A3,A4 B1,B2,B3,B4 --metrics goodput --fail-on-regression";

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people at a terminal
    Table,
    /// A row per metric, for programs
    Csv,
    /// Everything, for programs
    Json,
    /// For reports and pull requests
    Markdown,
}

/// A percentage, as a share; all of it is too much.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<Percent>().map_err(|error| error.to_string())?.share();
    if share < 1.0 { Ok(share) } else { Err("write a percentage below 100%, like 2%".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_a_percentage() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5 %"), Ok(0.005));
        assert_eq!(share("0%"), Ok(0.0));
        for wrong in ["2", "", "%", "-1%", "100%", "NaN%", "two%"] {
            assert!(share(wrong).unwrap_err().contains("like 2%"), "{wrong}");
        }
    }
}
