//! The load generator itself, and a warning when it is what limits the numbers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::{panel, put};
use crate::report::human::{micros, percent, quotient};
use crate::tui::model::Health;

/// Rows that it takes: the title and two of figures.
pub const LEAST: u16 = 3;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let (model, theme) = (view.model, view.theme);
    let inner = panel(buffer, area, "load generator", theme);
    let (Some(last), cores) = (&model.last, model.facts.cores) else { return };
    let health = &model.health;
    let share = health.cpus.zip(u32::try_from(cores).ok()).map(|(cpus, cores)| cpus / f64::from(cores));
    let lag = &last.of(None).lag;
    let workers = health.generator.workers;
    // What a simulation costs this machine says nothing of what is simulated.
    let machine = match model.facts.mechanism.starts_with("simulated") {
        true => "simulated".to_owned(),
        false => format!(
            "CPU {} of {cores} ({})   memory {} MiB",
            quotient(health.cpus),
            percent(share),
            health.generator.rss_bytes >> 20,
        ),
    };
    let lines = [
        format!("{machine}   {workers} workers"),
        format!(
            "lag p50 {} p99 {}   behind {} {}",
            micros(lag.percentile_us(0.5)),
            micros(lag.percentile_us(0.99)),
            micros(Some(health.generator.behind_ns / 1000)),
            health.flow,
        ),
    ];
    for (line, y) in lines.iter().zip(inner.y..inner.bottom()) {
        put(buffer, (inner.x, y), inner.width, line, Style::new(), theme);
    }
}

/// What is wrong with the generator, for the line that is always there.
pub fn warning(health: &Health) -> Option<&'static str> {
    if health.saturated {
        Some("THE LOAD GENERATOR IS THE LIMIT: it uses up this machine, so the numbers are about it")
    } else if health.behind {
        Some("BEHIND: due operations wait for a worker, so not all of the load is on the servers")
    } else {
        None
    }
}
