//! `tickets` and `hold_tickets`: how many operations the storage engine takes at a time.

use crate::plan::overload::{FEWEST_TICKETS, LONGEST_HOLD, MOST_HELD, MOST_TICKETS};
use crate::plan::{Fault, HoldTickets, Tickets};
use crate::profile::load::above_zero;
use crate::profile::reader::Table;
use crate::units::Span;

/// How long a ticket is held at a time when nobody says.
const HOLD: Span = Span::seconds(1);

/// Reads a number of tickets for reads, for writes, or for both.
pub fn read(fields: &mut Table<'_>) -> Option<Fault> {
    let [read, write] = ["read", "write"].map(|key| fields.integer(key, FEWEST_TICKETS, MOST_TICKETS));
    if fields.key_span("read").is_none() && fields.key_span("write").is_none() {
        fields.wrong(fields.span.clone(), format!("`{}` lacks `read` or `write`", fields.path));
        return None;
    }
    Some(Fault::Tickets(Tickets { read, write }))
}

/// Reads how many tickets are to be occupied.
pub fn hold(fields: &mut Table<'_>) -> Option<Fault> {
    let count = fields.integer("count", 1, MOST_HELD);
    if fields.key_span("count").is_none() {
        fields.missing("count");
    }
    let hold = above_zero(fields, "hold").unwrap_or(HOLD);
    if let Some(place) = fields.key_span("hold").filter(|_| hold > LONGEST_HOLD) {
        fields.wrong(place, format!("`{}` must be at most {LONGEST_HOLD}", fields.path_of("hold")));
    }
    Some(Fault::HoldTickets(HoldTickets { count: count?, hold }))
}
