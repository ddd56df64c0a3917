use super::*;
use crate::compare::side::tests::{side, trial};
use serde_json::{Value, json};

const DRIVER: &str = "rust 3.9.1";

fn checked(base: Trial, new: Trial, across: &[Part]) -> Result<Vec<String>, String> {
    check(&side(vec![base]), &side(vec![new]), across).map_err(|error| error.to_string())
}

fn with_plan(plan: Value) -> Trial {
    Trial { plan, run_id: "other".to_owned(), ..trial(1, DRIVER, &[]) }
}

fn stage(rate: &str) -> Value {
    json!({"profile": "p", "seed": 1, "load": {"warmup": "5s", "stages": [{"from": rate}]}})
}

#[test]
fn equals_need_no_word() {
    assert_eq!(
        checked(with_plan(stage("1/s")), Trial { run_id: "b".to_owned(), ..with_plan(stage("1/s")) }, &[]),
        Ok(vec![])
    );
}

#[test]
fn another_load_is_refused_unless_it_is_what_varies() {
    let (a, b) = (with_plan(stage("100/s")), with_plan(stage("200/s")));
    let refused = checked(a.clone(), b.clone(), &[]).unwrap_err();
    assert!(refused.contains("load.stages.0.from is 100/s and 200/s"), "{refused}");
    assert!(refused.contains("--across load"), "{refused}");
    assert!(checked(a.clone(), b.clone(), &[Part::Data]).is_err());
    let note = checked(a.clone(), b.clone(), &[Part::Load]).unwrap();
    assert!(note[0].contains("compared across: load.stages.0.from"), "{note:?}");
    // A run that varied it has said so.
    let varied = |trial: Trial, rate: &str| {
        let params = [("rate".to_owned(), Some(rate.to_owned()))].into();
        Trial { params, ..trial }
    };
    assert!(checked(varied(a, "100/s"), varied(b, "200/s"), &[]).is_ok());
}

#[test]
fn a_shard_is_compared_with_shards_of_as_many_alone() {
    let shard = |index: u32, count: u32, start_at: &str| {
        with_plan(json!({"seed": 1, "shard": {"index": index, "count": count, "start_at": start_at}}))
    };
    let whole = with_plan(json!({"seed": 1, "shard": null}));
    assert!(checked(shard(0, 4, "2026-01-01T00:00:00Z"), shard(1, 4, "2026-01-02T00:00:00Z"), &[]).is_ok());
    assert!(checked(whole.clone(), with_plan(json!({"seed": 1})), &[]).is_ok(), "of an older version");
    for other in [whole, shard(0, 8, "2026-01-01T00:00:00Z")] {
        let refused = checked(shard(0, 4, "2026-01-01T00:00:00Z"), other, &[]).unwrap_err();
        assert!(refused.contains("shard.count is 4 and"), "{refused}");
    }
}

#[test]
fn clients_may_differ_in_options_and_in_what_is_compared() {
    let clients = |rate: &str, retries: &str| {
        let of = |name: &str| {
            json!({"name": name, "operations": {"start": 0, "end": 1}, "model": {"open": {"rate": rate}},
                   "client": [{"name": "maxAdaptiveRetries", "value": retries}], "backoff": null})
        };
        let options = [("clients.batch.client.maxAdaptiveRetries".to_owned(), retries.to_owned())].into();
        Trial { options, ..with_plan(json!({"clients": [of("critical"), of("batch")]})) }
    };
    let notes = checked(clients("1/s", "0"), clients("1/s", "2"), &[]).unwrap();
    assert!(notes[0].contains("clients.batch.client.maxAdaptiveRetries is 0 and 2"), "{notes:?}");
    assert!(retries_differ(&clients("1/s", "0"), &clients("1/s", "2")));
    let refused = checked(clients("1/s", "0"), clients("2/s", "0"), &[]).unwrap_err();
    assert!(refused.contains("clients.batch.model.open.rate is 1/s and 2/s"), "{refused}");
    let varied = |rate: &str| {
        let params = [("clients.batch.load.rate".to_owned(), Some(rate.to_owned()))].into();
        Trial { params, ..clients(rate, "0") }
    };
    assert!(checked(varied("1/s"), varied("2/s"), &[]).is_ok());
    let refused = checked(clients("1/s", "0"), with_plan(json!({})), &[]).unwrap_err();
    assert!(refused.contains("the clients are critical, batch and one alone"), "{refused}");
}

#[test]
fn every_part_is_told_by_its_name() {
    for (key, name) in [
        ("data", "data"),
        ("operations", "operations"),
        ("overloads", "overload"),
        ("timeout", "application"),
        ("something_new", "application"),
        ("staleness", "measuring"),
    ] {
        let refused = checked(with_plan(json!({key: {"a": 1}})), with_plan(json!({})), &[]).unwrap_err();
        assert!(refused.contains(&format!("--across {name}")), "{refused}");
    }
    let newer = Trial { server: "8.2.0".to_owned(), mechanism: "native".to_owned(), ..with_plan(json!({})) };
    let refused = checked(with_plan(json!({})), newer, &[]).unwrap_err();
    assert!(
        refused.contains("the server is 6.0.5 and 8.2.0") && refused.contains("is nothing and native"),
        "{refused}"
    );
    assert!(refused.ends_with("--across overload,server"), "{refused}");
}

#[test]
fn what_an_older_version_did_not_know_is_no_difference() {
    let newer = json!({"load": {"warmup": "5s", "extra": null}, "staleness": null,
                       "thresholds": {"fail_if": ["error_rate > 1%"], "abort_when": []}});
    assert!(checked(with_plan(json!({"load": {"warmup": "5s"}})), with_plan(newer), &[]).is_ok());
}

#[test]
fn drivers_and_options_may_differ_and_are_named() {
    let notes = checked(trial(1, "rust 3.8.2", &[]), trial(2, DRIVER, &[]), &[]).unwrap();
    assert!(notes[0].contains("rust 3.8.2 and rust 3.9.1; their options are equal"), "{notes:?}");
    let failing = |number, retries| {
        let trial = trial(number, DRIVER, &[("maxAdaptiveRetries", Some(retries))]);
        Trial { mechanism: "failpoint".to_owned(), ..trial }
    };
    let notes = checked(failing(1, "0"), failing(2, "5"), &[]).unwrap();
    assert!(notes[0].contains("maxAdaptiveRetries is 0 and 5"), "{notes:?}");
    assert!(notes[1].contains("more retries always look better here"), "{notes:?}");
    let notes = checked(failing(1, "2"), failing(2, "2"), &[]).unwrap();
    assert_eq!(notes, Vec::<String>::new(), "without other retries nothing looks better");
}

#[test]
fn other_machines_seeds_and_copies_are_flagged() {
    let other = Trial {
        machine: "64 × cpu (arm64)".to_owned(),
        plan: json!({"profile": "p", "seed": 2, "load": {"warmup": "5s"}}),
        ..trial(1, DRIVER, &[])
    };
    let notes = checked(trial(1, DRIVER, &[]), other, &[]).unwrap();
    assert!(notes[0].contains("seeds differ") && notes[0].ends_with(": 1 and 2"), "{notes:?}");
    assert!(notes[1].contains("different machines"), "{notes:?}");
    assert!(notes[2].contains("copies"), "{notes:?}");
}

#[test]
fn a_side_is_no_mixture() {
    let one = trial(1, DRIVER, &[("maxAdaptiveRetries", Some("0"))]);
    let other = trial(2, DRIVER, &[("maxAdaptiveRetries", Some("5"))]);
    let base = side(vec![trial(3, DRIVER, &[])]);
    let refused = check(&base, &side(vec![one.clone(), other]), &[]).unwrap_err().to_string();
    assert!(refused.contains("mixture") && refused.contains("maxAdaptiveRetries is 0 and 5"), "{refused}");
    assert!(refused.contains("trial 2 of 'results/run'"), "{refused}");
    let other = trial(2, "rust 3.8.2", &[("maxAdaptiveRetries", Some("0"))]);
    let refused = check(&base, &side(vec![one, other]), &[]).unwrap_err().to_string();
    assert!(refused.contains("the driver is rust 3.9.1 and rust 3.8.2"), "{refused}");
}
