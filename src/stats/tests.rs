use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Times up to beyond the ceiling, so that clipping is met, too.
fn times() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![0..5_000_000_u64, 0..200_000_000_000_u64], 0..20)
}

fn latencies(times: &[u64]) -> Latencies {
    let mut all = Latencies::default();
    times.iter().for_each(|&ns| all.record_ns(ns));
    all
}

prop_compose! {
    fn stats()(
        counts in vec(0..1_000_000_u64, 25),
        distributions in vec(times(), 8),
        retries in btree_map(0..4_u32, (0..9_u64, 0..9_u64, times()), 0..4),
        backoff in btree_map(1..4_u32, times(), 0..3),
    ) -> OpStats {
        let mut distributions = distributions.iter().map(|times| latencies(times));
        let mut next = || distributions.next().unwrap();
        OpStats {
            offered: counts[0],
            outcomes: Outcomes {
                ok: counts[1], failed: counts[2], timed_out: counts[3], dropped: counts[4], parked: counts[5],
                not_started: counts[6], in_flight: counts[7],
            },
            gave_up: counts[8], calls: counts[9], commands: counts[10], attempts: counts[11], retries: counts[12],
            rejected: counts[13], retargeted: counts[14], wait_ns: counts[15], checkout_ns: counts[16],
            attempt_ns: counts[17], backoff_ns: counts[18], latency_ns: counts[19], repeated_commands: counts[20],
            latency: next(), service: next(), failed_latency: next(), attempt_ok: next(), attempt_rejected: next(),
            checkout: next(), lag: next(), overshoot: next(),
            late: LateReplies { ok: counts[21], failed: counts[22], lost: counts[23] },
            by_retries: retries.into_iter().map(|(retries, (ok, failed, times))| {
                (retries, RetryStats { ok, failed, gave_up: failed / 2, latency: latencies(&times) })
            }).collect(),
            backoff: backoff.iter().map(|(&index, times)| (index, latencies(times))).collect(),
        }
    }
}

fn sum<'a>(parts: impl IntoIterator<Item = &'a OpStats>) -> OpStats {
    let mut whole = OpStats::default();
    parts.into_iter().for_each(|part| whole.merge(part));
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn merging_is_associative_and_commutative_and_nothing_changes_nothing(a in stats(), b in stats(), c in stats()) {
        prop_assert_eq!(sum([&a, &b]), sum([&b, &a]));
        prop_assert_eq!(sum([&sum([&a, &b]), &c]), sum([&a, &sum([&b, &c])]));
        prop_assert_eq!(sum([&a, &OpStats::default()]), a.clone());
        prop_assert_eq!(sum([&OpStats::default(), &a]), a);
    }

    #[test]
    fn every_count_is_merged(a in stats(), b in stats()) {
        // By the text of all fields, so that a field that is added and forgotten in `merge` is found.
        let numbers = |s: &OpStats| -> Vec<u64> {
            let s = OpStats { by_retries: BTreeMap::new(), backoff: BTreeMap::new(), ..s.clone() };
            format!("{s:?}").split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).take(21).collect()
        };
        let wanted: Vec<u64> = numbers(&a).iter().zip(numbers(&b)).map(|(x, y)| x + y).collect();
        prop_assert_eq!(numbers(&sum([&a, &b])), wanted);
    }

    #[test]
    fn parts_make_the_whole(times in times(), cut in 0..20_usize) {
        let (left, right) = times.split_at(cut.min(times.len()));
        let mut merged = latencies(left);
        merged.merge(&latencies(right));
        let whole = latencies(&times);
        prop_assert_eq!(merged.count(), times.len() as u64);
        // The mean is exact: the sum of what was recorded, whatever the histogram made of it.
        let mean = times.iter().sum::<u64>().checked_div(times.len() as u64).map(|ns| (ns + 500) / 1000);
        prop_assert_eq!(merged.mean_us(), mean);
        prop_assert_eq!(merged.clipped(), times.iter().filter(|&&ns| ns > 120_000_000_000).count() as u64);
        prop_assert_eq!(merged.max_us(), whole.max_us());
        prop_assert_eq!(merged, whole);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_times(mut times in vec(1_000..60_000_000_000_u64, 20..400), quantile in 0.01..0.99_f64) {
        let told = latencies(&times).percentile_us(quantile);
        times.sort_unstable();
        let count = times.len() as f64;
        prop_assert_eq!(told.is_some(), (1.0 - quantile) * count + 1e-6 >= 10.0);
        if let Some(told) = told {
            // The smallest time that at least the share `quantile` does not exceed.
            let rank = ((quantile * count).ceil() as usize).max(1);
            let exact = times[rank - 1] as f64 / 1000.0;
            prop_assert!((told as f64 - exact).abs() <= exact * 0.001 + 1.0, "told {}, exact {}", told, exact);
        }
    }
}

#[test]
fn no_time_at_all_is_told_from_little() {
    let mut times = Latencies::default();
    (0..30).for_each(|i| times.record_or_none_ns(u64::from(i >= 20)));
    assert_eq!((times.count(), times.percentile_us(0.5), times.max_us()), (30, Some(0), Some(1)));
}

#[test]
fn a_percentile_needs_ten_samples_beyond_it() {
    let of = |count: u64| latencies(&(1..=count).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
    for (quantile, needed) in [(0.5, 20), (0.9, 100), (0.99, 1_000), (0.999, 10_000)] {
        assert_eq!(of(needed - 1).percentile_us(quantile), None, "{quantile} of {}", needed - 1);
        assert!(of(needed).percentile_us(quantile).is_some(), "{quantile} of {needed}");
    }
    // The times 1 to 100 ms: 90 of them are at most 90 ms. Three digits are kept.
    let told = of(100).percentile_us(0.9).unwrap();
    assert!((90_000..=90_090).contains(&told), "{told}");
}

#[test]
fn an_empty_distribution_says_nothing() {
    let none = Latencies::default();
    assert_eq!((none.count(), none.mean_us(), none.max_us(), none.percentile_us(0.5)), (0, None, None, None));
}

#[test]
fn rates_follow_their_definitions() {
    let outcomes =
        Outcomes { ok: 60, failed: 15, timed_out: 5, dropped: 12, parked: 4, not_started: 3, in_flight: 1 };
    let stats =
        OpStats { offered: 100, outcomes, calls: 96, commands: 90, attempts: 135, ..OpStats::default() };
    assert_eq!(stats.outcomes.sum(), 100);
    assert_eq!(stats.error_rate(), Some(0.25), "20 of the 80 that ended");
    assert_eq!(stats.loss_rate(), Some(0.4), "60 of 100 came through");
    assert_eq!(stats.app_retries(), 16, "96 calls for 80 operations");
    assert_eq!(stats.amplification(), Some(1.5));
    let nothing = OpStats::default();
    assert_eq!((nothing.error_rate(), nothing.loss_rate(), nothing.amplification()), (None, None, None));
}

#[test]
fn too_many_retries_are_counted_together() {
    let mut stats = OpStats::default();
    stats.with_retries(255).ok += 1;
    stats.with_retries(4_000_000).ok += 1;
    stats.backoff_before(300).record_ns(1);
    assert_eq!(stats.by_retries.keys().copied().collect::<Vec<_>>(), [255]);
    assert_eq!((stats.by_retries[&255].ok, stats.backoff[&255].count()), (2, 1));
}

#[test]
fn a_spread_counts_every_time_between_its_bounds_once() {
    let mut times = Latencies::default();
    assert_eq!((times.range_us(), times.spread(&[1.0, 10.0])), (None, vec![0]));
    for us in [1, 9, 10, 99, 100, 5_000] {
        times.record_ns(us * 1000);
    }
    assert_eq!(times.range_us().map(|(least, _)| least), Some(1));
    assert_eq!(times.spread(&[1.0, 10.0, 100.0, 1000.0]), [2, 2, 1]);
    assert_eq!(times.spread(&[]), [0; 0]);
}

#[test]
fn first_tries_and_retried_operations_are_told_apart() {
    let mut stats = OpStats::default();
    for (retries, us) in [(0, 100), (0, 200), (1, 5_000), (2, 9_000)] {
        stats.with_retries(retries).latency.record_ns(us * 1000);
    }
    let (first, retried) = stats.latency_by_first_try();
    assert_eq!((first.count(), first.mean_us()), (2, Some(150)));
    assert_eq!((retried.count(), retried.mean_us()), (2, Some(7_000)));
}
