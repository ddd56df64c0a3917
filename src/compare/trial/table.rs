//! The tables of a run, whatever version wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::Figures;
use crate::compare::Error;
use crate::metric::Metric;
use crate::results::facts::title;

/// A CSV file whose columns are found by their names, so that those of other versions are read as far as they are known.
pub(super) struct Table {
    pub path: PathBuf,
    columns: BTreeMap<String, usize>,
    pub rows: Vec<StringRecord>,
}

impl Table {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut reader = csv::Reader::from_path(path).map_err(|e| Error::file(path, e))?;
        let columns = reader.headers().map_err(|e| Error::file(path, e))?;
        let columns: BTreeMap<String, usize> =
            columns.iter().enumerate().map(|(i, name)| (name.to_owned(), i)).collect();
        if let Some(missing) =
            ["trial", "segment", "op"].into_iter().find(|&name| !columns.contains_key(name))
        {
            return Err(Error::stored(format!(
                "'{}' has no column {missing}: it is no run's",
                path.display()
            )));
        }
        let rows = reader.records().collect::<Result<_, _>>().map_err(|e| Error::file(path, e))?;
        Ok(Self { path: path.to_owned(), columns, rows })
    }

    /// A field; empty when there is no such column.
    pub fn text<'a>(&self, row: &'a StringRecord, column: &str) -> &'a str {
        self.columns.get(column).and_then(|&i| row.get(i)).unwrap_or_default()
    }

    /// Whose figures a row has: an operation's name, with its client's where there are several.
    pub fn op(&self, row: &StringRecord) -> String {
        title(self.text(row, "client"), self.text(row, "op"))
    }

    fn number(&self, row: &StringRecord, column: &str) -> Result<Option<f64>, Error> {
        let text = self.text(row, column);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => {
                let line = row.position().map_or(0, csv::Position::line);
                let path = self.path.display();
                Err(Error::stored(format!("'{path}', line {line}: {column} is '{text}', which is no figure")))
            }
        }
    }

    pub fn figures(&self, row: &StringRecord) -> Result<Figures, Error> {
        let values = Metric::COMPARED.iter().map(|metric| metric.of(|column| self.number(row, column)));
        Ok(Figures {
            segment: self.text(row, "segment").to_owned(),
            op: self.op(row),
            values: values.collect::<Result<_, _>>()?,
        })
    }

    pub fn params(&self, row: &StringRecord) -> BTreeMap<String, Option<String>> {
        let named = self.columns.iter().filter_map(|(name, &i)| Some((name.strip_prefix("param_")?, i)));
        let value = |i| row.get(i).filter(|value| !value.is_empty()).map(str::to_owned);
        named.map(|(name, i)| (name.to_owned(), value(i))).collect()
    }
}
