//! What runs, how far it is, and what is being done to the servers.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::put_all;
use crate::plan::load::Phase;
use crate::profile::describe;

/// Rows that it takes.
pub const HEIGHT: u16 = 3;

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let lines = [what(view), when(view), pushed(view)];
    for (y, parts) in (area.y..area.bottom()).zip(lines) {
        put_all(buffer, Rect { y, height: 1, ..area }, parts, theme);
    }
}

fn what(view: &View<'_>) -> Vec<(String, Style)> {
    let (facts, theme) = (&view.model.facts, view.theme);
    let dot = theme.glyphs().dot;
    let rest = format!(
        "  {} {dot} driver {} {} {dot} server {}",
        facts.variant,
        facts.driver.name,
        facts.driver.version,
        facts.server_version()
    );
    vec![
        ("overdrive ".to_owned(), theme.quiet()),
        (facts.plan.profile.clone(), theme.strong()),
        (rest, Style::new()),
    ]
}

/// Where the clock stands: the phase, the segment, and the time that is left.
fn when(view: &View<'_>) -> Vec<(String, Style)> {
    let (model, theme) = (view.model, view.theme);
    let segment = model.segment_at(view.now_ns);
    let whole_s = |ns: u64| ns / 1_000_000_000;
    let until = model.measured_until_ns();
    let cooldown = model.facts.plan.load.cooldown;
    let (phase, left) = match segment.phase {
        Phase::Warmup => ("warm-up".to_owned(), segment.end_ns),
        Phase::Transition => ("transition".to_owned(), model.base_ns() + segment.end_ns),
        Phase::Measure if segment.name == "measure" => ("measure".to_owned(), until),
        Phase::Measure => (format!("measure: {}", segment.name), until),
        Phase::Cooldown => ("cool-down".to_owned(), until),
    };
    // Whole seconds that have begun: it reads 1 s until it is over.
    let left_s = left.saturating_sub(view.now_ns).div_ceil(1_000_000_000);
    let time = match segment.phase {
        Phase::Warmup | Phase::Transition => {
            format!("  {left_s} s left, then {} measured", model.facts.plan.load.duration)
        }
        Phase::Measure => format!("  {} s of {} s, {left_s} s left", whole_s(view.now_ns), whole_s(until)),
        Phase::Cooldown => format!("  the last operations end; at most {cooldown}"),
    };
    let mut parts = vec![(phase, theme.strong()), (time, Style::new())];
    if view.app.is_frozen() {
        let frozen = format!(" FROZEN at {} s: space goes on ", whole_s(model.end_ns()));
        parts.extend([("  ".to_owned(), Style::new()), (frozen, theme.picked())]);
    }
    parts
}

/// What is being done to the servers now.
fn pushed(view: &View<'_>) -> Vec<(String, Style)> {
    let (model, theme) = (view.model, view.theme);
    if model.on.is_empty() {
        return vec![("nothing is done to the servers now".to_owned(), theme.quiet())];
    }
    let mut parts = Vec::new();
    for (name, members) in &model.on {
        let fault = model.facts.plan.overloads.iter().find(|o| o.name == *name);
        let does = fault.map(|o| describe::fault(&o.fault)).unwrap_or_default();
        let gap = if parts.is_empty() { "" } else { "  " };
        parts.push((gap.to_owned(), Style::new()));
        parts.push((format!(" ON {name} "), theme.alarm()));
        parts.push((format!(" {does}: {members}"), Style::new()));
    }
    parts
}
