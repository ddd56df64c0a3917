//! Every shipped profile runs as it stands, and what it asks for succeeds.

use std::sync::Mutex;

use overdrive::client::options;
use overdrive::plan::{Fault, Model, Plan};
use overdrive::profile::{Overrides, Profile, resolve, shipped};

use crate::running::{Program, Row, sum, whole};
use crate::support::{Place, assert_sums, block_on, count, finish, overdrive, table};
use crate::{alone, shared_lab};

/// What a transaction meets that another one is in the way of: a write conflict; then nothing is left to abort.
const CONFLICT: [(&str, &str); 3] = [("operation", "112"), ("attempt", "112"), ("attempt", "251")];

#[tokio::test(flavor = "multi_thread")]
async fn every_shipped_profile_runs_and_what_it_asks_for_succeeds() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let for_servers = shipped::list().map(|(name, _)| name).filter(|name| !is_for_simulations(name));
    let waiting = Mutex::new(for_servers.filter(|name| !wants_a_lab(name)));
    // Two at a time: they work on collections of their own, but for the one whose commands name it.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    let Some(name) = next else { return };
                    check(&lab.uri, name);
                }
            });
        }
    });
}

fn check(uri: &str, name: &str) {
    let collection = if name == "run-command" { "load".to_owned() } else { format!("shipped_{name}") };
    let (collection, documents) = (format!("data.collection={collection}"), "data.documents=2000");
    let plan = shipped_plan(name);
    let load = match plan.load.model {
        // Of several clients each says that for itself.
        _ if !plan.clients.is_empty() => &[][..],
        Model::Open { .. } => &["--rate", "200"],
        Model::Closed { .. } => &["--workers", "2"],
    };
    let short = [
        "--duration",
        "2s",
        "--warmup",
        "500ms",
        "--set",
        "load.cooldown=60s",
        "--set",
        &collection,
        "--set",
        documents,
        // Deadlines are for servers that are overloaded, and here two runs share the processors.
        "--set",
        "timeout.operation=unset",
    ];
    let results = Program::new().run(uri, &[&[name][..], load, &short].concat());
    let run = results.json();
    assert_eq!((run["complete"].as_bool(), run["ok"].as_bool()), (Some(true), Some(true)), "{name}");
    let checks = run["trials"][0]["checks"].as_array().unwrap();
    assert!(checks.len() >= 7 && checks.iter().all(|check| check["ok"] == true), "{name}: {checks:?}");

    let summary = results.table("summary.csv");
    let errors = results.table("errors.csv");
    for operation in shipped_plan(name).operations.iter().filter(|o| o.weight > 0) {
        let row = summary.iter().find(|r| r["segment"] == "all" && r["op"] == operation.name).unwrap();
        assert!(whole(&row["ops_ok"]) > 0, "{name}: {} never succeeded: {row:?}", operation.name);
    }
    // All overloads are later than this run is long, so there is nothing that may fail but a conflict.
    let conflict = |e: &Row| CONFLICT.contains(&(&e["level"], &e["code"])) && e["op"] == "transfer";
    let unexpected: Vec<_> = errors.iter().filter(|e| !conflict(e)).collect();
    assert!(unexpected.is_empty(), "{name}: {unexpected:?}");
    let conflicts =
        sum(errors.iter().filter(|e| e["level"] == "operation" && e["phase"] == "measure"), "count");
    let all = summary.iter().find(|r| r["segment"] == "all" && r["op"] == "all").unwrap();
    assert_eq!(whole(&all["ops_failed"]), conflicts, "{name}");
    assert_eq!(whole(&all["offered"]), whole(&all["ops_ok"]) + conflicts, "{name}: nothing is left over");
}

/// Whether it asks for more clients than a run has.
fn is_for_simulations(name: &str) -> bool {
    shipped_plan(name).model.is_some_and(|model| model.clients > 1)
}

/// Whether its overloads are done to processes, or by gates: a lab of its own has both.
fn wants_a_lab(name: &str) -> bool {
    shipped_plan(name)
        .overloads
        .iter()
        .any(|o| o.fault.needs_lab() || o.fault.takes_gates() || !o.fault.goes_by_name())
}

/// Those with overloads, which are moved to where a short run meets them.
#[test]
fn every_shipped_overload_is_put_on_and_undone() {
    let _alone = block_on(alone());
    for (name, _) in shipped::list().filter(|(name, _)| wants_a_lab(name) && !is_for_simulations(name)) {
        let plan = shipped_plan(name);
        let mut args =
            vec!["run".to_owned(), name.to_owned(), "--duration=6s".to_owned(), "--warmup=500ms".to_owned()];
        let sets = ["data.documents=500".to_owned(), "load.cooldown=20s".to_owned()];
        let moved = plan.overloads.iter().zip([1, 4]).flat_map(|(overload, at)| {
            let own = |key: &str, value: String| format!("overload.{}.{key}={value}", overload.name);
            let documents =
                matches!(overload.fault, Fault::LatencyEvent(_)).then(|| own("documents", "2000".to_owned()));
            [own("at", format!("{at}s")), own("for", "1s".to_owned())].into_iter().chain(documents)
        });
        args.extend(sets.into_iter().chain(moved).map(|set| format!("--set={set}")));
        let place = Place::new("");
        let finished = finish(overdrive(&args).current_dir(place.path()));
        if name == "limiter-native" {
            let last = finished.assert_code(1).stderr.lines().last().unwrap().to_owned();
            assert!(last.contains("6.0.5") && last.contains("8.2"), "{last}");
            continue;
        }
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        for overload in &plan.overloads {
            let events = table(directory, "events.csv");
            let kinds: Vec<&str> = events
                .iter()
                .filter(|row| row["subject"] == overload.name)
                .map(|row| &*row["kind"])
                .collect();
            assert_eq!(kinds, ["overload_on", "overload_off"], "{name}: {events:?}");
        }
        let summary = table(directory, "summary.csv");
        for operation in plan.operations.iter().filter(|o| o.weight > 0) {
            let row = summary.iter().find(|r| r["segment"] == "all" && r["op"] == operation.name).unwrap();
            assert!(count(row, "ops_ok") > 0, "{name}: {} never succeeded: {row:?}", operation.name);
        }
    }
}

fn shipped_plan(name: &str) -> Plan {
    let profile = Profile::open(name, &options::check).unwrap();
    resolve(&profile, &Overrides::default(), &options::check).unwrap()
}
