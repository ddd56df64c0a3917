//! Whether what a child says can be: its numbers go into the results, and no other line of ours may fail on them.

use crate::plan::timeline::segments;
use crate::plan::{Driver, Plan};
use crate::snapshot::Snapshot;
use crate::trial::protocol::{Message, PROTOCOL};

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

/// What a child has said so far, as far as it bears on what it may say next.
pub struct Check {
    driver: Driver,
    operations: usize,
    segments: usize,
    stage: Stage,
    /// The next interval's number and its beginning.
    next: (u64, u64),
}

impl Check {
    /// Of a child that is meant to be this driver and to carry out this plan.
    pub fn new(driver: &Driver, plan: &Plan) -> Self {
        Self {
            driver: driver.clone(),
            operations: plan.operations.len(),
            segments: segments(plan).len(),
            stage: Stage::Started,
            next: (0, 0),
        }
    }

    /// It was told to begin.
    pub fn gone(&mut self) {
        if self.stage == Stage::Ready {
            self.stage = Stage::Running;
        }
    }

    /// Whether a message may come now, as it is.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&mut self, message: &Message) -> Result<(), String> {
        let untimely = || Err(format!("it says `{}` at the wrong time", message.name()));
        self.stage = match (self.stage, message) {
            (Stage::Started, Message::Hello { protocol, driver, version }) => {
                self.greeted(*protocol, driver, version)?;
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
            (Stage::Running, Message::Closed { .. }) => Stage::Closed,
            (Stage::Closed, Message::Done(totals)) => {
                if totals.ended.len() != self.operations {
                    return Err("its totals are of other operations than the plan's".to_owned());
                }
                Stage::Done
            }
            _ => return untimely(),
        };
        Ok(())
    }

    fn greeted(&self, protocol: u32, driver: &str, version: &str) -> Result<(), String> {
        if protocol != PROTOCOL {
            return Err(format!(
                "it speaks version {protocol} of the protocol and this program version {PROTOCOL}; build it again with \
                 `overdrive driver build {}`",
                self.driver
            ));
        }
        if (driver, version) != (&self.driver.name, &self.driver.version) {
            return Err(format!("it is {driver}:{version}, not {}", self.driver));
        }
        Ok(())
    }

    fn interval(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let Snapshot { sequence, start_ns, end_ns, segment, cells, open, servers: _, errors, .. } = snapshot;
        if (*sequence, *start_ns) != self.next || end_ns < start_ns {
            return Err(format!("its interval {sequence} does not follow the one before"));
        }
        let within =
            |segment: usize, operation: usize| segment < self.segments && operation < self.operations;
        let known = *segment < self.segments
            && open.len() == self.operations
            && cells.keys().all(|&(segment, operation)| within(segment, operation))
            && errors.iter().all(|error| within(error.segment, error.operation));
        if !known {
            return Err(format!("its interval {sequence} is about what the plan does not have"));
        }
        self.next = (sequence + 1, *end_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel, Totals};
    use crate::stats::OpStats;

    fn hello() -> Message {
        Message::Hello { protocol: PROTOCOL, driver: "rust".into(), version: "3.8.2".into() }
    }

    fn running() -> Check {
        let mut check = Check::new(&Driver::rust("3.8.2"), &testing::plan());
        for message in [hello(), Message::Alive {}, Message::Ready {}] {
            check.admit(&message).unwrap();
        }
        check.gone();
        check
    }

    fn interval(sequence: u64, change: impl FnOnce(&mut Snapshot)) -> Message {
        let operations = testing::plan().operations.len();
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
        let totals = Totals { ended: vec![0; testing::plan().operations.len()], ..Totals::default() };
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
            let mut check = Check::new(&Driver::rust("3.8.2"), &testing::plan());
            let hello = Message::Hello { protocol, driver: "rust".into(), version: version.into() };
            check.admit(&hello).unwrap_err()
        };
        assert_eq!(refused(PROTOCOL, "3.8.1"), "it is rust:3.8.1, not rust:3.8.2");
        let other = refused(PROTOCOL + 1, "3.8.2");
        assert!(other.contains("overdrive driver build rust:3.8.2"), "{other}");
        let mut check = Check::new(&Driver::rust("3.8.2"), &testing::plan());
        assert!(check.admit(&Message::Ready {}).unwrap_err().contains("before it says what it is"));
        check.admit(&Message::Failed { message: String::new() }).unwrap();
    }

    #[test]
    fn numbers_that_would_spoil_the_results_are_refused() {
        let refused = |message: Message| running().admit(&message).unwrap_err();
        assert!(refused(interval(1, |_| {})).contains("does not follow"));
        assert!(refused(interval(0, |s| s.start_ns = 1)).contains("does not follow"));
        assert!(refused(interval(0, |s| s.open.clear())).contains("does not have"));
        assert!(refused(interval(0, |s| s.segment = 99)).contains("does not have"));
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
        let mut waiting = Check::new(&Driver::rust("3.8.2"), &testing::plan());
        waiting.admit(&hello()).unwrap();
        waiting.admit(&Message::Ready {}).unwrap();
        assert!(waiting.admit(&interval(0, |_| {})).is_err(), "before Go");
    }
}
