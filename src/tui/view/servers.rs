//! The servers, as the client saw them in the last interval.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::View;
use super::text::{Table, panel};
use crate::report::human::{micros, rate};
use crate::results::facts::{per_second, reasons_known};
use crate::tui::model::Server;

/// Rows that it takes at least: the title, the heads, two servers or one and how many more there are.
pub const LEAST: u16 = 4;

/// Rows that it has any use for.
pub fn most(view: &View<'_>) -> u16 {
    u16::try_from(view.model.servers.len() + 2).unwrap_or(u16::MAX)
}

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let inner = panel(buffer, area, "servers, last interval", view.theme);
    let length_s = view.model.last.as_ref().map_or(0.0, |last| last.length_s);
    let table = Table {
        heads: vec!["server", "attempts", "rejected", "retarg.", "role", "conns", "c-out p99", "c-out p50"],
        rows: view
            .model
            .servers
            .iter()
            .map(|(address, server)| row(view, address, server, length_s))
            .collect(),
        picked: None,
    };
    table.draw(buffer, inner, view.theme);
}

fn row(view: &View<'_>, address: &str, server: &Server, length_s: f64) -> Vec<String> {
    let seen = &server.seen;
    let known = reasons_known(&view.model.facts.plan);
    let per_second = |count| rate(per_second(count, length_s));
    let if_known = |text: String| if known { text } else { "-".to_owned() };
    vec![
        address.to_owned(),
        per_second(seen.attempts),
        if_known(per_second(seen.rejected)),
        if_known(per_second(seen.retargeted)),
        server.role.clone(),
        seen.connections_open.to_string(),
        micros(seen.checkout.percentile_us(0.99)),
        micros(seen.checkout.percentile_us(0.5)),
    ]
}
