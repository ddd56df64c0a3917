//! Generators at work. The order of the draws is a promise, written down in [`crate::document`].

use std::fmt::Write;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document};

use super::Draw;
use super::keys::Keys;
use crate::plan::template::{Generator, Length, Template};

/// A template, ready to be rendered.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Bson),
    Array(Vec<Node>),
    Document(Vec<(String, Node)>),
    Key(Keys),
    Int {
        min: i64,
        max: i64,
    },
    Double {
        min: f64,
        max: f64,
    },
    String {
        length: Length,
        alphabet: Vec<char>,
    },
    Choose {
        from: Vec<Node>,
        weights: Option<Weights>,
    },
    /// `times`: how often it is rendered in one rendering of the whole template.
    Inc {
        start: i64,
        step: i64,
        times: u64,
    },
    Now,
    ObjectId,
    Bytes {
        length: Length,
    },
    Repeat {
        of: Box<Node>,
        length: Length,
    },
    Join {
        parts: Vec<Node>,
        separator: String,
    },
}

impl Node {
    /// `times`: how often it is rendered in one rendering of the whole template, as far as that is always the same.
    pub(super) fn new(template: &Template, documents: u64, times: u64) -> Self {
        if let Some(constant) = template.constant() {
            return Self::Constant(constant);
        }
        let nodes = |items: &[Template]| items.iter().map(|item| Self::new(item, documents, times)).collect();
        match template {
            Template::Value(value) => Self::Constant(value.clone()),
            Template::Array(items) => Self::Array(nodes(items)),
            Template::Document(fields) => {
                let field = |(k, v): &(String, Template)| (k.clone(), Self::new(v, documents, times));
                Self::Document(fields.iter().map(field).collect())
            }
            Template::Generator(generator) => match &**generator {
                Generator::Key(distribution) => Self::Key(Keys::new(distribution, documents)),
                &Generator::Int { min, max } => Self::Int { min, max },
                &Generator::Double { min, max } => Self::Double { min, max },
                Generator::String { length, alphabet } => {
                    Self::String { length: *length, alphabet: alphabet.chars().collect() }
                }
                Generator::Choose { from, weights } => {
                    Self::Choose { from: nodes(from), weights: Weights::new(weights) }
                }
                &Generator::Inc { start, step } => Self::Inc { start, step, times },
                Generator::Now => Self::Now,
                Generator::ObjectId => Self::ObjectId,
                &Generator::Bytes { length } => Self::Bytes { length },
                Generator::Array { of, length } => {
                    // Where the length varies there is no `^Inc` inside.
                    let times = times.saturating_mul(length.max.into());
                    Self::Repeat { of: Box::new(Self::new(of, documents, times)), length: *length }
                }
                Generator::Join { array, separator } => {
                    Self::Join { parts: nodes(array), separator: separator.clone() }
                }
            },
        }
    }

    pub(super) fn render(&self, draw: &mut Draw) -> Bson {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Array(items) => Bson::Array(items.iter().map(|item| item.render(draw)).collect()),
            Self::Document(fields) => {
                let fields = fields.iter().map(|(key, value)| (key.clone(), value.render(draw)));
                Bson::Document(fields.collect::<Document>())
            }
            Self::Key(keys) => integer(i64::try_from(draw.pick(keys)).unwrap_or(i64::MAX)),
            Self::Int { min, max } => integer(draw.random.between(*min, *max)),
            Self::Double { min, max } => Bson::Double(min + draw.random.unit_f64() * (max - min)),
            Self::String { .. } | Self::Join { .. } => {
                let mut text = String::new();
                self.write(draw, &mut text);
                Bson::String(text)
            }
            Self::Choose { from, weights } => {
                choose(from, weights.as_ref(), draw).map_or(Bson::Null, |chosen| chosen.render(draw))
            }
            Self::Inc { start, step, times } => integer(draw.increment(*start, *step, *times)),
            Self::Now => Bson::DateTime(DateTime::now()),
            Self::ObjectId => Bson::ObjectId(object_id(draw)),
            Self::Bytes { length } => {
                let bytes = bytes(draw, *length);
                Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
            }
            Self::Repeat { of, length } => {
                let length = pick_length(draw, *length);
                Bson::Array(draw.each_element(length, |draw| of.render(draw)))
            }
        }
    }

    /// Renders at the end of a text: strings as they are, numbers in decimal, ObjectIds in hexadecimal.
    fn write(&self, draw: &mut Draw, text: &mut String) {
        match self {
            Self::Constant(value) => write_value(value, text),
            Self::String { length, alphabet } => {
                let length = pick_length(draw, *length);
                text.reserve(length);
                for _ in 0..length {
                    text.extend(pick(alphabet, draw));
                }
            }
            Self::Choose { from, weights } => {
                if let Some(chosen) = choose(from, weights.as_ref(), draw) {
                    chosen.write(draw, text);
                }
            }
            Self::Join { parts, separator } => {
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        text.push_str(separator);
                    }
                    part.write(draw, text);
                }
            }
            // The others have no text to write in pieces.
            other => write_value(&other.render(draw), text),
        }
    }
}

/// The shares of choices, cumulated.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    ends: Vec<u64>,
    sum: u64,
}

impl Weights {
    /// `None` when all choices are equal.
    fn new(weights: &[u32]) -> Option<Self> {
        let ends: Vec<u64> = weights
            .iter()
            .scan(0, |sum, &weight| {
                *sum += u64::from(weight);
                Some(*sum)
            })
            .collect();
        let sum = *ends.last()?;
        Some(Self { ends, sum })
    }
}

/// `None` only when there is nothing to choose from.
fn choose<'n>(from: &'n [Node], weights: Option<&Weights>, draw: &mut Draw) -> Option<&'n Node> {
    match weights {
        None => pick(from, draw),
        Some(weights) => {
            let place = draw.random.below(weights.sum);
            from.get(weights.ends.partition_point(|&end| end <= place))
        }
    }
}

fn pick<'i, T>(items: &'i [T], draw: &mut Draw) -> Option<&'i T> {
    items.get(usize::try_from(draw.random.below(items.len() as u64)).ok()?)
}

fn pick_length(draw: &mut Draw, length: Length) -> usize {
    let length = if length.is_fixed() {
        u64::from(length.min)
    } else {
        let lengths = u64::from(length.max.saturating_sub(length.min)) + 1;
        u64::from(length.min) + draw.random.below(lengths)
    };
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn bytes(draw: &mut Draw, length: Length) -> Vec<u8> {
    let length = pick_length(draw, length);
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let eight = draw.random.next_u64().to_le_bytes();
        bytes.extend_from_slice(&eight[..(length - bytes.len()).min(8)]);
    }
    bytes
}

fn object_id(draw: &mut Draw) -> ObjectId {
    let mut bytes = [0; 12];
    let (first, last) = bytes.split_at_mut(8);
    first.copy_from_slice(&draw.random.next_u64().to_le_bytes());
    last.copy_from_slice(&draw.random.next_u64().to_le_bytes()[..4]);
    ObjectId::from_bytes(bytes)
}

/// Int32 if it fits, else Int64, as integers in profiles are.
fn integer(value: i64) -> Bson {
    i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32)
}

fn write_value(value: &Bson, text: &mut String) {
    match value {
        Bson::String(value) => text.push_str(value),
        // Writing to a string cannot fail. Readers let nothing through that is not text-like.
        Bson::ObjectId(id) => _ = write!(text, "{id}"),
        other => _ = write!(text, "{other}"),
    }
}
