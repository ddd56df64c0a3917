//! Cells as a list: keys of two numbers are no keys of a JSON object.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stats::OpStats;

#[derive(Serialize)]
struct Cell<'a> {
    segment: usize,
    operation: usize,
    stats: &'a OpStats,
}

#[derive(Deserialize)]
struct OwnedCell {
    segment: usize,
    operation: usize,
    stats: OpStats,
}

pub fn serialize<S: Serializer>(
    cells: &BTreeMap<(usize, usize), OpStats>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(|(&(segment, operation), stats)| Cell {
        segment,
        operation,
        stats,
    }))
}

pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<(usize, usize), OpStats>, D::Error> {
    let mut cells: BTreeMap<_, OpStats> = BTreeMap::new();
    for OwnedCell { segment, operation, stats } in Vec::deserialize(deserializer)? {
        cells.entry((segment, operation)).or_default().merge(&stats);
    }
    Ok(cells)
}
