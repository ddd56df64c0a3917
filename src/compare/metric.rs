//! What is compared: each metric with its column, its unit, and which way is better.

use clap::ValueEnum;

use crate::report::human;

/// A figure of a trial, or of a second of one. The names that the command line and files know are those of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub enum Metric {
    #[value(alias = "goodput")]
    GoodputOpsPerS,
    ErrorRate,
    RetriesPerOp,
    Amplification,
    #[value(name = "latency_p50_us", alias = "latency_p50")]
    LatencyP50Us,
    #[value(name = "latency_p90_us", alias = "latency_p90")]
    LatencyP90Us,
    #[value(name = "latency_p99_us", alias = "latency_p99")]
    LatencyP99Us,
    #[value(name = "latency_p99_9_us", alias = "latency_p99_9")]
    LatencyP999Us,
    #[value(name = "service_p50_us", alias = "service_p50")]
    ServiceP50Us,
    #[value(name = "service_p90_us", alias = "service_p90")]
    ServiceP90Us,
    #[value(name = "service_p99_us", alias = "service_p99")]
    ServiceP99Us,
    #[value(name = "service_p99_9_us", alias = "service_p99_9")]
    ServiceP999Us,
    CpuUsPerOp,
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    PerSecond,
    Share,
    Quotient,
    Microseconds,
}

impl Metric {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::GoodputOpsPerS,
        Self::ErrorRate,
        Self::RetriesPerOp,
        Self::Amplification,
        Self::LatencyP50Us,
        Self::LatencyP90Us,
        Self::LatencyP99Us,
        Self::LatencyP999Us,
        Self::ServiceP50Us,
        Self::ServiceP90Us,
        Self::ServiceP99Us,
        Self::ServiceP999Us,
        Self::CpuUsPerOp,
    ];

    /// Its name in files, with the unit: that of its column, where it has one.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name for people.
    pub const fn label(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::GoodputOpsPerS => ("goodput_ops_per_s", "goodput"),
            Self::ErrorRate => ("error_rate", "error rate"),
            Self::RetriesPerOp => ("retries_per_op", "retries/op"),
            Self::Amplification => ("amplification", "amplification"),
            Self::LatencyP50Us => ("latency_p50_us", "latency p50"),
            Self::LatencyP90Us => ("latency_p90_us", "latency p90"),
            Self::LatencyP99Us => ("latency_p99_us", "latency p99"),
            Self::LatencyP999Us => ("latency_p99_9_us", "latency p99.9"),
            Self::ServiceP50Us => ("service_p50_us", "service p50"),
            Self::ServiceP90Us => ("service_p90_us", "service p90"),
            Self::ServiceP99Us => ("service_p99_us", "service p99"),
            Self::ServiceP999Us => ("service_p99_9_us", "service p99.9"),
            Self::CpuUsPerOp => ("cpu_us_per_op", "client CPU/op"),
        }
    }

    /// Whether less of it is better; of everything but goodput it is.
    pub const fn lower_is_better(self) -> bool {
        !matches!(self, Self::GoodputOpsPerS)
    }

    /// Whether it tells how operations ended and how long they took, which in the closed model also depends on how long
    /// workers sit in a backoff, instead of starting operations.
    pub const fn is_of_outcomes(self) -> bool {
        !matches!(self, Self::GoodputOpsPerS | Self::RetriesPerOp | Self::Amplification | Self::CpuUsPerOp)
    }

    /// A value of it as people read it.
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::PerSecond => human::rate(Some(value)),
            Unit::Share => human::percent(Some(value)),
            Unit::Quotient => human::quotient(Some(value)),
            Unit::Microseconds => human::time(value),
        }
    }

    const fn unit(self) -> Unit {
        match self {
            Self::GoodputOpsPerS => Unit::PerSecond,
            Self::ErrorRate => Unit::Share,
            Self::RetriesPerOp | Self::Amplification => Unit::Quotient,
            _ => Unit::Microseconds,
        }
    }

    /// Its value in a row of `summary.csv` or `intervals.csv`, of which `column` yields the numbers.
    pub fn of<E>(self, column: impl Fn(&str) -> Result<Option<f64>, E>) -> Result<Option<f64>, E> {
        if self != Self::RetriesPerOp {
            return column(self.name());
        }
        let retries = column("retries")?;
        let mut ended = 0.0;
        for outcome in ["ops_ok", "ops_failed", "ops_timed_out"] {
            ended += column(outcome)?.unwrap_or(0.0);
        }
        Ok(retries.filter(|_| ended > 0.0).map(|retries| retries / ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::csv_file::columns;
    use crate::results::tables::{IntervalRow, SummaryRow};

    #[test]
    fn every_metric_is_a_column_of_both_tables() {
        for columns in [columns::<SummaryRow>(), columns::<IntervalRow<'_>>()] {
            for metric in Metric::ALL {
                let asked = metric.of(|name| {
                    if columns.iter().any(|column| column == name) {
                        Ok(Some(2.0))
                    } else {
                        Err(name.to_owned())
                    }
                });
                let wanted = if metric == Metric::RetriesPerOp { 2.0 / 6.0 } else { 2.0 };
                assert_eq!(asked, Ok(Some(wanted)), "{metric:?}");
            }
        }
    }

    #[test]
    fn the_command_line_knows_them_by_their_names() {
        for metric in Metric::ALL {
            assert_eq!(metric.to_possible_value().unwrap().get_name(), metric.name());
        }
        assert_eq!(Metric::ALL.len(), Metric::value_variants().len());
    }

    #[test]
    fn nothing_ended_is_no_quotient() {
        let of = |ok: f64| {
            Metric::RetriesPerOp.of(|name| {
                Ok::<_, ()>(match name {
                    "retries" => Some(3.0),
                    "ops_ok" => Some(ok),
                    _ => Some(0.0),
                })
            })
        };
        assert_eq!(of(6.0), Ok(Some(0.5)));
        assert_eq!(of(0.0), Ok(None));
    }
}
