//! The fields of each kind of fault.

pub mod fail_command;
mod latency_event;
pub mod limits;
mod tickets;

use super::diagnostic::{Diagnostic, either};
use super::reader::Table;
use crate::plan::Fault;

/// The kinds of fault there are, as profiles and `--allow-faults` spell them.
pub const KINDS: [&str; 9] = [
    "limit_requests",
    "limit_connections",
    "fail_command",
    "tickets",
    "hold_tickets",
    "latency_event",
    "stall",
    "kill",
    "step_down",
];

/// Reads exactly one kind of fault out of an overload's table; `sent` are the commands that operations send.
pub fn read(overload: &mut Table<'_>, sent: &[String]) -> Option<Fault> {
    let mut there: Vec<_> = KINDS
        .into_iter()
        .filter_map(|kind| {
            overload.take(kind)?;
            Some((kind, overload.key_span(kind)?, overload.table(kind)))
        })
        .collect();
    if there.len() > 1 {
        for (kind, place, _) in &there[1..] {
            let message = format!("an overload does one thing: it has `{}` already", there[0].0);
            let help = format!("give `{kind}` an [[overload]] of its own; both may be on at the same time");
            overload.mistakes().add(Diagnostic::error(place.clone(), message).help(help));
        }
        return None;
    }
    let Some((kind, _, fields)) = there.pop() else {
        // A key nobody knows is probably a mistyped fault, and reported as such.
        if !overload.has_strangers() {
            let message = format!("this overload does nothing: it lacks {}", either(&KINDS));
            let help = "for example limit_requests = { rate = \"200/s\" }";
            overload.mistakes().add(Diagnostic::error(overload.span.clone(), message).help(help));
        }
        return None;
    };
    let mut fields = fields?;
    let fault = match kind {
        "limit_requests" => limits::requests(&mut fields),
        "limit_connections" => limits::connections(&mut fields),
        "fail_command" => fail_command::read(&mut fields, sent),
        "tickets" => tickets::read(&mut fields),
        "hold_tickets" => tickets::hold(&mut fields),
        "latency_event" => latency_event::read(&mut fields),
        "stall" => Some(Fault::Stall {}),
        "kill" => Some(Fault::Kill {}),
        _ => Some(Fault::StepDown {}),
    };
    fields.finish();
    fault
}
