//! Connection-string options in words.

use crate::plan::client::OptionSource;
use crate::plan::{Plan, ResolvedOption};

use super::section;

const TITLE: &str = "connection-string options";

/// What the plan itself says about options.
pub fn written(plan: &Plan) -> String {
    let lines: Vec<String> = plan
        .client
        .iter()
        .map(|setting| {
            let from = source(setting.from);
            match &setting.value {
                Some(value) => format!("{} = {value}  (from {from})", setting.name),
                None => format!("{} taken away  (from {from})", setting.name),
            }
        })
        .collect();
    section(TITLE, &lines)
}

/// Every option in effect: those that somebody set, then the driver's defaults.
pub fn effective(options: &[ResolvedOption]) -> String {
    let line = |option: &ResolvedOption| {
        format!("{} = {}  (from {})", option.name, option.value, source(option.from))
    };
    let (defaults, set): (Vec<_>, Vec<_>) =
        options.iter().partition(|option| option.from == OptionSource::Default);
    let lines: Vec<String> = set.into_iter().chain(defaults).map(line).collect();
    section(TITLE, &lines)
}

const fn source(from: OptionSource) -> &'static str {
    match from {
        OptionSource::Vary => "--vary",
        OptionSource::Set => "--set",
        OptionSource::Profile => "profile",
        OptionSource::Uri => "URI",
        OptionSource::Overdrive => "overdrive",
        OptionSource::Default => "default",
    }
}
