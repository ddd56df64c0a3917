//! For reports and pull requests.

use std::fmt::Write;

use super::table::table;
use super::{described, notes, plain, scope};
use crate::compare::Comparison;

/// A section for each new side.
pub fn render(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (i, pair) in comparison.pairs.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}### {} against {}\n\nBase: {}; new: {}. Compared: {}.\n\n{}",
            if i == 0 { "" } else { "\n" },
            escaped(&pair.new.name),
            escaped(&comparison.base.name),
            escaped(&described(&comparison.base)),
            escaped(&described(&pair.new)),
            escaped(&scope(comparison)),
            table(&pair.rows)
        );
        for (i, note) in notes(comparison, i).iter().enumerate() {
            let _ = writeln!(text, "{}- {}", if i == 0 { "\n" } else { "" }, escaped(note));
        }
    }
    plain(&text)
}

/// Stars and underscores of patterns and names would be taken for emphasis.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '_' | '`' | '<' | '[' | '\\') {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' { ' ' } else { c });
    }
    escaped
}
