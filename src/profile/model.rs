//! `[model]`: what a simulation assumes of clients, network and servers.

use std::time::Duration;

use crate::plan::Assumptions;
use crate::plan::model::{MOST_CLIENTS, MOST_SERVERS, ServiceDistribution};
use crate::plan::overload::MOST_TICKETS;
use crate::units::Span;

use super::load::above_zero;
use super::reader::Table;

/// The words for how service times are spread.
pub const DISTRIBUTIONS: [(&str, ServiceDistribution); 2] =
    [("fixed", ServiceDistribution::Fixed), ("exponential", ServiceDistribution::Exponential)];

/// The most requests that may wait for a ticket.
pub const MOST_QUEUED: u32 = 1_000_000;

/// The longest way there and back.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// Reads `[model]`; `None` when there is none.
pub fn read(root: &mut Table<'_>) -> Option<Assumptions> {
    let mut table = root.table("model")?;
    let usual = Assumptions::default();
    let rejection_cost = checked(&mut table, "rejection_cost", Table::number, |&cost| check_cost(cost));
    let rtt = checked(&mut table, "rtt", Table::quantity::<Span>, |&rtt| check_rtt(rtt));
    let model = Assumptions {
        servers: table.integer("servers", 1, MOST_SERVERS).unwrap_or(usual.servers),
        clients: table.integer("clients", 1, MOST_CLIENTS).unwrap_or(usual.clients),
        tickets: table.integer("tickets", 1, MOST_TICKETS).unwrap_or(usual.tickets),
        max_queue: table.integer("max_queue", 0, MOST_QUEUED),
        service_time: above_zero(&mut table, "service_time").unwrap_or(usual.service_time),
        service_distribution: table
            .word("service_distribution", &DISTRIBUTIONS)
            .unwrap_or(usual.service_distribution),
        rejection_cost: rejection_cost.unwrap_or(usual.rejection_cost),
        rtt: rtt.unwrap_or(usual.rtt),
    };
    table.finish();
    Some(model)
}

/// What was written under a key, if it is there and nothing is wrong with it.
fn checked<'t, T>(
    table: &mut Table<'t>,
    key: &'static str,
    read: impl Fn(&mut Table<'t>, &'static str) -> Option<toml::Spanned<T>>,
    check: impl Fn(&T) -> Result<(), String>,
) -> Option<T> {
    let value = read(table, key)?;
    match check(value.get_ref()) {
        Ok(()) => Some(value.into_inner()),
        Err(message) => {
            let path = table.path_of(key);
            table.wrong(value.span(), format!("`{path}` {message}"));
            None
        }
    }
}

/// Whether a rejection may cost this share of a served operation.
///
/// # Errors
/// Why it may not; the key's name is to stand before it.
pub fn check_cost(cost: f64) -> Result<(), String> {
    if (0.0..=1.0).contains(&cost) { Ok(()) } else { Err(format!("must be a share from 0 to 1, not {cost}")) }
}

/// Whether it may take so long to a server and back.
///
/// # Errors
/// Why it may not; the key's name is to stand before it.
pub fn check_rtt(rtt: Span) -> Result<(), String> {
    if rtt.duration() <= LONGEST_RTT {
        return Ok(());
    }
    Err(format!("must be at most {}", Span::from(LONGEST_RTT)))
}
