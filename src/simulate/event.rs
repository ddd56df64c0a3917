//! What is going to happen, in the order of virtual time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// The slot of nobody's operation.
pub const NOBODY: u32 = u32::MAX;

/// Something that will happen. Small and without a pointer: there are millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds since Go.
    pub at_ns: u64,
    /// Whose: the operation's slot, or [`NOBODY`].
    pub slot: u32,
    /// The slot's epoch when it was planned; by another one nobody waits for it any more.
    pub epoch: u32,
    /// Which operation of the plan.
    pub op: u16,
    /// Where.
    pub server: u8,
    /// What came of the attempt: a number of the table of errors.
    pub class: u8,
    /// What.
    pub what: What,
}

/// The kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A request reaches its server.
    Arrives,
    /// An answer reaches its client.
    Answered,
    /// The application has waited long enough for its call.
    Deadline,
    /// The server has done the work.
    Served,
    /// A request has waited for its token.
    Admitted,
    /// The driver's backoff is over.
    Retry,
    /// The application's pause is over.
    CallAgain,
}

/// Events that all lie the same time ahead of the moment they are planned in: they need no sorting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Requests on their way.
    ToServer,
    /// Answers on their way.
    ToClient,
    /// The application's deadlines.
    Deadlines,
}

/// All that is planned.
#[derive(Debug, Default)]
pub struct Agenda {
    lanes: [VecDeque<Event>; 3],
    others: BinaryHeap<Earliest>,
}

impl Agenda {
    /// Plans an event of a lane; none of it may lie before one that was planned earlier.
    pub fn follow(&mut self, lane: Lane, event: Event) {
        let lane = &mut self.lanes[lane as usize];
        debug_assert!(lane.back().is_none_or(|last| last.at_ns <= event.at_ns), "{event:?} overtakes");
        lane.push_back(event);
    }

    /// Plans an event at any time.
    pub fn plan(&mut self, event: Event) {
        self.others.push(Earliest(event));
    }

    /// Takes the first event, if it happens before this time. Of several at the same time one is the first by a rule, so
    /// that the same plan always goes the same way.
    pub fn next_before(&mut self, bound_ns: u64) -> Option<Event> {
        let (mut first, mut lane) = (self.others.peek().map_or(u64::MAX, |event| event.0.at_ns), None);
        for (i, events) in self.lanes.iter().enumerate() {
            if let Some(event) = events.front().filter(|event| event.at_ns < first) {
                (first, lane) = (event.at_ns, Some(i));
            }
        }
        if first >= bound_ns {
            return None;
        }
        match lane {
            Some(lane) => self.lanes[lane].pop_front(),
            None => self.others.pop().map(|event| event.0),
        }
    }
}

/// An event in the order of a heap whose greatest comes first.
#[derive(Debug, PartialEq, Eq)]
struct Earliest(Event);

impl Ord for Earliest {
    fn cmp(&self, other: &Self) -> Ordering {
        let tie = |e: &Event| (e.slot, e.server, e.what as u8, e.epoch);
        other.0.at_ns.cmp(&self.0.at_ns).then_with(|| tie(&other.0).cmp(&tie(&self.0)))
    }
}

impl PartialOrd for Earliest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ns: u64, slot: u32) -> Event {
        Event { at_ns, slot, epoch: 0, op: 0, server: 0, class: 0, what: What::Retry }
    }

    #[test]
    fn events_come_in_the_order_of_time_whatever_way_they_were_planned() {
        let mut agenda = Agenda::default();
        for (i, time) in [50, 10, 40, 10].into_iter().enumerate() {
            agenda.plan(at(time, u32::try_from(i).unwrap()));
        }
        agenda.follow(Lane::ToServer, at(20, 10));
        agenda.follow(Lane::ToServer, at(45, 11));
        agenda.follow(Lane::Deadlines, at(30, 12));
        let order: Vec<(u64, u32)> =
            std::iter::from_fn(|| agenda.next_before(50).map(|e| (e.at_ns, e.slot))).collect();
        assert_eq!(order, [(10, 1), (10, 3), (20, 10), (30, 12), (40, 2), (45, 11)]);
        assert_eq!(agenda.next_before(u64::MAX).map(|e| e.slot), Some(0));
        assert_eq!(agenda.next_before(u64::MAX), None);
    }
}
