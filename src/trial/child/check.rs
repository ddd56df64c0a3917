//! Whether what a child says can be: its numbers go into the results, and no other line of ours may fail on them.

use std::time::{Duration, Instant};

use super::beginning;
use crate::plan::timeline::{Segment, index_at, nanos, segments};
use crate::plan::{Driver, Plan};
use crate::snapshot::Snapshot;
use crate::trial::protocol::{Message, PROTOCOL, SOURCES};

/// How far a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was heard of it.
    Started,
    /// It connects.
    Greeted,
    /// It waits for Go.
    Ready,
    /// Its load runs.
    Running,
    /// It begins nothing more.
    Closed,
    /// It has said its last.
    Done,
}

/// The longest interval while load runs: they end at whole seconds.
const LONGEST: Duration = Duration::from_secs(1);

/// The longest of those after it, in which the last operations end.
const LONGEST_LAST: Duration = Duration::from_secs(30);

/// How far a child's clock may be ahead of ours.
const SLACK: Duration = Duration::from_secs(2);

/// What a child has said so far, as far as it bears on what it may say next.
pub struct Check {
    driver: Driver,
    operations: usize,
    segments: Vec<Segment>,
    stage: Stage,
    /// The next interval's number and its beginning.
    next: (u64, u64),
    /// When it was told to begin.
    go: Option<Instant>,
    /// Whether it was told to end.
    stopped: bool,
}

impl Check {
    /// Of a child that is meant to be this driver and to carry out this plan.
    pub fn new(driver: &Driver, plan: &Plan) -> Self {
        Self {
            driver: driver.clone(),
            operations: plan.operations.len(),
            segments: segments(plan),
            stage: Stage::Started,
            next: (0, 0),
            go: None,
            stopped: false,
        }
    }

    /// It was told to begin.
    pub fn gone(&mut self) {
        if self.stage == Stage::Ready {
            (self.stage, self.go) = (Stage::Running, Some(Instant::now()));
        }
    }

    /// It was told to end.
    pub const fn stopped(&mut self) {
        self.stopped = true;
    }

    /// Whether its load runs: then it is what it says of that by which it is known to live.
    pub const fn is_under_load(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Closed)
    }

    /// Whether a message may come now, as it is.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&mut self, message: &Message) -> Result<(), String> {
        let untimely = || Err(format!("it says `{}` at the wrong time", message.name()));
        self.stage = match (self.stage, message) {
            (Stage::Started, Message::Hello { protocol, driver, version, sources }) => {
                greeted(&self.driver, (*protocol, driver, version, sources))?;
                Stage::Greeted
            }
            // One that cannot even say hello as we know it may still say why.
            (stage, Message::Failed { .. }) if stage != Stage::Done => Stage::Done,
            (Stage::Started, _) => {
                return Err(format!("it says `{}` before it says what it is", message.name()));
            }
            (Stage::Done, _) => return untimely(),
            (stage, Message::Alive {}) => stage,
            (Stage::Greeted, Message::Ready {}) => Stage::Ready,
            (stage @ (Stage::Running | Stage::Closed), Message::Snapshot(snapshot)) => {
                self.interval(snapshot)?;
                stage
            }
            (Stage::Running, Message::Closed { .. }) => {
                if !self.stopped && self.elapsed() < self.measured_until() {
                    return Err("its load ends before its time".to_owned());
                }
                Stage::Closed
            }
            (Stage::Closed, Message::Done(totals)) => {
                if totals.ended.len() != self.operations {
                    return Err("its totals are of other operations than the plan's".to_owned());
                }
                if !self.stopped && self.next.1 < nanos(self.measured_until()) {
                    return Err("its intervals end before the measured time does".to_owned());
                }
                Stage::Done
            }
            _ => return untimely(),
        };
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.go.map_or(Duration::ZERO, |go| go.elapsed()) + SLACK
    }

    /// The beginning of the cool-down.
    fn measured_until(&self) -> Duration {
        Duration::from_nanos(self.segments.last().map_or(0, |last| last.start_ns))
    }

    fn interval(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let Snapshot { sequence, start_ns, end_ns, segment, cells, open, errors, dead_letters, .. } =
            snapshot;
        let wrong = |what: &str| Err(format!("its interval {sequence} {what}"));
        if (*sequence, *start_ns) != self.next || end_ns < start_ns {
            return wrong("does not follow the one before");
        }
        let last = self.segments.len() - 1;
        let within = |segment: usize, operation: usize| segment <= last && operation < self.operations;
        let known = open.len() == self.operations
            && cells.keys().all(|&(segment, operation)| within(segment, operation))
            && errors.iter().all(|error| within(error.segment, error.operation))
            && dead_letters.letters.iter().all(|letter| within(0, letter.operation));
        if !known {
            return wrong("is about what the plan does not have");
        }
        let begun_in = index_at(&self.segments, *start_ns);
        let ended = self.stage == Stage::Closed || self.stopped;
        if *segment != begun_in && !(ended && *segment == last) {
            return wrong("is not of the part of the trial that it lies in");
        }
        let longest = if ended { LONGEST_LAST } else { LONGEST };
        let cut = ended || *end_ns <= self.segments[begun_in].end_ns;
        if end_ns - start_ns > nanos(longest) || !cut || *end_ns > nanos(self.elapsed()) {
            return wrong("ends when it cannot have ended");
        }
        self.next = (sequence + 1, *end_ns);
        Ok(())
    }
}

/// Whether a child is the one that was asked for.
///
/// # Errors
/// Why it is not.
pub fn greeted(
    wanted: &Driver,
    (protocol, driver, version, sources): (u32, &str, &str, &str),
) -> Result<(), String> {
    let again = format!("build it again with `overdrive driver build {wanted}`");
    if protocol != PROTOCOL {
        return Err(format!(
            "it speaks version {protocol} of the protocol and this program version {PROTOCOL}; {again}"
        ));
    }
    if (driver, version) != (&wanted.name, &wanted.version) {
        return Err(format!("it is {}, not {wanted}", beginning(&format!("{driver}:{version}"))));
    }
    if wanted.is_rust() && sources != SOURCES {
        return Err(format!("it was built from other sources of overdrive than this program; {again}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, Totals};
    use crate::stats::OpStats;

    fn hello() -> Message {
        let sources = SOURCES.to_owned();
        Message::Hello { protocol: PROTOCOL, driver: "rust".into(), version: "3.8.2".into(), sources }
    }

    fn running() -> Check {
        let mut check = Check::new(&Driver::rust("3.8.2"), &testing::overload_plan());
        for message in [hello(), Message::Alive {}, Message::Ready {}] {
            check.admit(&message).unwrap();
        }
        check.gone();
        check
    }

    fn interval(sequence: u64, change: impl FnOnce(&mut Snapshot)) -> Message {
        let operations = testing::overload_plan().operations.len();
        let mut snapshot = Snapshot {
            sequence,
            start_ns: sequence * 100,
            end_ns: sequence * 100 + 100,
            open: vec![0; operations],
            ..Snapshot::default()
        };
        change(&mut snapshot);
        Message::Snapshot(Box::new(snapshot))
    }

    #[test]
    fn a_whole_trial_is_admitted() {
        let mut check = running();
        let closed = Message::Closed { next: 5 };
        assert_eq!(check.admit(&closed).unwrap_err(), "its load ends before its time");
        check.stopped();
        let totals =
            Totals { ended: vec![0; testing::overload_plan().operations.len()], ..Totals::default() };
        for message in [
            interval(0, |_| {}),
            Message::Alive {},
            Message::Closed { next: 5 },
            interval(1, |_| {}),
            Message::Done(totals),
        ] {
            check.admit(&message).unwrap();
        }
        assert!(check.admit(&Message::Alive {}).is_err(), "nothing follows its end");
    }

    #[test]
    fn another_program_is_not_taken_for_the_driver() {
        let refused = |protocol, version: &str| {
            let mut check = Check::new(&Driver::rust("3.8.2"), &testing::overload_plan());
            let sources = if version == "3.8.2" { "others" } else { SOURCES }.to_owned();
            let hello = Message::Hello { protocol, driver: "rust".into(), version: version.into(), sources };
            check.admit(&hello).unwrap_err()
        };
        assert!(refused(PROTOCOL, "3.8.2").contains("other sources"));
        assert_eq!(refused(PROTOCOL, "3.8.1"), "it is rust:3.8.1, not rust:3.8.2");
        let other = refused(PROTOCOL + 1, "3.8.2");
        assert!(other.contains("overdrive driver build rust:3.8.2"), "{other}");
        let mut check = Check::new(&Driver::rust("3.8.2"), &testing::overload_plan());
        assert!(check.admit(&Message::Ready {}).unwrap_err().contains("before it says what it is"));
        check.admit(&Message::Failed { message: String::new() }).unwrap();
    }

    #[test]
    fn numbers_that_would_spoil_the_results_are_refused() {
        let refused = |message: Message| running().admit(&message).unwrap_err();
        assert!(refused(interval(1, |_| {})).contains("does not follow"));
        assert!(refused(interval(0, |s| s.start_ns = 1)).contains("does not follow"));
        assert!(refused(interval(0, |s| s.open.clear())).contains("does not have"));
        assert!(refused(interval(0, |s| s.segment = 99)).contains("not of the part"));
        assert!(refused(interval(0, |s| s.end_ns = 1_500_000_000)).contains("cannot have ended"));
        let cell = |s: &mut Snapshot| drop(s.cells.insert((0, 99), OpStats::default()));
        assert!(refused(interval(0, cell)).contains("does not have"));
        let error = |s: &mut Snapshot| {
            s.errors.push(ErrorCount {
                segment: 99,
                operation: 0,
                level: ErrorLevel::Attempt,
                class: ErrorClass::default(),
                count: 1,
                first_ns: 0,
                last_ns: 0,
                example: String::new(),
            })
        };
        assert!(refused(interval(0, error)).contains("does not have"));
        assert!(refused(Message::Ready {}).contains("at the wrong time"));
        assert!(refused(Message::Done(Totals::default())).contains("at the wrong time"));
        assert!(refused(hello()).contains("at the wrong time"));
        let mut waiting = Check::new(&Driver::rust("3.8.2"), &testing::overload_plan());
        waiting.admit(&hello()).unwrap();
        waiting.admit(&Message::Ready {}).unwrap();
        assert!(waiting.admit(&interval(0, |_| {})).is_err(), "before Go");
    }
}
