//! What a side of a comparison is called on the command line: directories, patterns, and which of their trials.

use std::path::{Path, PathBuf};

use super::Error;

/// `DIR`, `results/*-base-*`, `DIR:maxAdaptiveRetries=2,driver=3.9.1`: directories, and what their trials have to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// A path, or a pattern of paths.
    pub place: String,
    /// What a trial must have, all of it: names and values as written.
    pub wanted: Vec<(String, String)>,
}

/// A directory of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it is.
    pub path: PathBuf,
    /// Whether a pattern found it, so that nobody insists on it.
    pub by_pattern: bool,
}

/// Reads a side: selections joined by commas. A `KEY=VALUE` without a directory belongs to the selection before it. A text
/// that is a path as a whole is taken as one, whatever is in it.
///
/// # Errors
/// When a part is empty, or a condition none.
pub fn parse(text: &str) -> Result<Vec<Selection>, Error> {
    if Path::new(text).exists() {
        return Ok(vec![Selection { place: text.to_owned(), wanted: Vec::new() }]);
    }
    let mut selections: Vec<Selection> = Vec::new();
    for part in text.split(',') {
        match (selections.last_mut(), condition(part)) {
            (Some(Selection { wanted, .. }), Some(condition)) if !wanted.is_empty() => wanted.push(condition),
            _ => selections.push(selection(part, text)?),
        }
    }
    Ok(selections)
}

fn selection(part: &str, text: &str) -> Result<Selection, Error> {
    let (place, wanted) = match part.split_once(':') {
        _ if Path::new(part).exists() => (part, Vec::new()),
        None => (part, Vec::new()),
        Some((place, wanted)) => {
            let condition = condition(wanted).ok_or_else(|| {
                Error::asked(format!(
                    "'{text}': '{wanted}' is no condition: write DIR:KEY=VALUE, like {place}:maxAdaptiveRetries=2"
                ))
            })?;
            (place, vec![condition])
        }
    };
    if place.is_empty() {
        return Err(Error::asked(format!("'{text}' lacks a directory: write DIR, DIR:KEY=VALUE or DIR,DIR")));
    }
    Ok(Selection { place: place.to_owned(), wanted })
}

/// `KEY=VALUE`, where the key is the name of an option or of a key of a profile.
fn condition(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    is_name.then(|| (key.to_owned(), value.to_owned()))
}

impl Selection {
    /// The directories it is about, in order; of a pattern those that there are.
    ///
    /// # Errors
    /// When there is none.
    pub fn places(&self) -> Result<Vec<Place>, Error> {
        let place = &self.place;
        if Path::new(place).is_dir() {
            return Ok(vec![Place { path: PathBuf::from(place), by_pattern: false }]);
        }
        if Path::new(place).exists() {
            return Err(Error::asked(format!(
                "'{place}' is a file: give the directory of a run, the one with run.json in it"
            )));
        }
        if !place.contains(['*', '?', '[']) {
            return Err(Error::asked(format!(
                "there is no directory '{place}': give that of a run, like those that `overdrive run` makes in results/"
            )));
        }
        let found = glob::glob(place).map_err(|e| Error::asked(format!("'{place}' is no pattern: {e}")))?;
        let places: Vec<Place> = found
            .filter_map(Result::ok)
            .filter(|path| path.is_dir())
            .map(|path| Place { path, by_pattern: true })
            .collect();
        if places.is_empty() {
            return Err(Error::asked(format!("no directory is called '{place}'")));
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Vec<String>)> {
        let joined = |(key, value): (String, String)| format!("{key}={value}");
        let selections = parse(text).unwrap().into_iter();
        selections.map(|s| (s.place, s.wanted.into_iter().map(joined).collect())).collect()
    }

    fn wanted(place: &str, conditions: &[&str]) -> (String, Vec<String>) {
        (place.to_owned(), conditions.iter().map(|&c| c.to_owned()).collect())
    }

    #[test]
    fn sides_are_directories_and_conditions() {
        assert_eq!(read("a"), [wanted("a", &[])]);
        assert_eq!(read("a,b/c"), [wanted("a", &[]), wanted("b/c", &[])]);
        assert_eq!(read("a:x=1"), [wanted("a", &["x=1"])]);
        assert_eq!(
            read("a:x=1,op.find.weight=2,b,c:y=,d*"),
            [
                wanted("a", &["x=1", "op.find.weight=2"]),
                wanted("b", &[]),
                wanted("c", &["y="]),
                wanted("d*", &[])
            ]
        );
        assert_eq!(read("a:tags=dc:ny"), [wanted("a", &["tags=dc:ny"])]);
    }

    #[test]
    fn what_is_neither_is_told_with_the_way_to_write_it() {
        for text in ["", ",a", "a,", "a:b", "a:", ":x=1"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("DIR:KEY=VALUE"), "{error}");
        }
    }

    #[test]
    fn paths_are_taken_as_they_are() {
        let home = tempfile::tempdir().unwrap();
        let odd = home.path().join("a:b=c,d");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(home.path().join("file"), "").unwrap();
        let odd = odd.to_str().unwrap();
        assert_eq!(read(odd), [wanted(odd, &[])]);
        let pattern = format!("{}/*", home.path().display());
        let places = parse(&pattern).unwrap()[0].places().unwrap();
        assert_eq!(places, [Place { path: PathBuf::from(odd), by_pattern: true }], "files are no runs");
        let nothing = parse(&format!("{}/z*", home.path().display())).unwrap()[0].places().unwrap_err();
        assert!(nothing.to_string().contains("no directory is called"), "{nothing}");
    }
}
