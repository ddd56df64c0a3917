use super::*;

fn assert_close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
}

/// Permeability of the human chorioamnion at term and earlier: M. Hollander and D. A. Wolfe, "Nonparametric Statistical
/// Methods" (1973), table 4.1. Their one-sided p is 0.1272.
#[test]
fn agrees_with_the_textbook() {
    let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
    let found = test(&term, &earlier);
    assert_close(found.u, 35.0);
    assert_close(found.p, 0.254_412_254_412_254_4);
    assert_close(found.least_p, 2.0 / 3003.0);
    let turned = test(&earlier, &term);
    assert_close(turned.u, 15.0);
    assert_close(turned.p, found.p);
}

/// Worked out by going through all 1716 choices in another language.
#[test]
fn ties_are_counted_as_they_are() {
    let found = test(&[3.0, 5.0, 5.0, 7.0, 9.0, 12.0], &[5.0, 7.0, 10.0, 12.0, 12.0, 15.0, 18.0]);
    assert_close(found.u, 8.5);
    assert_close(found.p, 126.0 / 1716.0);
    assert_close(found.least_p, 2.0 / 1716.0);
}

#[test]
fn what_hardly_varies_shows_nothing() {
    let zeros = [0.0; 4];
    assert_eq!(test(&zeros, &zeros), RankSum { u: 8.0, p: 1.0, least_p: 1.0 });
    assert_eq!(test(&zeros, &[0.0, 0.0, 0.0, 7.0]), RankSum { u: 6.0, p: 1.0, least_p: 1.0 });
    let many = [0.0; 30];
    assert_eq!(test(&many, &many).p, 1.0);
}

#[test]
fn sides_apart_have_the_smallest_p() {
    for (n, choices) in [(3, 20.0), (4, 70.0), (5, 252.0), (6, 924.0), (20, 137_846_528_820.0)] {
        let low: Vec<f64> = (0..n).map(f64::from).collect();
        let high: Vec<f64> = (0..n).map(|i| f64::from(i) + 100.0).collect();
        let found = test(&low, &high);
        assert_close(found.p, 2.0 / choices);
        assert_eq!(found.p, found.least_p);
    }
}

/// Against SciPy 1.x, `mannwhitneyu(…, method="asymptotic")`.
#[test]
fn many_values_take_the_normal_distribution() {
    let a: Vec<f64> = (0..30).map(f64::from).collect();
    let b: Vec<f64> = (0..30).map(|i| f64::from(i) + 4.5).collect();
    let found = test(&a, &b);
    assert_eq!(found.u, 325.0);
    assert!((found.p - 0.065_671_257_689_126_59).abs() < 1e-10, "{found:?}");

    let a: Vec<f64> = (0..25).map(|i| f64::from(i * 7 % 23)).collect();
    let b: Vec<f64> = (0..22).map(|i| f64::from(i * 5 % 23 + 3)).collect();
    let tied = test(&a, &b);
    assert_eq!(tied.u, 203.0);
    assert!((tied.p - 0.127_159_436_574_400_7).abs() < 1e-10, "{tied:?}");
    assert!(tied.least_p < 1e-8);
}
