//! What can be said of a template without rendering it.

use bson::Bson;

use super::{Generator, KeyDistribution, Template, extended};

impl Template {
    /// Whether every rendering is a document; choosing among documents is one.
    pub fn is_document(&self) -> bool {
        self.always(|template| matches!(template, Self::Document(_)))
    }

    /// Whether every rendering is an array.
    pub fn is_array(&self) -> bool {
        self.always(|template| match template {
            Self::Array(_) => true,
            Self::Generator(generator) => matches!(**generator, Generator::Array { .. }),
            _ => false,
        })
    }

    /// Whether every rendering is a string, an integer, a boolean or an ObjectId: what `^Join` takes, and what names
    /// can be made of.
    pub fn is_text_like(&self) -> bool {
        self.always(|template| match template {
            Self::Value(value) => matches!(
                value,
                Bson::String(_) | Bson::Int32(_) | Bson::Int64(_) | Bson::Boolean(_) | Bson::ObjectId(_)
            ),
            Self::Generator(generator) => matches!(
                **generator,
                Generator::Key(_)
                    | Generator::Int { .. }
                    | Generator::Inc { .. }
                    | Generator::String { .. }
                    | Generator::ObjectId
                    | Generator::Join { .. }
            ),
            _ => false,
        })
    }

    /// Whether a test holds for the template, or for everything that it may choose.
    fn always(&self, test: fn(&Self) -> bool) -> bool {
        match self {
            Self::Generator(generator) => match &**generator {
                Generator::Choose { from, .. } => from.iter().all(|choice| choice.always(test)),
                _ => test(self),
            },
            _ => test(self),
        }
    }

    /// How many new keys a rendering takes: the number of `^Key = "next"`. Always the same, for they cannot stand where
    /// the number of renderings varies.
    pub fn new_keys(&self) -> u64 {
        let sum = |items: &[Self]| items.iter().map(Self::new_keys).fold(0, u64::saturating_add);
        match self {
            Self::Value(_) => 0,
            Self::Array(items) => sum(items),
            Self::Document(fields) => {
                fields.iter().map(|(_, value)| value.new_keys()).fold(0, u64::saturating_add)
            }
            Self::Generator(generator) => match &**generator {
                Generator::Key(KeyDistribution::Next) => 1,
                Generator::Array { of, length } => of.new_keys().saturating_mul(length.max.into()),
                Generator::Join { array, .. } => sum(array),
                _ => 0,
            },
        }
    }

    /// The most bytes that a rendering takes in BSON, or a little more. Saturates.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Value(value) => value_bytes(value),
            Self::Array(items) => {
                items.iter().map(|item| element(items.len() as u64, item)).fold(5, u64::saturating_add)
            }
            Self::Document(fields) => {
                let field =
                    |(key, value): &(String, Self)| value.max_bytes().saturating_add(key.len() as u64 + 2);
                fields.iter().map(field).fold(5, u64::saturating_add)
            }
            Self::Generator(generator) => generator.max_bytes(),
        }
    }
}

impl Generator {
    fn max_bytes(&self) -> u64 {
        match self {
            Self::Key(_) | Self::Int { .. } | Self::Double { .. } | Self::Inc { .. } | Self::Now => 8,
            Self::ObjectId => 12,
            Self::String { length, alphabet } => {
                let widest = alphabet.chars().map(char::len_utf8).max().unwrap_or(0) as u64;
                u64::from(length.max) * widest + 5
            }
            Self::Bytes { length } => u64::from(length.max) + 5,
            Self::Choose { from, .. } => from.iter().map(Template::max_bytes).max().unwrap_or(0),
            Self::Array { of, length } => {
                let length = u64::from(length.max);
                element(length, of).saturating_mul(length).saturating_add(5)
            }
            Self::Join { array, separator } => {
                // An ObjectId's 24 digits are the longest text that outgrows its value.
                let part = |part: &Template| part.max_bytes().max(24).saturating_add(separator.len() as u64);
                array.iter().map(part).fold(5, u64::saturating_add)
            }
        }
    }
}

/// An element of an array of so many: BSON spells out each index.
fn element(elements: u64, item: &Template) -> u64 {
    let digits = elements.checked_ilog10().unwrap_or(0) + 1;
    item.max_bytes().saturating_add(u64::from(digits) + 2)
}

fn value_bytes(value: &Bson) -> u64 {
    let bytes = match value {
        Bson::String(text) | Bson::Symbol(text) | Bson::JavaScriptCode(text) => text.len() + 5,
        Bson::Binary(binary) => binary.bytes.len() + 9,
        Bson::RegularExpression(regex) => regex.pattern.as_str().len() + regex.options.as_str().len() + 2,
        // Its parts are not open to us; as JSON it is longer.
        Bson::DbPointer(_) => extended::write(value).to_string().len(),
        Bson::JavaScriptCodeWithScope(code) => {
            let scope = Template::from(Bson::Document(code.scope.clone())).max_bytes();
            return scope.saturating_add(code.code.len() as u64 + 9);
        }
        _ => 16,
    };
    bytes as u64
}
