//! The parts of a trial by the clock of intended starts: warm-up, the measured segments, cool-down.

use super::load::{Load, Phase};
use super::{Overload, Plan};

/// The name of the measured time when no overload falls in it.
pub const NO_OVERLOAD: &str = "measure";

/// One part. Offsets are nanoseconds since Go; the last part has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `before`, the names of the overloads that are on (joined by `+`), `between`, `after`; `measure` when there is no
    /// overload; `warmup` (`transition` in a live trial) and `cooldown` outside the measured time.
    pub name: String,
    /// The phase it is part of.
    pub phase: Phase,
    /// When it starts.
    pub start_ns: u64,
    /// When it ends; `u64::MAX` for the cool-down.
    pub end_ns: u64,
}

/// When an overload is on, in nanoseconds since Go, as far as there is load then: one that would begin before the load
/// begins with it, and ends when it would have ended. `None` when it is never on.
pub fn on_time(load: &Load, overload: &Overload) -> Option<(u64, u64)> {
    let warmup = nanos(load.warmup.duration());
    let end = warmup.saturating_add(nanos(load.duration.duration()));
    let since_go = |offset: i64| i128::from(offset) + i128::from(warmup);
    let on = since_go(overload.at.nanos());
    let off = on + i128::from(nanos(overload.length.duration()));
    let (on, off) = (u64::try_from(on.max(0)).ok()?, u64::try_from(off).ok()?);
    (on < end && on < off).then_some((on, off))
}

/// All parts in order, without gaps: warm-up first (maybe of no length), cool-down last.
pub fn segments(plan: &Plan) -> Vec<Segment> {
    let warmup = nanos(plan.load.warmup.duration());
    let end = warmup + nanos(plan.load.duration.duration());
    let overloads: Vec<(u64, u64, &str)> = plan
        .overloads
        .iter()
        .filter_map(|o| on_time(&plan.load, o).map(|(on, off)| (on, off, o.name.as_str())))
        // What is over before anything is measured says nothing about the measured time.
        .filter(|&(_, off, _)| off > warmup)
        .collect();
    let mut cuts: Vec<u64> = overloads.iter().flat_map(|&(on, off, _)| [on, off]).collect();
    cuts.push(warmup);
    cuts.push(end);
    cuts.retain(|&cut| (warmup..=end).contains(&cut));
    cuts.sort_unstable();
    cuts.dedup();

    let part =
        |name: &str, phase, start_ns, end_ns| Segment { name: name.to_owned(), phase, start_ns, end_ns };
    let opening = if plan.live { Phase::Transition } else { Phase::Warmup };
    let mut parts = vec![part(opening.name(), opening, 0, warmup)];
    for pair in cuts.windows(2) {
        let &[start, stop] = pair else { continue };
        let name = measured_name(&overloads, start, end);
        // Two stretches of the same name in a row are one segment.
        match parts.last_mut() {
            Some(last) if last.phase == Phase::Measure && last.name == name => last.end_ns = stop,
            _ => parts.push(part(&name, Phase::Measure, start, stop)),
        }
    }
    parts.push(part("cooldown", Phase::Cooldown, end, u64::MAX));
    parts
}

/// The index of the part that an offset falls in.
pub fn index_at(segments: &[Segment], offset_ns: u64) -> usize {
    segments.partition_point(|s| s.end_ns <= offset_ns).min(segments.len().saturating_sub(1))
}

fn measured_name(overloads: &[(u64, u64, &str)], start: u64, end: u64) -> String {
    let on: Vec<&str> = overloads
        .iter()
        .filter(|&&(on, off, _)| on <= start && start < off)
        .map(|&(_, _, name)| name)
        .collect();
    if !on.is_empty() {
        return on.join("+");
    }
    let earlier = overloads.iter().any(|&(_, off, _)| off <= start);
    let later = overloads.iter().any(|&(on, _, _)| start < on && on < end);
    match (earlier, later) {
        (false, false) => NO_OVERLOAD,
        (false, true) => "before",
        (true, true) => "between",
        (true, false) => "after",
    }
    .to_owned()
}

/// Whole nanoseconds; plans hold no time beyond a year, which fits.
pub fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;
    use crate::units::{Offset, Span};

    #[test]
    fn a_live_trial_begins_with_a_transition() {
        let plan = Plan { live: true, ..testing::plan() };
        let first = &segments(&plan)[0];
        assert_eq!((&*first.name, first.phase, first.start_ns), ("transition", Phase::Transition, 0));
        assert_eq!(first.end_ns, nanos(plan.load.warmup.duration()));
    }

    #[test]
    fn overloads_are_on_while_there_is_load() {
        // Warm-up 2 s, then 9 s.
        let on = |at, length| {
            let mut plan = testing::overload_plan();
            plan.overloads[0].at = Offset::seconds(at);
            plan.overloads[0].length = Span::seconds(length);
            let names: Vec<String> = segments(&plan).into_iter().map(|s| s.name).collect();
            let times = on_time(&plan.load, &plan.overloads[0]);
            (
                times.map(|(on, off)| [on, off].map(|ns| ns / 1_000_000_000)),
                names[1..names.len() - 1].join(" "),
            )
        };
        assert_eq!(on(3, 3), (Some([5, 8]), "before shed after".to_owned()));
        assert_eq!(on(-1, 3), (Some([1, 4]), "shed after".to_owned()));
        assert_eq!(on(-5, 6), (Some([0, 3]), "shed after".to_owned()), "it ends when it would have ended");
        assert_eq!(on(-5, 4), (Some([0, 1]), "measure".to_owned()), "over in the warm-up");
        assert_eq!(on(-5, 3), (None, "measure".to_owned()), "over before the load begins");
        assert_eq!(on(8, 60), (Some([10, 70]), "before shed".to_owned()));
        assert_eq!(on(9, 1), (None, "measure".to_owned()), "the load is over");
    }
}
