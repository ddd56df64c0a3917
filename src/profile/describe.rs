//! A plan as `overdrive check` prints it, without connecting anywhere.

mod application;
mod load;
mod options;
mod overloads;

use crate::plan::model::ServiceDistribution;
use crate::plan::staleness::HEARTBEATS;
use crate::plan::{Model, Plan, ResolvedOption};
use crate::thresholds::hopeless::{FEWEST, HOLD};
use crate::units::Span;

use super::estimate::{Estimate, Options};

pub use overloads::fault;

/// Where a plan would run.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The deployment in words: its hosts, never a password.
    pub deployment: &'a str,
    /// Every option in effect, the driver's defaults included.
    pub options: &'a [ResolvedOption],
}

/// The plan in words, and what is doubtful about it, ending in a newline; without a destination only what the plan itself
/// says. No control character of a name or description gets through.
pub fn describe(plan: &Plan, destination: Option<Destination<'_>>, doubts: &[String]) -> String {
    if !plan.clients.is_empty() {
        return describe_clients(plan, destination.map(|d| d.deployment), &[], doubts);
    }
    let deployment =
        destination.map_or_else(String::new, |d| section("deployment", &[d.deployment.to_owned()]));
    let options = match destination {
        Some(destination) => options::effective(destination.options),
        None => options::written(plan),
    };
    let estimate = estimate(plan, Options(destination.map(|d| d.options)));
    joined([
        heading(plan),
        driver(plan),
        deployment,
        load::load(plan),
        load::operations(plan),
        options,
        application::application(plan),
        overloads::overloads(plan),
        staleness(plan),
        thresholds(plan),
        model(plan),
        estimate,
        warnings(doubts),
    ])
}

/// The same of a plan with several clients: what they share, then what each does. The options in effect are those of each,
/// in the clients' order; empty where nothing is known but what the plan itself says.
pub fn describe_clients(
    plan: &Plan,
    deployment: Option<&str>,
    options: &[&[ResolvedOption]],
    doubts: &[String],
) -> String {
    let deployment = deployment.map(|deployment| section("deployment", &[deployment.to_owned()]));
    let together = match plan.load.model {
        Model::Open { .. } => load::how_much(plan),
        // What closed clients ask for is nobody's to tell.
        Model::Closed { .. } => Vec::new(),
    };
    let mut parts = vec![
        heading(plan),
        deployment.unwrap_or_default(),
        section("load of all clients", &[together, load::when(plan)].concat()),
    ];
    for (index, (group, engine)) in plan.clients.iter().zip(plan.engines()).enumerate() {
        let options = options.get(index).copied();
        let own = [
            section("load", &load::how_much(&engine)),
            load::operations(&engine),
            options.map_or_else(|| options::written(&engine), options::effective),
            application::application(&engine),
            estimate(&engine, Options(options)),
        ];
        let own = own.into_iter().filter(|part| !part.is_empty());
        parts.extend(own.map(|part| format!("client {}: {part}", group.name)));
    }
    parts.extend([
        overloads::overloads(plan),
        staleness(plan),
        thresholds(plan),
        model(plan),
        warnings(doubts),
    ]);
    joined(parts)
}

fn warnings(doubts: &[String]) -> String {
    doubts.iter().map(|doubt| format!("warning: {doubt}\n")).collect()
}

/// The parts that say something, with empty lines between them.
fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for part in parts {
        if !part.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&part);
        }
    }
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// Nothing for the one that is not asked for.
fn driver(plan: &Plan) -> String {
    let driver = plan.driver.as_ref();
    driver
        .map_or_else(String::new, |driver| section("driver", &[format!("{driver}, in a process of its own")]))
}

fn heading(plan: &Plan) -> String {
    match plan.description.as_str() {
        "" => format!("{}\n", plan.profile),
        description => format!("{}: {description}\n", plan.profile),
    }
}

fn staleness(plan: &Plan) -> String {
    let line = plan.staleness.map(|probe| {
        let database = &plan.data.database;
        format!(
            "every {} a heartbeat in {database}.{HEARTBEATS} and a read of it from each member",
            probe.every
        )
    });
    section("staleness probe", line.as_slice())
}

fn thresholds(plan: &Plan) -> String {
    let fails = plan.thresholds.fail_if.iter().map(|condition| format!("fails if {condition}"));
    let ends = plan.thresholds.abort_when.iter().map(|condition| {
        let held = Span::from(HOLD);
        format!("ends early once {condition} has held for {held}, {FEWEST} operations being due by then")
    });
    section("thresholds", &fails.chain(ends).collect::<Vec<_>>())
}

/// What a simulation would assume, where the profile says so.
fn model(plan: &Plan) -> String {
    let lines = plan.model.as_ref().map(|model| {
        let spread = match model.service_distribution {
            ServiceDistribution::Fixed => "each",
            ServiceDistribution::Exponential => "on average",
        };
        let queue = match model.max_queue {
            Some(most) => format!("beyond {most} that wait it rejects"),
            None => "any number may wait".to_owned(),
        };
        vec![
            format!("{} servers {} away, {} clients", model.servers, model.rtt, model.clients),
            format!(
                "a server works on {} at a time, {} {spread}; {queue}",
                model.tickets, model.service_time
            ),
            format!("a rejection costs {:.0} % of that", model.rejection_cost * 100.0),
        ]
    });
    section("assumed by overdrive simulate", &lines.unwrap_or_default())
}

fn estimate(plan: &Plan, options: Options<'_>) -> String {
    let mut lines = Vec::new();
    if let (Some(estimate), Model::Open { max_in_flight, .. }) =
        (Estimate::of(plan, options), &plan.load.model)
    {
        let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1000.0;
        let call = format!(
            "{:.0} ms service + {:.0} ms backoff over {} retries",
            ms(estimate.service),
            ms(estimate.backoff),
            estimate.retries
        );
        let operation = match estimate.calls {
            1 => call,
            calls => format!("{calls} calls × ({call}) + {:.0} ms between them", ms(estimate.pauses)),
        };
        let most =
            estimate.most.map_or(String::new(), |most| format!(", never more than {most} ([flow.limit])"));
        lines.push(format!(
            "{} × ({operation}) = about {:.0} operations under way{most}",
            estimate.rate,
            estimate.in_flight(),
        ));
        lines.push(format!(
            "max_in_flight = {max_in_flight}, maxPoolSize = {} (an operation that backs off holds no connection)",
            options.value(plan, "maxPoolSize").unwrap_or("not set"),
        ));
    }
    section("estimate, while every attempt is rejected", &lines)
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{title}\n{lines}")
}

#[cfg(test)]
mod tests;
