//! The same interval of several clients, made one of the load that they make together.

use std::collections::VecDeque;

use super::{ClientState, ServerStats, Snapshot, Totals};
use crate::plan::{ClientGroup, Plan};

/// Takes the intervals of several engines, and gives those of all of them. They end alike but for the last ones: an engine
/// whose operations have all ended says nothing more while the others' go on.
pub struct Folding {
    engines: Vec<Part>,
    sequence: u64,
    end_ns: u64,
}

/// One of the engines.
struct Part {
    /// Its client's name.
    client: String,
    /// The position of its first operation among all.
    first: usize,
    /// Intervals that the others have not come to the end of yet.
    waiting: VecDeque<Snapshot>,
    /// Whether it says nothing more.
    ended: bool,
    /// Open operations at the end of its last interval.
    open: Vec<u64>,
    /// How it stood then.
    state: ClientState,
    /// Connections that its pools had open then, by server.
    connections: Vec<ServerStats>,
}

impl Folding {
    /// Nothing yet.
    pub fn new(plan: &Plan) -> Self {
        let part = |group: &ClientGroup| Part {
            client: group.name.clone(),
            first: group.operations.start,
            waiting: VecDeque::new(),
            ended: false,
            open: vec![0; group.operations.len()],
            state: ClientState::default(),
            connections: Vec::new(),
        };
        Self { engines: plan.clients.iter().map(part).collect(), sequence: 0, end_ns: 0 }
    }

    /// Takes an engine's next interval, and returns those that all engines have now come to the end of.
    pub fn add(&mut self, index: usize, snapshot: Snapshot) -> Vec<Snapshot> {
        self.engines[index].waiting.push_back(snapshot);
        self.whole()
    }

    /// The same when an engine says nothing more.
    pub fn end(&mut self, index: usize) -> Vec<Snapshot> {
        self.engines[index].ended = true;
        self.whole()
    }

    fn whole(&mut self) -> Vec<Snapshot> {
        std::iter::from_fn(|| self.next_end().map(|end_ns| self.fold(end_ns))).collect()
    }

    /// Where the next interval of all ends, if that is known.
    fn next_end(&self) -> Option<u64> {
        let ends = |part: &Part| part.waiting.iter().map(|snapshot| snapshot.end_ns).collect::<Vec<_>>();
        let mut running = self.engines.iter().filter(|part| !part.ended).map(ends);
        match running.next() {
            Some(first) => {
                let others: Vec<Vec<u64>> = running.collect();
                first.into_iter().find(|end| others.iter().all(|ends| ends.contains(end)))
            }
            None => self.engines.iter().flat_map(ends).max(),
        }
    }

    /// The interval of all that ends there, of what engines have said of the time before.
    fn fold(&mut self, end_ns: u64) -> Snapshot {
        let mut whole =
            Snapshot { sequence: self.sequence, start_ns: self.end_ns, end_ns, ..Snapshot::default() };
        let mut segment = None;
        for part in &mut self.engines {
            if let Some(own) = part.until(end_ns) {
                segment = segment.or(Some(own.segment));
                part.open.clone_from(&own.open);
                part.state = ClientState {
                    starving: own.starving(),
                    flow: own.flow.clone(),
                    generator: own.generator,
                };
                let open = |server: &ServerStats| ServerStats {
                    address: server.address.clone(),
                    connections_open: server.connections_open,
                    ..ServerStats::default()
                };
                part.connections = own.servers.iter().map(open).collect();
                whole.add_client(own, part.first, &part.client);
            } else {
                // Its connections stay until all have ended.
                whole.add_servers(part.connections.clone());
            }
            whole.open.extend(&part.open);
            whole.clients.push(part.state.clone());
        }
        // Some engine has come to this end.
        whole.segment = segment.unwrap_or_default();
        self.sequence += 1;
        self.end_ns = end_ns;
        whole
    }
}

impl Part {
    /// What it has said of the time until then, as one interval.
    fn until(&mut self, end_ns: u64) -> Option<Snapshot> {
        let past = self.waiting.iter().take_while(|next| next.end_ns <= end_ns).count();
        self.waiting.drain(..past).reduce(|mut sum, next| {
            sum.merge_after(next);
            sum
        })
    }
}

impl Snapshot {
    /// Adds what one client did in the same time; its operations are numbered from `first` on among all.
    fn add_client(&mut self, own: Self, first: usize, client: &str) {
        for ((segment, operation), stats) in own.cells {
            self.cells.insert((segment, first + operation), stats);
        }
        for mut error in own.errors {
            error.operation += first;
            self.errors.push(error);
        }
        let mut dead_letters = own.dead_letters;
        for letter in &mut dead_letters.letters {
            letter.operation += first;
        }
        self.dead_letters.merge(dead_letters);
        for mut event in own.events {
            event.subject = match event.subject.as_str() {
                "" => client.to_owned(),
                subject => format!("{client}/{subject}"),
            };
            self.events.push(event);
        }
        self.add_servers(own.servers);
        self.add_orphans(own.orphans);
        let (ours, theirs) = (&mut self.generator, own.generator);
        // They share a process, and each of them sees all of it.
        ours.cpu_ns = ours.cpu_ns.max(theirs.cpu_ns);
        ours.rss_bytes = ours.rss_bytes.max(theirs.rss_bytes);
        ours.behind_ns = ours.behind_ns.max(theirs.behind_ns);
        ours.workers += theirs.workers;
        ours.in_flight += theirs.in_flight;
    }
}

impl Totals {
    /// Those of all engines, given in the clients' order.
    pub fn of_all(each: Vec<Self>) -> Self {
        each.into_iter().fold(Self::default(), |mut sum, own| {
            sum.ended.extend(own.ended);
            sum.clients.push(own.attempts);
            Self { attempts: sum.attempts + own.attempts, cut: sum.cut || own.cut, ..sum }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{self, cell};
    use crate::snapshot::{Event, FlowState, Generator, PoolCounts};

    const SECOND: u64 = 1_000_000_000;

    /// What an engine says of the time from one moment to another, in tenths of a second.
    fn interval(operations: usize, from: u64, to: u64, ok: u64) -> Snapshot {
        Snapshot {
            start_ns: from * SECOND / 10,
            end_ns: to * SECOND / 10,
            segment: 1,
            cells: [((1, operations - 1), cell(ok + 1, ok, ok, 1))].into(),
            open: vec![1; operations],
            servers: vec![ServerStats {
                address: "a:1".to_owned(),
                attempts: ok,
                connections_open: 3,
                pool: PoolCounts { created: 1, ..PoolCounts::default() },
                ..ServerStats::default()
            }],
            generator: Generator { cpu_ns: 100, rss_bytes: 7, behind_ns: ok, workers: 4, in_flight: 2 },
            flow: FlowState { limit: Some(u32::try_from(operations).unwrap()), ..FlowState::default() },
            events: vec![Event { kind: "limit".to_owned(), ..Event::default() }],
            ..Snapshot::default()
        }
    }

    /// From, to and goodput of each interval, in tenths of a second.
    fn told(folded: &[Snapshot]) -> Vec<(u64, u64, u64)> {
        let ok = |s: &Snapshot| s.cells.values().map(|stats| stats.outcomes.ok).sum();
        folded.iter().map(|s| (s.start_ns * 10 / SECOND, s.end_ns * 10 / SECOND, ok(s))).collect()
    }

    #[test]
    fn an_interval_is_there_once_all_have_come_to_its_end() {
        let mut folding = Folding::new(&testing::groups_plan());
        assert!(folding.add(0, interval(2, 0, 10, 5)).is_empty());
        assert!(folding.add(0, interval(2, 10, 20, 6)).is_empty());
        let folded = folding.add(1, interval(1, 0, 10, 7));
        assert_eq!(told(&folded), [(0, 10, 12)]);
        let whole = &folded[0];
        assert_eq!(whole.cells.keys().collect::<Vec<_>>(), [&(1, 1), &(1, 2)], "positions among all");
        assert_eq!(whole.open, [1, 1, 1]);
        let server = &whole.servers[0];
        assert_eq!((whole.servers.len(), server.attempts, server.connections_open), (1, 12, 6));
        let expected = Generator { cpu_ns: 100, rss_bytes: 7, behind_ns: 7, workers: 8, in_flight: 4 };
        assert_eq!(whole.generator, expected, "the process is there once");
        let limits: Vec<_> = whole.clients.iter().map(|client| client.flow.limit).collect();
        assert_eq!((limits, whole.flow.limit), (vec![Some(2), Some(1)], None));
        assert_eq!(
            whole.events.iter().map(|e| e.subject.as_str()).collect::<Vec<_>>(),
            ["critical", "batch"]
        );
    }

    #[test]
    fn ends_that_one_alone_has_are_none_of_all() {
        let mut folding = Folding::new(&testing::groups_plan());
        folding.add(0, interval(2, 0, 7, 1));
        folding.add(0, interval(2, 7, 10, 2));
        assert_eq!(told(&folding.add(1, interval(1, 0, 10, 4))), [(0, 10, 7)]);
    }

    #[test]
    fn the_others_go_on_when_one_has_ended() {
        let mut folding = Folding::new(&testing::groups_plan());
        folding.add(0, interval(2, 0, 10, 1));
        folding.add(0, interval(2, 10, 13, 2));
        assert_eq!(told(&folding.add(1, interval(1, 0, 10, 4))), [(0, 10, 5)]);
        assert!(folding.end(0).is_empty());
        assert_eq!(told(&folding.add(1, interval(1, 10, 20, 8))), [(10, 20, 10)]);
        let last = folding.add(1, interval(1, 20, 24, 16));
        assert_eq!(told(&last), [(20, 24, 16)]);
        assert_eq!((last[0].open.clone(), last[0].clients.len(), last[0].sequence), (vec![1; 3], 2, 2));
        assert_eq!(last[0].servers[0].connections_open, 6, "those of the one that has ended are still there");
        assert!(folding.end(1).is_empty());
    }

    #[test]
    fn nothing_is_lost_of_the_one_that_ends_last() {
        let mut folding = Folding::new(&testing::groups_plan());
        assert!(folding.add(0, interval(2, 0, 9, 1)).is_empty());
        assert!(folding.add(1, interval(1, 0, 6, 2)).is_empty());
        assert_eq!(told(&folding.end(1)), [(0, 9, 3)], "it was over before the other's end");
        assert!(folding.end(0).is_empty());
        let mut folding = Folding::new(&testing::groups_plan());
        folding.add(1, interval(1, 0, 6, 2));
        folding.end(1);
        assert_eq!(told(&folding.add(0, interval(2, 0, 5, 1))), [(0, 5, 1)]);
        assert_eq!(told(&folding.end(0)), [(5, 6, 2)]);
    }

    #[test]
    fn totals_stand_in_the_order_of_operations() {
        let totals = |ended: &[u64], attempts, cut| Totals {
            ended: ended.to_vec(),
            attempts,
            cut,
            ..Totals::default()
        };
        assert_eq!(
            Totals::of_all(vec![totals(&[1, 2], 5, false), totals(&[3], 7, true)]),
            Totals { clients: vec![5, 7], ..totals(&[1, 2, 3], 12, true) }
        );
    }
}
