//! Verdicts for people and programs.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{ContentArrangement, Table};
use serde::{Deserialize, Serialize};

use super::finding::{Finding, Verdict};
use crate::report::plot::svg::escaped;

/// Characters in a line of the table.
const WIDTH: u16 = 140;

/// All that was looked at. As JSON it is what `--format json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The driver, like `rust:3.9.1`.
    pub driver: String,
    /// The deployment, like `replica set 6.0.5`.
    pub server: String,
    /// A finding for each rule.
    pub rules: Vec<Finding>,
}

impl Report {
    /// Whether a rule is broken.
    pub fn any_broken(&self) -> bool {
        self.count(Verdict::Broken) > 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rules.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// For people: a row for each rule; of a file of tests those that hold, and those that cannot be run for one reason,
    /// have a row in common.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Dynamic).force_no_tty();
        table.set_width(WIDTH);
        table.set_header(["rule", "verdict", "seen"]);
        let mut groups: BTreeMap<(&str, Verdict, &str), usize> = BTreeMap::new();
        for finding in &self.rules {
            if let Some(group) = group(finding) {
                *groups.entry(group).or_default() += 1;
            }
        }
        for finding in &self.rules {
            let Finding { rule, verdict, seen, source } = finding;
            match group(finding).map(|group| (group.2, groups.remove(&group))) {
                None => drop(table.add_row([rule, verdict.word(), seen])),
                Some((seen, Some(count))) if count > 1 => {
                    table.add_row([&format!("{source}: {count} tests"), verdict.word(), seen]);
                }
                Some((seen, Some(_))) => drop(table.add_row([rule, verdict.word(), seen])),
                // It was in a row before.
                Some((_, None)) => {}
            }
        }
        let mut text = format!("Driver {}, {}\n\n{table}\n\n", self.driver, self.server);
        let [holds, broken, untestable] =
            [Verdict::Holds, Verdict::Broken, Verdict::Untestable].map(|verdict| self.count(verdict));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{holds} hold, {broken} broken, {untestable} untestable");
        text
    }

    /// For programs.
    ///
    /// # Errors
    /// None that is known of.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// For what shows the results of tests: a broken rule is a failure, an untestable one was skipped.
    pub fn junit(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
             skipped=\"{}\">\n",
            escaped(&format!("client-backpressure, driver {}, {}", self.driver, self.server)),
            self.rules.len(),
            self.count(Verdict::Broken),
            self.count(Verdict::Untestable)
        );
        for Finding { rule, source, verdict, seen } in &self.rules {
            let (source, rule, seen) = (escaped(source), escaped(rule), escaped(seen));
            let what = match verdict {
                Verdict::Holds => format!("<system-out>{seen}</system-out>"),
                Verdict::Broken => format!("<failure message=\"{seen}\"/>"),
                Verdict::Untestable => format!("<skipped message=\"{seen}\"/>"),
            };
            let _ = writeln!(text, "    <testcase classname=\"{source}\" name=\"{rule}\">{what}</testcase>");
        }
        text + "  </testsuite>\n</testsuites>\n"
    }
}

/// What a test of a file has a row in common by, unless it is broken; rules in prose have one each.
fn group(finding: &Finding) -> Option<(&str, Verdict, &str)> {
    let Finding { source, verdict, seen, .. } = finding;
    let test = source.starts_with(super::unified::SOURCE);
    match verdict {
        Verdict::Holds if test => Some((source, *verdict, "as the tests say")),
        Verdict::Untestable if test => Some((source, *verdict, seen)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let finding = |rule: &str, source: &str, verdict, seen: &str| Finding {
            rule: rule.to_owned(),
            source: source.to_owned(),
            verdict,
            seen: seen.to_owned(),
        };
        Report {
            driver: "rust:3.9.1".to_owned(),
            server: "replica set 6.0.5".to_owned(),
            rules: vec![
                finding("two retries", "policy 2.2", Verdict::Holds, "3 attempts"),
                finding("a", "tests: file", Verdict::Holds, "x"),
                finding("b <c>", "tests: file", Verdict::Broken, "1 attempt & \"no\" retry"),
                finding("d", "tests: file", Verdict::Holds, "y"),
                finding("e", "tests: file", Verdict::Untestable, "no such server"),
            ],
        }
    }

    #[test]
    fn tests_that_hold_have_a_row_in_common() {
        insta::assert_snapshot!(report().table(), @r#"
        Driver rust:3.9.1, replica set 6.0.5

        | rule                 | verdict    | seen                   |
        |----------------------|------------|------------------------|
        | two retries          | holds      | 3 attempts             |
        | tests: file: 2 tests | holds      | as the tests say       |
        | b <c>                | broken     | 1 attempt & "no" retry |
        | e                    | untestable | no such server         |

        3 hold, 1 broken, 1 untestable
        "#);
    }

    #[test]
    fn every_rule_is_a_test_case() {
        let junit = report().junit();
        assert_eq!(junit.matches("<testcase ").count(), 5);
        assert!(junit.contains("tests=\"5\" failures=\"1\" skipped=\"1\""), "{junit}");
        assert!(
            junit
                .contains("name=\"b &lt;c&gt;\"><failure message=\"1 attempt &amp; &quot;no&quot; retry\"/>")
        );
    }

    #[test]
    fn json_can_be_read_again() {
        let report = report();
        assert_eq!(serde_json::from_str::<Report>(&report.json().unwrap()).unwrap(), report);
        assert!(report.json().unwrap().contains("\"verdict\": \"untestable\""));
    }
}
