//! A report as a page: one file that needs no other, and no network.

mod style;

use std::fmt::Write;

use self::style::PAGE;
use super::grids::{self, Grid};
use super::groups::{Group, Report};
use super::plot::svg::escaped;
use super::plot::{Plot, STYLE};
use super::plots::Plots;
use crate::compare::Comparison;
use crate::compare::output::notes as notes_of;
use crate::compare::output::table::{COLUMNS, cells};
use crate::plan::Plan;
use crate::profile::describe;

/// The whole page.
pub fn render(report: &Report, plots: &Plots) -> String {
    let title = title(report);
    let mut page = String::new();
    // Writing to a String cannot fail. The policy has browsers refuse whatever is not in this file.
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{PAGE}{STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1>{}</header>\n<main>\n",
        subtitle(report)
    );
    page.push_str(&warnings(report));
    page.push_str(&section(
        "Headline",
        "All operations over the whole measured time, medians over trials. Latencies are those of successful operations, \
         from when they were due.",
        &table(&grids::headline(report)),
    ));
    page.push_str(&section("Over time", "", &multiples(&plots.over_time)));
    page.push_str(&verdicts(report, plots));
    page.push_str(&section("Retries per operation", "", &multiples(&plots.retries)));
    page.push_str(&section(
        "Latency by percentile",
        "The further right, the rarer: each step from p90 to p99 to p99.9 leaves a tenth of the operations.",
        &multiples(&plots.latency),
    ));
    let details: String = report.groups.iter().map(|group| details(group, report.groups.len())).collect();
    page.push_str(&section("In detail", "", &details));
    page.push_str(&section("Settings and versions", "", &table(&grids::settings(report))));
    page.push_str(&notes(report));
    let _ = write!(
        page,
        "</main>\n<footer>Made by overdrive {} from the files of {}.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        runs(report)
    );
    page
}

fn title(report: &Report) -> String {
    let profile = report.groups[0].first().trial.plan["profile"].as_str().unwrap_or("a run");
    escaped(&format!("overdrive: {profile}"))
}

fn subtitle(report: &Report) -> String {
    let description = report.groups[0].first().trial.plan["description"].as_str().unwrap_or_default();
    if description.is_empty() { String::new() } else { format!("<p>{}</p>", escaped(description)) }
}

/// How many trials of how many runs the report is made of.
fn runs(report: &Report) -> String {
    let trials = || report.groups.iter().flat_map(|group| &group.trials);
    let runs: std::collections::BTreeSet<&str> = trials().map(|trial| trial.trial.run_id.as_str()).collect();
    let (trials, runs) = (trials().count(), runs.len());
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    format!("{trials} trial{} in {runs} run{}", plural(trials), plural(runs))
}

fn warnings(report: &Report) -> String {
    let warnings: String = report.warnings.iter().map(|text| format!("<li>{}</li>", escaped(text))).collect();
    if warnings.is_empty() { String::new() } else { format!("<ul class=\"warnings\">{warnings}</ul>\n") }
}

/// A part of the page; nothing where it has nothing in it.
fn section(heading: &str, lead: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>\n") };
    format!("<section>\n<h2>{heading}</h2>\n{lead}{content}</section>\n")
}

/// Plots beside each other, as many as there is room for.
fn multiples(plots: &[Plot]) -> String {
    if plots.is_empty() {
        return String::new();
    }
    // What is the same under all plots is said once.
    let caption = &plots[0].caption;
    let shared = plots.len() > 1 && plots.iter().all(|plot| plot.caption == *caption);
    let figures: String = plots
        .iter()
        .map(|plot| {
            let caption = if shared {
                String::new()
            } else {
                format!("<figcaption>{}</figcaption>", escaped(&plot.caption))
            };
            format!("<figure>{}{caption}</figure>\n", plot.svg)
        })
        .collect();
    let shared = if shared { format!("<p class=\"lead\">{}</p>\n", escaped(caption)) } else { String::new() };
    let class = if plots.len() > 1 { "multiples" } else { "single" };
    format!("<div class=\"{class}\">\n{figures}</div>\n{shared}")
}

fn table(grid: &Grid) -> String {
    let class = |i: usize| if i < grid.names { "" } else { " class=\"number\"" };
    let head: String = grid
        .head
        .iter()
        .enumerate()
        .map(|(i, name)| format!("<th scope=\"col\"{}>{}</th>", class(i), escaped(name)))
        .collect();
    let rows: String = grid
        .rows
        .iter()
        .map(|row| {
            let cells = row.iter().enumerate().map(|(i, cell)| match i {
                0 => format!("<th scope=\"row\">{}</th>", escaped(cell)),
                i => format!("<td{}>{}</td>", class(i), escaped(cell)),
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        })
        .collect();
    format!(
        "<div class=\"table\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

/// What `overdrive compare` says of the same trials.
fn verdicts(report: &Report, plots: &Plots) -> String {
    let mut content = multiples(&plots.ratios);
    let pairs = report
        .comparison
        .iter()
        .flat_map(|comparison| (0..comparison.pairs.len()).map(move |pair| one_verdict(comparison, pair)));
    content.extend(pairs);
    for why in &report.refused {
        let _ = writeln!(content, "<p class=\"refused\">{}</p>", escaped(why));
    }
    section(
        "Verdicts",
        "As <code>overdrive compare</code> has them: a difference is one when it is significant over the whole comparison, \
         its interval leaves out equality, and it is larger than 2 %.",
        &content,
    )
}

fn one_verdict(comparison: &Comparison, pair: usize) -> String {
    let rows = comparison.pairs[pair].rows.iter().map(|row| cells(row).to_vec()).collect();
    let grid = Grid { head: COLUMNS.to_vec(), rows, names: 1 };
    let notes: String =
        notes_of(comparison, pair).iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul>{notes}</ul>\n") };
    let (new, base) = (&comparison.pairs[pair].new.name, &comparison.base.name);
    format!("<h3>{} against {}</h3>\n{}{notes}", escaped(new), escaped(base), table(&grid))
}

/// Everything of one group that is no headline; folded where there are several.
fn details(group: &Group, groups: usize) -> String {
    let mut content = String::new();
    let mut part = |heading: &str, grid: Option<Grid>| {
        if let Some(grid) = grid {
            let _ = write!(content, "<h4>{heading}</h4>\n{}", table(&grid));
        }
    };
    part("By operation", Some(grids::operations(group)).filter(|_| !group.operations().is_empty()));
    part("By segment, all operations", grids::segments(group));
    part("What came of each overload, by the time things happened", grids::recoveries(group));
    part("Why operations failed, the commonest first", grids::errors(group));
    part("Trials", grids::trials(group));
    if let Some(plan) = described(group) {
        let _ = write!(content, "<h4>Plan</h4>\n<pre>{}</pre>\n", escaped(&plan));
    }
    let open = if groups == 1 { " open" } else { "" };
    if content.is_empty() {
        return String::new();
    }
    format!("<details{open}><summary>{}</summary>\n{content}</details>\n", escaped(&group.name))
}

/// What was to be done, in the words of `overdrive check`; `None` where the plan is not known, or is another version's.
fn described(group: &Group) -> Option<String> {
    let plan: Plan = serde_json::from_value(group.first().trial.plan.clone()).ok()?;
    Some(describe(&plan, None, &[]))
}

fn notes(report: &Report) -> String {
    let notes: String = report.notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    if notes.is_empty() { String::new() } else { section("Notes", "", &format!("<ul>{notes}</ul>\n")) }
}
