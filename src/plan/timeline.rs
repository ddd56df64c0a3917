//! The parts of a trial by the clock of intended starts: warm-up, the measured segments, cool-down.

use super::Plan;
use super::load::Phase;

/// One part. Offsets are nanoseconds since Go; the last part has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `before`, the names of the overloads that are on (joined by `+`), `between`, `after`; `measure` when there is no
    /// overload; `warmup` and `cooldown` outside the measured time.
    pub name: String,
    /// The phase it is part of.
    pub phase: Phase,
    /// When it starts.
    pub start_ns: u64,
    /// When it ends; `u64::MAX` for the cool-down.
    pub end_ns: u64,
}

/// All parts in order, without gaps: warm-up first (maybe of no length), cool-down last.
pub fn segments(plan: &Plan) -> Vec<Segment> {
    let warmup = nanos(plan.load.warmup.duration());
    let end = warmup + nanos(plan.load.duration.duration());
    let overloads: Vec<(u64, u64, &str)> = plan
        .overloads
        .iter()
        .map(|o| {
            let on = warmup.saturating_add_signed(o.at.nanos());
            (on, on + nanos(o.length.duration()), o.name.as_str())
        })
        .collect();
    let mut cuts: Vec<u64> = overloads.iter().flat_map(|&(on, off, _)| [on, off]).collect();
    cuts.push(warmup);
    cuts.push(end);
    cuts.retain(|&cut| (warmup..=end).contains(&cut));
    cuts.sort_unstable();
    cuts.dedup();

    let part =
        |name: &str, phase, start_ns, end_ns| Segment { name: name.to_owned(), phase, start_ns, end_ns };
    let mut parts = vec![part("warmup", Phase::Warmup, 0, warmup)];
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
        (false, false) => "measure",
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
