//! Scripts as text, for command lines: `service=exp:2ms,stall=5s+1s,fail=every:10`.
//!
//! | key | says |
//! |---|---|
//! | `service` | how long each command takes: `1ms`, or `exp:1ms` for exponentially distributed times of this mean |
//! | `stall` | when nothing is served, from the script's beginning, and for how long: `5s+1s` |
//! | `fail` | which commands fail: `every:10`, or a probability, `0.1` |
//! | `code` | with which code; without it, that of a server that sheds load |
//! | `labels` | with which labels, joined by `+`, or `none`; without it, those of a server that sheds load |

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::script::{Failures, Pick, Script, Service, Stall};
use crate::plan::GateSettings;
use crate::profile::diagnostic::nearest;
use crate::units::Span;

const KEYS: [&str; 5] = ["service", "stall", "fail", "code", "labels"];

/// The labels of failures that have none.
const NO_LABELS: &str = "none";

/// Why a text is no script. The message names the part that is wrong and shows what would have been understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

/// What a text says of failures.
#[derive(Default)]
struct Parts {
    pick: Option<Pick>,
    code: Option<i32>,
    labels: Option<Vec<String>>,
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        let mut parts = Parts::default();
        let mut seen = Vec::new();
        let list = Some(text.trim()).filter(|text| !text.is_empty());
        for part in list.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                ScriptError(format!("'{part}' is no part of a script: write KEY=VALUE, like service=1ms"))
            })?;
            if seen.contains(&key) {
                return Err(ScriptError(format!("'{key}' is there twice: keep one")));
            }
            seen.push(key);
            match key {
                "service" => script.service = service(value)?,
                "stall" => script.stall = Some(stall(value)?),
                "fail" => parts.pick = Some(pick(value)?),
                "code" => parts.code = Some(code(value)?),
                "labels" => parts.labels = Some(labels(value)?),
                _ => return Err(unknown(key)),
            }
        }
        script.failures = parts.failures()?;
        Ok(script)
    }
}

impl Parts {
    fn failures(self) -> Result<Option<Failures>, ScriptError> {
        let shedding = GateSettings::default();
        match self {
            Self { pick: Some(pick), code, labels } => Ok(Some(Failures {
                pick,
                code: code.unwrap_or(shedding.code),
                labels: labels.unwrap_or_else(|| owned(&shedding.rejection_labels())),
            })),
            Self { code: None, labels: None, .. } => Ok(None),
            _ => Err(ScriptError(
                "'code' and 'labels' are of failures, and there are none: add fail=every:10 or fail=0.1"
                    .to_owned(),
            )),
        }
    }
}

fn unknown(key: &str) -> ScriptError {
    let known = KEYS.join(", ");
    let hint = nearest(key, KEYS).map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
    ScriptError(format!("a script knows no '{key}'{hint}: it takes {known}"))
}

fn owned(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|&label| label.to_owned()).collect()
}

fn span(key: &str, text: &str) -> Result<Duration, ScriptError> {
    text.parse::<Span>().map(Span::duration).map_err(|error| ScriptError(format!("{key}: {error}")))
}

fn service(text: &str) -> Result<Service, ScriptError> {
    match text.split_once(':') {
        None => Ok(Service::Fixed(span("service", text)?)),
        Some(("exp", mean)) => Ok(Service::Exponential { mean: span("service", mean)? }),
        Some((other, _)) => Err(ScriptError(format!(
            "service: '{other}' is no distribution: write a time like 1ms, or exp:1ms for times of that mean"
        ))),
    }
}

fn stall(text: &str) -> Result<Stall, ScriptError> {
    let (at, length) = text.split_once('+').ok_or_else(|| {
        ScriptError(format!("stall: '{text}' does not say how long: write START+LENGTH, like 5s+1s"))
    })?;
    let stall = Stall { at: span("stall", at)?, length: span("stall", length)? };
    if stall.length.is_zero() {
        return Err(ScriptError(format!("stall: '{text}' lasts no time: write a length like 1s")));
    }
    Ok(stall)
}

fn pick(text: &str) -> Result<Pick, ScriptError> {
    let wrong = || {
        ScriptError(format!(
            "fail: '{text}' says not which: write every:10 for each tenth command, or a probability above 0 and up \
             to 1, like 0.1"
        ))
    };
    match text.strip_prefix("every:") {
        Some(k) => k.parse().ok().filter(|&k| k > 0).map(Pick::Every).ok_or_else(wrong),
        None => {
            let probability = text.parse().ok().filter(|&p: &f64| p > 0.0 && p <= 1.0);
            probability.map(Pick::Probability).ok_or_else(wrong)
        }
    }
}

fn code(text: &str) -> Result<i32, ScriptError> {
    text.parse().ok().filter(|&code| code > 0).ok_or_else(|| {
        ScriptError(format!("code: '{text}' is no server's error code: write a number like 462"))
    })
}

fn labels(text: &str) -> Result<Vec<String>, ScriptError> {
    if text == NO_LABELS {
        return Ok(Vec::new());
    }
    let labels: Vec<&str> = text.split('+').collect();
    if labels.iter().any(|label| label.is_empty()) {
        return Err(ScriptError(format!(
            "labels: '{text}' has an empty one: write labels like SystemOverloadedError+RetryableError, or \
             {NO_LABELS}"
        )));
    }
    Ok(owned(&labels))
}

/// So that it parses again; empty for a stub that answers everything at once.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match self.service {
            Service::Fixed(time) if time.is_zero() => {}
            Service::Fixed(time) => parts.push(format!("service={}", Span::from(time))),
            Service::Exponential { mean } => parts.push(format!("service=exp:{}", Span::from(mean))),
        }
        if let Some(Stall { at, length }) = self.stall {
            parts.push(format!("stall={}+{}", Span::from(at), Span::from(length)));
        }
        if let Some(Failures { pick, code, labels }) = &self.failures {
            parts.push(match pick {
                Pick::Every(k) => format!("fail=every:{k}"),
                Pick::Probability(p) => format!("fail={p}"),
            });
            parts.push(format!("code={code}"));
            let labels = if labels.is_empty() { NO_LABELS.to_owned() } else { labels.join("+") };
            parts.push(format!("labels={labels}"));
        }
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_script_says_what_happens() {
        assert_eq!(script(""), Script::default());
        let all =
            script("service=exp:2ms, stall=5s+1s, fail=every:10, code=433, labels=SystemOverloadedError");
        let failures =
            Failures { pick: Pick::Every(10), code: 433, labels: vec!["SystemOverloadedError".to_owned()] };
        assert_eq!(
            all,
            Script {
                service: Service::Exponential { mean: Duration::from_millis(2) },
                stall: Some(Stall { at: Duration::from_secs(5), length: Duration::from_secs(1) }),
                failures: Some(failures),
                ..Script::default()
            }
        );
    }

    #[test]
    fn failures_are_those_of_a_server_that_sheds_load_unless_told_otherwise() {
        let failures = |text| script(text).failures.unwrap();
        let usual = failures("fail=0.25");
        assert_eq!((usual.pick, usual.code), (Pick::Probability(0.25), 462));
        assert_eq!(usual.labels, ["SystemOverloadedError", "RetryableError", "NoWritesPerformed"]);
        assert!(failures("fail=1,labels=none").labels.is_empty());
    }

    #[test]
    fn scripts_print_what_they_parse() {
        for text in [
            "",
            "service=1ms",
            "service=exp:1m30s",
            "stall=0s+250ms",
            "service=20us,stall=5s+1s,fail=every:3,code=462,labels=SystemOverloadedError+RetryableError",
            "fail=0.125,code=11600,labels=none",
        ] {
            assert_eq!(script(text).to_string(), text);
            let json = serde_json::to_string(&script(text)).unwrap();
            assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script(text), "{json}");
        }
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_understood() {
        for (text, parts) in [
            ("slow", ["'slow'", "service=1ms"]),
            ("service=1ms,", ["''", "KEY=VALUE"]),
            ("serivce=1ms", ["'serivce'", "did you mean 'service'?"]),
            ("speed=1ms", ["'speed'", "service, stall, fail, code, labels"]),
            ("service=1", ["service: '1'", "write 1s"]),
            ("service=normal:1ms", ["'normal'", "exp:1ms"]),
            ("service=1ms,service=2ms", ["'service'", "twice"]),
            ("stall=5s", ["'5s'", "5s+1s"]),
            ("stall=5s+0s", ["lasts no time", "like 1s"]),
            ("stall=-5s+1s", ["'-5s'", "negative"]),
            ("fail=every:0", ["'every:0'", "every:10"]),
            ("fail=10", ["'10'", "0.1"]),
            ("fail=NaN", ["'NaN'", "0.1"]),
            ("fail=0.1,code=overload", ["'overload'", "462"]),
            ("fail=0.1,labels=", ["empty", "none"]),
            ("code=462", ["'code'", "fail=every:10"]),
        ] {
            let error = text.parse::<Script>().unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
