use super::*;
use crate::compare::Settings;
use crate::compare::row::{IntervalKind, test_rows};
use crate::compare::side::tests::{side, trial};
use crate::metric::Metric;

/// Four trials a side: goodput fell, one error rate is not known, latency is 0 in the base.
fn comparison() -> Comparison {
    let metrics = [Metric::GoodputOpsPerS, Metric::ErrorRate, Metric::LatencyP50Us];
    let base = [vec![100.0, 101.0, 102.0, 103.0], vec![], vec![0.0; 4]];
    let new = [vec![80.0, 81.0, 82.0, 83.0], vec![0.5; 4], vec![0.0; 4]];
    let trials = |driver: &str| (1..=4).map(|n| trial(n, driver, &[])).collect();
    let rows = test_rows(&metrics, &base, &new, 1000);
    let named = |name: &str, driver: &str| Side { name: name.to_owned(), ..side(trials(driver)) };
    let new = Side { notes: vec!["trial 5 is left out".to_owned()], ..named("new_*", "rust 3.9.1") };
    Comparison {
        base: named("old", "rust 3.8.2"),
        pairs: vec![Pair { new, rows, notes: vec!["the driver differs\u{1b}[31m".to_owned()] }],
        settings: Settings {
            metrics: metrics.to_vec(),
            segment: "before".to_owned(),
            op: "all".to_owned(),
            noise: 0.02,
            across: Vec::new(),
            draws: 1000,
        },
    }
}

#[test]
fn people_get_a_table_and_notes() {
    insta::assert_snapshot!(table::render(&comparison()), @r"
    Compared: all operations, segment before; differences up to 2 % do not matter

    base: old (4 trials, driver rust 3.8.2, server 6.0.5)
    new:  new_* (4 trials, driver rust 3.9.1, server 6.0.5)

    | metric      |  base |    new | ratio |  95% interval | p (Holm) | verdict            |
    |-------------|-------|--------|-------|---------------|----------|--------------------|
    | goodput     | 102/s | 81.5/s | 0.803 | 0.785 … 0.822 |    0.029 | worse              |
    | error rate  |     - |  50.0% |     - |             - |        - | not enough data    |
    | latency p50 |   0us |    0us |     - |             - |    1.000 | no difference seen |

    note: the driver differs [31m
    note: error rate: no value: too few operations for it, or it was not counted
    note: latency p50: hardly any trial differs
    note: trial 5 is left out
    ");
}

#[test]
fn reports_get_markdown() {
    insta::assert_snapshot!(markdown::render(&comparison()), @r"
    ### new\_\* against old

    Base: old (4 trials, driver rust 3.8.2, server 6.0.5); new: new\_\* (4 trials, driver rust 3.9.1, server 6.0.5). Compared: all operations, segment before; differences up to 2 % do not matter.

    | metric      |  base |    new | ratio |  95% interval | p (Holm) | verdict            |
    |-------------|-------|--------|-------|---------------|----------|--------------------|
    | goodput     | 102/s | 81.5/s | 0.803 | 0.785 … 0.822 |    0.029 | worse              |
    | error rate  |     - |  50.0% |     - |             - |        - | not enough data    |
    | latency p50 |   0us |    0us |     - |             - |    1.000 | no difference seen |

    - the driver differs \[31m
    - error rate: no value: too few operations for it, or it was not counted
    - latency p50: hardly any trial differs
    - trial 5 is left out
    ");
}

#[test]
fn programs_get_rows() {
    insta::assert_snapshot!(csv::render(&comparison()).unwrap(), @r#"
    base,new,segment,op,metric,better,trials_base,trials_new,driver_base,driver_new,median_base,median_new,ratio,ratio_low,ratio_high,interval,p_value,p_adjusted,verdict,reason
    old,new_*,before,all,goodput_ops_per_s,higher,4,4,rust 3.8.2,rust 3.9.1,101.5,81.5,0.802956,0.785366,0.821782,trials,0.02857142857142857,0.02857142857142857,worse,
    old,new_*,before,all,error_rate,lower,0,4,rust 3.8.2,rust 3.9.1,,0.5,,,,,,,not enough data,"no value: too few operations for it, or it was not counted"
    old,new_*,before,all,latency_p50_us,lower,4,4,rust 3.8.2,rust 3.9.1,0.0,0.0,,,,,1.0,1.0,no difference seen,hardly any trial differs
    "#);
}

#[test]
fn what_is_not_finite_is_no_number_in_files() {
    let mut comparison = comparison();
    comparison.pairs[0].rows[0].interval = Some((0.5, f64::INFINITY, IntervalKind::Trials));
    let document: serde_json::Value = serde_json::from_str(&json::render(&comparison).unwrap()).unwrap();
    let metric = &document["comparisons"][0]["metrics"][0];
    assert_eq!(metric["interval"]["low"], 0.5);
    assert!(metric["interval"]["high"].is_null());
    assert_eq!(document["regression"], true);
    assert!(csv::render(&comparison).unwrap().contains(",0.5,,trials,"));
    assert!(table::render(&comparison).contains("0.500 … ∞"));
}
