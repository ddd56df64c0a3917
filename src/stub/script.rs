//! What a stub is to do, and when.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::document::random::Random;

/// How a stub behaves. The default answers everything at once.
///
/// As text (see its `FromStr`) it has all but the role and the seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

impl Script {
    /// What sheds load in a trial against it, for the files: itself, if anything fails.
    pub const fn mechanism(&self) -> &'static str {
        if self.failures.is_some() { "stub" } else { "" }
    }
}

/// What a stub says it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A server by itself.
    #[default]
    Standalone,
    /// The primary, and only member, of a replica set.
    Primary,
}

/// How long a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Its start, from the script's.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// Failures in a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Which commands fail.
    pub pick: Pick,
    /// With which code.
    pub code: i32,
    /// And which labels.
    pub labels: Vec<String>,
}

/// Which commands fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pick {
    /// The k-th, the 2k-th and so on; 0 picks none.
    Every(u64),
    /// Each with this probability.
    Probability(f64),
}

/// A script as it is being performed.
#[derive(Clone, Debug)]
pub(super) struct Performance {
    began: Instant,
    random: Random,
    commands: u64,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is done at this time.
    Serve { until: Instant },
    /// It has failed.
    Fail,
}

impl Performance {
    pub(super) const fn new(script: &Script, began: Instant) -> Self {
        Self { began, random: Random::new(script.seed), commands: 0 }
    }

    /// The turn of a command that comes now.
    pub(super) fn next(&mut self, script: &Script, now: Instant) -> Turn {
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
            Some(Stall { at, length }) if (at..at + length).contains(&(now - self.began)) => {
                self.began + at + length
            }
            _ => now,
        };
        Turn::Serve { until: begins + takes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The turns of commands that come at these times after a beginning.
    fn turns(script: &Script, began: Instant, times: impl IntoIterator<Item = Duration>) -> Vec<Turn> {
        let mut performance = Performance::new(script, began);
        times.into_iter().map(|time| performance.next(script, began + time)).collect()
    }

    #[test]
    fn a_stall_delays_those_who_come_in_it_to_its_end() {
        let stall = Some(Stall { at: 10 * MS, length: 5 * MS });
        let script = Script { service: Service::Fixed(MS), stall, ..Script::default() };
        let began = Instant::now();
        let done = |ms: u32| Turn::Serve { until: began + ms * MS };
        let times = [9, 10, 14, 15].map(|ms| ms * MS);
        assert_eq!(turns(&script, began, times), [10, 16, 16, 16].map(done));
    }

    #[test]
    fn every_third_fails_and_none_when_none_is_meant() {
        let failures = |pick| Some(Failures { pick, code: 462, labels: Vec::new() });
        let script = |pick| Script { failures: failures(pick), ..Script::default() };
        let failed = |pick, of| {
            let turns = turns(&script(pick), Instant::now(), vec![MS; of]);
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
        let began = Instant::now();
        let turns = |seed| turns(&script(seed), began, vec![Duration::ZERO; 20_000]);
        let sum: Duration = turns(1)
            .into_iter()
            .map(|turn| match turn {
                Turn::Serve { until } => until - began,
                Turn::Fail => Duration::MAX,
            })
            .sum();
        let mean = sum / 20_000;
        assert!((mean.as_secs_f64() * 1000.0 - 1.0).abs() < 0.03, "{mean:?}");
        assert_eq!(turns(1), turns(1));
        assert_ne!(turns(1), turns(2));
    }
}
