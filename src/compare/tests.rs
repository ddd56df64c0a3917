//! Comparisons of numbers from known distributions, from figures to verdicts.

use super::*;
use crate::compare::row::test_rows;
use crate::document::Random;
use crate::metric::Metric;

/// Trials' coefficient of variation.
const SPREAD: f64 = 0.05;

const METRICS: usize = Metric::COMPARED.len();

/// A standard normal number: G. E. P. Box and M. E. Muller, "A Note on the Generation of Random Normal Deviates" (1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit_f64()).cos()
}

/// Trials whose metrics vary by `SPREAD`: `shared` is how much of the variance all metrics of a trial have in common, as
/// latencies of one trial do. Each metric is multiplied by its shift.
fn trials(n: usize, shared: f64, shift: impl Fn(Metric) -> f64, random: &mut Random) -> Vec<Vec<f64>> {
    let mut values = vec![Vec::new(); METRICS];
    for _ in 0..n {
        let common = normal(random);
        for (metric, values) in Metric::COMPARED.into_iter().zip(&mut values) {
            let deviation = shared.sqrt() * common + (1.0 - shared).sqrt() * normal(random);
            values.push(100.0 * shift(metric) * (1.0 + SPREAD * deviation));
        }
    }
    values
}

/// The verdicts of a comparison of `metrics` metrics, the first ones.
fn verdicts(
    metrics: usize,
    n: usize,
    shared: f64,
    shift: &dyn Fn(Metric) -> f64,
    random: &mut Random,
) -> Vec<Verdict> {
    let base = trials(n, shared, |_| 1.0, random);
    let new = trials(n, shared, shift, random);
    // Few draws: intervals only ever make verdicts rarer here.
    test_rows(&Metric::COMPARED[..metrics], &base, &new, 40).into_iter().map(|row| row.verdict).collect()
}

fn is_alarm(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// A comparison of equals calls nothing better or worse, but for one in twenty at most: over all metrics together.
#[test]
fn false_alarms_are_rare_over_the_whole_comparison() {
    for (n, shared) in [(10, 0.0), (7, 0.8)] {
        let mut random = Random::new(1);
        let alarms = (0..1000)
            .filter(|_| verdicts(METRICS, n, shared, &|_| 1.0, &mut random).iter().any(is_alarm))
            .count();
        println!("{n} trials a side, {shared} shared: {alarms} of 1000");
        assert!(alarms <= 50, "{n} trials a side, {shared} shared: {alarms} of 1000");
    }
}

/// A shift of 10 % at ten trials a side is found nine times in ten, in either direction: where one metric is compared, and
/// where everything is and what takes longer does so in all its percentiles.
#[test]
fn a_shift_of_a_tenth_is_found() {
    let found = |metrics: usize, shared: f64, shift: &dyn Fn(Metric) -> f64, wanted: Verdict| {
        let mut random = Random::new(2);
        let found = |_: &usize| {
            let verdicts = verdicts(metrics, 10, shared, shift, &mut random);
            verdicts.contains(&wanted)
        };
        (0..200).filter(found).count()
    };
    let all = |factor: f64| move |_: Metric| factor;
    let slower =
        |metric: Metric| if metric.is_of_outcomes() && metric != Metric::ErrorRate { 1.1 } else { 1.0 };
    for (what, found) in [
        ("goodput alone, less", found(1, 0.0, &all(0.9), Verdict::Worse)),
        ("goodput alone, more", found(1, 0.0, &all(1.1), Verdict::Better)),
        ("all metrics, latency and service times longer", found(METRICS, 0.5, &slower, Verdict::Worse)),
    ] {
        println!("{what}: {found} of 200");
        assert!(found >= 180, "{what}: {found} of 200");
    }
}

/// So few trials could not have shown anything among so many metrics, and are not said to have shown nothing.
#[test]
fn too_few_trials_are_not_enough_data() {
    let mut random = Random::new(3);
    let shift = |_: Metric| 2.0;
    for (metrics, n, wanted) in [
        (METRICS, 3, Verdict::NotEnoughData),
        (METRICS, 4, Verdict::NotEnoughData),
        (METRICS, 5, Verdict::NotEnoughData),
        (METRICS, 6, Verdict::Worse),
        (1, 3, Verdict::NotEnoughData),
        (1, 4, Verdict::Better),
    ] {
        let found = verdicts(metrics, n, 0.5, &shift, &mut random);
        assert_eq!(found[metrics - 1], wanted, "{metrics} metrics, {n} trials");
    }
}

/// What does not vary cannot raise a false alarm, and takes no trials away from what does.
#[test]
fn constant_figures_do_not_count() {
    let metrics = [Metric::ErrorRate, Metric::RetriesPerOp, Metric::GoodputOpsPerS];
    let constant = vec![0.0; 4];
    let base = [constant.clone(), constant.clone(), vec![100.0, 101.0, 102.0, 103.0]];
    let new = [constant.clone(), constant, vec![80.0, 81.0, 82.0, 83.0]];
    let rows = test_rows(&metrics, &base, &new, 1000);
    let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::NoDifference, Verdict::NoDifference, Verdict::Worse]);
    assert_eq!(rows[2].p_adjusted, Some(2.0 / 70.0));
}

/// Errors where there were none are worse, although there is no ratio.
#[test]
fn something_from_nothing_is_seen() {
    let base = [vec![0.0; 5]];
    let new = [vec![0.010, 0.011, 0.012, 0.013, 0.014]];
    let row = &test_rows(&[Metric::ErrorRate], &base, &new, 1000)[0];
    assert_eq!((row.ratio, row.interval, row.verdict), (None, None, Verdict::Worse));
}

/// Three of four zeros against no zero: at best 1 in 7, so nothing was seen, and nothing could have been.
#[test]
fn a_difference_that_ties_hide_is_not_called_none() {
    let row = &test_rows(&[Metric::ErrorRate], &[vec![0.0, 0.0, 0.0, 1.0]], &[vec![1.0; 4]], 1000)[0];
    assert_eq!((row.p_adjusted, row.verdict), (Some(1.0), Verdict::NotEnoughData));
    assert!(row.reason.contains("it takes more"), "{}", row.reason);
}
