//! `[flow.breaker]`: when the application stops sending for a while.

use std::str::FromStr;

use crate::plan::Breaker;
use crate::profile::load::above_zero;
use crate::profile::reader::Table;
use crate::units::Percent;

use super::{BREAKER, MOST_OPERATIONS, SOME_SHARE, signal};

/// Reads a breaker.
pub fn read(table: &mut Table<'_>) -> Breaker {
    let signal = signal(table);
    let threshold = table.quantity::<Threshold>("threshold");
    Breaker {
        signal,
        threshold: threshold.map_or(BREAKER.threshold, |threshold| threshold.into_inner().0),
        window: above_zero(table, "window").unwrap_or(BREAKER.window),
        minimum: table.integer("minimum", 1, MOST_OPERATIONS).unwrap_or(BREAKER.minimum),
        cool_down: table.quantity("cool_down").map_or(BREAKER.cool_down, |span| span.into_inner()),
    }
}

/// A share of rejections that is something. Text is `50%` or `0.5`.
#[derive(Clone, Copy, Debug)]
pub struct Threshold(pub f64);

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text.parse::<Percent>() {
            Ok(percent) => Some(percent.share()),
            Err(_) => text.trim().parse().ok(),
        };
        let share = share.and_then(|share| SOME_SHARE.check(share).ok());
        share
            .map(Self)
            .ok_or_else(|| format!("'{text}' is no share above 0 and at most 1: write one like 50% or 0.5"))
    }
}
