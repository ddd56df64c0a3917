//! Reading templates, so that every mistake is found in one go.

use bson::Bson;
use serde_json::{Map, Value};

use super::{DOCUMENT_LIMIT, PathStep, Template, TemplateError, extended};

/// How deep tables and arrays may lie in one another: the server's own limit for documents.
const DEEPEST: usize = 100;

pub(super) fn template(value: &Value) -> Result<Template, Vec<TemplateError>> {
    let mut reader = Reader { path: Vec::new(), errors: Vec::new(), varies: None };
    let template = reader.value(value);
    if reader.errors.is_empty() {
        reader.check_size("the whole of it", &template);
    }
    if reader.errors.is_empty() { Ok(template) } else { Err(reader.errors) }
}

/// Reads on after a mistake, with null in the place of what could not be read.
pub(super) struct Reader {
    path: Vec<PathStep>,
    errors: Vec<TemplateError>,
    /// The generator around this place, if any, that makes the number of renderings vary.
    pub(super) varies: Option<&'static str>,
}

impl Reader {
    /// Notes a mistake at the value being read.
    pub(super) fn mistake(&mut self, message: impl Into<String>) {
        self.errors.push(TemplateError { path: self.path.clone(), message: message.into() });
    }

    /// How many mistakes there were so far.
    pub(super) const fn mistakes(&self) -> usize {
        self.errors.len()
    }

    /// Reads a part of the value being read.
    pub(super) fn within<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Reads a part whose generators are not rendered once per rendering.
    pub(super) fn varying<T>(&mut self, generator: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.varies.replace(generator);
        let result = read(self);
        self.varies = outer;
        result
    }

    pub(super) fn value(&mut self, value: &Value) -> Template {
        if self.path.len() > DEEPEST {
            self.mistake(format!("lies more than {DEEPEST} levels deep, which no server takes"));
            return Template::Value(Bson::Null);
        }
        match value {
            Value::Null => Template::Value(Bson::Null),
            Value::Bool(value) => Template::Value(Bson::Boolean(*value)),
            Value::String(text) => Template::Value(Bson::String(text.clone())),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Template::Value(integer_value(integer)),
                (None, Some(double)) if !number.is_u64() => Template::Value(Bson::Double(double)),
                _ => {
                    self.mistake(format!("{number} does not fit a signed 64-bit integer"));
                    Template::Value(Bson::Null)
                }
            },
            Value::Array(items) => Template::Array(self.items(items)),
            Value::Object(table) => self.table(table),
        }
    }

    pub(super) fn items(&mut self, items: &[Value]) -> Vec<Template> {
        let item = |(index, item)| self.within(PathStep::Index(index), |reader| reader.value(item));
        items.iter().enumerate().map(item).collect()
    }

    fn table(&mut self, table: &Map<String, Value>) -> Template {
        if let Some((key, form)) = extended::form(table) {
            return Template::Value(self.extended(table, key, form));
        }
        if let Some((name, body)) = table.iter().find(|(key, _)| is_generator(key)) {
            if table.len() == 1 {
                return self.within(PathStep::Key(name.clone()), |reader| reader.generator(name, body));
            }
            self.mistake(format!(
                "`{name}` is a generator and must be the only key of its table; the literal key is written `^{name}`"
            ));
            return Template::Value(Bson::Null);
        }
        let field = |(key, value): (&String, &Value)| {
            self.within(PathStep::Key(key.clone()), |reader| {
                if key.contains('\0') {
                    reader.mistake("a key cannot contain the character NUL");
                }
                (unescaped(key).to_owned(), reader.value(value))
            })
        };
        Template::Document(table.iter().map(field).collect())
    }

    fn extended(&mut self, table: &Map<String, Value>, key: &str, form: &str) -> Bson {
        let mut table = table.clone();
        // A scope may have numbers and escaped keys like any document here, so it is read like one.
        let scope = if key == "$code" { table.shift_remove("$scope") } else { None };
        let before = self.mistakes();
        let scope = scope.map(|scope| {
            self.within(PathStep::Key("$scope".to_owned()), |reader| match reader.value(&scope).constant() {
                Some(Bson::Document(scope)) => scope,
                _ if reader.mistakes() > before => bson::Document::new(),
                _ => {
                    reader.mistake("must be a table without generators");
                    bson::Document::new()
                }
            })
        });
        match (extended::read(&table), scope) {
            (Some(Bson::JavaScriptCode(code)), Some(scope)) => {
                Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code, scope })
            }
            (Some(value), _) => value,
            (None, _) => {
                self.mistake(format!("malformed `{key}`: it is written {form}"));
                Bson::Null
            }
        }
    }

    /// Refuses what can never be stored; `what` begins the message.
    pub(super) fn check_size(&mut self, what: &str, template: &Template) {
        let bytes = template.max_bytes();
        if bytes > DOCUMENT_LIMIT {
            let mib = bytes.div_ceil(1024 * 1024);
            self.mistake(format!(
                "{what} can become {mib} MiB: a document cannot have more than {} MiB",
                DOCUMENT_LIMIT / (1024 * 1024)
            ));
        }
    }
}

/// Int32 if it fits, else Int64.
pub(super) fn integer_value(integer: i64) -> Bson {
    i32::try_from(integer).map_or(Bson::Int64(integer), Bson::Int32)
}

fn is_generator(key: &str) -> bool {
    key.starts_with('^') && !key.starts_with("^^")
}

fn unescaped(key: &str) -> &str {
    if key.starts_with("^^") { &key[1..] } else { key }
}
