//! What a stub is to do, and when.

use std::time::Duration;

use crate::document::random::Random;

/// How a stub behaves. The default answers everything at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// What it says it is.
    pub role: Role,
    /// How long each command takes. All are served side by side: it never makes anybody queue.
    pub service: Service,
    /// A time in which nothing is served.
    pub stall: Option<Stall>,
    /// Commands that fail, at once.
    pub failures: Option<Failures>,
    /// Fixes what is left to chance.
    pub seed: u64,
}

/// What a stub says it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A server by itself.
    #[default]
    Standalone,
    /// The primary, and only member, of a replica set.
    Primary,
}

/// How long a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Always the same.
    Fixed(Duration),
    /// Exponentially distributed.
    Exponential {
        /// On average.
        mean: Duration,
    },
}

impl Default for Service {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

/// A time in which no command is worked on: those that come in it begin at its end, and those that are under way at its
/// start are not delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Its start, from the stub's.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// Failures in a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// Which commands fail.
    pub pick: Pick,
    /// With which code.
    pub code: i32,
    /// And which labels.
    pub labels: Vec<String>,
}

/// Which commands fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    /// The k-th, the 2k-th and so on; 0 picks none.
    Every(u64),
    /// Each with this probability.
    Probability(f64),
}

/// A script as it is being performed.
#[derive(Clone, Debug)]
pub(super) struct Performance {
    random: Random,
    commands: u64,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is done at this time since the start.
    Serve { until: Duration },
    /// It has failed.
    Fail,
}

impl Performance {
    pub(super) const fn new(script: &Script) -> Self {
        Self { random: Random::new(script.seed), commands: 0 }
    }

    /// The turn of a command that comes `now`, since the start.
    pub(super) fn next(&mut self, script: &Script, now: Duration) -> Turn {
        self.commands += 1;
        let fails = match script.failures.as_ref().map(|failures| failures.pick) {
            None | Some(Pick::Every(0)) => false,
            Some(Pick::Every(k)) => self.commands.is_multiple_of(k),
            Some(Pick::Probability(p)) => self.random.unit_f64() < p,
        };
        if fails {
            return Turn::Fail;
        }
        let takes = match script.service {
            Service::Fixed(time) => time,
            Service::Exponential { mean } => mean.mul_f64(-(1.0 - self.random.unit_f64()).ln()),
        };
        let begins = match script.stall {
            Some(Stall { at, length }) if (at..at + length).contains(&now) => at + length,
            _ => now,
        };
        Turn::Serve { until: begins + takes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn turns(script: &Script, times: impl IntoIterator<Item = Duration>) -> Vec<Turn> {
        let mut performance = Performance::new(script);
        times.into_iter().map(|now| performance.next(script, now)).collect()
    }

    #[test]
    fn a_stall_delays_those_who_come_in_it_to_its_end() {
        let stall = Some(Stall { at: 10 * MS, length: 5 * MS });
        let script = Script { service: Service::Fixed(MS), stall, ..Script::default() };
        let done = |ms: u32| Turn::Serve { until: ms * MS };
        let times = [9, 10, 14, 15].map(|ms| ms * MS);
        assert_eq!(turns(&script, times), [10, 16, 16, 16].map(done));
    }

    #[test]
    fn every_third_fails_and_none_when_none_is_meant() {
        let failures = |pick| Some(Failures { pick, code: 462, labels: Vec::new() });
        let script = |pick| Script { failures: failures(pick), ..Script::default() };
        let failed = |pick, of| {
            let turns = turns(&script(pick), vec![MS; of]);
            turns.iter().enumerate().filter(|(_, turn)| **turn == Turn::Fail).map(|(i, _)| i + 1).collect()
        };
        let every_third: Vec<_> = failed(Pick::Every(3), 10);
        assert_eq!(every_third, [3, 6, 9]);
        let none: Vec<_> = failed(Pick::Every(0), 10);
        assert!(none.is_empty(), "{none:?}");
        let some: Vec<_> = failed(Pick::Probability(0.25), 10_000);
        assert!((2300..2700).contains(&some.len()), "{}", some.len());
    }

    #[test]
    fn exponential_times_have_their_mean_and_follow_the_seed() {
        let script = |seed| Script { service: Service::Exponential { mean: MS }, seed, ..Script::default() };
        let first = turns(&script(1), vec![Duration::ZERO; 20_000]);
        let sum: Duration = first
            .iter()
            .map(|turn| match turn {
                Turn::Serve { until } => *until,
                Turn::Fail => Duration::MAX,
            })
            .sum();
        let mean = sum / 20_000;
        assert!((mean.as_secs_f64() * 1000.0 - 1.0).abs() < 0.03, "{mean:?}");
        assert_eq!(first, turns(&script(1), vec![Duration::ZERO; 20_000]));
        assert_ne!(first, turns(&script(2), vec![Duration::ZERO; 20_000]));
    }
}
