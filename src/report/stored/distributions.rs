//! Whole distributions of latencies, out of `latency.hlog`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::{Distributions, Interval};
use crate::compare::Error;
use crate::results::facts::ALL;
use crate::results::hlog::tag_part;
use crate::results::scope;

/// The measure that is read.
const MEASURE: &str = "latency";

/// By trial, of the segments that the intervals call measured. `cut` allows for a last line that is not whole.
pub(super) fn read(
    directory: &Path,
    intervals: &[Interval],
    cut: bool,
) -> Result<BTreeMap<String, Distributions>, Error> {
    let path = directory.join("latency.hlog");
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let measured: BTreeSet<String> = intervals
        .iter()
        .filter(|interval| interval.phase == "measure")
        .map(|interval| tag_part(&interval.segment))
        .collect();
    let text = fs::read(&path).map_err(|e| Error::file(&path, e))?;
    let mut found: BTreeMap<String, Distributions> = BTreeMap::new();
    let mut entries = IntervalLogIterator::new(&text).peekable();
    while let Some(entry) = entries.next() {
        let line = match entry {
            Ok(LogEntry::Interval(line)) => line,
            Ok(_) => continue,
            Err(_) if cut && entries.peek().is_none() => continue,
            Err(error) => return Err(Error::file(&path, format!("{error:?}"))),
        };
        let tag = line.tag().map_or("", |tag| tag.as_str());
        let [trial, segment, op, MEASURE] = tag.split('/').collect::<Vec<_>>()[..] else { continue };
        if !measured.contains(segment) {
            continue;
        }
        let histogram = match decoded(line.encoded_histogram()) {
            Ok(histogram) => histogram,
            Err(_) if cut && entries.peek().is_none() => continue,
            Err(reason) => return Err(Error::file(&path, format!("{tag}: {reason}"))),
        };
        let place = found.entry(trial.to_owned()).or_default();
        let sum = place.entry((segment.to_owned(), op.to_owned())).or_insert_with(empty);
        sum.add(&histogram).map_err(|reason| Error::file(&path, format!("{tag}: {reason}")))?;
    }
    Ok(found)
}

/// What there is of a segment and an operation, `all` standing for every one, and `client/all` for every one of a client.
pub(super) fn merged(latencies: &Distributions, segment: &str, op: &str) -> Option<Histogram<u64>> {
    let is = |wanted: &str, tag: &str| wanted == ALL || tag_part(wanted) == tag;
    let op = scope::tag(op);
    let is_op = |tag: &str| match op.strip_suffix(ALL) {
        Some(client) if client.ends_with('.') => tag.starts_with(client),
        _ => is(&op, tag),
    };
    let mut parts = latencies.iter().filter(|((s, o), _)| is(segment, s) && is_op(o)).map(|(_, part)| part);
    let mut sum = parts.next()?.clone();
    for part in parts {
        // All of them resize, so this cannot fail.
        let _ = sum.add(part);
    }
    Some(sum)
}

fn decoded(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(text).map_err(|e| e.to_string())?;
    Deserializer::new().deserialize(&mut &bytes[..]).map_err(|e| e.to_string())
}

fn empty() -> Histogram<u64> {
    // The only error is a precision above five digits.
    Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are allowed"))
}
