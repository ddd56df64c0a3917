//! How fast virtual time passes for those who look on.

use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// How soon whoever waits for the time to come notices that an end is wanted.
const PATIENCE: Duration = Duration::from_millis(20);

/// Virtual seconds that pass in a real one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As many as this machine can simulate.
    Max,
    /// So many at most; above 0.
    Times(f64),
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let times = text.parse().ok().filter(|times: &f64| times.is_finite() && *times >= 0.001);
        match (text, times) {
            ("max", _) => Ok(Self::Max),
            (_, Some(times)) => Ok(Self::Times(times)),
            _ => {
                Err("neither 'max' nor a number from 0.001, like 1 for real time or 10 for ten times as fast"
                    .to_owned())
            }
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Times(times) => write!(f, "{times}"),
        }
    }
}

/// A trial's clock.
pub struct Pace {
    speed: Speed,
    began: Instant,
}

impl Pace {
    /// The trial begins now.
    pub fn new(speed: Speed) -> Self {
        Self { speed, began: Instant::now() }
    }

    /// Waits until a moment of virtual time has come, in nanoseconds since Go, or until `is_over`.
    pub fn wait(&self, at_ns: u64, is_over: impl Fn() -> bool) {
        let due = self.speed.real(at_ns);
        while !is_over() {
            let left = due.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(PATIENCE));
        }
    }
}

impl Speed {
    /// How long it takes for so much virtual time to pass.
    fn real(self, virtual_ns: u64) -> Duration {
        match self {
            Self::Max => Duration::ZERO,
            Self::Times(times) => Duration::from_nanos(virtual_ns).div_f64(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_as_fast_as_is_said() {
        let real_ms = |speed: &str| speed.parse::<Speed>().unwrap().real(3_000_000_000).as_millis();
        assert_eq!(["max", "1", "10", "0.5"].map(real_ms), [0, 3000, 300, 6000]);
        for speed in ["max", "1", "0.5"] {
            assert_eq!(speed.parse::<Speed>().unwrap().to_string(), speed);
        }
        for wrong in ["0", "-1", "inf", "NaN", "fast", "", "1e-9"] {
            assert!(wrong.parse::<Speed>().unwrap_err().contains("neither 'max' nor a number"), "{wrong}");
        }
    }

    #[test]
    fn nobody_waits_for_time_once_it_is_over() {
        let pace = Pace::new(Speed::Times(1.0));
        pace.wait(u64::MAX, || true);
        pace.wait(30_000_000, || false);
        assert!(pace.began.elapsed() >= Duration::from_millis(30));
    }
}
