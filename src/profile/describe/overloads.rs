//! Overloads in words.

use crate::plan::{Fault, Limit, Members, Plan};
use crate::profile::diagnostic::either;

use super::section;

/// All of them.
pub fn overloads(plan: &Plan) -> String {
    let lines: Vec<String> = plan
        .overloads
        .iter()
        .map(|overload| {
            let members = match &overload.members {
                Members::All => "all members".to_owned(),
                Members::Primary => "the primary".to_owned(),
                Members::Secondaries => "the secondaries".to_owned(),
                Members::Numbers(numbers) => {
                    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                    format!("members {}", numbers.join(", "))
                }
            };
            format!(
                "{} at {} for {}, on {members}: {}",
                overload.name,
                overload.at,
                overload.length,
                fault(&overload.fault)
            )
        })
        .collect();
    section("overload", &lines)
}

/// What a fault does, in words.
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::LimitRequests(fault) => format!("rejects requests beyond {}", limit(&fault.limit)),
        Fault::LimitConnections(fault) => format!("refuses connections beyond {}", limit(&fault.limit)),
        Fault::FailCommand(fault) => {
            let commands: Vec<&str> = fault.commands.iter().map(String::as_str).collect();
            format!(
                "rejects {:.0} % of {} (code {})",
                fault.probability * 100.0,
                either(&commands).replace(" or ", " and "),
                fault.code
            )
        }
        Fault::Tickets(fault) => {
            let each = [("reads", fault.read), ("writes", fault.write)];
            let each: Vec<String> =
                each.iter().filter_map(|(what, n)| n.map(|n| format!("{n} {what}"))).collect();
            format!("lets the storage engine take {} at a time", each.join(" and "))
        }
        Fault::HoldTickets(fault) => format!("holds {} read tickets, {} at a time", fault.count, fault.hold),
        Fault::LatencyEvent(fault) => {
            format!("inserts {} documents of {} bytes, then deletes them", fault.documents, fault.size)
        }
        Fault::Stall {} => "stops the process".to_owned(),
        Fault::Kill {} => "kills the process, then starts it again".to_owned(),
        Fault::StepDown {} => "has it step down, and not stand again meanwhile".to_owned(),
    }
}

fn limit(limit: &Limit) -> String {
    let queue = match limit.queue_depth {
        0 => String::new(),
        depth => format!(", of which {depth} may wait"),
    };
    format!("{}/s (burst {}){queue}", limit.rate, limit.burst)
}
