//! The figures that people name, on the command line and in profiles: each with its column, its unit, and which way is
//! better.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::report::human;

/// A figure of a trial, or of a part of one. Its names are that of its column, and the same without the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "named as the columns are, by the README's words")]
pub enum Metric {
    GoodputOpsPerS,
    ErrorRate,
    RetriesPerOp,
    Amplification,
    LatencyP50Us,
    LatencyP90Us,
    LatencyP99Us,
    LatencyP999Us,
    ServiceP50Us,
    ServiceP90Us,
    ServiceP99Us,
    ServiceP999Us,
    CpuUsPerOp,
    OfferedOpsPerS,
    CompletedOpsPerS,
    LossRate,
    OpsFailed,
    OpsGaveUp,
    OpsTimedOut,
    OpsDropped,
    Rejected,
    Retargeted,
    BackoffMeanUs,
    LatencyMeanUs,
    LatencyMaxUs,
    ServiceMeanUs,
    ServiceMaxUs,
    FailedLatencyP50Us,
    FailedLatencyP99Us,
    CheckoutP99Us,
    LagP99Us,
    BehindMaxMs,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Something per second.
    PerSecond,
    /// A share of a whole: 0.01 is 1 %.
    Share,
    /// A quotient of counts.
    Quotient,
    /// A count.
    Count,
    /// A time in microseconds.
    Microseconds,
    /// A time in milliseconds.
    Milliseconds,
}

impl Metric {
    /// Those that runs are compared by, in the order in which they are shown.
    pub const COMPARED: [Self; 13] = [
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

    /// Those that a threshold may be put on, but that say little about a difference between runs, or the same as another.
    const OTHERS: [Self; 19] = [
        Self::OfferedOpsPerS,
        Self::CompletedOpsPerS,
        Self::LossRate,
        Self::OpsFailed,
        Self::OpsGaveUp,
        Self::OpsTimedOut,
        Self::OpsDropped,
        Self::Rejected,
        Self::Retargeted,
        Self::BackoffMeanUs,
        Self::LatencyMeanUs,
        Self::LatencyMaxUs,
        Self::ServiceMeanUs,
        Self::ServiceMaxUs,
        Self::FailedLatencyP50Us,
        Self::FailedLatencyP99Us,
        Self::CheckoutP99Us,
        Self::LagP99Us,
        Self::BehindMaxMs,
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::COMPARED.into_iter().chain(Self::OTHERS)
    }

    /// The one that has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|metric| metric.name() == name || metric.short() == name)
    }

    /// Its name in files, with the unit: that of its column, where it has one.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Its name without the unit.
    pub fn short(self) -> &'static str {
        let name = self.name();
        match self {
            Self::CpuUsPerOp => "cpu_per_op",
            _ => ["_ops_per_s", "_us", "_ms"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name),
        }
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
            Self::OfferedOpsPerS => ("offered_ops_per_s", "offered"),
            Self::CompletedOpsPerS => ("completed_ops_per_s", "done"),
            Self::LossRate => ("loss_rate", "loss rate"),
            Self::OpsFailed => ("ops_failed", "failed"),
            Self::OpsGaveUp => ("ops_gave_up", "gave up"),
            Self::OpsTimedOut => ("ops_timed_out", "timed out"),
            Self::OpsDropped => ("ops_dropped", "dropped"),
            Self::Rejected => ("rejected", "rejected"),
            Self::Retargeted => ("retargeted", "retargeted"),
            Self::BackoffMeanUs => ("backoff_mean_us", "backoff mean"),
            Self::LatencyMeanUs => ("latency_mean_us", "latency mean"),
            Self::LatencyMaxUs => ("latency_max_us", "latency max"),
            Self::ServiceMeanUs => ("service_mean_us", "service mean"),
            Self::ServiceMaxUs => ("service_max_us", "service max"),
            Self::FailedLatencyP50Us => ("failed_latency_p50_us", "failed latency p50"),
            Self::FailedLatencyP99Us => ("failed_latency_p99_us", "failed latency p99"),
            Self::CheckoutP99Us => ("checkout_p99_us", "check-out p99"),
            Self::LagP99Us => ("lag_p99_us", "lag p99"),
            Self::BehindMaxMs => ("behind_max_ms", "behind"),
        }
    }

    /// Whether less of it is better: of everything but what operations come to in a second it is.
    pub const fn lower_is_better(self) -> bool {
        !matches!(self.unit(), Unit::PerSecond)
    }

    /// Whether it tells how operations ended and how long they took, which in the closed model also depends on how long
    /// workers sit in a backoff, instead of starting operations.
    pub const fn is_of_outcomes(self) -> bool {
        !matches!(self, Self::GoodputOpsPerS | Self::RetriesPerOp | Self::Amplification | Self::CpuUsPerOp)
    }

    /// Whether it is the load generator's as a whole, so that a single operation has none.
    pub const fn is_of_generator(self) -> bool {
        matches!(self, Self::CpuUsPerOp | Self::BehindMaxMs)
    }

    /// A value of it as people read it.
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::PerSecond => human::rate(Some(value)),
            Unit::Share => human::percent(Some(value)),
            Unit::Quotient => human::quotient(Some(value)),
            Unit::Count => format!("{value:.0}"),
            Unit::Microseconds => human::time(value),
            Unit::Milliseconds => human::time(value * 1e3),
        }
    }

    /// What it is counted in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::GoodputOpsPerS | Self::OfferedOpsPerS | Self::CompletedOpsPerS => Unit::PerSecond,
            Self::ErrorRate | Self::LossRate => Unit::Share,
            Self::RetriesPerOp | Self::Amplification => Unit::Quotient,
            Self::OpsFailed
            | Self::OpsGaveUp
            | Self::OpsTimedOut
            | Self::OpsDropped
            | Self::Rejected
            | Self::Retargeted => Unit::Count,
            Self::BehindMaxMs => Unit::Milliseconds,
            _ => Unit::Microseconds,
        }
    }

    /// Its value in a row of `summary.csv` or, if runs are compared by it, of `intervals.csv`; `column` yields the row's
    /// numbers.
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

/// On the command line it is for comparing.
impl ValueEnum for Metric {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::COMPARED
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(if self.short() == self.name() { value } else { value.alias(self.short()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::csv_file::columns;
    use crate::results::tables::{IntervalRow, SummaryRow};

    /// What a metric is in a row in which every number is 2.
    fn among(metric: Metric, columns: &[String]) -> Result<Option<f64>, String> {
        metric.of(|name| {
            if columns.iter().any(|column| column == name) { Ok(Some(2.0)) } else { Err(name.to_owned()) }
        })
    }

    #[test]
    fn every_metric_is_a_column() {
        let (summary, intervals) = (columns::<SummaryRow>(), columns::<IntervalRow<'_>>());
        let wanted = |metric| if metric == Metric::RetriesPerOp { 2.0 / 6.0 } else { 2.0 };
        for metric in Metric::all() {
            assert_eq!(among(metric, &summary), Ok(Some(wanted(metric))), "{metric:?}");
        }
        for metric in Metric::COMPARED {
            assert_eq!(among(metric, &intervals), Ok(Some(wanted(metric))), "{metric:?}");
        }
    }

    #[test]
    fn names_are_told_apart() {
        for metric in Metric::all() {
            assert_eq!(Metric::named(metric.name()), Some(metric));
            assert_eq!(Metric::named(metric.short()), Some(metric));
        }
        let short = ["goodput", "latency_p99_9", "cpu_per_op", "behind_max", "error_rate"].map(Metric::named);
        assert!(short.iter().all(Option::is_some), "{short:?}");
        assert_eq!(Metric::named("p99"), None);
    }

    #[test]
    fn the_command_line_knows_those_that_are_compared() {
        for metric in Metric::COMPARED {
            assert_eq!(metric.to_possible_value().unwrap().get_name(), metric.name());
            assert_eq!(<Metric as ValueEnum>::from_str(metric.short(), false), Ok(metric));
        }
        assert!(<Metric as ValueEnum>::from_str("loss_rate", false).is_err());
    }

    #[test]
    fn values_are_shown_in_their_unit() {
        let shown = [
            Metric::GoodputOpsPerS.show(1500.0),
            Metric::LossRate.show(0.0125),
            Metric::Amplification.show(1.5),
            Metric::OpsFailed.show(12.0),
            Metric::LatencyP99Us.show(50_000.0),
            Metric::BehindMaxMs.show(50.0),
        ];
        assert_eq!(shown, ["1500/s", "1.2%", "1.50", "12", "50.0ms", "50.0ms"]);
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
