//! Templates as JSON, for plans that travel to other processes and languages.

use bson::Bson;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};

use super::{Generator, KeyDistribution, Length, Template, extended};

impl Template {
    /// The template as JSON: what [`Template::from_json`] reads to the same template.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Value(value) => extended::write(value),
            Self::Array(items) => items.iter().map(Self::to_json).collect(),
            Self::Document(fields) => {
                let fields = fields.iter().map(|(key, value)| {
                    let escape = if key.starts_with('^') { "^" } else { "" };
                    (format!("{escape}{key}"), value.to_json())
                });
                Value::Object(fields.collect())
            }
            Self::Generator(generator) => generator.to_json(),
        }
    }
}

impl Generator {
    fn to_json(&self) -> Value {
        let double = |number: f64| extended::write(&Bson::Double(number));
        let (name, body) = match self {
            Self::Key(KeyDistribution::Hotspot { hot_set, hot_operations }) => {
                let (set, operations) = (double(*hot_set), double(*hot_operations));
                ("^Key", json!({ "distribution": "hotspot", "hot_set": set, "hot_operations": operations }))
            }
            Self::Key(distribution) => ("^Key", json!({ "distribution": distribution.name() })),
            Self::Int { min, max } => ("^Int", json!({ "min": min, "max": max })),
            Self::Double { min, max } => ("^Double", json!({ "min": double(*min), "max": double(*max) })),
            Self::String { length, alphabet } => {
                let mut body = length.to_json();
                body.insert("alphabet".to_owned(), alphabet.as_str().into());
                ("^String", body.into())
            }
            Self::Choose { from, weights } => {
                let from: Value = from.iter().map(Template::to_json).collect();
                let even = weights.is_empty();
                let body =
                    if even { json!({ "from": from }) } else { json!({ "from": from, "weights": weights }) };
                ("^Choose", body)
            }
            Self::Inc { start, step } => ("^Inc", json!({ "start": start, "step": step })),
            Self::Now => ("^Now", json!({})),
            Self::ObjectId => ("^ObjectId", json!({})),
            Self::Bytes { length } => ("^Bytes", length.to_json().into()),
            Self::Array { of, length } => {
                let mut body = Map::from_iter([("of".to_owned(), of.to_json())]);
                body.extend(length.to_json());
                ("^Array", body.into())
            }
            Self::Join { array, separator } => {
                let array: Value = array.iter().map(Template::to_json).collect();
                ("^Join", json!({ "array": array, "sep": separator }))
            }
        };
        json!({ name: body })
    }
}

impl Length {
    fn to_json(self) -> Map<String, Value> {
        let (min, max) = (self.min.into(), self.max.into());
        Map::from_iter([("min_length".to_owned(), min), ("max_length".to_owned(), max)])
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_json(&value).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            de::Error::custom(errors.join("; "))
        })
    }
}
