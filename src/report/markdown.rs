//! A report as Markdown, for a pull request: the tables and verdicts, without plots.

use std::fmt::Write;

use super::grids::{self, Grid};
use super::groups::{Group, Report};
use crate::compare::output;

/// All of it.
pub fn render(report: &Report) -> String {
    let profile = report.groups[0].first().trial.plan["profile"].as_str().unwrap_or("a run");
    let mut text = format!("## overdrive: {}\n", escaped(profile));
    // Writing to a String cannot fail.
    for warning in &report.warnings {
        let _ = write!(text, "\n> **Warning:** {}\n", escaped(warning));
    }
    let _ = write!(
        text,
        "\nAll operations over the whole measured time, medians over trials. Latencies are those of successful operations, \
         from when they were due.\n\n{}",
        table(&grids::headline(report))
    );
    if let Some(comparison) = &report.comparison {
        let _ = write!(text, "\n{}", output::markdown::render(comparison));
    }
    for why in &report.refused {
        let _ = write!(text, "\n{}\n", escaped(why));
    }
    for group in &report.groups {
        text.push_str(&details(group));
    }
    let settings = table(&grids::settings(report));
    let _ = write!(text, "\n<details><summary>Settings and versions</summary>\n\n{settings}\n</details>\n");
    for (i, note) in report.notes.iter().enumerate() {
        let _ = writeln!(text, "{}- {}", if i == 0 { "\n" } else { "" }, escaped(note));
    }
    text
}

/// What is no headline, folded away.
fn details(group: &Group) -> String {
    let parts = [
        Some(grids::operations(group)).filter(|_| !group.operations().is_empty()),
        grids::segments(group),
        grids::recoveries(group),
        grids::errors(group),
        grids::trials(group),
    ];
    let tables: Vec<String> = parts.iter().flatten().map(table).collect();
    if tables.is_empty() {
        return String::new();
    }
    format!("\n<details><summary>{}</summary>\n\n{}\n</details>\n", in_html(&group.name), tables.join("\n"))
}

fn table(grid: &Grid) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| -> String {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = line(&mut grid.head.iter().map(|name| escaped(name)));
    let rule = |i: usize| if i < grid.names { "---" } else { "--:" };
    text.push_str(&line(&mut (0..grid.head.len()).map(|i| rule(i).to_owned())));
    for row in &grid.rows {
        text.push_str(&line(&mut row.iter().map(|cell| escaped(cell))));
    }
    text
}

/// Text that stands for itself: no markup, no cell of its own, and nobody who is called by name.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '@' => escaped.push_str("&#64;"),
            '\\' | '*' | '_' | '`' | '[' | ']' | '|' | '~' | '#' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The same within an HTML element, where a backslash is one.
fn in_html(text: &str) -> String {
    super::plot::svg::escaped(text).replace(['\n', '\t'], " ").replace('@', "&#64;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_markup_nor_cells() {
        assert_eq!(escaped("a|b *c* <img> @all\n`d`"), "a\\|b \\*c\\* &lt;img> &#64;all \\`d\\`");
        assert_eq!(in_html("</summary>\n@x"), "&lt;/summary&gt; &#64;x");
        let grid = Grid {
            head: vec!["operation", "goodput"],
            rows: vec![vec!["a|b".to_owned(), "1.0/s".to_owned()]],
            names: 1,
        };
        assert_eq!(table(&grid), "| operation | goodput |\n| --- | --: |\n| a\\|b | 1.0/s |\n");
    }
}
