//! What the screen knows: everything it shows is made from here, and everything here is what the results files get too.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::history::{Counts, History, Rates};
use crate::plan::Plan;
use crate::plan::load::Phase;
use crate::plan::timeline::{Segment, index_at, nanos, on_time};
use crate::results::TrialFacts;
use crate::results::accumulated::{Accumulated, GeneratorSummary};
use crate::results::facts::{Scope, seconds};
use crate::results::figures::Figures;
use crate::results::intervals::merged;
use crate::snapshot::{ErrorCount, Event, Generator, ServerFacts, ServerStats, Snapshot};
use crate::stats::OpStats;

/// The most events and messages that are kept.
const EVENTS: usize = 200;

/// Statistics over some time: of each of the plan's operations, of each of several clients, and of all.
#[derive(Clone, Debug)]
pub struct Window {
    /// What the time is called.
    pub name: String,
    /// Its length so far.
    pub length_s: f64,
    /// By position in the plan.
    operations: Vec<OpStats>,
    /// By position in the plan, too.
    clients: Vec<OpStats>,
    all: OpStats,
}

impl Window {
    fn new(plan: &Plan, name: &str, length_s: f64, operations: Vec<OpStats>) -> Self {
        let sum = |scope: Scope| {
            let mut sum = OpStats::default();
            operations[scope.operations(plan)].iter().for_each(|stats| sum.merge(stats));
            sum
        };
        let clients = (0..plan.clients.len()).map(|client| sum(Scope::Client(client))).collect();
        let all = sum(Scope::All);
        Self { name: name.to_owned(), length_s, operations, clients, all }
    }

    /// Of one operation, of one of several clients, or of all.
    pub fn of(&self, whose: impl Into<Scope>) -> &OpStats {
        let one = match whose.into() {
            Scope::Operation(operation) => self.operations.get(operation),
            Scope::Client(client) => self.clients.get(client),
            Scope::All => None,
        };
        one.unwrap_or(&self.all)
    }
}

/// Something that happened, or that people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// When, in nanoseconds since the first Go; `None` when it was before or nobody knows.
    pub at_ns: Option<i64>,
    /// What.
    pub text: String,
}

/// What is known of one server.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `primary`, `secondary` …; empty before it was asked.
    pub role: String,
    /// What the client saw of it in the last interval.
    pub seen: ServerStats,
}

/// How the load generator fares.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// In the last interval.
    pub generator: Generator,
    /// Processors it kept busy.
    pub cpus: Option<f64>,
    /// It uses up the machine, so it is the limit itself.
    pub saturated: bool,
    /// Due operations wait for a worker.
    pub behind: bool,
    /// How what the application does about rejection stands, in words.
    pub flow: String,
}

/// Everything known of the trial that runs, and what stays of those before it. Times are nanoseconds since the first one's
/// Go, unless they are said to be the trial's own.
#[derive(Clone, Debug)]
pub struct Model {
    /// What is known of the trial from its start.
    pub facts: TrialFacts,
    /// The last interval.
    pub last: Option<Window>,
    /// The segment that goes on, by the intended starts of operations.
    pub part: Option<Window>,
    /// The measured segment before it.
    pub before: Option<Window>,
    /// All that has been.
    pub history: History,
    /// By address.
    pub servers: BTreeMap<String, Server>,
    /// The newest last.
    pub events: VecDeque<Told>,
    /// Overloads that are on, and where.
    pub on: BTreeMap<String, String>,
    /// The load generator itself.
    pub health: Health,
    /// The segment that the last interval lies in.
    segment: usize,
    sums: Accumulated,
    /// When this trial began.
    base_ns: u64,
    /// The parts of the trials before.
    past: Vec<Part>,
    /// When servers were pushed in the trials before.
    past_overloads: Vec<(u64, u64)>,
}

/// A part of a trial on the axis of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The segment's name.
    pub name: String,
    /// When it began.
    pub start_ns: u64,
    /// When it ended, or will.
    pub end_ns: u64,
}

impl Model {
    /// Nothing has happened yet.
    pub fn new(facts: TrialFacts) -> Self {
        let sums = Accumulated::new(&facts.plan);
        Self {
            base_ns: 0,
            past: Vec::new(),
            past_overloads: Vec::new(),
            facts,
            last: None,
            part: None,
            before: None,
            history: History::default(),
            servers: BTreeMap::new(),
            events: VecDeque::new(),
            on: BTreeMap::new(),
            health: Health::default(),
            segment: 0,
            sums,
        }
    }

    /// Another trial goes on with the load. What was shown over time stays; what was summed up begins anew.
    pub fn take_over(&mut self, facts: TrialFacts, since_go: Duration) {
        let base_ns = nanos(since_go);
        // What the trial before had planned for later is not done.
        self.past = self.parts().filter(|part| part.start_ns < base_ns).collect();
        self.past_overloads = self.overloads().filter(|&(on, _)| on < base_ns).collect();
        let ends = self.past.iter_mut().map(|part| &mut part.end_ns);
        ends.chain(self.past_overloads.iter_mut().map(|(_, off)| off))
            .for_each(|end| *end = base_ns.min(*end));
        self.sums = Accumulated::new(&facts.plan);
        (self.facts, self.base_ns, self.segment) = (facts, base_ns, 0);
        (self.last, self.part, self.before) = (None, None, None);
        // Whoever says that this is over begins anew as well.
        (self.health.saturated, self.health.behind) = (false, false);
    }

    /// An interval is over.
    pub fn add(&mut self, snapshot: &Snapshot) {
        let plan = &self.facts.plan;
        self.sums.add(plan, snapshot);
        self.segment = snapshot.segment.min(self.sums.segments.len() - 1);
        let operations: Vec<OpStats> = (0..plan.operations.len()).map(|i| merged(snapshot, i)).collect();
        let length_s = seconds(snapshot.end_ns.saturating_sub(snapshot.start_ns));
        let last = Window::new(plan, "last interval", length_s, operations);
        let each = std::iter::once(&last.all).chain(&last.operations).chain(&last.clients);
        let counts = each.map(Counts::of).collect();
        let (from_ns, to_ns) = (self.base_ns + snapshot.start_ns, self.base_ns + snapshot.end_ns);
        let limits = match &snapshot.clients[..] {
            [] => vec![snapshot.flow.limit],
            clients => clients.iter().map(|client| client.flow.limit).collect(),
        };
        self.history.add(from_ns, to_ns, counts, limits);
        self.last = Some(last);
        self.part = Some(self.window(self.segment));
        let before = self.segment.checked_sub(1);
        self.before = before.filter(|&i| self.segments()[i].phase == Phase::Measure).map(|i| self.window(i));
        for server in &snapshot.servers {
            self.servers.entry(server.address.clone()).or_default().seen = server.clone();
        }
        self.health.generator = snapshot.generator;
        self.health.flow = snapshot.flow_in_words(&self.facts.plan);
        self.health.cpus = GeneratorSummary::of(snapshot).cpu_share();
    }

    /// What the servers said of themselves at the last interval's end.
    pub fn servers(&mut self, facts: Vec<ServerFacts>) {
        for server in facts {
            self.servers.entry(server.address).or_default().role = server.role;
        }
    }

    /// Something happened.
    pub fn event(&mut self, event: Event) {
        match event.kind.as_str() {
            "overload_on" => {
                self.on.insert(event.subject.clone(), event.detail.clone());
            }
            "overload_off" => {
                self.on.remove(&event.subject);
            }
            "generator_saturated" => self.health.saturated = true,
            "generator_free" => self.health.saturated = false,
            "behind" => self.health.behind = true,
            "caught_up" => self.health.behind = false,
            _ => {}
        }
        let words = [event.kind.replace('_', " "), event.subject, event.detail];
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let at_ns = event.at_ns.saturating_add_unsigned(self.base_ns);
        self.tell(Told { at_ns: Some(at_ns), text: words.join("  ") });
    }

    /// People are told something.
    pub fn note(&mut self, text: String) {
        let at_ns = i64::try_from(self.end_ns()).ok().filter(|&at_ns| at_ns > 0);
        self.tell(Told { at_ns, text });
    }

    fn tell(&mut self, told: Told) {
        if self.events.len() >= EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(told);
    }

    /// The parts of the trial, in its own time.
    pub fn segments(&self) -> &[Segment] {
        &self.sums.segments
    }

    /// The parts of all trials so far.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let ours = self.segments().iter().map(|segment| Part {
            name: segment.name.clone(),
            start_ns: self.base_ns + segment.start_ns,
            end_ns: self.base_ns.saturating_add(segment.end_ns),
        });
        self.past.iter().cloned().chain(ours)
    }

    /// From when to when servers are pushed, by the plans.
    pub fn overloads(&self) -> impl Iterator<Item = (u64, u64)> {
        let load = &self.facts.plan.load;
        let ours = self.facts.plan.overloads.iter().filter_map(|overload| on_time(load, overload));
        let ours = ours.map(|(on, off)| (self.base_ns + on, self.base_ns.saturating_add(off)));
        self.past_overloads.iter().copied().chain(ours)
    }

    /// The trial's segment at a time.
    pub fn segment_at(&self, now_ns: u64) -> &Segment {
        &self.segments()[index_at(self.segments(), now_ns.saturating_sub(self.base_ns))]
    }

    /// When this trial began.
    pub const fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// Where the last interval ended.
    pub const fn end_ns(&self) -> u64 {
        self.base_ns + self.sums.end_ns
    }

    /// When the measured time is over.
    pub fn measured_until_ns(&self) -> u64 {
        let load = &self.facts.plan.load;
        self.base_ns + nanos(load.warmup.duration() + load.duration.duration())
    }

    /// Whose figures can be shown: all that runs, and everything together last.
    pub fn rows(&self) -> Vec<Scope> {
        Scope::every(&self.facts.plan)
    }

    /// What that is called.
    pub fn name(&self, whose: Scope) -> String {
        whose.title(&self.facts.plan)
    }

    /// Rates between two times; `None` where nothing is known.
    pub fn rates(&self, whose: Scope, from_ns: u64, to_ns: u64) -> Option<Rates> {
        let place = match whose {
            Scope::Operation(operation) => Some(operation),
            // Clients come after the operations.
            Scope::Client(client) => Some(self.facts.plan.operations.len() + client),
            Scope::All => None,
        };
        self.history.rates(place, from_ns, to_ns)
    }

    /// Every error so far, by segment, operation, level and class.
    pub fn errors(&self) -> impl Iterator<Item = &ErrorCount> {
        self.sums.errors.values()
    }

    /// Statistics with what is known of them.
    pub fn figures<'a>(&self, whose: Scope, stats: &'a OpStats) -> Figures<'a> {
        Figures::new(&self.facts.plan, whose, stats)
    }

    fn window(&self, segment: usize) -> Window {
        let Segment { name, start_ns, end_ns, .. } = &self.segments()[segment];
        let length_s = seconds(self.sums.end_ns.min(*end_ns).saturating_sub(*start_ns));
        let operations = (0..self.facts.plan.operations.len())
            .map(|operation| self.sums.merged(&[segment], Some(operation)))
            .collect();
        Window::new(&self.facts.plan, name, length_s, operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::results::testing::{self, cell, snapshot};
    use crate::units::Span;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_was_shown_over_time_stays_when_another_trial_takes_over() {
        // Warm-up 2 s, 9 s measured, an overload from 5 s to 8 s. The live trial begins at 6 s, and without it.
        let mut model = Model::new(testing::facts(testing::overload_plan()));
        for second in 0..6 {
            let segment = [0, 0, 1, 1, 1, 2][usize::try_from(second).unwrap()];
            model.add(&snapshot(second, segment, [((segment, 0), cell(10, 8, 12, 1))], [0, 0, 0]));
        }
        let mut plan = Plan { live: true, ..testing::plan_with_stages(&[(4, 100.0, 100.0)]) };
        plan.load.warmup = Span::seconds(5);
        model.health.behind = true;
        model.take_over(testing::facts(plan), Duration::from_secs(6));
        assert!(!model.health.behind, "its own watch has said nothing yet");
        model.add(&snapshot(0, 0, [((0, 0), cell(20, 20, 20, 0))], [0, 0, 0]));

        assert_eq!(
            (model.base_ns(), model.end_ns(), model.measured_until_ns()),
            (6 * SECOND, 7 * SECOND, 15 * SECOND)
        );
        let parts: Vec<(String, u64, u64)> = model
            .parts()
            .map(|part| (part.name, part.start_ns / SECOND, part.end_ns.min(99 * SECOND) / SECOND))
            .collect();
        let part = |name: &str, start, end| (name.to_owned(), start, end);
        assert_eq!(
            parts,
            [
                part("warmup", 0, 2),
                part("before", 2, 5),
                part("shed", 5, 6),
                part("transition", 6, 11),
                part("measure", 11, 15),
                part("cooldown", 15, 99)
            ]
        );
        assert_eq!(
            model.overloads().collect::<Vec<_>>(),
            [(5 * SECOND, 6 * SECOND)],
            "cut where the trial was"
        );
        let offered =
            |from| model.history.rates(None, from * SECOND, (from + 1) * SECOND).map(|rates| rates.offered);
        assert_eq!(
            (offered(1), offered(5), offered(6), offered(7)),
            (Some(10.0), Some(10.0), Some(20.0), None)
        );
        assert_eq!(model.segment_at(7 * SECOND).name, "transition");
        // What is told is in the time of the first trial, what is summed up in the segment of this one.
        let kind = "knob_turned".to_owned();
        model.event(Event { at_ns: 0, kind, subject: String::new(), detail: String::new() });
        assert_eq!(model.events.back().and_then(|told| told.at_ns), Some(6_000_000_000));
        assert_eq!(
            model.part.as_ref().map(|part| (part.name.as_str(), part.of(None).offered)),
            Some(("transition", 20))
        );
    }
}
