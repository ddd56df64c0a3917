//! What `overdrive calibrate` prints.

use super::human::{micros, rate, time};
use super::{align, table};
use crate::calibration::Calibration;
use crate::results::facts::per_second;
use crate::results::{HostFacts, Summary};

/// What one load showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which load.
    pub name: String,
    /// Operations per second that succeeded.
    pub ops_per_s: f64,
    /// The generator's CPU time for each.
    pub cpu_us_per_op: f64,
    /// From due to started; none in the closed model, where nothing is due.
    pub lag_p50_us: Option<u64>,
    /// The same.
    pub lag_p99_us: Option<u64>,
}

impl Step {
    /// That of a trial.
    pub fn of(name: String, summary: &Summary) -> Self {
        let (whole, all) = (summary.whole(), summary.overall());
        let open = all.target_ops_per_s.is_some();
        let lag = |quantile| all.stats.lag.percentile_us(quantile).filter(|_| open);
        Self {
            name,
            ops_per_s: per_second(all.stats.outcomes.ok, whole.duration_s).unwrap_or(0.0),
            cpu_us_per_op: whole.generator.cpu_us_per_op().unwrap_or(0.0),
            lag_p50_us: lag(0.5),
            lag_p99_us: lag(0.99),
        }
    }
}

/// The whole of it, for standard output.
pub fn render(calibration: &Calibration, host: &HostFacts, steps: &[Step]) -> String {
    let key = &calibration.key;
    let mut rows = table(&["load", "operations", "CPU/operation", "lag p50", "lag p99"]);
    for step in steps {
        rows.add_row([
            step.name.clone(),
            rate(Some(step.ops_per_s)),
            time(step.cpu_us_per_op),
            micros(step.lag_p50_us),
            micros(step.lag_p99_us),
        ]);
    }
    format!(
        "overdrive {} ({} build), driver rust {}; {} cores, {}\n\n{}\n\n\
         The ceiling is {}, with a stub on the same processors. `run` warns above {}.\n",
        key.version,
        key.build,
        key.driver_version,
        key.cores,
        host.cpu_model.as_deref().unwrap_or(&host.arch),
        align(rows),
        rate(Some(calibration.ceiling_ops_per_s)),
        rate(Some(calibration.safe_ops_per_s())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::Key;

    #[test]
    fn the_ceiling_and_how_late_operations_start_below_it() {
        let key = Key {
            host: "box".to_owned(),
            cores: 2,
            driver_version: "3.9.1".to_owned(),
            version: "0.1.0".to_owned(),
            build: "release".to_owned(),
        };
        let calibration = Calibration {
            key,
            at: "2026-08-09T10:11:12Z".parse().unwrap(),
            ceiling_ops_per_s: 12_000.0,
            cpu_us_per_op: 61.3,
        };
        let step = |name: &str, ops_per_s, cpu_us_per_op, lag: Option<(u64, u64)>| Step {
            name: name.to_owned(),
            ops_per_s,
            cpu_us_per_op,
            lag_p50_us: lag.map(|lag| lag.0),
            lag_p99_us: lag.map(|lag| lag.1),
        };
        let steps = [
            step("32 workers", 12_000.0, 61.3, None),
            step("25% of it", 3000.0, 70.0, Some((95, 410))),
            step("80% of it", 9590.0, 64.0, Some((210, 4_300))),
        ];
        let host = HostFacts { cpu_model: Some("Some CPU".to_owned()), ..HostFacts::default() };
        insta::assert_snapshot!(render(&calibration, &host, &steps), @"
        overdrive 0.1.0 (release build), driver rust 3.9.1; 2 cores, Some CPU

        | load       | operations | CPU/operation | lag p50 | lag p99 |
        |------------|------------|---------------|---------|---------|
        | 32 workers |    12000/s |          61us |       - |       - |
        | 25% of it  |     3000/s |          70us |    95us |   410us |
        | 80% of it  |     9590/s |          64us |   210us |  4.30ms |

        The ceiling is 12000/s, with a stub on the same processors. `run` warns above 9600/s.
        ");
    }
}
