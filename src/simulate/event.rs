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
    /// An operation that a throttle left out asks again.
    AskAgain,
    /// A breaker has been open long enough for a probe; the epoch is the client's number.
    MayProbe,
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

/// A bucket's length as a power of two of nanoseconds: about a millisecond.
const BUCKET: u32 = 20;

/// How many buckets there are: for about 17 s, which is more than the driver's longest backoff.
const BUCKETS: usize = 1 << 14;

/// All that is planned. Few events are sorted at a time: those of the current millisecond are in a heap, later ones in
/// unsorted buckets of a millisecond each, and what lies beyond all buckets in a heap of its own.
#[derive(Debug)]
pub struct Agenda {
    lanes: [VecDeque<Event>; 3],
    near: BinaryHeap<Earliest>,
    /// By the bucket's number, modulo their count.
    buckets: Vec<Vec<Event>>,
    /// Of each bucket whether there is anything in it.
    filled: Vec<u64>,
    /// The number of the first bucket whose events are not in the heap.
    next_bucket: u64,
    far: BinaryHeap<Earliest>,
    /// Whether a bucket has come into the heap.
    fetched: bool,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            near: BinaryHeap::new(),
            buckets: vec![Vec::new(); BUCKETS],
            filled: vec![0; BUCKETS / 64],
            next_bucket: 0,
            far: BinaryHeap::new(),
            fetched: false,
        }
    }
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
        let bucket = event.at_ns >> BUCKET;
        if bucket < self.next_bucket {
            self.near.push(Earliest(event));
        } else if bucket < self.next_bucket + BUCKETS as u64 {
            let place = place(bucket);
            self.buckets[place].push(event);
            self.filled[place / 64] |= 1 << (place % 64);
        } else {
            self.far.push(Earliest(event));
        }
    }

    /// Takes the first event, if it happens before this time. Of several at the same time one is the first by a rule, so
    /// that the same plan always goes the same way.
    pub fn next_before(&mut self, bound_ns: u64) -> Option<Event> {
        loop {
            let mut first = self.near.peek().map_or(u64::MAX, |event| event.0.at_ns);
            let mut lane = None;
            for (i, events) in self.lanes.iter().enumerate() {
                if let Some(event) = events.front().filter(|event| event.at_ns < first) {
                    (first, lane) = (event.at_ns, Some(i));
                }
            }
            if first.min(bound_ns) >> BUCKET < self.next_bucket {
                return match lane {
                    _ if first >= bound_ns => None,
                    Some(lane) => self.lanes[lane].pop_front(),
                    None => self.near.pop().map(|event| event.0),
                };
            }
            // Something in a bucket may come before that.
            self.fetch(first.min(bound_ns) >> BUCKET);
        }
    }

    /// All events of the next millisecond or so, in no order, once when these have become known.
    pub fn fetched(&mut self) -> impl Iterator<Item = &Event> {
        let fetched = std::mem::take(&mut self.fetched);
        self.near.iter().map(|event| &event.0).take(if fetched { usize::MAX } else { 0 })
    }

    /// Puts the events of the next bucket that has any into the heap, but of none after this one.
    fn fetch(&mut self, most: u64) {
        let last = self
            .next_filled()
            .min(self.far.peek().map_or(u64::MAX, |event| event.0.at_ns >> BUCKET))
            .min(most);
        if last < self.next_bucket + BUCKETS as u64 {
            let place = place(last);
            self.fetched = !self.buckets[place].is_empty();
            self.near.extend(self.buckets[place].drain(..).map(Earliest));
            self.filled[place / 64] &= !(1 << (place % 64));
        }
        self.next_bucket = last.saturating_add(1);
        while let Some(event) =
            self.far.peek().filter(|event| event.0.at_ns >> BUCKET <= last).map(|event| event.0)
        {
            self.far.pop();
            self.near.push(Earliest(event));
        }
    }

    /// The number of the first bucket that has any events; `u64::MAX` when none has.
    fn next_filled(&self) -> u64 {
        let start = place(self.next_bucket);
        let words = self.filled.len();
        for i in 0..=words {
            let index = (start / 64 + i) % words;
            // The first word is looked at twice: for what is behind the start, and at the end for what is before it.
            let behind = u64::MAX << (start % 64);
            let mask = if i == 0 {
                behind
            } else if i == words {
                !behind
            } else {
                u64::MAX
            };
            let bits = self.filled[index] & mask;
            if bits != 0 {
                let place = index * 64 + bits.trailing_zeros() as usize;
                return self.next_bucket + ((place + BUCKETS - start) % BUCKETS) as u64;
            }
        }
        u64::MAX
    }
}

/// A bucket's place among all.
#[expect(clippy::cast_possible_truncation, reason = "it is less than the count of buckets")]
const fn place(bucket: u64) -> usize {
    (bucket % BUCKETS as u64) as usize
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
    use proptest::prelude::*;

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

    proptest! {
        /// Against a sorted list, with times from nanoseconds to minutes ahead, planned while others happen.
        #[test]
        fn whatever_is_planned_happens_once_in_its_order(
            steps in proptest::collection::vec((0_u32..38, any::<u64>(), 0_u64..4), 1..300),
        ) {
            let (mut agenda, mut all, mut now) = (Agenda::default(), Vec::new(), 0);
            for (i, (bits, noise, takes)) in steps.into_iter().enumerate() {
                let event = at(now + (noise & ((1 << bits) - 1)), u32::try_from(i).unwrap());
                agenda.plan(event);
                all.push(event);
                for _ in 0..takes {
                    // The bound is sometimes short of the next event.
                    let bound = now + (noise >> 20 & 0xff_ffff_ffff);
                    all.sort_by_key(|event| (event.at_ns, event.slot));
                    let wanted = (!all.is_empty() && all[0].at_ns < bound).then(|| all.remove(0));
                    prop_assert_eq!(agenda.next_before(bound), wanted);
                    now = wanted.map_or(now, |event| event.at_ns);
                }
            }
            all.sort_by_key(|event| (event.at_ns, event.slot));
            for event in all {
                prop_assert_eq!(agenda.next_before(u64::MAX), Some(event));
            }
            prop_assert_eq!(agenda.next_before(u64::MAX), None);
        }
    }
}
