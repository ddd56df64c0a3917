//! `[client]`: connection-string options in the driver's own spelling.

use toml::de::DeValue;

use crate::plan::OptionSetting;
use crate::plan::client::OptionSource;

use super::mistakes::Mistakes;
use super::reader::{Table, Value, kind_of, whole};

/// Says how the driver spells an option's name, or why the name or the value cannot be; no value takes an option away.
pub type CheckOption<'a> = &'a dyn Fn(&str, Option<&str>) -> Result<String, String>;

/// The value that takes an option away.
pub const UNSET: &str = "unset";

/// The option that may be given several times, each time adding to it; in a profile as a list.
const TAGS: &str = "readPreferenceTags";

/// Reads `[client]`.
pub fn read(root: &mut Table<'_>, check: CheckOption<'_>) -> Vec<OptionSetting> {
    let Some(table) = root.table("client") else { return Vec::new() };
    let mistakes = table.mistakes();
    let mut settings: Vec<OptionSetting> = Vec::new();
    let mut written: Vec<(String, &str)> = Vec::new();
    for (key, value) in table.entries() {
        let name: &str = key.get_ref();
        let place = key.span().start..value.span().end;
        // What the driver does not know is told below, beside its value.
        if let Ok(spelt) = check(name, None) {
            if let Some((_, earlier)) = written.iter().find(|(known, _)| *known == spelt) {
                hide_texts(mistakes, value, "");
                table.wrong(place, format!("`{name}` is the same option as `{earlier}`"));
                continue;
            }
            written.push((spelt, name));
        }
        for value in values(name, value) {
            let Some(text) = option_text(value) else {
                let found = kind_of(value.get_ref());
                let message = format!(
                    "`{}` must be a text, a whole number, true, false or a list of those, not {found}",
                    table.path_of(name)
                );
                hide_texts(mistakes, value, "");
                table.wrong(value.span(), message);
                continue;
            };
            match setting(name, &text, OptionSource::Profile, check) {
                Ok(setting) => settings.push(setting),
                Err(message) => {
                    hide_texts(mistakes, value, &message);
                    table.wrong(place.clone(), message);
                }
            }
        }
    }
    settings
}

/// The values that are settings of their own.
fn values<'t>(name: &str, value: &'t Value<'t>) -> Vec<&'t Value<'t>> {
    match value.get_ref() {
        DeValue::Array(items) if name.eq_ignore_ascii_case(TAGS) => items.iter().collect(),
        _ => vec![value],
    }
}

/// Hides the texts in a value that is refused, unless the message repeats them: it does where they cannot be secret.
fn hide_texts(mistakes: &Mistakes, value: &Value<'_>, message: &str) {
    match value.get_ref() {
        DeValue::String(text) if text.is_empty() || !message.contains(&**text) => mistakes.hide(value.span()),
        DeValue::Array(items) => items.iter().for_each(|item| hide_texts(mistakes, item, message)),
        DeValue::Table(table) => table.values().for_each(|item| hide_texts(mistakes, item, message)),
        _ => {}
    }
}

/// Adds a setting. It takes the place of an earlier one of the same option, but tags of one source add up.
pub fn put(settings: &mut Vec<OptionSetting>, setting: OptionSetting) {
    let same = |s: &OptionSetting| s.name == setting.name;
    let adds_up = |s: &OptionSetting| s.name == TAGS && s.from == setting.from;
    match settings.iter().position(|s| same(s) && !adds_up(s)) {
        Some(place) => {
            settings.retain(|s| !same(s) || adds_up(s));
            settings.insert(place.min(settings.len()), setting);
        }
        None => settings.push(setting),
    }
}

/// One option to set, or to take away when its value is `unset`.
///
/// # Errors
/// What the check says.
pub fn setting(
    name: &str,
    value: &str,
    from: OptionSource,
    check: CheckOption<'_>,
) -> Result<OptionSetting, String> {
    let value = (value != UNSET).then(|| value.to_owned());
    let name = check(name, value.as_deref())?;
    Ok(OptionSetting { name, value, from })
}

/// A value as a connection string has it.
fn option_text(value: &Value<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(whole(number)?.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Array(items) => {
            let items: Option<Vec<_>> = items
                .iter()
                .map(|item| if item.get_ref().is_array() { None } else { option_text(item) })
                .collect();
            Some(items?.join(","))
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
