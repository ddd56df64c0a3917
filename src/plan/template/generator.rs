//! Reading generators: their names, and what each is made of.

use serde_json::Value;

use super::fields::Table;
use super::parse::Reader;
use super::{Generator, KeyDistribution, PathStep, Template, extended};

/// What each generator is called, what fields it has, and how it is written.
const GENERATORS: [(&str, &[&str], &str); 11] = [
    ("^Key", &["distribution", "hot_set", "hot_operations"], r#"{ "^Key" = "zipfian" }"#),
    ("^Int", &["min", "max"], r#"{ "^Int" = { min = 0, max = 9 } }"#),
    ("^Double", &["min", "max"], r#"{ "^Double" = { min = 0.0, max = 1.0 } }"#),
    ("^String", &["length", "min_length", "max_length", "alphabet"], r#"{ "^String" = { length = 20 } }"#),
    ("^Choose", &["from", "weights"], r#"{ "^Choose" = { from = ["a", "b"], weights = [3, 1] } }"#),
    ("^Inc", &["start", "step"], r#"{ "^Inc" = { start = 0, step = 1 } }"#),
    ("^Now", &[], r#"{ "^Now" = {} }"#),
    ("^ObjectId", &[], r#"{ "^ObjectId" = {} }"#),
    ("^Bytes", &["length", "min_length", "max_length"], r#"{ "^Bytes" = { length = 100 } }"#),
    ("^Array", &["of", "length", "min_length", "max_length"], r#"{ "^Array" = { of = 0, length = 10 } }"#),
    ("^Join", &["array", "sep"], r#"{ "^Join" = { array = ["user", { "^Key" = "uniform" }], sep = "-" } }"#),
];

const DISTRIBUTIONS: [&str; 6] = ["uniform", "zipfian", "latest", "sequential", "hotspot", "next"];

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Reader {
    /// Reads a generator. Null stands for one with mistakes.
    pub(super) fn generator(&mut self, name: &str, body: &Value) -> Template {
        let before = self.mistakes();
        let generator = self.generator_with_mistakes(name, body).map(|g| Template::Generator(Box::new(g)));
        if let Some(template) = &generator
            && self.mistakes() == before
        {
            self.check_size(&format!("`{name}`"), template);
        }
        generator.unwrap_or(Template::Value(bson::Bson::Null))
    }

    fn generator_with_mistakes(&mut self, name: &str, body: &Value) -> Option<Generator> {
        let Some(&(name, known, form)) = GENERATORS.iter().find(|(known, ..)| *known == name) else {
            let names = GENERATORS.map(|(name, ..)| name);
            let hint = nearest(name, &names).map_or_else(
                || format!("there are {}; a literal key is written `^{name}`", names.join(", ")),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            self.mistake(format!("there is no generator `{name}`: {hint}"));
            return None;
        };
        // Some may be given by what matters most alone.
        let table = match (name, body) {
            (_, Value::Object(table)) if extended::form(table).is_none() => table.clone(),
            ("^Key", Value::String(_)) => return self.key(body, &Table::new()),
            ("^Choose", Value::Array(items)) => {
                return self.choose(items, None, false);
            }
            ("^Join", Value::Array(items)) => return self.join(items, String::new(), false),
            _ => {
                self.mistake(format!("`{name}` is written {form}"));
                return None;
            }
        };
        for field in table.keys().filter(|field| !known.contains(&field.as_str())) {
            let hint = match nearest(field, known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if known.is_empty() => format!("it is written {form}"),
                None => format!("it has {}", known.join(", ")),
            };
            self.within(PathStep::Key(field.clone()), |reader| {
                reader.mistake(format!("`{name}` has no field `{field}`: {hint}"));
            });
        }
        self.fields(name, &table)
    }

    fn fields(&mut self, name: &str, table: &Table) -> Option<Generator> {
        match name {
            "^Key" => {
                let distribution = self.required(table, "distribution");
                self.key(distribution?, table)
            }
            "^Int" => {
                let (min, max) = (self.required_integer(table, "min"), self.required_integer(table, "max"));
                let (min, max) = (min?, max?);
                self.in_order(min <= max, &min, &max)?;
                Some(Generator::Int { min, max })
            }
            "^Double" => {
                let (min, max) = (self.required_double(table, "min"), self.required_double(table, "max"));
                let (min, max) = (min?, max?);
                self.in_order(min <= max, &min, &max)?;
                if (max - min).is_infinite() {
                    self.mistake(format!("min = {min:?} and max = {max:?} are too far apart for a double"));
                    return None;
                }
                Some(Generator::Double { min, max })
            }
            "^String" => {
                let length = self.length(table);
                let alphabet = self.text(table, "alphabet", ALPHABET)?;
                if alphabet.is_empty() {
                    self.within(PathStep::Key("alphabet".to_owned()), |r| r.mistake("must not be empty"));
                    return None;
                }
                Some(Generator::String { length: length?, alphabet })
            }
            "^Choose" => {
                let from = self.required_items(table, "from");
                let weights = table.get("weights").map(|weights| self.weights(weights));
                self.choose(from?, weights, true)
            }
            "^Inc" => {
                self.must_be_countable("`^Inc`")?;
                let (start, step) = (self.integer(table, "start", 0), self.integer(table, "step", 1));
                Some(Generator::Inc { start: start?, step: step? })
            }
            "^Now" => Some(Generator::Now),
            "^ObjectId" => Some(Generator::ObjectId),
            "^Bytes" => Some(Generator::Bytes { length: self.length(table)? }),
            "^Array" => {
                let length = self.length(table);
                let of = self.required(table, "of")?;
                let of = self.within(PathStep::Key("of".to_owned()), |reader| match length {
                    Some(length) if !length.is_fixed() => {
                        reader.varying("an `^Array` of varying length", |reader| reader.value(of))
                    }
                    _ => reader.value(of),
                });
                Some(Generator::Array { of, length: length? })
            }
            "^Join" => {
                let array = self.required_items(table, "array");
                let separator = self.text(table, "sep", "");
                self.join(array?, separator?, true)
            }
            _ => None,
        }
    }

    fn key(&mut self, distribution: &Value, table: &Table) -> Option<Generator> {
        let name = match distribution {
            Value::String(name) => name.as_str(),
            _ => "",
        };
        let shares = (self.share(table, "hot_set", 0.2), self.share(table, "hot_operations", 0.8));
        if name != "hotspot" && (table.contains_key("hot_set") || table.contains_key("hot_operations")) {
            self.mistake("hot_set and hot_operations belong to the distribution `hotspot` alone");
        }
        let distribution = match name {
            "uniform" => KeyDistribution::Uniform,
            "zipfian" => KeyDistribution::Zipfian,
            "latest" => KeyDistribution::Latest,
            "sequential" => KeyDistribution::Sequential,
            "hotspot" => KeyDistribution::Hotspot { hot_set: shares.0?, hot_operations: shares.1? },
            "next" => {
                self.must_be_countable("`^Key = \"next\"`")?;
                KeyDistribution::Next
            }
            _ => {
                let hint = nearest(name, &DISTRIBUTIONS).map_or_else(
                    || format!("there are {}", DISTRIBUTIONS.join(", ")),
                    |nearest| format!("did you mean `{nearest}`?"),
                );
                self.mistake(format!("{distribution} is no distribution of keys: {hint}"));
                return None;
            }
        };
        Some(Generator::Key(distribution))
    }

    fn choose(
        &mut self,
        from: &[Value],
        weights: Option<Option<Vec<u32>>>,
        named: bool,
    ) -> Option<Generator> {
        let from = self.part(named, "from", |reader| reader.varying("a `^Choose`", |r| r.items(from)));
        if from.is_empty() {
            self.mistake("there is nothing to choose from");
            return None;
        }
        let weights = match weights {
            None => Vec::new(),
            Some(weights) => weights?,
        };
        if !weights.is_empty() && weights.len() != from.len() {
            self.mistake(format!("there are {} weights for {} choices", weights.len(), from.len()));
        }
        Some(Generator::Choose { from, weights })
    }

    fn weights(&mut self, value: &Value) -> Option<Vec<u32>> {
        self.within(PathStep::Key("weights".to_owned()), |reader| {
            let weight = |value: &Value| value.as_u64().and_then(|weight| u32::try_from(weight).ok());
            let weights: Option<Vec<u32>> =
                value.as_array().and_then(|items| items.iter().map(weight).collect());
            match weights {
                Some(weights) if weights.iter().any(|&weight| weight > 0) => Some(weights),
                Some(_) => {
                    reader.mistake("some weight must be above 0");
                    None
                }
                None => {
                    reader.mistake(format!("must be an array of integers from 0 to {}", u32::MAX));
                    None
                }
            }
        })
    }

    fn join(&mut self, array: &[Value], separator: String, named: bool) -> Option<Generator> {
        let before = self.mistakes();
        let array = self.part(named, "array", |reader| {
            let array = reader.items(array);
            if reader.mistakes() == before {
                for (index, _) in array.iter().enumerate().filter(|(_, part)| !part.is_text_like()) {
                    reader.within(PathStep::Index(index), |reader| {
                        reader.mistake("`^Join` joins strings, integers, booleans and ObjectIds only");
                    });
                }
            }
            array
        });
        Some(Generator::Join { array, separator })
    }

    /// Reads what stands in a field, or alone in its place.
    fn part<T>(&mut self, named: bool, field: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        if named { self.within(PathStep::Key(field.to_owned()), read) } else { read(self) }
    }

    fn must_be_countable(&mut self, what: &str) -> Option<()> {
        let Some(around) = self.varies else { return Some(()) };
        self.mistake(format!(
            "{what} cannot stand inside {around}: how many of them a rendering uses has to be fixed"
        ));
        None
    }
}

/// The name that was probably meant.
fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let plain = |name: &str| name.trim_start_matches('^').to_lowercase();
    // Jaro and Winkler see no likeness in short words with two letters swapped.
    let likeness = |known: &&str| match strsim::damerau_levenshtein(&plain(name), &plain(known)) {
        0 => 1.0,
        1 => 0.95,
        _ => strsim::jaro_winkler(&plain(name), &plain(known)),
    };
    let nearest = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) >= 0.75).then_some(*nearest)
}
