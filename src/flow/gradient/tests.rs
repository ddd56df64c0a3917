use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Clients that send whenever the limit lets them, and a server that works on `at_once` operations and queues the rest.
struct World {
    gradient: Gradient,
    now_ns: u64,
    /// When each of the server's places is free again.
    places: BinaryHeap<Reverse<u64>>,
    /// Ends and starts.
    under_way: BinaryHeap<Reverse<(u64, u64)>>,
}

impl World {
    fn new(gradient: Gradient, at_once: usize) -> Self {
        let places = std::iter::repeat_n(Reverse(0), at_once).collect();
        Self { gradient, now_ns: 0, places, under_way: BinaryHeap::new() }
    }

    /// Lets time pass with operations that take so long when they need not wait, and gives the limit after each.
    fn until(&mut self, end_ns: u64, service_ns: u64) -> Vec<u32> {
        let mut limits = Vec::new();
        while self.now_ns < end_ns {
            while self.under_way.len() < self.gradient.limit() as usize {
                let Reverse(free_ns) = self.places.pop().unwrap();
                let done_ns = free_ns.max(self.now_ns) + service_ns;
                self.places.push(Reverse(done_ns));
                self.under_way.push(Reverse((done_ns, self.now_ns)));
            }
            let in_flight = u32::try_from(self.under_way.len()).unwrap();
            let Reverse((ended_ns, started_ns)) = self.under_way.pop().unwrap();
            self.now_ns = ended_ns;
            let reply = Reply { verdict: Verdict::Served, started_ns, ended_ns, in_flight };
            self.gradient.told(&reply);
            limits.push(self.gradient.limit());
        }
        limits
    }
}

/// Measures the shortest anew after so many seconds.
fn gradient(initial: u32, memory_s: u64) -> Gradient {
    Gradient::new((initial, 1, 200), 0.2, 1.5, Duration::from_secs(memory_s))
}

fn median(mut limits: Vec<u32>) -> u32 {
    limits.sort_unstable();
    limits[limits.len() / 2]
}

/// L − √L = 1.5 × 20 has the solution 36.
#[test]
fn rests_where_the_queue_is_as_long_as_tolerated() {
    for initial in [4, 20] {
        let mut world = World::new(gradient(initial, 3600), 20);
        world.until(10 * SECOND, 10 * MS);
        for limit in world.until(20 * SECOND, 10 * MS) {
            assert!((34..=37).contains(&limit), "{limit} from {initial}");
        }
    }
}

#[test]
fn measuring_anew_does_not_take_the_queue_for_the_service() {
    let mut world = World::new(gradient(4, 2), 20);
    world.until(10 * SECOND, 10 * MS);
    for end in [20, 40, 80] {
        let limit = median(world.until(end * SECOND, 10 * MS));
        assert!((33..=37).contains(&limit), "{limit} until {end} s");
    }
}

/// At twice the service time g is 1.5 ÷ 2, and L = ¾ L + √L has the solution 16; once the shortest is measured anew, the
/// server can do as many at once as before.
#[test]
fn operations_that_become_slower_for_good_are_got_used_to() {
    let mut world = World::new(gradient(4, 30), 20);
    world.until(10 * SECOND, 10 * MS);
    world.until(15 * SECOND, 20 * MS);
    let limit = median(world.until(25 * SECOND, 20 * MS));
    assert!((15..=17).contains(&limit), "{limit}");
    world.until(55 * SECOND, 20 * MS);
    let limit = median(world.until(60 * SECOND, 20 * MS));
    assert!((33..=37).contains(&limit), "{limit}");
}

/// What one round of replies of one kind makes of the limit.
fn round(gradient: &mut Gradient, at_ns: u64, verdict: Verdict, in_flight: u32) -> f64 {
    for _ in 0..gradient.limit().max(FEWEST) {
        gradient.told(&Reply { verdict, started_ns: at_ns, ended_ns: at_ns + MS, in_flight });
    }
    gradient.limit
}

#[test]
fn a_round_of_rejections_goes_a_fifth_of_the_way_to_the_half() {
    let mut gradient = gradient(100, 60);
    assert_eq!(round(&mut gradient, MS, Verdict::Served, 100), 100.0, "the first one only measures");
    for (n, limit) in (1..).zip([90.0, 81.0, 72.9]) {
        let is = round(&mut gradient, n * SECOND, Verdict::Rejected, 100);
        assert!((is - limit).abs() < 1e-9, "{is}, not {limit}");
    }
    for n in 4..60 {
        round(&mut gradient, n * SECOND, Verdict::Rejected, 100);
    }
    assert_eq!(gradient.limit(), 1);
}

#[test]
fn a_limit_that_nobody_makes_use_of_does_not_grow() {
    let mut gradient = gradient(100, 60);
    round(&mut gradient, MS, Verdict::Served, 100);
    assert_eq!(round(&mut gradient, SECOND, Verdict::Served, 49), 100.0);
    let grown = round(&mut gradient, 2 * SECOND, Verdict::Served, 50);
    assert!((grown - 102.0).abs() < 1e-9, "a fifth of √100 more: {grown}");
}

#[test]
fn replies_to_what_was_sent_in_an_earlier_round_do_not_count() {
    let mut gradient = gradient(100, 60);
    round(&mut gradient, MS, Verdict::Served, 100);
    assert_eq!(round(&mut gradient, 2 * MS, Verdict::Rejected, 100), 100.0);
}
