//! What differs between runs, in words that the data can bear.

pub mod statistics;
