//! overdrive

pub mod control;
pub mod plan;
pub mod snapshot;
pub mod stats;
pub mod units;
