//! A plan as `overdrive check` prints it, without connecting anywhere.

use std::fmt::Write;

use crate::plan::client::OptionSource;
use crate::plan::model::ServiceDistribution;
use crate::plan::staleness::HEARTBEATS;
use crate::plan::{Arrivals, BackoffKind, Fault, Limit, Members, Model, Plan, ResolvedOption, Stage};
use crate::thresholds::hopeless::{FEWEST, HOLD};
use crate::units::Span;

use super::diagnostic::either;
use super::estimate::{Estimate, Options};
use super::flow;

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
    let deployment =
        destination.map_or_else(String::new, |d| section("deployment", &[d.deployment.to_owned()]));
    let options = match destination {
        Some(destination) => effective(destination.options),
        None => written(plan),
    };
    let estimate = estimate(plan, Options(destination.map(|d| d.options)));
    let warnings = doubts.iter().map(|doubt| format!("warning: {doubt}\n")).collect();
    let mut text = String::new();
    for part in [
        heading(plan),
        driver(plan),
        deployment,
        load(plan),
        operations(plan),
        options,
        application(plan),
        overloads(plan),
        staleness(plan),
        thresholds(plan),
        model(plan),
        estimate,
        warnings,
    ] {
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

fn load(plan: &Plan) -> String {
    let load = &plan.load;
    let mut lines = match &load.model {
        Model::Closed { workers } => {
            vec![format!("closed: {workers} workers, each starts its next operation when the last has ended")]
        }
        Model::Open { stages, arrivals, max_in_flight } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => "Poisson arrivals",
                Arrivals::Even => "even arrivals",
            };
            let first = format!("open: {arrivals}, at most {max_in_flight} operations in flight");
            std::iter::once(first).chain(stages.iter().map(stage)).collect()
        }
    };
    lines.push(format!(
        "warm-up {}, measured {}, cool-down at most {}",
        load.warmup, load.duration, load.cooldown
    ));
    let data = &plan.data;
    lines.push(format!("{} documents in {}.{}", data.documents, data.database, data.collection));
    lines.push(format!("seed {}", plan.seed));
    section("load", &lines)
}

fn stage(stage: &Stage) -> String {
    if stage.from == stage.to {
        format!("{} for {}", stage.from, stage.length)
    } else {
        format!("{} to {} over {}", stage.from, stage.to, stage.length)
    }
}

/// How many operations the stages offer.
fn offered(plan: &Plan) -> Option<f64> {
    let Model::Open { stages, .. } = &plan.load.model else { return None };
    let of = |s: &Stage| (s.from.get() + s.to.get()) / 2.0 * s.length.duration().as_secs_f64();
    Some(stages.iter().map(of).sum())
}

fn operations(plan: &Plan) -> String {
    let total: f64 = plan.operations.iter().map(|op| f64::from(op.weight)).sum();
    let offered = offered(plan);
    let width = plan.operations.iter().map(|op| op.name.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = plan
        .operations
        .iter()
        .map(|op| {
            let share = f64::from(op.weight) / total;
            let mut line = format!("{:width$}  {:<19}  {:>5.1} %", op.name, op.action.kind(), share * 100.0);
            if let Some(offered) = offered {
                // Writing to a String cannot fail.
                let _ = write!(line, "  about {:.0}", share * offered);
            }
            line
        })
        .collect();
    match offered {
        Some(offered) => section(&format!("operations: about {offered:.0} offered while measured"), &lines),
        None => section("operations", &lines),
    }
}

const OPTIONS: &str = "connection-string options";

/// What the plan itself says about options.
fn written(plan: &Plan) -> String {
    let lines: Vec<String> = plan
        .client
        .iter()
        .map(|setting| {
            let from = source(setting.from);
            match &setting.value {
                Some(value) => format!("{} = {value}  (from {from})", setting.name),
                None => format!("{} taken away  (from {from})", setting.name),
            }
        })
        .collect();
    section(OPTIONS, &lines)
}

/// Every option in effect: those that somebody set, then the driver's defaults.
fn effective(options: &[ResolvedOption]) -> String {
    let line = |option: &ResolvedOption| {
        format!("{} = {}  (from {})", option.name, option.value, source(option.from))
    };
    let (defaults, set): (Vec<_>, Vec<_>) =
        options.iter().partition(|option| option.from == OptionSource::Default);
    let lines: Vec<String> = set.into_iter().chain(defaults).map(line).collect();
    section(OPTIONS, &lines)
}

const fn source(from: OptionSource) -> &'static str {
    match from {
        OptionSource::Vary => "--vary",
        OptionSource::Set => "--set",
        OptionSource::Profile => "profile",
        OptionSource::Uri => "URI",
        OptionSource::Overdrive => "overdrive",
        OptionSource::Default => "default",
    }
}

/// What the application does beside what the driver does.
fn application(plan: &Plan) -> String {
    let timeout = plan.timeout.operation.map(|operation| format!("waits {operation} for a call"));
    let backoff = plan.backoff.map(|backoff| {
        let pauses = match backoff.kind {
            BackoffKind::Immediate => "at once".to_owned(),
            kind => {
                let name = flow::KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
                format!("after pauses ({name}, base {}, cap {})", backoff.base, backoff.cap)
            }
        };
        format!("calls up to {} times in all, {pauses}", backoff.max_attempts)
    });
    section("application", &timeout.into_iter().chain(backoff).collect::<Vec<_>>())
}

fn overloads(plan: &Plan) -> String {
    let lines: Vec<String> = plan
        .overloads
        .iter()
        .map(|overload| {
            let members = match &overload.members {
                Members::All => "all members".to_owned(),
                Members::Primary => "the primary".to_owned(),
                Members::Secondaries => "the secondaries".to_owned(),
                Members::Numbers(numbers) => {
                    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                    format!("members {}", numbers.join(", "))
                }
            };
            format!(
                "{} at {} for {}, on {members}: {}",
                overload.name,
                overload.at,
                overload.length,
                fault(&overload.fault)
            )
        })
        .collect();
    section("overload", &lines)
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

/// What a fault does, in words.
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::LimitRequests(fault) => format!("rejects requests beyond {}", limit(&fault.limit)),
        Fault::LimitConnections(fault) => format!("refuses connections beyond {}", limit(&fault.limit)),
        Fault::FailCommand(fault) => {
            let commands: Vec<&str> = fault.commands.iter().map(String::as_str).collect();
            format!(
                "rejects {:.0} % of {} (code {})",
                fault.probability * 100.0,
                either(&commands).replace(" or ", " and "),
                fault.code
            )
        }
        Fault::Tickets(fault) => {
            let each = [("reads", fault.read), ("writes", fault.write)];
            let each: Vec<String> =
                each.iter().filter_map(|(what, n)| n.map(|n| format!("{n} {what}"))).collect();
            format!("lets the storage engine take {} at a time", each.join(" and "))
        }
        Fault::HoldTickets(fault) => format!("holds {} read tickets, {} at a time", fault.count, fault.hold),
        Fault::LatencyEvent(fault) => {
            format!("inserts {} documents of {} bytes, then deletes them", fault.documents, fault.size)
        }
        Fault::Stall {} => "stops the process".to_owned(),
        Fault::Kill {} => "kills the process, then starts it again".to_owned(),
        Fault::StepDown {} => "has it step down, and not stand again meanwhile".to_owned(),
    }
}

fn limit(limit: &Limit) -> String {
    let queue = match limit.queue_depth {
        0 => String::new(),
        depth => format!(", of which {depth} may wait"),
    };
    format!("{}/s (burst {}){queue}", limit.rate, limit.burst)
}

fn estimate(plan: &Plan, options: Options<'_>) -> String {
    let mut lines = Vec::new();
    if let (Some(estimate), Model::Open { max_in_flight, .. }) =
        (Estimate::of(plan, options), &plan.load.model)
    {
        let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1000.0;
        lines.push(format!(
            "{} × ({:.0} ms service + {:.0} ms backoff over {} retries) = about {:.0} operations under way",
            estimate.rate,
            ms(estimate.service),
            ms(estimate.backoff),
            estimate.retries,
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
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::profile::estimate::doubts;
    use crate::profile::{Overrides, Profile, resolve};

    fn described(name: &str, sets: &[(&str, &str)]) -> String {
        let any = |name: &str, _: Option<&str>| Ok(name.to_owned());
        let sets = sets.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let profile = Profile::open(name, &any).unwrap();
        let plan = resolve(&profile, &Overrides { sets, ..Overrides::default() }, &any).unwrap();
        describe(&plan, None, &doubts(&plan, Options::default()))
    }

    #[test]
    fn an_open_plan() {
        assert_snapshot!(described("quickstart", &[("maxAdaptiveRetries", "5"), ("appName", "unset")]), @r"
        quickstart: A first look: reads, updates and pings at 400/s, and servers that shed what is beyond 250/s for 8 s in the middle

        load
          open: Poisson arrivals, at most 10000 operations in flight
          400/s for 25s
          warm-up 5s, measured 25s, cool-down at most 30s
          1000 documents in overdrive.load
          seed 42

        operations: about 10000 offered while measured
          read  find_one              60.0 %  about 6000
          bump  update_one            30.0 %  about 3000
          ping  run_command           10.0 %  about 1000

        connection-string options
          maxPoolSize = 100  (from profile)
          maxAdaptiveRetries = 5  (from --set)
          appName taken away  (from --set)

        overload
          overload at 8s for 8s, on all members: rejects requests beyond 250/s (burst 1s)

        estimate, while every attempt is rejected
          400/s × (1 ms service + 3100 ms backoff over 5 retries) = about 1240 operations under way
          max_in_flight = 10000, maxPoolSize = 100 (an operation that backs off holds no connection)
        ");
    }

    #[test]
    fn a_closed_plan_with_doubts() {
        assert_snapshot!(described("primary-preferred", &[("workers", "20"), ("maxPoolSize", "unset"), ("duration", "9s")]), @r"
        primary-preferred: Reads that prefer the primary while the primary alone sheds load: do retries go elsewhere?

        load
          closed: 20 workers, each starts its next operation when the last has ended
          warm-up 5s, measured 9s, cool-down at most 30s
          5000 documents in overdrive.load
          seed 42

        operations
          read  find_one              90.0 %
          bump  update_one            10.0 %

        connection-string options
          maxPoolSize taken away  (from --set)
          readPreference = primaryPreferred  (from profile)
          maxAdaptiveRetries = 2  (from profile)
          enableOverloadRetargeting = true  (from profile)

        overload
          primary_sheds at 10s for 10s, on the primary: rejects 70 % of find and update (code 462)

        warning: maxPoolSize is not set: unless the connection string sets it, the driver opens 10 connections per server, and the load may queue in the client
        warning: the overload primary_sheds is never on: it lasts 10s from 10s on, and the load is over after 9s of measured time
        ");
    }

    #[test]
    fn a_staleness_probe() {
        let text = described("ycsb-c", &[("staleness.every", "100ms")]);
        let part = text.split("\n\n").find(|part| part.starts_with("staleness")).unwrap();
        assert_snapshot!(part, @r"
        staleness probe
          every 100ms a heartbeat in overdrive.overdrive.heartbeat and a read of it from each member
        ");
    }

    #[test]
    fn more_than_may_be_under_way() {
        let text = described(
            "tests/data/every-kind.toml",
            &[("load.max_in_flight", "50"), ("overload.everything.for", "1s")],
        );
        assert_snapshot!(text, @r"
        every-kind: Every kind of operation and every generator once: for tests, not for measuring

        load
          open: even arrivals, at most 50 operations in flight
          50/s for 2s
          50/s to 200/s over 2s
          warm-up 500ms, measured 4s, cool-down at most 5s
          200 documents in overdrive_test.every_kind
          seed 42

        operations: about 350 offered while measured
          find_one             find_one              16.7 %  about 58
          find                 find                   5.6 %  about 19
          aggregate            aggregate              5.6 %  about 19
          count                count                  5.6 %  about 19
          distinct             distinct               5.6 %  about 19
          insert_one           insert_one             5.6 %  about 19
          insert_many          insert_many            5.6 %  about 19
          update_one           update_one             5.6 %  about 19
          update_many          update_many            5.6 %  about 19
          replace_one          replace_one            5.6 %  about 19
          delete_one           delete_one             5.6 %  about 19
          delete_many          delete_many            0.0 %  about 0
          find_one_and_update  find_one_and_update    5.6 %  about 19
          bulk_write           bulk_write             0.0 %  about 0
          transaction          transaction            5.6 %  about 19
          create_collection    create_collection      5.6 %  about 19
          drop                 drop                   5.6 %  about 19
          run_command          run_command            5.6 %  about 19

        connection-string options
          maxPoolSize = 50  (from profile)
          retryReads = true  (from profile)
          readPreference = primary  (from profile)
          compressors = zstd,zlib  (from profile)

        overload
          fail_command at 1s for 500ms, on all members: rejects 100 % of find, getMore, aggregate, distinct, count, insert, update, delete, findAndModify, bulkWrite, create and drop (code 462)
          everything at -250ms for 1s, on members 0, 2: rejects 25 % of find and ping (code 433)

        estimate, while every attempt is rejected
          200/s × (1 ms service + 300 ms backoff over 2 retries) = about 60 operations under way
          max_in_flight = 50, maxPoolSize = 50 (an operation that backs off holds no connection)

        warning: about 60 operations would be under way while everything is rejected, more than max_in_flight = 50
        ");
    }

    #[test]
    fn where_it_would_run_and_what_is_in_effect_there() {
        let any = |name: &str, _: Option<&str>| Ok(name.to_owned());
        let profile = Profile::open("primary-preferred", &any).unwrap();
        let plan = resolve(&profile, &Overrides::default(), &any).unwrap();
        let option = |name, value: &str, from| ResolvedOption { name, value: value.to_owned(), from };
        let options = [
            option("maxConnecting", "2", OptionSource::Default),
            option("maxPoolSize", "7", OptionSource::Uri),
            option("maxAdaptiveRetries", "5", OptionSource::Uri),
        ];
        let destination = Destination { deployment: "a.example, b.example:27018", options: &options };
        let known = Options(Some(&options));
        assert_eq!(doubts(&plan, known), Vec::<String>::new(), "the connection string sets maxPoolSize");
        assert_eq!(doubts(&plan, Options(Some(&options[..1]))).len(), 1, "here nobody does");
        let text = describe(&plan, Some(destination), &[]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for line in [
            "a.example, b.example:27018",
            "maxPoolSize = 7  (from URI)",
            "maxAdaptiveRetries = 5  (from URI)",
            "maxConnecting = 2  (from default)",
        ] {
            assert!(lines.contains(&line), "{line}: {text}");
        }
        assert!(
            text.contains("maxPoolSize = 7 (an operation that backs off") && text.contains("over 5 retries")
        );
    }
}
