//! What other tools read of runs that are stored: a file for each format.

pub mod benchfmt;
pub mod hgrm;

use crate::compare::Error;
use crate::report::stored::StoredTrial;
use crate::results::facts::ALL;

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// For the other tool.
    pub text: String,
    /// What people must know of it.
    pub notes: Vec<String>,
}

/// Why there is nothing of a segment and an operation, with those that there are.
fn nothing_of(trials: &[StoredTrial], segment: Option<&str>, op: Option<&str>) -> Error {
    let names = |of: fn(&crate::report::stored::Row) -> &String| {
        let mut names: Vec<&str> =
            trials.iter().flat_map(|trial| &trial.summary).map(|row| of(row).as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    };
    Error::asked(format!(
        "there is nothing of operation {} in segment {}: there are the segments {} and the operations {}",
        op.unwrap_or(ALL),
        segment.unwrap_or(ALL),
        names(|row| &row.segment),
        names(|row| &row.op)
    ))
}
