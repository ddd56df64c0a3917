//! `overdrive compare`: what is better and what is worse, of runs that are stored.

use anyhow::Result;

use super::{Outcome, UsageError, print, refuse_uri};
use crate::cli::{CompareArgs, Format};
use crate::compare::side::Side;
use crate::compare::{Comparison, DRAWS, Error, Settings, compare, output};
use crate::metric::Metric;
use crate::stderr::tell;

/// Compares, and prints what came of it.
///
/// # Errors
/// When the runs cannot be read, or not be compared.
pub fn run(args: &CompareArgs) -> Result<Outcome> {
    for text in std::iter::once(&args.base).chain(&args.new) {
        refuse_uri("compare", text)?;
    }
    let comparison = made(args).map_err(|error| match error {
        Error::Asked(what) => anyhow::Error::new(UsageError::new(what)),
        Error::Stored(_) => error.into(),
    })?;
    let text = match args.format {
        Format::Table => output::table::render(&comparison),
        Format::Csv => output::csv::render(&comparison)?,
        Format::Json => output::json::render(&comparison)?,
        Format::Markdown => output::markdown::render(&comparison),
    };
    print(&text)?;
    if args.fail_on_regression && comparison.has_regression() {
        return Ok(Outcome::Regression);
    }
    if args.fail_on_regression && !comparison.decides_anything() {
        tell("No regression was seen, but none could have been: there is not enough data for any verdict.");
    }
    Ok(Outcome::Done)
}

fn made(args: &CompareArgs) -> Result<Comparison, Error> {
    let base = Side::load(&args.base)?;
    let (base, news) = if args.new.is_empty() {
        let mut sides = base.across()?;
        let base = sides.remove(0);
        (base, sides)
    } else {
        (base, args.new.iter().map(|text| Side::load(text)).collect::<Result<_, _>>()?)
    };
    if news.len() > 1 && news.iter().chain([&base]).all(|side| side.trials.len() == 1) && !args.new.is_empty()
    {
        tell(
            "Each directory is a side of its own here. For their trials to count together join them by commas, or put the \
              pattern in quotes.",
        );
    }
    let settings = Settings {
        metrics: if args.metrics.is_empty() { Metric::COMPARED.to_vec() } else { distinct(&args.metrics) },
        segment: args.segment.clone(),
        op: args.op.clone(),
        noise: args.noise,
        across: args.across.clone(),
        draws: DRAWS,
    };
    compare(base, news, settings)
}

/// Each metric once, in the usual order.
fn distinct(wanted: &[Metric]) -> Vec<Metric> {
    Metric::COMPARED.into_iter().filter(|metric| wanted.contains(metric)).collect()
}
