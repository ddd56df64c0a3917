//! From values to places, and which values are written on an axis.

use crate::compare::statistics::count;

/// A range of values on a stretch of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    values: (f64, f64),
    pixels: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    /// Equal steps are equally far apart.
    pub const fn linear(values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self { values, pixels, logarithmic: false }
    }

    /// Equal factors are; the values are above 0.
    pub const fn logarithmic(values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self { values, pixels, logarithmic: true }
    }

    /// Where a value is; one that lies outside is at the edge.
    pub fn place(&self, value: f64) -> f64 {
        let of = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (from, to) = (of(self.values.0), of(self.values.1));
        let share = if to > from { ((of(value) - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }
}

/// Round values from 0 to the first that is not below `most`, in at most six steps of 1, 2 or 5 times a power of ten.
pub fn round_ticks(most: f64) -> Vec<f64> {
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let magnitude = 10_f64.powf((most / 6.0).log10().floor());
    let fits = |factor: &f64| most / (factor * magnitude) <= 6.0 + 1e-9;
    let step = magnitude * [1.0, 2.0, 5.0, 10.0].into_iter().find(fits).unwrap_or(10.0);
    let mut ticks = vec![0.0];
    while ticks[ticks.len() - 1] < most * (1.0 - 1e-9) {
        ticks.push(count(ticks.len()) * step);
    }
    ticks
}

/// Steps of time that people know, in seconds.
const TIMES: [f64; 17] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
    21600.0,
];

/// Times from 0 to `end_s`, as people name them, some eight at most.
pub fn time_ticks(end_s: f64) -> Vec<(f64, String)> {
    let days = || (1..=10_000).map(|days| count(days) * 86_400.0);
    let step = TIMES.into_iter().chain(days()).find(|step| end_s / step <= 8.0).unwrap_or(f64::INFINITY);
    let times = (0..=8).map(|n| count(n) * step).filter(|&time| time <= end_s * (1.0 + 1e-9));
    times.map(|time| (time, clock(time, step))).collect()
}

fn clock(seconds: f64, step: f64) -> String {
    match step {
        _ if seconds == 0.0 => "0".to_owned(),
        step if step < 1.0 => format!("{seconds:.1} s"),
        step if step < 60.0 => format!("{seconds:.0} s"),
        step if step < 3600.0 => format!("{:.0} min", seconds / 60.0),
        step if step < 86_400.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// 1, 2 and 5 times powers of ten, as far as they lie from `least` to `most`, both above 0. Of many decades only the powers
/// are told.
pub fn log_ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = (most / least).log10();
    let factors: &[f64] = if decades > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut ticks = Vec::new();
    let mut power = 10_f64.powf(least.log10().floor());
    while power <= most {
        ticks.extend(factors.iter().map(|factor| factor * power));
        power *= 10.0;
    }
    ticks.retain(|&tick| tick >= least * (1.0 - 1e-9) && tick <= most * (1.0 + 1e-9));
    ticks
}

/// Microseconds on an axis.
pub fn time_label(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us} µs"),
        us if us < 1e6 => format!("{} ms", us / 1e3),
        us => format!("{} s", us / 1e6),
    }
}

/// A rate on an axis.
pub fn rate_label(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{}M/s", trimmed(rate / 1e6)),
        rate if rate >= 1e4 => format!("{}k/s", trimmed(rate / 1e3)),
        rate => format!("{}/s", trimmed(rate)),
    }
}

/// A number without zeros that say nothing.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn values_lie_where_they_should() {
        let scale = Scale::linear((0.0, 200.0), (50.0, 450.0));
        near(scale.place(0.0), 50.0);
        near(scale.place(50.0), 150.0);
        near(scale.place(200.0), 450.0);
        near(scale.place(-10.0), 50.0);
        near(scale.place(1e9), 450.0);
        // Upside down, as on a screen.
        near(Scale::linear((0.0, 10.0), (100.0, 0.0)).place(2.5), 75.0);
        near(Scale::linear((3.0, 3.0), (100.0, 0.0)).place(3.0), 100.0);
    }

    #[test]
    fn percentiles_lie_on_a_scale_of_what_is_left() {
        // 1 ÷ (1 − p): p0, p90, p99 and p99.9 are a third of the way apart from each other.
        let scale = Scale::logarithmic((1.0, 1000.0), (0.0, 300.0));
        for (p, place) in [(0.0, 0.0), (0.9, 100.0), (0.99, 200.0), (0.999, 300.0)] {
            let x = scale.place(1.0 / (1.0 - p));
            assert!((x - place).abs() < 1e-6, "p{p}: {x}");
        }
        // log10(2) of a third.
        assert!((scale.place(2.0) - 30.103).abs() < 1e-3);
        near(scale.place(0.0), 0.0);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks(530.0), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0]);
        assert_eq!(round_ticks(600.0), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0]);
        assert_eq!(round_ticks(601.0), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(round_ticks(1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(round_ticks(0.0), round_ticks(1.0));
        assert_eq!(round_ticks(f64::INFINITY), round_ticks(1.0));
    }

    #[test]
    fn times_are_told_as_people_tell_them() {
        let labels = |end| time_ticks(end).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(30.1), ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]);
        assert_eq!(labels(3600.0), ["0", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min"]);
        assert_eq!(labels(7.0 * 3600.0).last().unwrap(), "7 h");
        assert_eq!(labels(9.0 * 86_400.0), ["0", "2 d", "4 d", "6 d", "8 d"]);
        assert_eq!(labels(0.4), ["0", "0.1 s", "0.2 s", "0.3 s", "0.4 s"]);
    }

    #[test]
    fn logarithmic_ticks_are_round_as_well() {
        assert_eq!(log_ticks(800.0, 12_000.0), [1e3, 2e3, 5e3, 1e4]);
        assert_eq!(log_ticks(1.0, 100_000.0), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!([500.0, 20_000.0, 1e6].map(time_label), ["500 µs", "20 ms", "1 s"]);
        assert_eq!(
            [0.0, 0.5, 400.0, 20_000.0, 1.5e6].map(rate_label),
            ["0/s", "0.5/s", "400/s", "20k/s", "1.5M/s"]
        );
    }
}
