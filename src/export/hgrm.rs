//! The percentile distribution as HdrHistogram's own tools print it (`outputPercentileDistribution` with five steps to each
//! half of what is left), in milliseconds, as its plotter takes it.

use std::collections::BTreeSet;
use std::fmt::Write;

use hdrhistogram::Histogram;

use super::{Exported, nothing_of};
use crate::compare::Error;
use crate::report::stored::{State, StoredTrial};
use crate::results::facts::ALL;

/// Steps to each half of what is left.
const STEPS: u32 = 5;

/// The latencies of an operation in a segment, of all trials together.
///
/// # Errors
/// When there are none.
pub fn render(trials: &[StoredTrial], segment: Option<&str>, op: Option<&str>) -> Result<Exported, Error> {
    let (whole, cut): (Vec<_>, Vec<_>) = trials.iter().partition(|trial| trial.state == State::Whole);
    let mut notes: Vec<String> =
        cut.iter().map(|t| format!("{} is left out: it {}", t.trial.place(), t.state.words())).collect();
    if whole.is_empty() {
        return Err(Error::asked(format!("there is no trial to export: {}", notes.join("; "))));
    }
    let variants: BTreeSet<&str> = whole.iter().map(|trial| trial.trial.variant.as_str()).collect();
    if variants.len() > 1 {
        let names: Vec<&str> = variants.into_iter().collect();
        return Err(Error::asked(format!(
            "these trials are of several variants, whose latencies are not one distribution: choose one, like \
             'DIR:variant={}' (there are {})",
            names[0],
            names.join(", ")
        )));
    }
    let mut found = whole.iter().filter_map(|t| t.distribution(segment.unwrap_or(ALL), op.unwrap_or(ALL)));
    let Some(mut sum) = found.next() else { return Err(nothing_of(trials, segment, op)) };
    let mut together = 1;
    for other in found {
        // All of them resize, so this cannot fail.
        let _ = sum.add(other);
        together += 1;
    }
    if together > 1 {
        notes.push(format!("The latencies of {together} trials together; DIR:trial=N takes one."));
    }
    Ok(Exported { text: text(&sum), notes })
}

/// A distribution in microseconds.
pub fn text(histogram: &Histogram<u64>) -> String {
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut total = 0;
    for step in histogram.iter_quantiles(STEPS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (millis(step.value_iterated_to()), step.quantile_iterated_to());
        // Writing to a String cannot fail.
        let _ = write!(text, "{value:12.3} {quantile:.12} {total:10}");
        let _ = match quantile {
            quantile if quantile < 1.0 => writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile)),
            _ => writeln!(text),
        };
    }
    let (mean, deviation) = (histogram.mean() / 1e3, histogram.stdev() / 1e3);
    let sub_buckets = (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two();
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(
        text,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        millis(histogram.max()),
        histogram.len()
    );
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {sub_buckets:12}]", histogram.buckets());
    text
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
fn millis(us: u64) -> f64 {
    us as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: &str = "       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.000000000000          4           1.00
       1.000 0.100000000000          4           1.11
       1.000 0.200000000000          4           1.25
       1.000 0.300000000000          4           1.43
       1.000 0.400000000000          4           1.67
       1.000 0.500000000000          4           2.00
       1.000 0.550000000000          4           2.22
       2.000 0.600000000000          6           2.50
       2.000 0.650000000000          6           2.86
       2.000 0.700000000000          6           3.33
       2.000 0.750000000000          6           4.00
       2.000 0.775000000000          6           4.44
       2.000 0.800000000000          6           5.00
       2.000 0.825000000000          6           5.71
       2.000 0.850000000000          6           6.67
       4.001 0.875000000000          7           8.00
       4.001 1.000000000000          7
#[Mean    =        1.714, StdDeviation   =        1.030]
#[Max     =        4.001, Total count    =            7]
#[Buckets =            2, SubBuckets     =         2048]
";

    /// Worked out by hand after HdrHistogram's rule: from 0 in steps of a tenth, of a twentieth once half is behind, of a
    /// fortieth once three quarters are, each with the value at which the share of all values is reached. Four of seven are
    /// 0.571 of all, six 0.857. 4 ms and a fraction lie in a bucket that ends at 4.001 ms.
    #[test]
    fn a_distribution_of_seven() {
        let mut histogram = Histogram::new(3).unwrap();
        for (us, count) in [(1000, 4), (2000, 2), (4000, 1)] {
            histogram.record_n(us, count).unwrap();
        }
        assert_eq!(text(&histogram), SEVEN);
    }
}
