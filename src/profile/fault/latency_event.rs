//! `latency_event`: documents that make every scan slow.

use crate::plan::overload::{LARGEST_EXTRA, MOST_EXTRA};
use crate::plan::{Fault, LatencyEvent};
use crate::profile::reader::Table;

/// Bytes of text in each document when nobody says.
const SIZE: u32 = 100;

/// Reads how many documents, and how large.
pub fn read(fields: &mut Table<'_>) -> Option<Fault> {
    let documents = fields.integer("documents", 1, MOST_EXTRA);
    if fields.key_span("documents").is_none() {
        fields.missing("documents");
    }
    let size = fields.integer("size", 0, LARGEST_EXTRA).unwrap_or(SIZE);
    Some(Fault::LatencyEvent(LatencyEvent { documents: documents?, size }))
}
