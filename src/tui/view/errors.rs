//! Errors of the trial so far by class, the newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::View;
use super::text::{panel, put, put_all};
use crate::results::facts::seconds;
use crate::snapshot::{ErrorClass, ErrorCount, ErrorLevel};

/// Rows that it takes at least.
pub const LEAST: u16 = 3;

/// Errors of one class, whichever operation and segment they belong to.
struct Class<'a> {
    level: ErrorLevel,
    class: &'a ErrorClass,
    count: u64,
    last_ns: u64,
    example: &'a str,
}

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = view.theme;
    let title = format!("errors so far: {}", view.model.name(view.app.whose));
    let inner = panel(buffer, area, &title, theme);
    let whose = view.app.whose.operations(&view.model.facts.plan);
    let classes = classes(view.model.errors(), &whose);
    if classes.is_empty() {
        put(buffer, (inner.x, inner.y), inner.width, "none", theme.quiet(), theme);
    }
    for (class, y) in classes.iter().zip(inner.y..inner.bottom()) {
        let level = match class.level {
            ErrorLevel::Attempt => ("attempt  ", theme.again()),
            ErrorLevel::Operation => ("operation", theme.bad()),
        };
        let parts = [
            (format!("{:>7.1}s ", seconds(class.last_ns)), theme.quiet()),
            (format!("{:>7} ", class.count), Style::new()),
            (level.0.to_owned(), level.1),
            (format!(" {}", words(class)), Style::new()),
        ];
        put_all(buffer, Rect { y, height: 1, ..inner }, parts, theme);
    }
}

fn classes<'a>(counts: impl Iterator<Item = &'a ErrorCount>, whose: &Range<usize>) -> Vec<Class<'a>> {
    let mut classes: BTreeMap<_, Class<'a>> = BTreeMap::new();
    for count in counts.filter(|count| whose.contains(&count.operation)) {
        let class = classes.entry((count.level, &count.class)).or_insert_with(|| Class {
            level: count.level,
            class: &count.class,
            count: 0,
            last_ns: 0,
            example: &count.example,
        });
        class.count += count.count;
        class.last_ns = class.last_ns.max(count.last_ns);
    }
    let mut classes: Vec<Class<'a>> = classes.into_values().collect();
    classes.sort_by_key(|class| Reverse(class.last_ns));
    classes
}

/// Code and name where the server gave them, else what one of them said; then the labels.
fn words(class: &Class<'_>) -> String {
    let ErrorClass { kind, code, code_name, labels } = class.class;
    let what = match code {
        Some(code) => format!("{code} {code_name}"),
        None => format!("{kind}: {}", class.example),
    };
    if labels.is_empty() { what } else { format!("{} [{}]", what.trim_end(), labels.join(" ")) }
}
