//! Profile and command line become a plan, in which nothing is left to decide.

mod clients;

use std::time::Duration;

use crate::plan::overload::exclude_each_other;
use crate::plan::{Load, Model, Overload, Plan, Stage};
use crate::units::{Rate, Span};

use super::Profile;
use super::client::CheckOption;
use super::flow;
use super::load::{ModelName, WrittenLoad};
use super::overrides::{Draft, OverrideErrors, Overrides};

const MAX_IN_FLIGHT: u32 = 10_000;
const WARMUP: Span = Span::seconds(5);
const DURATION: Span = Span::seconds(30);
const COOLDOWN: Span = Span::seconds(30);

/// The plan of one trial.
///
/// # Errors
/// When the command line asks for something that cannot be; the profile itself was checked when it was read.
pub fn resolve(
    profile: &Profile,
    overrides: &Overrides,
    check_option: CheckOption<'_>,
) -> Result<Plan, OverrideErrors> {
    let draft = Draft::new(profile, overrides, check_option)?;
    let clashes = clashes(&draft.profile.overloads);
    if !clashes.is_empty() {
        return Err(OverrideErrors(clashes));
    }
    if !draft.clients.is_empty() {
        return clients::resolve(draft);
    }
    let load = load(draft.profile.load.clone())?;
    check(&draft.profile, &load.model, "")?;
    Ok(plan(draft, load))
}

/// The plan with this load, of the profile's only client.
fn plan(draft: Draft, load: Load) -> Plan {
    let Draft { profile, seed, attempts, .. } = draft;
    Plan {
        live: false,
        profile: profile.name,
        description: profile.description,
        seed,
        data: profile.data,
        load,
        driver: profile.driver,
        client: profile.client,
        operations: profile.operations,
        overloads: profile.overloads,
        attempts,
        timeout: profile.timeout,
        flow: profile.flow,
        backoff: profile.backoff,
        staleness: profile.staleness,
        thresholds: profile.thresholds,
        model: profile.model,
        shard: None,
        clients: Vec::new(),
        turn: None,
    }
}

/// Whether there is something to do, and everything in it can be. The keys of one of several clients begin with `whose`.
fn check(profile: &Profile, model: &Model, whose: &str) -> Result<(), OverrideErrors> {
    if profile.operations.iter().all(|operation| operation.weight == 0) {
        let message = "every operation has weight 0 then, so there is nothing to do";
        return Err(OverrideErrors(vec![message.to_owned()]));
    }
    match flow::impossible(&profile.flow, model, whose) {
        none if none.is_empty() => Ok(()),
        impossible => Err(OverrideErrors(impossible)),
    }
}

/// What to say when the measured time is longer than the stages: their end lasts longer then than anybody wrote.
///
/// # Errors
/// As for [`resolve`].
pub fn stretched(
    profile: &Profile,
    overrides: &Overrides,
    check_option: CheckOption<'_>,
) -> Result<Option<String>, OverrideErrors> {
    let draft = Draft::new(profile, overrides, check_option)?;
    if !draft.clients.is_empty() {
        return Ok(clients::stretched(&draft));
    }
    let load = draft.profile.load;
    let closed = load.model == Some(ModelName::Closed);
    let (Some(staged), Some(duration), false) = (load.staged(), load.duration, closed) else {
        return Ok(None);
    };
    Ok((duration.duration() > staged.duration()).then(|| {
        format!(
            "the stages last {staged} together and the measured time {duration}: the rate that the last one ends with \
             goes on until then"
        )
    }))
}

/// Overloads that a server could not have on together: it knows one failpoint of a kind, and the later one would undo the
/// earlier.
fn clashes(overloads: &[Overload]) -> Vec<String> {
    let mut clashes = Vec::new();
    for (i, later) in overloads.iter().enumerate() {
        for earlier in &overloads[..i] {
            let (kind, other) = (later.fault.kind(), earlier.fault.kind());
            let meet = earlier.members.may_meet(&later.members) && earlier.may_meet(later);
            if !meet || !exclude_each_other(kind, other) {
                continue;
            }
            let why = match kind == other {
                true => format!("and a server can have one {kind} alone"),
                false => "but a server whose process is stopped or killed can neither be told of another fault nor keep one".to_owned(),
            };
            clashes.push(format!(
                "the overloads {} and {} are on at the same time, {why}",
                earlier.name, later.name
            ));
        }
    }
    clashes
}

fn load(written: WrittenLoad) -> Result<Load, OverrideErrors> {
    let wrong = |message: String| OverrideErrors(vec![message]);
    let duration = written.duration.or(written.staged()).unwrap_or(DURATION);
    let model = match (written.model.unwrap_or_default(), written.workers) {
        (ModelName::Closed, Some(workers)) => Model::Closed { workers },
        (ModelName::Closed, None) => return Err(wrong("a closed load needs `load.workers`".to_owned())),
        (ModelName::Open, _) => {
            let rate = written.rate.unwrap_or(Rate::THOUSAND);
            let steady = vec![Stage { length: duration, from: rate, to: rate }];
            let stages = if written.stages.is_empty() { steady } else { fit(&written.stages, duration) };
            Model::Open {
                stages,
                arrivals: written.arrivals.unwrap_or_default(),
                max_in_flight: written.max_in_flight.unwrap_or(MAX_IN_FLIGHT),
            }
        }
    };
    Ok(Load {
        model,
        warmup: written.warmup.unwrap_or(WARMUP),
        duration,
        cooldown: written.cooldown.unwrap_or(COOLDOWN),
    })
}

/// Stages for another total: those that begin later are left out, the last one is cut where it stands then, or the rate
/// it ends with goes on. The slope of a ramp never changes.
fn fit(stages: &[Stage], total: Span) -> Vec<Stage> {
    let mut left = total.duration();
    let mut fitted = Vec::new();
    for stage in stages {
        let length = stage.length.duration();
        if left < length {
            if left > Duration::ZERO {
                fitted.push(cut(*stage, left));
            }
            return fitted;
        }
        left -= length;
        fitted.push(*stage);
    }
    match fitted.last_mut() {
        Some(last) if left > Duration::ZERO && last.from == last.to => {
            last.length = (last.length.duration() + left).into();
        }
        Some(&mut Stage { to, .. }) if left > Duration::ZERO => {
            fitted.push(Stage { length: left.into(), from: to, to });
        }
        _ => {}
    }
    fitted
}

fn cut(stage: Stage, length: Duration) -> Stage {
    let share = length.as_secs_f64() / stage.length.duration().as_secs_f64();
    let (from, to) = (stage.from.get(), stage.to.get());
    // Between two rates that are in bounds, so it is in bounds itself.
    let to = Rate::per_second(from + (to - from) * share).unwrap_or(stage.to);
    Stage { length: length.into(), from: stage.from, to }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::plan::client::OptionSource;
    use crate::plan::{Arrivals, Attempts, Members};
    use crate::profile::Source;

    const STAGED: &str = r#"
[load]
stages = [{ for = "10s", rate = "100/s" }, { for = "10s", from = "100/s", to = "300/s" }]
[client]
maxPoolSize = 50
[op.ping.run_command]
command = { ping = 1 }
[[overload]]
at = "1s"
for = "2s"
fail_command = {}
"#;

    fn check(name: &str, value: Option<&str>) -> Result<String, String> {
        let known = ["maxPoolSize", "maxAdaptiveRetries"];
        let spelt = known.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        let spelt = spelt.ok_or_else(|| format!("there is no option `{name}`"))?;
        match value.is_some_and(|value| value.parse::<u32>().is_err()) {
            true => Err(format!("{name} must be a whole number")),
            false => Ok(spelt.to_owned()),
        }
    }

    fn resolved(text: &str, overrides: &Overrides) -> Result<Plan, OverrideErrors> {
        let source = Source { name: "test".to_owned(), shown: "test.toml".to_owned(), text: text.to_owned() };
        resolve(&Profile::read(source, &check).unwrap(), overrides, &check)
    }

    fn sets(pairs: &[(&str, &str)]) -> Overrides {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Overrides { sets: pairs.iter().map(owned).collect(), ..Overrides::default() }
    }

    #[test]
    fn a_server_is_not_asked_for_two_failpoints_at_once() {
        let second = "[[overload]]\nname = \"other\"\nat = \"2s\"\nfor = \"1s\"\nfail_command = {}\n";
        let text = format!("{STAGED}{second}");
        let message = "the overloads fail_command and other are on at the same time, and a server can have one \
                       fail_command alone";
        assert_eq!(resolved(&text, &Overrides::default()).unwrap_err().0, [message]);
        for apart in [
            &[("overload.other.at", "3s")][..],
            &[("overload.other.members", "secondaries"), ("overload.fail_command.members", "primary")],
        ] {
            assert!(resolved(&text, &sets(apart)).is_ok(), "{apart:?}");
        }
    }

    #[test]
    fn a_process_that_is_killed_keeps_no_other_fault() {
        let overload =
            |fault: &str| format!("[[overload]]\nname = \"x\"\nat = \"2s\"\nfor = \"1s\"\n{fault}\n");
        for (fault, clash) in
            [("kill = {}", true), ("stall = {}", true), ("limit_requests = { rate = 5 }", false)]
        {
            let resolved = resolved(&format!("{STAGED}{}", overload(fault)), &Overrides::default());
            assert_eq!(resolved.is_err(), clash, "{fault}: {resolved:?}");
        }
    }

    fn stages(overrides: &Overrides) -> String {
        let plan = resolved(STAGED, overrides).unwrap();
        let Model::Open { stages, .. } = plan.load.model else { panic!("not open") };
        let shown: Vec<String> =
            stages.iter().map(|stage| format!("{}-{} {}", stage.from, stage.to, stage.length)).collect();
        format!("{}: {}", plan.load.duration, shown.join(", "))
    }

    #[test]
    fn what_nobody_says_has_a_default() {
        let plan = resolved("[op.ping.run_command]\ncommand = { ping = 1 }", &Overrides::default()).unwrap();
        let rate = Rate::per_second(1000.0).unwrap();
        let model = Model::Open {
            stages: vec![Stage { length: Span::seconds(30), from: rate, to: rate }],
            arrivals: Arrivals::Poisson,
            max_in_flight: 10_000,
        };
        let (warmup, duration, cooldown) = (Span::seconds(5), Span::seconds(30), Span::seconds(30));
        assert_eq!(plan.load, Load { model, warmup, duration, cooldown });
        assert_eq!((plan.seed, plan.attempts), (42, Attempts::Full));
        assert_eq!((plan.data.database.as_str(), plan.data.collection.as_str()), ("overdrive", "load"));
        assert_eq!((plan.data.documents, plan.operations[0].weight), (1000, 1));
    }

    #[test]
    fn a_staleness_probe_is_there_when_it_is_asked_for() {
        let every = |text: &str, sets: &[(&str, &str)]| {
            let plan = resolved(text, &self::sets(sets)).map_err(|error| error.to_string())?;
            Ok::<_, String>(plan.staleness.map(|probe| probe.every.to_string()))
        };
        let written = format!("[staleness]\nevery = \"200ms\"\n{STAGED}");
        assert_eq!(every(STAGED, &[]), Ok(None));
        assert_eq!(every(&written, &[]), Ok(Some("200ms".to_owned())));
        assert_eq!(every(STAGED, &[("staleness.every", "1s")]), Ok(Some("1s".to_owned())));
        assert_eq!(every(&written, &[("staleness.every", "50ms")]), Ok(Some("50ms".to_owned())));
        assert_snapshot!(every(STAGED, &[("staleness.every", "1ms")]).unwrap_err(), @"--set staleness.every: it must be at least 10ms");
    }

    #[test]
    fn another_duration_cuts_or_extends_stages() {
        let lasting =
            |seconds| stages(&Overrides { duration: Some(Span::seconds(seconds)), ..Overrides::default() });
        assert_snapshot!(stages(&Overrides::default()), @"20s: 100/s-100/s 10s, 100/s-300/s 10s");
        assert_snapshot!(lasting(20), @"20s: 100/s-100/s 10s, 100/s-300/s 10s");
        assert_snapshot!(lasting(15), @"15s: 100/s-100/s 10s, 100/s-200/s 5s");
        assert_snapshot!(lasting(10), @"10s: 100/s-100/s 10s");
        assert_snapshot!(lasting(4), @"4s: 100/s-100/s 4s");
        assert_snapshot!(lasting(25), @"25s: 100/s-100/s 10s, 100/s-300/s 10s, 300/s-300/s 5s");
    }

    #[test]
    fn stages_that_are_stretched_are_told() {
        let told = |overrides: &Overrides| {
            let source = Source { name: "t".to_owned(), shown: "t".to_owned(), text: STAGED.to_owned() };
            stretched(&Profile::read(source, &check).unwrap(), overrides, &check).unwrap()
        };
        let lasting = |seconds| Overrides { duration: Some(Span::seconds(seconds)), ..Overrides::default() };
        assert_eq!([told(&Overrides::default()), told(&lasting(20)), told(&lasting(4))], [None, None, None]);
        assert!(
            told(&lasting(25)).unwrap().contains("the stages last 20s together and the measured time 25s")
        );
        let rate = Rate::per_second(7.0).ok();
        assert_eq!(told(&Overrides { rate, ..lasting(25) }), None, "there are no stages then");
        assert_eq!(told(&Overrides { workers: Some(3), ..lasting(25) }), None);
    }

    #[test]
    fn a_rate_takes_the_place_of_stages_and_workers_close_the_load() {
        assert_snapshot!(stages(&Overrides { rate: Some(Rate::per_second(7.0).unwrap()), ..Overrides::default() }), @"20s: 7/s-7/s 20s");
        let plan = resolved(STAGED, &Overrides { workers: Some(8), ..Overrides::default() }).unwrap();
        assert_eq!(plan.load.model, Model::Closed { workers: 8 });
        assert_eq!(plan.load.duration, Span::seconds(20));
        assert_snapshot!(stages(&sets(&[("workers", "8"), ("rate", "9/s"), ("duration", "3s")])), @"3s: 9/s-9/s 3s");
    }

    #[test]
    fn sets_reach_every_leaf() {
        let plan = resolved(
            STAGED,
            &sets(&[
                ("load.arrivals", "even"),
                ("load.max_in_flight", "7"),
                ("load.cooldown", "1s"),
                ("warmup", "0"),
                ("data.documents", "5"),
                ("data.database", "other"),
                ("op.ping.weight", "3"),
                ("overload.fail_command.members", "primary"),
                ("overload.fail_command.probability", "0.25"),
                ("overload.fail_command.at", "-1s"),
                ("seed", "7"),
                ("attempts", "light"),
                ("maxAdaptiveRetries", "5"),
                ("client.MAXPOOLSIZE", "unset"),
            ]),
        )
        .unwrap();
        let Model::Open { arrivals, max_in_flight, .. } = plan.load.model else { panic!("not open") };
        assert_eq!((arrivals, max_in_flight), (Arrivals::Even, 7));
        assert_eq!((plan.load.cooldown, plan.load.warmup), (Span::seconds(1), Span::ZERO));
        assert_eq!((plan.data.documents, plan.data.database.as_str()), (5, "other"));
        assert_eq!((plan.operations[0].weight, plan.overloads[0].members.clone()), (3, Members::Primary));
        assert_eq!((plan.seed, plan.attempts), (7, Attempts::Light));
        let options: Vec<_> =
            plan.client.iter().map(|s| (s.name.as_str(), s.value.as_deref(), s.from)).collect();
        assert_eq!(
            options,
            [("maxPoolSize", None, OptionSource::Set), ("maxAdaptiveRetries", Some("5"), OptionSource::Set)]
        );
    }

    #[test]
    fn what_may_be_there_or_not_can_be_taken_away() {
        let text = format!(
            "{STAGED}\n[timeout]\noperation = \"1s\"\n[flow.backoff]\nkind = \"fixed\"\n[staleness]\nevery = \"100ms\"\n"
        );
        let there = |pairs: &[(&str, &str)]| {
            let plan = resolved(&text, &sets(pairs)).unwrap();
            (plan.timeout.operation.is_some(), plan.backoff.is_some(), plan.staleness.is_some())
        };
        assert_eq!(there(&[]), (true, true, true));
        assert_eq!(there(&[("timeout.operation", "unset")]), (false, true, true));
        assert_eq!(there(&[("flow.backoff.kind", "unset")]), (true, false, true));
        assert_eq!(there(&[("staleness.every", "unset")]), (true, true, false));
        let error = resolved(&text, &sets(&[("rate", "unset")])).unwrap_err().to_string();
        assert!(error.contains("rate"), "{error}");
    }

    #[test]
    fn a_variant_is_stronger_than_a_set() {
        let varies = vec![("maxPoolSize".to_owned(), "9".to_owned()), ("rate".to_owned(), "3/s".to_owned())];
        let plan = resolved(STAGED, &Overrides { varies, ..sets(&[("maxPoolSize", "8"), ("rate", "5/s")]) })
            .unwrap();
        assert_eq!((plan.client[0].value.as_deref(), plan.client[0].from), (Some("9"), OptionSource::Vary));
        let Model::Open { stages, .. } = plan.load.model else { panic!("not open") };
        assert_eq!(stages[0].from.to_string(), "3/s");
    }

    #[test]
    fn bad_changes_are_all_named() {
        assert_snapshot!(resolved(STAGED, &sets(&[
            ("load.rte", "5"),
            ("load.rate", "0"),
            ("op.pin.weight", "5"),
            ("op.ping.weight", "-1"),
            ("duration", "10"),
            ("duration", "0"),
            ("workers", "0"),
            ("workrs", "5"),
            ("load.arrivals", "poison"),
            ("data.database", "admin"),
            ("overload.fail_command.for", "0"),
            ("maxPoolSize", "many"),
            ("something.else", "1"),
        ])).unwrap_err(), @r"
        --set load.rte: there is no such key; did you mean `load.rate`?
        --set load.rate: a rate of 0/s cannot be had: it must be above 0 and at most 10000000/s
        --set op.pin.weight: there is no such key; did you mean `op.ping.weight`?
        --set op.ping.weight: '-1' is no whole number from 0 to 10000
        --set duration: '10' has no unit: write 10s, 10ms or 10m
        --set duration: the duration must be longer than 0
        --set workers: '0' is no whole number from 1 to 100000
        --set workrs: there is no option `workrs`; or did you mean `workers`?
        --set load.arrivals: it cannot be 'poison', only poisson or even
        --set data.database: `admin` is the server's own database: a load must have another
        --set overload.fail_command.for: it must be longer than 0
        --set maxPoolSize: maxPoolSize must be a whole number
        --set something.else: there is no such key; there are load.model, load.rate, load.workers, load.max_in_flight, load.warmup, load.duration, load.cooldown, load.arrivals, data.database, data.collection, data.documents, timeout.operation, timeout.on_timeout, timeout.grace, timeout.max_time, staleness.every, model.servers, model.clients, model.tickets, model.max_queue, model.service_time, model.service_distribution, model.rejection_cost, model.rtt, flow.queue, flow.when_full, flow.backoff, flow.backoff.kind, flow.backoff.max_attempts, flow.backoff.base, flow.backoff.cap, flow.limit, flow.limit.kind, flow.limit.signal, flow.limit.initial, flow.limit.floor, flow.limit.ceiling, flow.limit.increase, flow.limit.decrease, flow.limit.once_per_round_trip, flow.limit.smoothing, flow.limit.tolerance, flow.limit.memory, flow.breaker, flow.breaker.signal, flow.breaker.threshold, flow.breaker.window, flow.breaker.minimum, flow.breaker.cool_down, flow.budget, flow.budget.kind, flow.budget.signal, flow.budget.capacity, flow.budget.per_success, flow.budget.k, flow.budget.window, flow.spool, flow.spool.max, flow.spool.rotate, flow.spool.drain, rate, workers, duration, warmup, seed, attempts, driver, op.ping.weight, overload.fail_command.at, overload.fail_command.for, overload.fail_command.members, overload.fail_command.probability, overload.fail_command.code
        ");
        let both = Overrides { rate: Rate::per_second(1.0).ok(), workers: Some(1), ..Overrides::default() };
        assert_snapshot!(resolved(STAGED, &both).unwrap_err(), @"--rate belongs to the open model and --workers to the closed one: give one");
        assert_snapshot!(resolved(STAGED, &sets(&[("op.ping.weight", "0")])).unwrap_err(), @"every operation has weight 0 then, so there is nothing to do");
        assert_snapshot!(resolved(STAGED, &sets(&[("load.model", "closed")])).unwrap_err(), @"a closed load needs `load.workers`");
    }
}
