//! What the seconds of one trial a side say, where there are no other trials to go by.

use super::side::Side;
use super::statistics::autocorrelation::relative_variance_of_mean;
use super::trial::Figures;
use super::{Error, Settings};
use crate::metric::Metric;

/// The fewest intervals of a segment from which its autocorrelation is estimated.
const FEWEST: usize = 6;

/// The measured intervals of two sides' only trials, each cut where segments begin and end.
#[derive(Clone, Debug, PartialEq)]
pub struct Seconds {
    sides: [Vec<Vec<Figures>>; 2],
}

impl Seconds {
    /// Of each side's first trial.
    pub fn read(base: &Side, new: &Side, settings: &Settings) -> Result<Self, Error> {
        let stretches = |side: &Side| -> Result<Vec<Vec<Figures>>, Error> {
            let intervals = side.first().intervals(&settings.segment, &settings.op)?;
            Ok(intervals.chunk_by(|a, b| a.segment == b.segment).map(<[Figures]>::to_vec).collect())
        };
        Ok(Self { sides: [stretches(base)?, stretches(new)?] })
    }

    /// The relative standard error of a ratio of two means, by the delta method (G. Casella and R. L. Berger, "Statistical
    /// Inference" (2nd edition, 2002), section 5.5.4): relative variances add. `None` when too few seconds have a value.
    pub fn relative_error(&self, metric: Metric) -> Option<f64> {
        let variance = |stretches: &Vec<Vec<Figures>>| {
            let values = |stretch: &Vec<Figures>| stretch.iter().filter_map(|f| f.value(metric)).collect();
            relative_variance_of_mean(&stretches.iter().map(values).collect::<Vec<_>>(), FEWEST)
        };
        Some((variance(&self.sides[0])? + variance(&self.sides[1])?).sqrt())
    }
}
