//! What is printed when a search has ended: the rate that was found, the one that failed, and the curve.

use std::fmt::Write;
use std::path::Path;

use super::human::{micros, percent, rate};
use super::{align, broken, table};
use crate::results::Summary;
use crate::search::{Ending, FLOOR, Findings, PATIENCE, Role, Step};

/// The whole result of a search, for standard output.
pub fn render(findings: &Findings, trials: &[Summary], directory: &Path) -> String {
    let conditions: Vec<String> = findings.conditions.iter().map(ToString::to_string).collect();
    let mut text = format!("The largest rate that holds {}:\n", conditions.join(" and "));
    let sentences =
        [Some(held(findings)), failed(findings), ending(findings), no_data(findings), generator(findings)];
    for sentence in sentences.into_iter().flatten() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {sentence}");
    }
    if !findings.steps.is_empty() {
        let _ = write!(text, "\n\n{}", curve(findings));
    }
    text.push_str(&broken(trials));
    let _ = writeln!(text, "\n\nResults: {}", directory.display());
    text
}

fn held(findings: &Findings) -> String {
    let (known, confirm) = (findings.known(), findings.confirm);
    match (known.confirmed, known.held) {
        (Some(confirmed), _) => format!("held:    {confirmed}/s, confirmed for {confirm}"),
        (None, Some(held)) => format!("held:    {held}/s, NOT CONFIRMED for {confirm}"),
        (None, None) => "held:    none".to_owned(),
    }
}

fn failed(findings: &Findings) -> Option<String> {
    match findings.failing() {
        Some(step) => Some(format!("failed:  {}/s ({})", step.tried.rate, step.row.reason)),
        None if findings.known().held.is_some() => Some("failed:  none".to_owned()),
        None => None,
    }
}

/// What else has to be known of how it ended.
fn ending(findings: &Findings) -> Option<String> {
    let baselines = findings.steps.iter().rev().map(|step| step.tried);
    let lowest = findings.known().lowest;
    match findings.ending {
        Some(Ending::Found) => None,
        Some(Ending::NoneConfirmed) => {
            Some(format!("What held for a step did not hold for {}.", findings.confirm))
        }
        Some(Ending::NoneHeld) => {
            Some(format!("Nothing held, down to a {:.0}th of the first rate.", 1.0 / FLOOR))
        }
        Some(Ending::NeverBack) => {
            let collapse = baselines.skip(PATIENCE).map(|tried| tried.rate).next();
            Some(format!(
                "The deployment did not come back after {}/s: at {}/s, which had held before, {PATIENCE} trials in a row \
                 failed. It stays overloaded when the overload is over.",
                collapse.unwrap_or_default(),
                lowest.unwrap_or_default()
            ))
        }
        None => Some("The search did not come to its end.".to_owned()),
    }
}

fn no_data(findings: &Findings) -> Option<String> {
    let unknown = findings.failing()?.figures.contains(&None);
    unknown.then(|| "What nobody knows does not hold: longer steps have more data (--duration).".to_owned())
}

fn generator(findings: &Findings) -> Option<String> {
    let why = findings.failing()?.generator.as_ref()?;
    Some(format!(
        "What was found may be the limit of the load generator and its client, not the servers': {why}"
    ))
}

/// Steps and confirmations by their rate.
fn curve(findings: &Findings) -> String {
    let conditions: Vec<String> = findings.conditions.iter().map(ToString::to_string).collect();
    let fixed = ["goodput", "done", "errors", "p50", "p99"];
    let columns: Vec<&str> = ["rate", "verdict", "trial", "measured"]
        .into_iter()
        .chain(conditions.iter().map(String::as_str))
        .chain(fixed)
        .collect();
    let mut steps: Vec<&Step> =
        findings.steps.iter().filter(|step| step.tried.role != Role::Baseline).collect();
    steps.sort_by(|a, b| a.tried.rate.total_cmp(&b.tried.rate));
    let mut table = table(&columns);
    for step in steps {
        let row = &step.row;
        let seen = findings.conditions.iter().zip(&step.figures);
        let first = [
            format!("{}/s", step.tried.rate),
            if step.tried.held { "held" } else { "FAILED" }.to_owned(),
            row.trial.to_string(),
            format!("{} s", row.duration_s),
        ];
        let last = [
            rate(row.goodput_ops_per_s),
            rate(row.completed_ops_per_s),
            percent(row.error_rate),
            micros(row.latency_p50_us),
            micros(row.latency_p99_us),
        ];
        let figures = seen.map(|(condition, &value)| condition.shown(value));
        table.add_row(first.into_iter().chain(figures).chain(last));
    }
    align(table).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tables::SearchRow;
    use crate::search::Tried;
    use crate::units::Span;

    /// Trials of 10 s each in which every operation succeeded or, where it failed, 5 % did not.
    fn findings(history: &[(Role, f64, bool)], ending: Option<Ending>) -> Findings {
        let step = |(trial, &(role, rate, held)): (u32, &(Role, f64, bool))| {
            let error_rate = if held { 0.0 } else { 0.05 };
            let row = SearchRow {
                trial,
                reason: if held { "" } else { "error_rate < 1%, seen 5.0%" }.to_owned(),
                duration_s: 10.0,
                goodput_ops_per_s: Some(rate * (1.0 - error_rate)),
                completed_ops_per_s: Some(rate * (1.0 - error_rate)),
                error_rate: Some(error_rate),
                latency_p50_us: Some(1500),
                ..SearchRow::default()
            };
            Step { tried: Tried { role, rate, held }, row, figures: vec![Some(error_rate)], generator: None }
        };
        let conditions = vec!["error_rate < 1%".parse().unwrap()];
        let steps = (1..).zip(history).map(step).collect();
        Findings { conditions, confirm: Span::seconds(60), steps, ending }
    }

    fn told(history: &[(Role, f64, bool)], ending: Option<Ending>) -> String {
        render(&findings(history, ending), &[], Path::new("results/r"))
    }

    #[test]
    fn what_was_found_stands_above_the_curve() {
        use Role::{Baseline, Confirm, Step};
        let history = [
            (Step, 100.0, true),
            (Step, 200.0, true),
            (Step, 400.0, false),
            (Baseline, 100.0, true),
            (Step, 208.0, false),
            (Baseline, 100.0, true),
            (Confirm, 200.0, true),
        ];
        insta::assert_snapshot!(told(&history, Some(Ending::Found)), @r"
        The largest rate that holds error_rate < 1%:

          held:    200/s, confirmed for 1m
          failed:  208/s (error_rate < 1%, seen 5.0%)

        | rate  | verdict | trial | measured | error_rate < 1% | goodput |  done | errors |    p50 | p99 |
        |-------|---------|-------|----------|-----------------|---------|-------|--------|--------|-----|
        | 100/s |    held |     1 |     10 s |            0.0% |   100/s | 100/s |   0.0% | 1.50ms |   - |
        | 200/s |    held |     2 |     10 s |            0.0% |   200/s | 200/s |   0.0% | 1.50ms |   - |
        | 200/s |    held |     7 |     10 s |            0.0% |   200/s | 200/s |   0.0% | 1.50ms |   - |
        | 208/s |  FAILED |     5 |     10 s |            5.0% |   198/s | 198/s |   5.0% | 1.50ms |   - |
        | 400/s |  FAILED |     3 |     10 s |            5.0% |   380/s | 380/s |   5.0% | 1.50ms |   - |

        Results: results/r
        ");
    }

    #[test]
    fn each_other_end_is_told() {
        use Role::{Baseline, Confirm, Step};
        let collapsed: Vec<_> = [(Step, 100.0, true), (Step, 200.0, false)]
            .into_iter()
            .chain([(Baseline, 100.0, false); PATIENCE])
            .collect();
        let told = |history: &[_], ending| {
            let text = told(history, ending);
            let lines = text.split("\n\n").nth(1).unwrap().lines().map(str::trim);
            lines.collect::<Vec<_>>().join("\n")
        };
        let ends = [
            told(&collapsed, Some(Ending::NeverBack)),
            told(&[(Step, 100.0, false)], Some(Ending::NoneHeld)),
            told(&[(Step, 100.0, true), (Confirm, 100.0, false)], Some(Ending::NoneConfirmed)),
            told(&[(Step, 100.0, true)], None),
            told(&[], None),
        ];
        insta::assert_snapshot!(ends.join("\n\n"), @r"
        held:    100/s, NOT CONFIRMED for 1m
        failed:  200/s (error_rate < 1%, seen 5.0%)
        The deployment did not come back after 200/s: at 100/s, which had held before, 6 trials in a row failed. It stays overloaded when the overload is over.

        held:    none
        failed:  100/s (error_rate < 1%, seen 5.0%)
        Nothing held, down to a 64th of the first rate.

        held:    none
        failed:  100/s (error_rate < 1%, seen 5.0%)
        What held for a step did not hold for 1m.

        held:    100/s, NOT CONFIRMED for 1m
        failed:  none
        The search did not come to its end.

        held:    none
        The search did not come to its end.
        ");

        let mut limited = findings(&[(Step, 100.0, true), (Step, 200.0, false)], None);
        limited.steps[1].generator = Some("the load generator's processors were the limit".to_owned());
        let text = render(&limited, &[], Path::new("r"));
        assert!(!text.contains("What nobody knows"), "{text}");
        assert!(text.contains("not the servers': the load generator's processors were the limit"), "{text}");
    }
}
