//! How the load fared before, during and after each overload, and when it was well again.
//!
//! All of this is by the time at which things happened, not by when operations were due: what is asked is how the servers
//! and the driver did at that time. The size of the state depends on the number of overloads, never on time.
//!
//! An overload that covers all of the measured time is how the servers are in this trial: others are judged against it. One
//! that is on when another ends, and stays on, is how the servers are from then on: with it the load may be seen to recover,
//! and where it does not, nobody knows which of the two did that.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::facts::{per_second, seconds};
use crate::plan::Plan;
use crate::plan::timeline::nanos;
use crate::snapshot::Snapshot;
use crate::stats::Latencies;

/// A backlog older than this is one: workers are short.
pub const BEHIND: Duration = Duration::from_millis(100);

const SECOND: u64 = 1_000_000_000;

/// So many good seconds in a row make a recovery; fewer judged ones make no verdict.
const GOOD_SECONDS: u64 = 3;

/// That the load was stopped is told when all intervals are there. So many of the last are held back until then, which is
/// more than there are between a stop and the end: what ended while the load was let out is no goodput of an overload.
const HELD: usize = 16;

/// What an overload did to the goodput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// The overload's name.
    pub overload: String,
    /// What it did, as profiles spell it.
    pub kind: &'static str,
    /// When the plan had it begin, in seconds since Go and no sooner than the measured time did; `None` when it lay outside
    /// the measured time.
    pub on_s: Option<f64>,
    /// When it ended, in the same way.
    pub off_s: Option<f64>,
    /// Goodput in the measured time before it that no other passing overload covered; `None` without such time.
    pub goodput_before_ops_per_s: Option<f64>,
    /// Goodput while it was on.
    pub goodput_during_ops_per_s: Option<f64>,
    /// Goodput from its end to the next overload or the end of the measured time; `None` without such time.
    pub goodput_after_ops_per_s: Option<f64>,
    /// Half of the operations that ended well before it took no longer, in microseconds; `None` when they were too few.
    pub latency_p50_before_us: Option<u64>,
    /// Whether the load recovered; `None` when that is not known, because less than three whole seconds followed, nothing
    /// is known of the time before, or it did not while another overload went on to the end.
    pub recovered: Option<bool>,
    /// From its end to the beginning of the first three good seconds in a row; 0 when it never got bad.
    pub time_to_recover_s: Option<f64>,
}

/// Watches all overloads of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Recoveries {
    /// Where the measured time starts and ends.
    start_ns: u64,
    end_ns: u64,
    watched: Vec<Watched>,
    /// The measured time so far that no passing overload covered, and that none had left in disorder.
    calm: Stretch,
    held: VecDeque<Stretch>,
}

/// One overload.
#[derive(Clone, Debug)]
struct Watched {
    name: String,
    kind: &'static str,
    /// Clipped to the measured time; outside of it these are the same.
    on_ns: u64,
    off_ns: u64,
    /// Where the time after it ends.
    until_ns: u64,
    /// Whether another is on all that time.
    beside_another: bool,
    /// Of the calm time before it; `None` until it is on.
    before: Option<Before>,
    during: Count,
    after: Count,
    verdict: Verdict,
}

/// Calm time, as much of it as verdicts need.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    count: Count,
    p50_us: Option<u64>,
}

/// Operations that ended well over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    length_ns: u64,
    ok: u64,
}

/// What happened from one time to another.
#[derive(Clone, Debug, Default)]
struct Stretch {
    start_ns: u64,
    end_ns: u64,
    offered: u64,
    ok: u64,
    latency: Latencies,
    /// The longest that an operation waited for a worker.
    behind_ns: u64,
    /// Operations without an outcome at the end.
    open: u64,
}

/// Judges the seconds after an overload.
#[derive(Clone, Debug, Default)]
struct Verdict {
    /// What of a second is there so far.
    second: Option<Stretch>,
    /// Whole seconds that were judged.
    judged: u64,
    /// Where the good seconds began that the last one belongs to, and how many they are.
    good: Option<(u64, u64)>,
    /// Where enough good seconds began.
    recovered_ns: Option<u64>,
}

impl Recoveries {
    /// Nothing has happened yet.
    pub fn new(plan: &Plan) -> Self {
        let start_ns = nanos(plan.load.warmup.duration());
        let end_ns = start_ns + nanos(plan.load.duration.duration());
        let spans: Vec<(u64, u64)> = plan
            .overloads
            .iter()
            .map(|o| {
                let on = start_ns.saturating_add_signed(o.at.nanos());
                let off = on.saturating_add(nanos(o.length.duration()));
                (on.clamp(start_ns, end_ns), off.clamp(start_ns, end_ns))
            })
            .collect();
        let passing: Vec<(u64, u64)> =
            spans.iter().copied().filter(|&span| span != (start_ns, end_ns)).collect();
        let watched = plan.overloads.iter().zip(&spans).map(|(overload, &(on_ns, off_ns))| {
            let (stay, pass): (Vec<_>, Vec<_>) =
                passing.iter().partition(|&&(on, off)| on <= off_ns && off == end_ns && off > off_ns);
            Watched {
                name: overload.name.clone(),
                kind: overload.fault.kind(),
                on_ns,
                off_ns,
                until_ns: calm_until(&pass, off_ns, end_ns),
                beside_another: !stay.is_empty(),
                before: None,
                during: Count::default(),
                after: Count::default(),
                verdict: Verdict::default(),
            }
        });
        Self {
            start_ns,
            end_ns,
            watched: watched.collect(),
            calm: Stretch::default(),
            held: VecDeque::with_capacity(HELD + 1),
        }
    }

    /// Takes the next interval. Intervals lie on one side of each overload's beginning and end.
    pub fn add(&mut self, snapshot: &Snapshot) {
        if self.watched.is_empty() || snapshot.start_ns < self.start_ns || snapshot.start_ns >= self.end_ns {
            return;
        }
        self.held.push_back(Stretch::of(snapshot));
        if self.held.len() > HELD
            && let Some(oldest) = self.held.pop_front()
        {
            self.take(&oldest);
        }
    }

    /// What came of each overload, in the plan's order, when the load ran to its end or was stopped at this time since Go.
    pub fn finish(mut self, stopped_ns: Option<u64>) -> Vec<Recovery> {
        let stopped_ns = stopped_ns.unwrap_or(u64::MAX);
        for stretch in std::mem::take(&mut self.held) {
            // The one that the stop fell into is left out, too: how much of it ended before is not known.
            if stretch.end_ns <= stopped_ns {
                self.take(&stretch);
            }
        }
        self.watched.into_iter().map(Watched::finish).collect()
    }

    fn take(&mut self, stretch: &Stretch) {
        let now = stretch.start_ns;
        let mut is_calm = true;
        for overload in &mut self.watched {
            if now >= overload.on_ns && overload.before.is_none() {
                let p50_us = self.calm.latency.percentile_us(0.5);
                overload.before = Some(Before { count: self.calm.count(), p50_us });
            }
            if (overload.on_ns..overload.off_ns).contains(&now) {
                overload.during.add(stretch);
                is_calm &= (overload.on_ns, overload.off_ns) == (self.start_ns, self.end_ns);
            } else if (overload.off_ns..overload.until_ns).contains(&now) {
                overload.after.add(stretch);
                if let Some(p50_us) = overload.before.and_then(|before| before.p50_us) {
                    overload.verdict.take(stretch, p50_us);
                }
            }
        }
        // What an overload has left behind is no measure for the next one.
        let aftermath =
            |o: &Watched| o.on_ns < o.off_ns && now >= o.off_ns && o.verdict.recovered_ns.is_none();
        if is_calm && !self.watched.iter().any(aftermath) {
            self.calm.join(stretch);
        }
    }
}

/// Where the time after an overload's end ends: with the next overload or the measured time; at once while one is on that
/// will end.
fn calm_until(spans: &[(u64, u64)], off_ns: u64, end_ns: u64) -> u64 {
    let next = spans.iter().filter(|&&(on, off)| on < off && off > off_ns).map(|&(on, _)| on.max(off_ns));
    next.fold(end_ns, u64::min)
}

impl Watched {
    fn finish(self) -> Recovery {
        let is_measured = self.on_ns < self.off_ns;
        let before = self.before.filter(|_| is_measured).unwrap_or_default();
        let verdict = &self.verdict;
        let recovered_ns = verdict.recovered_ns.filter(|_| is_measured);
        let knows =
            is_measured && verdict.judged >= GOOD_SECONDS && (recovered_ns.is_some() || !self.beside_another);
        Recovery {
            overload: self.name,
            kind: self.kind,
            on_s: is_measured.then(|| seconds(self.on_ns)),
            off_s: is_measured.then(|| seconds(self.off_ns)),
            goodput_before_ops_per_s: before.count.goodput(),
            goodput_during_ops_per_s: self.during.goodput(),
            goodput_after_ops_per_s: self.after.goodput().filter(|_| is_measured),
            latency_p50_before_us: before.p50_us,
            recovered: knows.then_some(recovered_ns.is_some()),
            time_to_recover_s: recovered_ns.map(|at| seconds(at - self.off_ns)),
        }
    }
}

impl Verdict {
    fn take(&mut self, stretch: &Stretch, p50_before_us: u64) {
        let second = self.second.get_or_insert_with(Stretch::default);
        second.join(stretch);
        // Where an overload ends within a second, its rest is judged with the second that follows: what happens in a
        // moment says little.
        let is_whole = second.end_ns.is_multiple_of(SECOND) && second.length_ns() >= SECOND;
        if !is_whole || self.recovered_ns.is_some() {
            return;
        }
        // More than one when the disk was slow and intervals were merged.
        let seconds = second.length_ns() / SECOND;
        self.judged += seconds;
        self.good = second.is_good(p50_before_us).then(|| {
            let (since_ns, so_far) = self.good.unwrap_or((second.start_ns, 0));
            (since_ns, so_far + seconds)
        });
        self.recovered_ns = self.good.filter(|&(_, good)| good >= GOOD_SECONDS).map(|(since_ns, _)| since_ns);
        self.second = None;
    }
}

impl Stretch {
    fn of(snapshot: &Snapshot) -> Self {
        let mut stretch = Self {
            start_ns: snapshot.start_ns,
            end_ns: snapshot.end_ns,
            behind_ns: snapshot.generator.behind_ns,
            open: snapshot.open.iter().sum(),
            ..Self::default()
        };
        for stats in snapshot.cells.values() {
            stretch.offered += stats.offered;
            stretch.ok += stats.outcomes.ok;
            stretch.latency.merge(&stats.latency);
        }
        stretch
    }

    /// Adds what happened later. An empty one takes its start from it.
    fn join(&mut self, later: &Self) {
        if self.length_ns() == 0 {
            self.start_ns = later.start_ns;
            self.end_ns = later.start_ns;
        }
        // Between two of calm time there may be an overload: lengths count, not where it ends.
        self.end_ns += later.length_ns();
        self.offered += later.offered;
        self.ok += later.ok;
        self.latency.merge(&later.latency);
        self.behind_ns = self.behind_ns.max(later.behind_ns);
        self.open = later.open;
    }

    const fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    const fn count(&self) -> Count {
        Count { length_ns: self.length_ns(), ok: self.ok }
    }

    /// Whether this was as good as it should be: nine tenths of what was asked for, nothing waiting, and at most twice as
    /// slow as before.
    fn is_good(&self, p50_before_us: u64) -> bool {
        let quick = match self.latency.histogram() {
            Some(times) => times.value_at_quantile(0.5) < 2 * p50_before_us,
            // Where nothing ended well, all is well only if there was nothing to do.
            None => self.offered == 0 && self.open == 0,
        };
        quick && self.ok * 10 >= self.offered * 9 && self.behind_ns <= nanos(BEHIND)
    }
}

impl Count {
    const fn add(&mut self, stretch: &Stretch) {
        self.length_ns += stretch.length_ns();
        self.ok += stretch.ok;
    }

    fn goodput(&self) -> Option<f64> {
        per_second(self.ok, seconds(self.length_ns))
    }
}

#[cfg(test)]
mod tests;
