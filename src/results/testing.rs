//! Small plans and snapshots whose sums can be worked out by hand.

use std::collections::BTreeMap;

use serde_json::json;

use super::TrialFacts;
use crate::plan::Driver;
use crate::plan::load::{Arrivals, Load, Model, Stage};
use crate::plan::operation::{Find, RunCommand};
use crate::plan::{
    Action, Attempts, ClientGroup, Data, FailCommand, Fault, Members, Operation, Overload, Plan, Template,
};
use crate::snapshot::{DeadLetters, FlowState, Generator, Snapshot};
use crate::stats::{OpStats, Outcomes};
use crate::thresholds::Thresholds;
use crate::units::{Offset, Rate, Span};

const SECOND: u64 = 1_000_000_000;

fn template() -> Template {
    serde_json::from_value(json!({"ping": 1})).unwrap()
}

fn find() -> Find {
    Find { filter: template(), projection: None, sort: None, limit: None, batch_size: None }
}

fn operation(name: &str, weight: u32, action: Action) -> Operation {
    Operation { name: name.to_owned(), weight, action }
}

/// No warm-up, 60 s at 100/s, no overload; operations read (3 of 4), scan (1 of 4, a cursor) and unused.
pub(crate) fn plan() -> Plan {
    let mut plan = plan_with_stages(&[(60, 100.0, 100.0)]);
    plan.load.warmup = Span::ZERO;
    plan
}

/// The same with other stages: length in seconds, rates at start and end.
pub(crate) fn plan_with_stages(stages: &[(u64, f64, f64)]) -> Plan {
    let rate = |r| Rate::per_second(r).unwrap();
    let stage =
        |&(s, from, to): &(u64, f64, f64)| Stage { length: Span::seconds(s), from: rate(from), to: rate(to) };
    Plan {
        live: false,
        driver: None,
        flow: crate::plan::Flow::default(),
        profile: "test".to_owned(),
        description: String::new(),
        seed: 1,
        data: Data {
            database: "overdrive".to_owned(),
            collection: "data".to_owned(),
            documents: 10,
            document: template(),
            indexes: Vec::new(),
        },
        load: Load {
            model: Model::Open {
                stages: stages.iter().map(stage).collect(),
                arrivals: Arrivals::Poisson,
                max_in_flight: 1000,
            },
            warmup: Span::ZERO,
            duration: Span::seconds(stages.iter().map(|s| s.0).sum()),
            cooldown: Span::seconds(5),
        },
        client: Vec::new(),
        operations: vec![
            operation("read", 3, Action::FindOne(find())),
            operation("scan", 1, Action::Find(find())),
            operation("unused", 0, Action::RunCommand(RunCommand { command: template(), database: None })),
        ],
        overloads: Vec::new(),
        attempts: Attempts::Full,
        timeout: crate::plan::Timeout::default(),
        backoff: None,
        staleness: None,
        thresholds: Thresholds::default(),
        model: None,
        shard: None,
        clients: Vec::new(),
        turn: None,
    }
}

/// Two client groups: critical, open at 60/s, with read (3 of 4) and scan; and batch, four workers that read.
pub(crate) fn groups_plan() -> Plan {
    let mut plan = plan_with_stages(&[(60, 60.0, 60.0)]);
    plan.operations.truncate(2);
    plan.operations.push(operation("read", 1, Action::FindOne(find())));
    let group = |name: &str, operations, model| ClientGroup {
        name: name.to_owned(),
        operations,
        model,
        client: Vec::new(),
        timeout: crate::plan::Timeout::default(),
        backoff: None,
        flow: crate::plan::Flow::default(),
    };
    let open = plan.load.model.clone();
    plan.clients = vec![group("critical", 0..2, open), group("batch", 2..3, Model::Closed { workers: 4 })];
    plan.load.model = Model::Closed { workers: 4 };
    plan
}

/// The same in the closed model.
pub(crate) fn closed_plan(workers: u32) -> Plan {
    let mut plan = plan();
    plan.load.model = Model::Closed { workers };
    plan
}

/// Warm-up 2 s, then 3 s before, 3 s of `shed`, 3 s after (100/s each), and the cool-down.
pub(crate) fn overload_plan() -> Plan {
    let mut plan = plan_with_stages(&[(9, 100.0, 100.0)]);
    plan.load.warmup = Span::seconds(2);
    plan.overloads.push(Overload {
        name: "shed".to_owned(),
        at: Offset::seconds(3),
        length: Span::seconds(3),
        members: Members::Primary,
        fault: Fault::FailCommand(FailCommand {
            commands: vec!["find".to_owned()],
            probability: 0.5,
            code: 462,
            labels: Vec::new(),
        }),
    });
    plan
}

/// A trial of a plan, begun when 2026 did.
pub(crate) fn facts(plan: Plan) -> TrialFacts {
    let mechanism = if plan.overloads.is_empty() { "" } else { "failpoint" }.to_owned();
    TrialFacts {
        trial: 1,
        variant: "maxAdaptiveRetries=2".to_owned(),
        repeat: 1,
        plan,
        knobs: Vec::new(),
        driver: Driver { name: "rust".to_owned(), version: "3.9.1".to_owned() },
        server_versions: vec!["6.0.5".to_owned()],
        mechanism,
        params: vec![("maxAdaptiveRetries".to_owned(), Some("2".to_owned())), ("appName".to_owned(), None)],
        options: json!({"maxAdaptiveRetries": {"value": "2", "from": "vary"}}),
        go: "2026-01-01T00:00:00Z".parse().unwrap(),
        cores: 2,
    }
}

/// `offered` operations due; `ok` ended well after a millisecond each, with a command each; and retries.
pub(crate) fn cell(offered: u64, ok: u64, commands: u64, retries: u64) -> OpStats {
    let mut stats = OpStats {
        offered,
        outcomes: Outcomes { ok, ..Outcomes::default() },
        calls: ok,
        commands,
        attempts: commands + retries,
        retries,
        rejected: retries,
        ..OpStats::default()
    };
    for _ in 0..ok {
        stats.latency.record_ns(1_000_000);
        stats.latency_ns += 1_000_000;
        stats.lag.record_ns(50_000);
    }
    stats
}

/// The second that starts at `second`, in a segment, with these cells and these operations left open.
pub(crate) fn snapshot<const N: usize>(
    second: u64,
    segment: usize,
    cells: [((usize, usize), OpStats); N],
    open: [u64; 3],
) -> Snapshot {
    Snapshot {
        sequence: second,
        start_ns: second * SECOND,
        end_ns: (second + 1) * SECOND,
        segment,
        cells: cells.into(),
        open: open.into(),
        servers: Vec::new(),
        errors: Vec::new(),
        orphans: BTreeMap::new(),
        flow: FlowState::default(),
        events: Vec::new(),
        dead_letters: DeadLetters::default(),
        clients: Vec::new(),
        generator: Generator {
            cpu_ns: SECOND / 10,
            rss_bytes: 1 << 20,
            behind_ns: 0,
            workers: 8,
            in_flight: 1,
        },
    }
}
