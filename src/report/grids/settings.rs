//! With what it was run: what all groups have in common, and what sets them apart.

use serde_json::Value;

use super::Grid;
use crate::compare::trial::in_effect;
use crate::report::groups::{Group, Report};

/// What is told of a group: a name, and how to get at it.
type Told = (&'static str, fn(&Group) -> String);

/// In the order in which it is told.
const TOLD: [Told; 13] = [
    ("driver", |group| group.first().trial.driver.clone()),
    ("server", |group| group.first().trial.server.clone()),
    ("load shed by", |group| group.first().trial.mechanism.clone()),
    ("profile", |group| text(&plan(group)["profile"])),
    ("load", |group| compact(&plan(group)["load"])),
    ("seed", |group| compact(&plan(group)["seed"])),
    ("options", |group| options(group, |from| from != "default" && from != "overdrive")),
    ("defaults of the driver", |group| options(group, |from| from == "default")),
    ("application", application),
    ("attempts counted", |group| text(&plan(group)["attempts"])),
    ("load made by", |group| group.first().trial.machine.clone()),
    ("overdrive", |group| group.first().trial.tool_version.clone()),
    ("begun", begun),
];

/// A row for what is the same in all groups; one for each group where it is not.
pub fn settings(report: &Report) -> Grid {
    let groups = &report.groups;
    let mut rows = Vec::new();
    for (name, of) in TOLD {
        let values: Vec<String> = groups.iter().map(of).collect();
        if values.iter().all(|value| *value == values[0]) {
            let whose = if groups.len() > 1 { "all" } else { &groups[0].name };
            if !values[0].is_empty() {
                rows.push(vec![name.to_owned(), whose.to_owned(), values[0].clone()]);
            }
            continue;
        }
        for (group, value) in groups.iter().zip(values) {
            let value = if value.is_empty() { "-".to_owned() } else { value };
            rows.push(vec![name.to_owned(), group.name.clone(), value]);
        }
    }
    Grid { head: vec!["setting", "of", "value"], rows, names: 3 }
}

fn plan(group: &Group) -> &Value {
    &group.first().trial.plan
}

/// Options in effect that come from where is asked for.
fn options(group: &Group, wanted: impl Fn(&str) -> bool) -> String {
    let all = in_effect(&group.first().told["options"]).into_iter();
    let ours = all.filter(|(_, option)| option["from"].as_str().is_some_and(&wanted));
    let shown = ours.map(|(name, option)| format!("{name}={}", text(&option["value"])));
    shown.collect::<Vec<_>>().join(", ")
}

/// Deadlines and further calls, where there are any.
fn application(group: &Group) -> String {
    let parts = ["timeout", "backoff"].into_iter().filter(|&part| !plan(group)[part].is_null());
    parts.map(|part| format!("{part} {}", compact(&plan(group)[part]))).collect::<Vec<_>>().join(", ")
}

fn begun(group: &Group) -> String {
    let begun = group.trials.iter().map(|trial| text(&trial.told["started"]));
    begun.filter(|time| !time.is_empty()).collect::<Vec<_>>().join(", ")
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| compact(value), str::to_owned)
}

/// A value in one line, without what JSON needs and people do not.
fn compact(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(compact).collect::<Vec<_>>().join(", "))
        }
        Value::Object(values) => {
            let each = values.iter().filter(|(_, value)| !value.is_null());
            let each: Vec<String> = each.map(|(key, value)| format!("{key}: {}", inner(value))).collect();
            each.join(", ")
        }
        other => other.to_string(),
    }
}

fn inner(value: &Value) -> String {
    match value {
        Value::Object(_) => format!("{{{}}}", compact(value)),
        other => compact(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_told_in_one_line() {
        let load = json!({
            "model": {"open": {"stages": [{"for": "25s", "from": "400/s"}], "max_in_flight": 10}},
            "warmup": "5s",
            "none": null,
        });
        assert_eq!(
            compact(&load),
            "model: {open: {stages: [for: 25s, from: 400/s], max_in_flight: 10}}, warmup: 5s"
        );
        assert_eq!(compact(&Value::Null), "");
        assert_eq!(text(&json!("a")), "a");
        assert_eq!(text(&json!(7)), "7");
    }
}
