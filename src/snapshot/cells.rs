//! The cells of a snapshot in JSON, whose objects take no pairs for keys: a list of `[segment, operation, statistics]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serializer};

use crate::stats::OpStats;

type Cells = BTreeMap<(usize, usize), OpStats>;

pub(super) fn serialize<S: Serializer>(cells: &Cells, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(|(&(segment, operation), stats)| (segment, operation, stats)))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cells, D::Error> {
    let list = Vec::<(usize, usize, OpStats)>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|(segment, operation, stats)| ((segment, operation), stats)).collect())
}
