//! One plain line an interval, for people without a terminal that can do more. The numbers are those of `intervals.csv`.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::plan::Plan;
use crate::plan::timeline::{Segment, segments};
use crate::report::human::{micros, percent, quotient, rate};
use crate::results::TrialFacts;
use crate::results::facts::{ALL, Scope, signed_seconds};
use crate::results::figures::Figures;
use crate::snapshot::{Event, Preparing, ServerFacts, Snapshot};
use crate::stats::{OpStats, ratio};
use crate::stderr::tell;

/// Whoever tells people what happens meanwhile.
pub trait Progress {
    /// Something in words.
    fn note(&mut self, text: &str);
    /// The servers answer.
    fn found(&mut self, cluster: &Cluster);
    /// The data load goes on.
    fn preparing(&mut self, data: Preparing);
    /// The load begins, and this is where its results go.
    fn started(&mut self, facts: &TrialFacts, directory: &Path);
    /// Another trial goes on with the load, so long after the first one began.
    fn taken_over(&mut self, facts: &TrialFacts, since_go: Duration);
    /// An interval is over.
    fn snapshot(&mut self, plan: &Plan, snapshot: &Snapshot);
    /// What the servers say of themselves at its end.
    fn servers(&mut self, _: &[ServerFacts]) {}
    /// Something happened.
    fn event(&mut self, event: &Event);
}

/// A line on standard error for each.
#[derive(Default)]
pub struct Lines {
    segments: Vec<Segment>,
    told: Option<Instant>,
}

/// Only what must not be missed.
pub struct Silent;

/// Between two lines on the data load.
const PREPARING: Duration = Duration::from_secs(1);

impl Progress for Lines {
    fn note(&mut self, text: &str) {
        tell(text);
    }

    fn found(&mut self, cluster: &Cluster) {
        let members: Vec<&str> = cluster.members.iter().map(|member| member.address.as_str()).collect();
        tell(&format!("servers: a {}, version {}, at {}", cluster.kind, cluster.version, members.join(", ")));
    }

    fn preparing(&mut self, data: Preparing) {
        let due = self.told.is_none_or(|told| told.elapsed() >= PREPARING);
        if due || data.stored == data.wanted {
            self.told = Some(Instant::now());
            tell(&format!("data: {} of {} documents stored", data.stored, data.wanted));
        }
    }

    fn started(&mut self, facts: &TrialFacts, directory: &Path) {
        let plan = &facts.plan;
        self.segments = segments(plan);
        tell(&format!("load: profile {}, results in {}", plan.profile, directory.display()));
    }

    fn taken_over(&mut self, facts: &TrialFacts, _: Duration) {
        self.segments = segments(&facts.plan);
    }

    fn snapshot(&mut self, plan: &Plan, snapshot: &Snapshot) {
        lines(plan, &self.segments, snapshot).iter().for_each(|line| tell(line));
    }

    fn event(&mut self, event: &Event) {
        let words = [&event.kind, &event.subject, &event.detail];
        let words: Vec<&str> =
            words.into_iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        tell(&format!("{:>8.1}s {}", signed_seconds(event.at_ns), words.join("  ")));
    }
}

impl Progress for Silent {
    fn note(&mut self, text: &str) {
        tell(text);
    }

    fn found(&mut self, _: &Cluster) {}

    fn preparing(&mut self, _: Preparing) {}

    fn started(&mut self, _: &TrialFacts, _: &Path) {}

    fn taken_over(&mut self, _: &TrialFacts, _: Duration) {}

    fn snapshot(&mut self, _: &Plan, _: &Snapshot) {}

    fn event(&mut self, _: &Event) {}
}

/// What happened in an interval, by event time: a line for all operations together, after one for those of each of several
/// clients. `segments` are the plan's.
pub fn lines(plan: &Plan, segments: &[Segment], snapshot: &Snapshot) -> Vec<String> {
    let together = |scope: &Scope| !matches!(scope, Scope::Operation(_));
    let scopes = Scope::every(plan).into_iter().filter(together);
    scopes.map(|scope| line(plan, segments, snapshot, scope)).collect()
}

fn line(plan: &Plan, segments: &[Segment], snapshot: &Snapshot, scope: Scope) -> String {
    let mut all = OpStats::default();
    let operations = scope.operations(plan);
    for stats in snapshot.cells.iter().filter(|((_, op), _)| operations.contains(op)).map(|(_, stats)| stats)
    {
        all.merge(stats);
    }
    let width = plan.clients.iter().map(|group| group.name.len().max(ALL.len())).max();
    let client = width.map(|width| format!("{:<width$}  ", scope.client(plan))).unwrap_or_default();
    let (generator, flow) = match scope {
        Scope::Client(client) => {
            let state = snapshot.clients.get(client).cloned().unwrap_or_default();
            (state.generator, state.flow.to_string())
        }
        // Each client's stands in its own line.
        _ => (snapshot.generator, snapshot.flow.to_string()),
    };
    let segment = segments.get(snapshot.segment).map_or("", |s| &s.name);
    let length_ns = snapshot.end_ns.saturating_sub(snapshot.start_ns);
    let per_second = |count: u64| rate(ratio(count, length_ns).map(|per_ns| per_ns * 1e9));
    let retries = Figures::new(plan, scope, &all).retries_per_op();
    let behind_us = generator.behind_ns / 1000;
    format!(
        "{:>8.1}s {segment:<9} {client}offered {:>8}  ok {:>8}  errors {:>6}  retries/op {:>5}  p50 {:>6}  p99 {:>6}  \
         in flight {:>5}  behind {:>6}{}",
        ratio(snapshot.end_ns, 1_000_000_000).unwrap_or(0.0),
        per_second(all.offered),
        per_second(all.outcomes.ok),
        percent(all.error_rate()),
        quotient(retries),
        micros(all.latency.percentile_us(0.5)),
        micros(all.latency.percentile_us(0.99)),
        generator.in_flight,
        micros(Some(behind_us)),
        flow,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::timeline::segments;
    use crate::results::testing::{self, cell, snapshot};
    use crate::snapshot::{ClientState, FlowState, Generator};

    #[test]
    fn an_interval_is_one_line() {
        let plan = testing::overload_plan();
        let segments = segments(&plan);
        let mut busy =
            snapshot(6, 2, [((2, 0), cell(120, 90, 100, 40)), ((2, 1), cell(5, 10, 10, 0))], [40, 0, 0]);
        busy.cells.get_mut(&(2, 0)).unwrap().outcomes.failed = 25;
        busy.generator.in_flight = 37;
        busy.generator.behind_ns = 1_500_000;
        let idle = snapshot(0, 0, [], [0, 0, 0]);
        let lines = [lines(&plan, &segments, &idle), lines(&plan, &segments, &busy)].concat().join("\n");
        insta::assert_snapshot!(lines, @"
        1.0s warmup    offered    0.0/s  ok    0.0/s  errors      -  retries/op     -  p50      -  p99      -  in flight     1  behind    0us
        7.0s shed      offered    125/s  ok    100/s  errors  20.0%  retries/op  0.32  p50 1.00ms  p99      -  in flight    37  behind 1.50ms
        ");
    }

    #[test]
    fn each_of_several_clients_has_a_line() {
        let plan = testing::groups_plan();
        let mut both =
            snapshot(6, 1, [((1, 0), cell(120, 90, 100, 40)), ((1, 2), cell(10, 10, 10, 0))], [30, 0, 0]);
        let state = |in_flight, limit| ClientState {
            generator: Generator { in_flight, behind_ns: 1_500_000, ..Generator::default() },
            flow: FlowState { limit, ..FlowState::default() },
            starving: None,
        };
        both.clients = vec![state(30, None), state(4, Some(8))];
        insta::assert_snapshot!(lines(&plan, &segments(&plan), &both).join("\n"), @r"
        7.0s measure   critical  offered    120/s  ok   90.0/s  errors   0.0%  retries/op  0.44  p50 1.00ms  p99      -  in flight    30  behind 1.50ms
        7.0s measure   batch     offered   10.0/s  ok   10.0/s  errors   0.0%  retries/op  0.00  p50      -  p99      -  in flight     4  behind 1.50ms  limit 8
        7.0s measure   all       offered    130/s  ok    100/s  errors   0.0%  retries/op  0.40  p50 1.00ms  p99      -  in flight     1  behind    0us
        ");
    }

    #[test]
    fn retries_are_left_out_where_they_are_unknown() {
        let mut plan = testing::plan();
        plan.attempts = crate::plan::Attempts::Light;
        let lines = lines(&plan, &segments(&plan), &snapshot(0, 1, [((1, 0), cell(9, 9, 9, 9))], [0, 0, 0]));
        let text = lines.join("\n");
        assert!(text.contains("retries/op     - "), "{text}");
    }
}
