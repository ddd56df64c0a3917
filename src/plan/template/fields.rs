//! The fields of generators, each with the check that its kind needs. `None` means that a mistake was noted.

use bson::Bson;
use serde_json::{Map, Value};

use super::parse::Reader;
use super::{DOCUMENT_LIMIT, Length, PathStep, extended};

/// The fields of a generator.
pub(super) type Table = Map<String, Value>;

impl Reader {
    pub(super) fn in_order(
        &mut self,
        are: bool,
        min: &impl std::fmt::Debug,
        max: &impl std::fmt::Debug,
    ) -> Option<()> {
        if are {
            return Some(());
        }
        self.mistake(format!("min = {min:?} is above max = {max:?}"));
        None
    }

    pub(super) fn length(&mut self, table: &Table) -> Option<Length> {
        let ranged = table.contains_key("min_length") || table.contains_key("max_length");
        match (table.contains_key("length"), ranged) {
            (true, false) => {
                let length = self.bounded_length(table, "length")?;
                Some(Length { min: length, max: length })
            }
            (false, true) => {
                let min = if table.contains_key("min_length") {
                    self.bounded_length(table, "min_length")
                } else {
                    Some(0)
                };
                let max = self.bounded_length(table, "max_length");
                let (min, max) = (min?, max?);
                self.in_order(min <= max, &min, &max)?;
                Some(Length { min, max })
            }
            (true, true) => {
                self.mistake("give either length, or min_length and max_length");
                None
            }
            (false, false) => {
                self.mistake("needs `length`, or `min_length` and `max_length`");
                None
            }
        }
    }

    pub(super) fn bounded_length(&mut self, table: &Table, field: &str) -> Option<u32> {
        let length = self.required_integer(table, field)?;
        match u32::try_from(length) {
            Ok(length) if u64::from(length) <= DOCUMENT_LIMIT => Some(length),
            _ => {
                self.within(PathStep::Key(field.to_owned()), |reader| {
                    reader.mistake(format!(
                        "{length} is no possible length: 0 to {DOCUMENT_LIMIT}, as a document cannot have more than 16 MiB"
                    ));
                });
                None
            }
        }
    }

    pub(super) fn required<'t>(&mut self, table: &'t Table, field: &str) -> Option<&'t Value> {
        let value = table.get(field);
        if value.is_none() {
            self.mistake(format!("needs `{field}`"));
        }
        value
    }

    pub(super) fn required_items<'t>(&mut self, table: &'t Table, field: &str) -> Option<&'t [Value]> {
        let value = self.required(table, field)?;
        if let Value::Array(items) = value {
            return Some(items);
        }
        self.within(PathStep::Key(field.to_owned()), |reader| reader.mistake("must be an array"));
        None
    }

    pub(super) fn required_integer(&mut self, table: &Table, field: &str) -> Option<i64> {
        self.required(table, field)?;
        self.integer(table, field, 0)
    }

    pub(super) fn integer(&mut self, table: &Table, field: &str, default: i64) -> Option<i64> {
        let Some(value) = table.get(field) else { return Some(default) };
        match number(value) {
            Some(Bson::Int32(integer)) => Some(integer.into()),
            Some(Bson::Int64(integer)) => Some(integer),
            _ => {
                self.within(PathStep::Key(field.to_owned()), |r| r.mistake("must be a 64-bit integer"));
                None
            }
        }
    }

    pub(super) fn required_double(&mut self, table: &Table, field: &str) -> Option<f64> {
        let value = self.required(table, field)?;
        match double(value) {
            Some(double) if double.is_finite() => Some(double),
            _ => {
                self.within(PathStep::Key(field.to_owned()), |r| r.mistake("must be a finite number"));
                None
            }
        }
    }

    pub(super) fn share(&mut self, table: &Table, field: &str, default: f64) -> Option<f64> {
        let Some(value) = table.get(field) else { return Some(default) };
        match double(value) {
            Some(share) if (0.0..=1.0).contains(&share) => Some(share),
            _ => {
                self.within(PathStep::Key(field.to_owned()), |r| r.mistake("must be a number from 0 to 1"));
                None
            }
        }
    }

    pub(super) fn text(&mut self, table: &Table, field: &str, default: &str) -> Option<String> {
        match table.get(field) {
            None => Some(default.to_owned()),
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.within(PathStep::Key(field.to_owned()), |r| r.mistake("must be a string"));
                None
            }
        }
    }
}

fn number(value: &Value) -> Option<Bson> {
    match value {
        Value::Number(number) => {
            number.as_i64().map(Bson::Int64).or_else(|| number.as_f64().map(Bson::Double))
        }
        Value::Object(table) => extended::form(table).and_then(|_| extended::read(table)),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound of doubles; nobody can tell at that size")]
fn double(value: &Value) -> Option<f64> {
    match number(value)? {
        Bson::Double(double) => Some(double),
        Bson::Int32(integer) => Some(integer.into()),
        Bson::Int64(integer) => Some(integer as f64),
        _ => None,
    }
}
