//! Values with holes: what profiles write wherever a document or a part of one is wanted. Rendering them is
//! [`crate::document`]'s business.
//!
//! As JSON a template is canonical Extended JSON v2 in which generators stand as profiles write them:
//! `{"_id": {"^Key": {"distribution": "zipfian"}}, "n": {"$numberInt": "1"}}`. A literal key that starts with `^` has
//! one more `^` in front. Doubles in a generator's fields are canonical too (`{"$numberDouble": "0.5"}`), its integers
//! plain. Reading takes both forms of either.

mod extended;
mod fields;
mod generator;
mod measure;
mod parse;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;

use bson::Bson;
use serde_json::Value;

/// The most bytes a document may have on a server.
pub const DOCUMENT_LIMIT: u64 = 16 * 1024 * 1024;

/// A BSON value in which generators may stand for any part.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// A value that is always the same: neither array nor document, these are the variants below even if nothing in
    /// them varies.
    Value(Bson),
    /// An array.
    Array(Vec<Template>),
    /// A document; its keys are unique and in order.
    Document(Vec<(String, Template)>),
    /// A value that may be another one in each rendering.
    Generator(Box<Generator>),
}

/// What stands for a varying value. Integers render as Int32 if they fit, else as Int64.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// The key of a document.
    Key(KeyDistribution),
    /// An integer in `min..=max`, all equally often.
    Int {
        /// The lowest.
        min: i64,
        /// The highest; not below `min`.
        max: i64,
    },
    /// A double from `min` on, and below `max` (but for rounding), evenly.
    Double {
        /// The lowest; finite.
        min: f64,
        /// The bound; finite, not below `min`, and the difference is finite too.
        max: f64,
    },
    /// A string of characters out of an alphabet.
    String {
        /// How many characters.
        length: Length,
        /// What each is taken from, evenly; never empty. A character that is in it twice comes twice as often.
        alphabet: String,
    },
    /// One of several.
    Choose {
        /// What is chosen from; never empty.
        from: Vec<Template>,
        /// The share of each, as many as there are choices, not all 0; empty when all are equal.
        weights: Vec<u32>,
    },
    /// An integer that grows with each rendering, by itself; at the end of 64 bits it stays there.
    Inc {
        /// The first value.
        start: i64,
        /// What is added each time.
        step: i64,
    },
    /// The wall clock, as a date.
    Now,
    /// An ObjectId of 12 random bytes: no time in it, so that it is the same for the same seed.
    ObjectId,
    /// Random bytes, as generic binary data.
    Bytes {
        /// How many.
        length: Length,
    },
    /// An array of renderings of one template.
    Array {
        /// What each element is a rendering of.
        of: Template,
        /// How many elements.
        length: Length,
    },
    /// One string made of several values: strings, integers, booleans and ObjectIds (as 24 hex digits).
    Join {
        /// The values, each [text-like](Template::is_text_like).
        array: Vec<Template>,
        /// What stands between them.
        separator: String,
    },
}

/// A number of characters, bytes or elements, bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The lowest.
    pub min: u32,
    /// The highest; not below `min`.
    pub max: u32,
}

impl Length {
    /// Whether there is but one.
    pub const fn is_fixed(self) -> bool {
        self.min == self.max
    }
}

/// Which keys come, and how often.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyDistribution {
    /// Every loaded document equally often.
    Uniform,
    /// A few scattered ones most of the time.
    Zipfian,
    /// The newest most of the time, inserted ones included.
    Latest,
    /// One after the other, and again from the first.
    Sequential,
    /// A hot set and the rest.
    Hotspot {
        /// The hot share of the documents, 0.0 to 1.0.
        hot_set: f64,
        /// The share of the operations that go there, 0.0 to 1.0.
        hot_operations: f64,
    },
    /// A key that no document had before.
    Next,
}

impl KeyDistribution {
    /// The name in profiles.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
            Self::Sequential => "sequential",
            Self::Hotspot { .. } => "hotspot",
            Self::Next => "next",
        }
    }
}

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// Into a table, by the key as it is written there.
    Key(String),
    /// Into an array, from 0.
    Index(usize),
}

/// A mistake in a template. The path leads from the root to the value that is wrong, or to the table that lacks
/// something; it is empty when it is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Where.
    pub path: Vec<PathStep>,
    /// What, and what would be right.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.path.iter().enumerate() {
            match step {
                PathStep::Key(key) if i == 0 => write!(f, "{key}")?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{colon}{}", self.message)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template from a value as profiles and plans write it.
    ///
    /// # Errors
    /// All mistakes in it, in the order of reading; never an empty list.
    pub fn from_json(value: &Value) -> Result<Self, Vec<TemplateError>> {
        parse::template(value)
    }

    /// The value, when nothing in it varies.
    pub fn constant(&self) -> Option<Bson> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::Array(items) => {
                items.iter().map(Self::constant).collect::<Option<Vec<_>>>().map(Bson::Array)
            }
            Self::Document(fields) => fields
                .iter()
                .map(|(key, value)| Some((key.clone(), value.constant()?)))
                .collect::<Option<bson::Document>>()
                .map(Bson::Document),
            Self::Generator(_) => None,
        }
    }

    /// The keys and values, when it is written as a document.
    pub fn as_document(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Document(fields) => Some(fields),
            _ => None,
        }
    }
}

impl From<Bson> for Template {
    fn from(value: Bson) -> Self {
        match value {
            Bson::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Bson::Document(document) => {
                Self::Document(document.into_iter().map(|(key, value)| (key, value.into())).collect())
            }
            value => Self::Value(value),
        }
    }
}
