//! The part behind a connection string's `?`.

use super::UriOption;
use super::encoding;
use crate::client::options;

/// Reads `name=value&name=value`; what is wrong goes to `mistakes`, without repeating the text when `quiet`.
pub(super) fn parse(text: &str, quiet: bool, mistakes: &mut Vec<String>) -> Vec<UriOption> {
    let mut list = List { quiet, ..List::default() };
    if text.is_empty() {
        return list.options;
    }
    for (i, piece) in text.split('&').enumerate() {
        if let Err(message) = list.add(piece) {
            mistakes.push(format!("option {}: {message}", i + 1));
        }
    }
    list.options
}

#[derive(Default)]
struct List {
    options: Vec<UriOption>,
    /// The names as they were written, in lower case.
    names: Vec<String>,
    /// Set behind a secret: an unescaped `&` makes its rest look like more options, so what is unknown is
    /// not repeated from there on.
    quiet: bool,
}

impl List {
    fn add(&mut self, piece: &str) -> Result<(), String> {
        let Some((name, text)) = piece.split_once('=') else {
            return Err("has no `=`; write name=value, and a `&` within a value as %26".into());
        };
        let quiet = self.quiet;
        self.quiet |= options::may_be_secret(name);
        let Some(spec) = options::find(name) else {
            return Err(if quiet && !options::is_known_name(name) {
                "unknown, and not repeated here because it may be part of a secret; a `&` within a value is \
                 written %26"
                    .into()
            } else {
                options::unknown(name)
            });
        };
        let value = encoding::decode(text)
            .map_err(|error| format!("the value of `{}` {}", spec.name, error.reason()))?;
        if quiet {
            spec.validate_quietly(&value)?;
        } else {
            spec.validate(&value)?;
        }
        self.admit(name, UriOption { spec, value })
    }

    fn admit(&mut self, name: &str, option: UriOption) -> Result<(), String> {
        let spec = option.spec;
        let written = name.to_ascii_lowercase();
        if self.names.contains(&written) && !spec.repeats() {
            return Err(format!("`{}` is there more than once; keep one of them", spec.name));
        }
        self.names.push(written);
        match self.options.iter().find(|o| o.spec.name == spec.name) {
            Some(first) if !spec.repeats() => {
                // Only `tls` has a second spelling.
                if first.value != option.value {
                    return Err(
                        "`tls` and `ssl` are the same option, but their values differ; keep one of them"
                            .into(),
                    );
                }
            }
            _ => self.options.push(option),
        }
        Ok(())
    }
}
