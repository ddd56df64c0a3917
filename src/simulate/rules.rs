//! What a plan means to the simulation: its operations, the errors there are, and the changes on its timeline.

use super::driver::Driver;
use super::server::Failpoint;
use crate::client::errors::{OVERLOADED, RETRYABLE};
use crate::plan::gate::RATE_LIMIT_EXCEEDED;
use crate::plan::timeline::on_time;
use crate::plan::{Action, Fault, GateSettings, LimitRequests, Members, Operation, Overload, Plan};
use crate::profile::commands;
use crate::snapshot::ErrorClass;

/// The number of no error.
pub const OK: u8 = 0;

/// The number of the error that the application's deadline passed.
pub const DEADLINE: u8 = 1;

/// The number of the error with which a server rejects what finds its queue full.
pub const FULL: u8 = 2;

/// The number of the reason that the producer's queue was full.
pub const QUEUE_FULL: u8 = 3;

/// The number of the reason that the breaker was open.
pub const BREAKER_OPEN: u8 = 4;

/// The number of the reason that the throttle left it out.
pub const THROTTLED: u8 = 5;

/// The number of the first overload's error.
const FIRST_OVERLOAD: u8 = 6;

/// An error that attempts or calls end with, or a reason not to send an operation at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// As results have it.
    pub class: ErrorClass,
    /// In words.
    pub example: &'static str,
    /// Whether it is the server's rejection.
    pub rejected: bool,
    /// Whether the driver may try again.
    pub retryable: bool,
    /// Whether the application may.
    pub worth_another_call: bool,
    /// What the driver is told to base its backoff on.
    pub base_ms: Option<i64>,
}

/// An operation of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether it goes where reads are wanted; else it goes to the primary.
    pub reads: bool,
    /// Which tickets it takes: 0 those for reads, 1 those for writes.
    pub tickets: usize,
    /// Commands a call. Cursors are taken to have one batch.
    pub commands: u16,
    /// The most retries of a command.
    pub retries: u16,
}

impl Rule {
    /// Of an operation under this driver.
    pub fn of(operation: &Operation, driver: &Driver) -> Self {
        let action = &operation.action;
        let (reads, writes) = (driver.retry_reads, driver.retry_writes);
        let retried = match action {
            Action::RunCommand(_) => reads && writes,
            // The driver does not retry these.
            Action::CreateCollection(_) | Action::Drop(_) => false,
            action if action.writes() => writes,
            _ => reads,
        };
        let names = commands(action);
        let write =
            |name: &String| matches!(&**name, "insert" | "update" | "delete" | "findAndModify" | "bulkWrite");
        Self {
            reads: !action.writes() && !matches!(action, Action::RunCommand(_) | Action::Transaction(_)),
            tickets: usize::from(names.iter().any(write)),
            commands: match action {
                // Its statements and the commit.
                Action::Transaction(t) => u16::try_from(t.statements.len() + 1).unwrap_or(u16::MAX),
                _ => 1,
            },
            retries: if retried { u16::try_from(driver.max_retries).unwrap_or(u16::MAX) } else { 0 },
        }
    }
}

/// Something that begins or ends on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, in nanoseconds since Go.
    pub at_ns: u64,
    /// The overload, by its place in the plan.
    pub overload: usize,
    /// Whether it begins.
    pub on: bool,
}

/// The changes in their order; what ends makes room for what begins at the same time. Faults that are not simulated have
/// none.
pub fn changes(plan: &Plan) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (overload, of) in plan.overloads.iter().enumerate().filter(|(_, of)| is_simulated(&of.fault)) {
        if let Some((on_ns, off_ns)) = on_time(&plan.load, of) {
            changes.push(Change { at_ns: on_ns, overload, on: true });
            changes.push(Change { at_ns: off_ns, overload, on: false });
        }
    }
    changes.sort_by_key(|change| (change.at_ns, change.on));
    changes
}

/// Whether the simulation knows what a fault does.
pub const fn is_simulated(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::LimitRequests(_)
            | Fault::FailCommand(_)
            | Fault::Tickets(_)
            | Fault::HoldTickets(_)
            | Fault::Stall {}
    )
}

/// The servers that an overload hits, of so many.
pub fn hit(members: &Members, servers: u32) -> Vec<usize> {
    let servers = servers as usize;
    match members {
        Members::All => (0..servers).collect(),
        Members::Primary => vec![0],
        Members::Secondaries => (1..servers).collect(),
        Members::Numbers(numbers) => numbers.iter().copied().filter(|&number| number < servers).collect(),
    }
}

/// All errors and reasons there can be, by their numbers: those that have names here, and then one for each overload.
pub fn classes(plan: &Plan) -> Vec<Class> {
    let deadline = Class {
        class: ErrorClass { kind: "timeout".to_owned(), ..ErrorClass::default() },
        example: "the call passed its deadline",
        worth_another_call: true,
        ..Class::default()
    };
    let reason = |kind: &str| Class {
        class: ErrorClass { kind: kind.to_owned(), ..ErrorClass::default() },
        example: "the application did not send it",
        ..Class::default()
    };
    let reasons = [reason("queue_full"), reason("breaker_open"), reason("throttled")];
    let labels = GateSettings::default();
    let full =
        rejection(RATE_LIMIT_EXCEEDED, &labels.rejection_labels(), "the simulated server's queue is full");
    let each = plan.overloads.iter().map(|overload| match &overload.fault {
        Fault::LimitRequests(limit) => limited(limit),
        Fault::FailCommand(fail) => {
            let labels: Vec<&str> = fail.labels.iter().map(String::as_str).collect();
            rejection(fail.code, &labels, "failed by the simulated failpoint")
        }
        _ => Class::default(),
    });
    [Class::default(), deadline, full].into_iter().chain(reasons).chain(each).collect()
}

/// The number of the error of an overload's rejections. Plans with more overloads than numbers are refused before.
pub fn class_of(overload: usize) -> u8 {
    u8::try_from(overload).unwrap_or(u8::MAX).saturating_add(FIRST_OVERLOAD)
}

/// The most overloads that have numbers.
pub const MOST_OVERLOADS: usize = (u8::MAX - FIRST_OVERLOAD) as usize;

fn limited(limit: &LimitRequests) -> Class {
    let settings = GateSettings {
        generation: limit.generation,
        labels: limit.labels.clone(),
        allow_retries: limit.allow_retries,
        ..GateSettings::default()
    };
    let class = rejection(limit.code, &settings.rejection_labels(), "rejected by the simulated limiter");
    Class { base_ms: limit.base_backoff_ms, ..class }
}

fn rejection(code: i32, labels: &[&str], example: &'static str) -> Class {
    let rejected = labels.contains(&OVERLOADED);
    let mut labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    labels.sort_unstable();
    let code_name = if code == RATE_LIMIT_EXCEEDED { "IngressRequestRateLimitExceeded" } else { "" };
    Class {
        rejected,
        retryable: rejected && labels.iter().any(|label| label == RETRYABLE),
        worth_another_call: rejected,
        class: ErrorClass {
            kind: "command".to_owned(),
            code: Some(code),
            code_name: code_name.to_owned(),
            labels,
        },
        example,
        base_ms: None,
    }
}

/// The failpoint of an overload, if it is one: which operations it hits.
pub fn failpoint(plan: &Plan, overload: usize) -> Option<Failpoint> {
    let Overload { fault: Fault::FailCommand(fail), .. } = &plan.overloads[overload] else { return None };
    let matches =
        |operation: &Operation| commands(&operation.action).iter().any(|name| fail.commands.contains(name));
    Some(Failpoint {
        probability: fail.probability,
        ops: plan.operations.iter().map(matches).collect(),
        class: class_of(overload),
    })
}
