//! Takes leaves out of a TOML document one by one, keeps their places, and reports both what is wrong with them and what
//! nobody took. A derive stops at the first mistake; this one collects them all.
//!
//! Every function that takes something returns `None` both for what is absent and for what is wrong; the latter has
//! then been reported, so that callers may go on with a default.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::diagnostic::Diagnostic;
use super::mistakes::{Mistakes, unknown};

/// A value with its place in the text.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// A table being emptied. Call [`Table::finish`] when everything known has been taken.
pub struct Table<'t> {
    mistakes: &'t Mistakes,
    entries: &'t DeTable<'t>,
    /// Its place: the header, or the inline table.
    pub span: Range<usize>,
    /// Its dotted path as messages show it; empty for the document itself.
    pub path: String,
    asked: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// The document's own table.
    pub fn root(mistakes: &'t Mistakes, document: &'t DeTable<'t>) -> Self {
        Self { mistakes, entries: document, span: 0..0, path: String::new(), asked: Vec::new() }
    }

    /// A table among the values, reported if it is none.
    pub fn of(mistakes: &'t Mistakes, value: &'t Value<'t>, path: String) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(entries) => {
                Some(Self { mistakes, entries, span: value.span(), path, asked: Vec::new() })
            }
            other => {
                mistakes.add(Diagnostic::error(
                    value.span(),
                    format!("`{path}` must be a table, not {}", kind_of(other)),
                ));
                None
            }
        }
    }

    /// Where its mistakes go.
    pub const fn mistakes(&self) -> &'t Mistakes {
        self.mistakes
    }

    /// Reports a mistake at a place.
    pub fn wrong(&self, span: Range<usize>, message: impl Into<String>) {
        self.mistakes.add(Diagnostic::error(span, message));
    }

    /// The dotted path of one of its keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The place of a key that is there.
    pub fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.entries.get_key_value(key).map(|(key, _)| key.span())
    }

    /// Any value.
    pub fn take(&mut self, key: &'static str) -> Option<&'t Value<'t>> {
        self.asked.push(key);
        self.entries.get(key)
    }

    /// Any value, reported if it is missing.
    pub fn require(&mut self, key: &'static str) -> Option<&'t Value<'t>> {
        let value = self.take(key);
        if value.is_none() {
            self.missing(key);
        }
        value
    }

    /// Reports that a key is missing.
    pub fn missing(&self, key: &str) {
        self.wrong(self.span.clone(), format!("`{}` lacks `{key}`", self.path));
    }

    /// All entries, for tables whose keys are the user's own.
    pub fn entries(&self) -> impl Iterator<Item = (&'t Spanned<toml::de::DeString<'t>>, &'t Value<'t>)> {
        self.entries.iter()
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<Spanned<String>> {
        let value = self.take(key)?;
        text(self.mistakes, &self.path_of(key), value)
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<Spanned<String>>> {
        let path = self.path_of(key);
        Some(self.array(key)?.filter_map(|item| text(self.mistakes, &path, item)).collect())
    }

    /// The items of an array; an array of tables is one, too.
    pub fn array(&mut self, key: &'static str) -> Option<impl Iterator<Item = &'t Value<'t>> + use<'t>> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Array(items) => Some(items.iter()),
            other => {
                let path = self.path_of(key);
                self.wrong(value.span(), format!("`{path}` must be a list, not {}", kind_of(other)));
                None
            }
        }
    }

    /// A quantity such as a rate or a length of time, written as a text or as a bare number.
    pub fn quantity<T: FromStr<Err: Display>>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        let value = self.take(key)?;
        let written = match value.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            other => {
                let path = self.path_of(key);
                self.wrong(value.span(), format!("`{path}` must be a text, not {}", kind_of(other)));
                return None;
            }
        };
        match written.parse() {
            Ok(quantity) => Some(Spanned::new(value.span(), quantity)),
            Err(error) => {
                self.wrong(value.span(), format!("`{}`: {error}", self.path_of(key)));
                None
            }
        }
    }

    /// A whole number within bounds.
    pub fn integer<T>(&mut self, key: &'static str, least: T, most: T) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + Display + Copy,
    {
        let value = self.take(key)?;
        let path = self.path_of(key);
        let DeValue::Integer(written) = value.get_ref() else {
            let found = kind_of(value.get_ref());
            self.wrong(value.span(), format!("`{path}` must be a whole number, not {found}"));
            return None;
        };
        let number = whole(written).and_then(|n| T::try_from(n).ok()).filter(|n| (least..=most).contains(n));
        if number.is_none() {
            self.wrong(value.span(), format!("`{path}` must be from {least} to {most}"));
        }
        number
    }

    /// A number, whole or not.
    pub fn number(&mut self, key: &'static str) -> Option<Spanned<f64>> {
        let value = self.take(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => integer.to_string().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            let found = kind_of(value.get_ref());
            let path = self.path_of(key);
            self.wrong(value.span(), format!("`{path}` must be a number, not {found}"));
        }
        number.map(|number| Spanned::new(value.span(), number))
    }

    /// True or false.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.take(key)?;
        if let DeValue::Boolean(flag) = value.get_ref() {
            return Some(*flag);
        }
        let (path, found) = (self.path_of(key), kind_of(value.get_ref()));
        self.wrong(value.span(), format!("`{path}` must be true or false, not {found}"));
        None
    }

    /// One of a few words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| word == text.get_ref());
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
            self.mistakes.add(unknown(
                text.span(),
                format!("`{}` cannot be '{}'", self.path_of(key), text.get_ref()),
                text.get_ref(),
                &names,
            ));
        }
        found.map(|&(_, value)| value)
    }

    /// A table within.
    pub fn table(&mut self, key: &'static str) -> Option<Table<'t>> {
        let value = self.take(key)?;
        Table::of(self.mistakes, value, self.path_of(key))
    }

    /// Whether some key was not asked for so far.
    pub fn has_strangers(&self) -> bool {
        self.entries.keys().any(|key| !self.asked.contains(&&**key.get_ref()))
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if !self.asked.contains(&name) {
                let place = match self.path.as_str() {
                    "" => "in a profile".to_owned(),
                    path => format!("in `{path}`"),
                };
                let message = format!("unknown key `{name}` {place}");
                self.mistakes.add(unknown(key.span(), message, name, &self.asked));
            }
        }
    }
}

/// A text, reported if it is none.
pub fn text(mistakes: &Mistakes, path: &str, value: &Value<'_>) -> Option<Spanned<String>> {
    if let DeValue::String(text) = value.get_ref() {
        return Some(Spanned::new(value.span(), text.clone().into_owned()));
    }
    let found = kind_of(value.get_ref());
    mistakes.add(Diagnostic::error(value.span(), format!("`{path}` must be a text, not {found}")));
    None
}

/// What a value is, as messages say it.
pub const fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// An integer of any radix, if 64 bits hold it.
pub fn whole(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
