//! What is known of a trial as the text that Prometheus reads (its "text-based format", version 0.0.4). Counts begin anew
//! with each trial, which their label `trial` tells.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::Now;
use crate::plan::Plan;
use crate::results::facts::{Scope, operations, seconds};
use crate::results::figures::Figures;
use crate::stats::{Latencies, OpStats};

/// The upper ends of a histogram's buckets, in microseconds.
const BOUNDS_US: [u64; 15] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 60_000_000,
];

/// Labels with their values.
type Labels<'a> = Vec<(&'a str, &'a str)>;

/// A count of an operation; `None` where it is not known.
type Count = fn(&Figures<'_>, &OpStats) -> Option<u64>;

/// A distribution of an operation.
type Times = fn(&OpStats) -> &Latencies;

const COUNTS: [(&str, &str, Count); 8] = [
    ("operations_offered", "Operations that were due", |_, stats| Some(stats.offered)),
    (
        "operations_gave_up",
        "Operations whose last error was a retryable overload error; they are among the failed",
        |_, stats| Some(stats.gave_up),
    ),
    ("calls", "Application tries of operations", |_, stats| Some(stats.calls)),
    ("commands", "Commands that calls sent", |figures, _| figures.commands()),
    ("attempts", "Tries of commands on a server", |_, stats| Some(stats.attempts)),
    ("retries", "Attempts less commands", |figures, _| figures.retries()),
    ("attempts_rejected", "Attempts that failed with the label SystemOverloadedError", |figures, _| {
        figures.rejected()
    }),
    (
        "attempts_retargeted",
        "Attempts on another server than the one whose rejection preceded them",
        |figures, _| figures.retargeted(),
    ),
];

const TIMES: [(&str, &str, Times); 2] = [
    ("operation_latency_seconds", "Of successful operations, from the intended start to the end", |stats| {
        &stats.latency
    }),
    ("operation_service_seconds", "Of successful operations, from the actual start to the end", |stats| {
        &stats.service
    }),
];

/// The whole answer.
pub fn render(now: &Now) -> String {
    let mut text = String::new();
    let facts = &now.facts;
    let trial = facts.trial.to_string();
    let server = facts.server_version();
    head(&mut text, "info", "gauge", "What runs");
    let info = vec![
        ("trial", &*trial),
        ("profile", &*facts.plan.profile),
        ("variant", &*facts.variant),
        ("driver", &*facts.driver.name),
        ("driver_version", &*facts.driver.version),
        ("server_version", &*server),
        ("mechanism", &*facts.mechanism),
    ];
    sample(&mut text, "info", &info, 1);
    per_operation(&mut text, now, &trial);

    head(&mut text, "operations_open", "gauge", "Operations without an outcome");
    for (number, _) in operations(&facts.plan) {
        let open = now.sums.open.get(number).copied().unwrap_or(0);
        sample(&mut text, "operations_open", &of_operation(&facts.plan, &trial, number), open);
    }
    head(&mut text, "overload_on", "gauge", "Whether an overload is on");
    for (name, on) in &now.overloads {
        sample(&mut text, "overload_on", &vec![("trial", &*trial), ("overload", name)], u8::from(*on));
    }
    let generator = &now.generator;
    let of_generator = vec![("trial", &*trial)];
    for (name, kind, help, value) in [
        ("generator_cpu_seconds_total", "counter", "CPU time of the load generator", seconds(now.cpu_ns)),
        (
            "generator_behind_seconds",
            "gauge",
            "How long the oldest operation that no worker has begun has been due",
            seconds(generator.behind_ns),
        ),
    ] {
        head(&mut text, name, kind, help);
        sample(&mut text, name, &of_generator, value);
    }
    for (name, help, value) in [
        ("generator_in_flight", "Operations given to the driver and not ended", generator.in_flight),
        ("generator_resident_bytes", "Memory of the load generator", generator.rss_bytes),
    ] {
        head(&mut text, name, "gauge", help);
        sample(&mut text, name, &of_generator, value);
    }
    text
}

/// Whose an operation's samples are; its client is said where there are several.
fn of_operation<'a>(plan: &'a Plan, trial: &'a str, operation: usize) -> Labels<'a> {
    let whose = Scope::Operation(operation);
    let client = (!plan.clients.is_empty()).then(|| ("client", whose.client(plan)));
    [("trial", trial)].into_iter().chain(client).chain([("op", whose.op(plan))]).collect()
}

/// What there is by operation and segment of the intended start.
fn per_operation(text: &mut String, now: &Now, trial: &str) {
    let plan = &now.facts.plan;
    let each: Vec<(Labels<'_>, usize, &OpStats)> = now
        .sums
        .cells
        .iter()
        .filter_map(|((segment, operation), stats)| {
            let segment = now.sums.segments.get(*segment)?;
            let (operation, _) = operations(plan).find(|(number, _)| number == operation)?;
            let mut labels = of_operation(plan, trial, operation);
            labels.extend([("phase", segment.phase.name()), ("segment", &*segment.name)]);
            Some((labels, operation, stats))
        })
        .collect();
    head(text, "operations_total", "counter", "Operations that ended, by outcome");
    for (labels, _, stats) in &each {
        let outcomes = &stats.outcomes;
        for (outcome, count) in [
            ("ok", outcomes.ok),
            ("failed", outcomes.failed),
            ("timed_out", outcomes.timed_out),
            ("dropped", outcomes.dropped),
            ("parked", outcomes.parked),
            ("not_started", outcomes.not_started),
            ("in_flight", outcomes.in_flight),
        ] {
            let labels = labels.iter().copied().chain([("outcome", outcome)]).collect();
            sample(text, "operations_total", &labels, count);
        }
    }
    for (name, help, count) in COUNTS {
        let name = format!("{name}_total");
        head(text, &name, "counter", help);
        for (labels, operation, stats) in &each {
            // What is not known is left out: 0 would be a lie.
            if let Some(count) = count(&Figures::new(plan, Some(*operation), stats), stats) {
                sample(text, &name, labels, count);
            }
        }
    }
    for (name, help, times) in TIMES {
        head(text, name, "histogram", help);
        for (labels, _, stats) in &each {
            histogram(text, name, labels, times(stats));
        }
    }
}

fn histogram(text: &mut String, name: &str, labels: &Labels<'_>, times: &Latencies) {
    let bucket = format!("{name}_bucket");
    let mut up_to = |bound: &str, count: u64| {
        let labels = labels.iter().copied().chain([("le", bound)]).collect();
        sample(text, &bucket, &labels, count);
    };
    // Each recorded value belongs to the first bound that it does not exceed, and to all that follow.
    let mut counts = [0; BOUNDS_US.len()];
    for recorded in times.histogram().into_iter().flat_map(Histogram::iter_recorded) {
        let first = BOUNDS_US.partition_point(|&bound| bound < recorded.value_iterated_to());
        if let Some(count) = counts.get_mut(first) {
            *count += recorded.count_at_value();
        }
    }
    let mut sum = 0;
    for (bound, count) in BOUNDS_US.into_iter().zip(counts) {
        sum += count;
        up_to(&seconds(bound * 1000).to_string(), sum);
    }
    up_to("+Inf", times.count());
    sample(text, &format!("{name}_sum"), labels, seconds(times.sum_ns()));
    sample(text, &format!("{name}_count"), labels, times.count());
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Memory takes every byte.
    let _ = writeln!(text, "# HELP overdrive_{name} {help}.\n# TYPE overdrive_{name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &Labels<'_>, value: impl std::fmt::Display) {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    // As above.
    let _ = writeln!(text, "overdrive_{name}{{{}}} {value}", labels.join(","));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::results::testing::{self, cell, snapshot};

    /// Two operations due in the warm-up and 120 in the overload, 25 of which failed.
    fn now() -> Now {
        let mut facts = testing::facts(testing::overload_plan());
        facts.variant = "a \"b\"\\c\n".to_owned();
        let mut now = Now::new(&facts);
        now.add(&snapshot(0, 0, [((0, 0), cell(2, 2, 2, 0))], [0; 3]));
        let mut busy = cell(120, 95, 160, 40);
        busy.outcomes.failed = 25;
        now.add(&snapshot(1, 2, [((2, 0), busy)], [0; 3]));
        now.overloads.insert("shed".to_owned(), true);
        now
    }

    fn value(text: &str, sample: &str) -> f64 {
        let line = text
            .lines()
            .find(|line| line.starts_with(sample))
            .unwrap_or_else(|| panic!("{sample} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn counts_are_those_of_the_snapshots() {
        let text = render(&now());
        let of = |name: &str, more: &str| {
            value(
                &text,
                &format!(
                    "overdrive_{name}{{trial=\"1\",op=\"read\",phase=\"measure\",segment=\"shed\"{more}}}"
                ),
            )
        };
        assert_eq!((of("operations_offered_total", ""), of("attempts_total", "")), (120.0, 200.0));
        assert_eq!(of("attempts_rejected_total", ""), 40.0);
        assert_eq!(
            (of("operations_total", ",outcome=\"ok\""), of("operations_total", ",outcome=\"failed\"")),
            (95.0, 25.0)
        );
        let warmup =
            "overdrive_operations_offered_total{trial=\"1\",op=\"read\",phase=\"warmup\",segment=\"warmup\"}";
        assert_eq!(value(&text, warmup), 2.0);
        assert_eq!(value(&text, "overdrive_overload_on{trial=\"1\",overload=\"shed\"}"), 1.0);
    }

    #[test]
    fn a_histogram_counts_up() {
        let mut times = Latencies::default();
        for millis in [1, 3, 3, 700] {
            times.record_ns(millis * 1_000_000);
        }
        let mut text = String::new();
        histogram(&mut text, "t", &vec![("op", "x")], &times);
        let up_to = |bound: &str| value(&text, &format!("overdrive_t_bucket{{op=\"x\",le=\"{bound}\"}}"));
        assert_eq!(
            ["0.0005", "0.001", "0.0025", "0.005", "0.5", "1", "+Inf"].map(up_to),
            [0.0, 1.0, 1.0, 3.0, 3.0, 4.0, 4.0]
        );
        assert_eq!((value(&text, "overdrive_t_sum"), value(&text, "overdrive_t_count")), (0.707, 4.0));
    }

    #[test]
    fn the_text_keeps_the_rules_of_its_format() {
        let text = render(&now());
        assert!(text.contains(r#"variant="a \"b\"\\c\n""#), "{text}");
        let (mut families, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut family = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap();
                assert!(families.insert(family), "{family} stands twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(family) && value.parse::<f64>().is_ok(), "{line}");
                assert!(seen.insert(series), "{series} stands twice");
            }
        }
        assert!(families.len() > 12 && text.ends_with('\n'));
    }
}
