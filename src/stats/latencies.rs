//! A distribution of times: an HDR histogram in microseconds beside the exact sum.

mod encoding;

use hdrhistogram::Histogram;

/// Times above this are recorded as this, and counted as clipped.
pub const CEILING_US: u64 = 120_000_000;

/// Relative error of a percentile: three significant digits.
const DIGITS: u8 = 3;

/// A percentile is only told when at least this many samples lie beyond it.
const SAMPLES_BEYOND: f64 = 10.0;

/// Times, from none to billions of them. Empty ones take no memory.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    histogram: Option<Histogram<u64>>,
    sum_ns: u64,
    clipped: u64,
}

impl Latencies {
    /// Adds one time.
    pub fn record_ns(&mut self, nanos: u64) {
        self.record_many_ns(nanos, 1);
    }

    /// Adds the same time so often.
    pub fn record_many_ns(&mut self, nanos: u64, count: u64) {
        let micros = nanos.div_ceil(1000).max(1);
        self.sum_ns += nanos * count;
        if micros > CEILING_US {
            self.clipped += count;
        }
        // An auto-resizing histogram takes every value up to the ceiling, so this cannot fail.
        let _ = self.histogram.get_or_insert_with(empty).record_n(micros.min(CEILING_US), count);
    }

    /// Adds a time that may be none at all, which is told from one below a microsecond.
    pub fn record_or_none_ns(&mut self, nanos: u64) {
        if nanos > 0 {
            self.record_ns(nanos);
        } else {
            // As above.
            let _ = self.histogram.get_or_insert_with(empty).record(0);
        }
    }

    /// Adds all of another's times.
    pub fn merge(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.clipped += other.clipped;
        if let Some(theirs) = &other.histogram {
            // Both have the same precision and resize, so this cannot fail.
            let _ = self.histogram.get_or_insert_with(empty).add(theirs);
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Their exact sum, in nanoseconds.
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// How many were above the ceiling.
    pub const fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The exact mean in microseconds, rounded; `None` when empty.
    pub fn mean_us(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count()).map(|ns| (ns + 500) / 1000)
    }

    /// The largest, in microseconds, to three digits; `None` when empty.
    pub fn max_us(&self) -> Option<u64> {
        self.histogram.as_ref().map(Histogram::max)
    }

    /// The time in microseconds that the share `quantile` (0 to 1) does not exceed; `None` unless ten samples lie
    /// beyond it: fewer make a percentile that says more about luck than about the system.
    #[expect(clippy::cast_precision_loss, reason = "a count of samples beyond 2^53 is out of reach")]
    pub fn percentile_us(&self, quantile: f64) -> Option<u64> {
        let histogram = self.histogram.as_ref()?;
        // The tolerance keeps 1 − 0.99 of 1000 samples at ten, which binary fractions make 9.99….
        ((1.0 - quantile) * histogram.len() as f64 + 1e-6 >= SAMPLES_BEYOND)
            .then(|| histogram.value_at_quantile(quantile))
    }

    /// The smallest and the largest, in microseconds, to three digits; `None` when empty.
    pub fn range_us(&self) -> Option<(u64, u64)> {
        self.histogram.as_ref().map(|histogram| (histogram.min(), histogram.max()))
    }

    /// How many lie between each two neighbours of some ascending times in microseconds, the earlier one included; one
    /// number less than there are times. What lies outside is left out.
    pub fn spread(&self, bounds_us: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; bounds_us.len().saturating_sub(1)];
        for bucket in self.histogram.iter().flat_map(Histogram::iter_recorded) {
            #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 microseconds")]
            let us = bucket.value_iterated_to() as f64;
            let place = bounds_us.partition_point(|&bound| bound <= us);
            if let Some(count) = place.checked_sub(1).and_then(|place| counts.get_mut(place)) {
                *count += bucket.count_at_value();
            }
        }
        counts
    }

    /// The histogram itself, for formats that carry whole distributions; `None` when empty.
    pub const fn histogram(&self) -> Option<&Histogram<u64>> {
        self.histogram.as_ref()
    }
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Self) -> bool {
        self.sum_ns == other.sum_ns
            && self.clipped == other.clipped
            && match (&self.histogram, &other.histogram) {
                (Some(a), Some(b)) => a == b,
                (None, None) => true,
                _ => false,
            }
    }
}

fn empty() -> Histogram<u64> {
    // The only error is a precision above five digits.
    Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("three digits are allowed"))
}
