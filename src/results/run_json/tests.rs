use super::*;
use crate::results::EndFacts;
use crate::results::accumulated::Accumulated;
use crate::results::testing::{self, cell, snapshot};
use crate::snapshot::Totals;

fn summary(cut: bool) -> Summary {
    let plan = testing::plan();
    let mut sums = Accumulated::new(&plan);
    let mut reads = cell(2, 2, 2, 0);
    (reads.wait_ns, reads.attempt_ns) = (200_000, 1_500_000);
    sums.add(&plan, &snapshot(0, 1, [((1, 0), reads)], [0; 3]));
    let totals = Totals { ended: vec![2, 0, 0], attempts: 2, cut, ..Totals::default() };
    let end = EndFacts { notes: vec!["a note".to_owned()], ..EndFacts::default() };
    Summary::new("id".to_owned(), testing::facts(plan), &sums, totals, end)
}

fn facts() -> RunFacts {
    let time = |text: &str| text.parse().unwrap();
    RunFacts {
        started: time("2026-01-01T00:00:00Z"),
        ended: time("2026-01-01T00:01:00.25Z"),
        complete: true,
        host: HostFacts { cores: 2, os: "Linux 6".to_owned(), arch: "x86_64".to_owned(), cpu_model: None },
        notes: Vec::new(),
        earlier: Vec::new(),
        search: None,
        shards: None,
    }
}

#[test]
fn the_document_has_everything_that_is_no_table() {
    let run = run("id", &facts(), &[summary(false)]);
    assert_eq!(run["run_id"], "id");
    assert_eq!((&run["complete"], &run["cut"], &run["ok"]), (&json!(true), &json!(false), &json!(true)));
    assert_eq!(run["ended"], "2026-01-01T00:01:00.250Z");
    assert_eq!(run["host"], json!({"cores": 2, "os": "Linux 6", "arch": "x86_64", "cpu_model": null}));
    let trial = &run["trials"][0];
    assert_eq!(trial["driver_version"], "3.9.1");
    assert_eq!(trial["options"]["maxAdaptiveRetries"], json!({"value": "2", "from": "vary"}));
    assert_eq!(trial["params"], json!({"maxAdaptiveRetries": "2", "appName": null}));
    assert_eq!(
        trial["totals"],
        json!({"ended": {"read": 2, "scan": 0, "unused": 0}, "attempts": 2, "cut": false})
    );
    assert_eq!(trial["checks"][0], json!({"name": "offered_equals_outcomes", "ok": true, "broken": []}));
    assert_eq!(trial["notes"].as_array().unwrap().last(), Some(&json!("a note")));
    // Two operations of 1 ms each: 0.1 ms of waiting and 0.75 ms of round trips in the mean.
    assert_eq!(
        trial["segments"][0]["mean_per_op"]["read"],
        json!({"wait_us": 100.0, "checkout_us": 0.0, "attempts_us": 750.0, "backoff_us": 0.0, "other_us": 150.0,
               "latency_us": 1000.0})
    );
    assert_eq!(trial["segments"][0]["mean_per_op"]["scan"], json!(null));
    let plan: crate::plan::Plan = serde_json::from_value(trial["plan"].clone()).unwrap();
    assert_eq!(plan, testing::plan(), "the plan can be run again");
}

#[test]
fn thresholds_are_kept_with_what_was_seen() {
    let mut summary = summary(false);
    let fail_if = ["ops_failed > 0", "goodput < 5/s", "latency_p50 > 1ms"];
    summary.facts.plan.thresholds.fail_if = fail_if.map(|text| text.parse().unwrap()).into();
    let run = run("id", &facts(), &[summary]);
    assert_eq!(
        run["trials"][0]["thresholds"],
        json!([
            {"fail_if": "ops_failed > 0", "value": 0.0, "failed": false},
            {"fail_if": "goodput < 5/s", "value": 2.0, "failed": true},
            {"fail_if": "latency_p50 > 1ms", "value": null, "failed": true},
        ])
    );
    assert_eq!(run["trials"][0]["plan"]["thresholds"]["fail_if"], json!(fail_if));
}

#[test]
fn a_cut_trial_makes_no_complete_run() {
    let run = run("id", &facts(), &[summary(false), summary(true)]);
    assert_eq!((&run["complete"], &run["cut"]), (&json!(false), &json!(true)));
}

#[test]
fn no_connection_string_gets_through() {
    let mut summary = summary(false);
    summary.notes.push("cannot reach mongodb://user:secret@host/".to_owned());
    summary.facts.options = json!({"uri": ["mongodb+srv://user:secret@host"]});
    let text = run("id", &facts(), &[summary]).to_string();
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn the_file_is_there_whole_or_not_at_all() {
    let root = tempfile::tempdir().unwrap();
    let directory = RunDirectory::create(root.path(), "p", None, b"").unwrap();
    directory.finish(&facts(), &[summary(false)]).unwrap();
    let text = fs::read_to_string(directory.file("run.json")).unwrap();
    assert!(text.ends_with("}\n"));
    assert!(!directory.file(".run.json.tmp").exists());
    fs::remove_dir_all(directory.path()).unwrap();
    let error = directory.finish(&facts(), &[]).unwrap_err().to_string();
    assert!(error.contains("run.json"), "{error}");
}
