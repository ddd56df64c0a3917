//! Simulations, from the command line to their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use overdrive::profile::shipped;

use crate::support::{
    Place, Row, assert_sums, block_on, count, finish, overdrive, run_json, runs_in, table, whole,
};
use crate::terminal::{Output, Terminal};
use crate::{alone, shared_lab};

/// Everything in a directory, by name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn the_same_simulation_leaves_the_same_files_to_the_byte() {
    let place = Place::new("");
    let simulate = |out: &str, seed: &str| {
        let args = [
            "simulate",
            "request-limit",
            "--vary",
            "maxAdaptiveRetries=0,2",
            "--duration",
            "5s",
            "--ui",
            "none",
            "--out",
            out,
            "--seed",
            seed,
            "--label",
            "again",
            "--repeat",
            "2",
        ];
        let finished = finish(overdrive(args).current_dir(place.path()));
        finished.assert_code(0);
        runs_in(&place.path().join(out))
    };
    let (a, b) = (simulate("a", "7"), simulate("b", "7"));
    assert_eq!(a[0].file_name(), b[0].file_name());
    assert_eq!(files(&a[0]), files(&b[0]));
    assert_eq!(
        fs::read(place.path().join("a/runs.csv")).unwrap(),
        fs::read(place.path().join("b/runs.csv")).unwrap()
    );
    assert_sums(&a[0]);
    let beside = simulate("b", "7");
    assert_eq!(beside.len(), 2, "another name beside the first: {beside:?}");
    let other = simulate("c", "8");
    assert_ne!(fs::read(a[0].join("summary.csv")).unwrap(), fs::read(other[0].join("summary.csv")).unwrap());

    let run = run_json(&a[0]);
    assert_eq!((run["complete"].as_bool(), run["ok"].as_bool()), (Some(true), Some(true)));
    let rows = table(&a[0], "summary.csv");
    assert!(rows.iter().all(|row| row["driver"] == "simulated" && row["mechanism"] == "simulated"));
    let seeds: Vec<_> =
        run["trials"].as_array().unwrap().iter().map(|trial| trial["plan"]["seed"].clone()).collect();
    assert_eq!(seeds, [7, 7, 8, 8], "a repeat is another draw");
}

#[test]
fn simulations_are_compared_and_reported_as_runs_are() {
    let place = Place::new("");
    let simulate = "simulate request-limit --vary maxAdaptiveRetries=0,2 --repeat 4 --duration 5s --ui none";
    finish(overdrive(simulate.split(' ')).current_dir(place.path())).assert_code(0);
    let run = place.runs().remove(0);
    let run = run.to_str().unwrap();
    let compared = finish(overdrive(["compare", run]).current_dir(place.path()));
    let text = &compared.assert_code(0).stdout;
    assert!(text.contains("driver simulated") && text.contains("server simulated"), "{text}");
    let row = text.lines().find(|line| line.contains("amplification")).unwrap();
    assert!(row.contains("2.4") || row.contains("2.3"), "{row}");
    let page = finish(overdrive(["report", run, "--markdown"]).current_dir(place.path()));
    assert!(page.assert_code(0).stdout.contains("maxAdaptiveRetries"), "{}", page.stdout);
    // What is assumed is what there is to a simulated server.
    let slower = format!("{simulate} --set model.service_time=20ms --out slower");
    finish(overdrive(slower.split(' ')).current_dir(place.path())).assert_code(0);
    let slower = runs_in(&place.path().join("slower")).remove(0);
    let sides = [run, slower.to_str().unwrap()].map(|run| format!("{run}:maxAdaptiveRetries=2"));
    let refused = finish(overdrive(["compare", &sides[0], &sides[1]]).current_dir(place.path()));
    assert!(
        refused.assert_code(2).stderr.contains("model.service_time is 1ms and 20ms"),
        "{}",
        refused.stderr
    );
}

/// What came of a profile's overload in a simulation.
fn simulated(profile: &str, overload: &str, set: &[&str]) -> Row {
    let place = Place::new("");
    let args = [&["simulate", profile, "--ui", "none"], set].concat();
    finish(overdrive(args).current_dir(place.path())).assert_code(0);
    let rows = table(&place.runs()[0], "recovery.csv");
    rows.into_iter().find(|row| row["overload"] == overload).unwrap()
}

#[test]
fn metastable_profiles_recover_without_further_calls_or_with_a_budget_for_them() {
    for (profile, overload) in [("metastable", "burst"), ("model-metastable", "stop")] {
        let recovered = |set: &[&str]| simulated(profile, overload, set)["recovered"].clone();
        assert_eq!(recovered(&[]), "no", "{profile}");
        assert_eq!(recovered(&["--set", "flow.backoff.max_attempts=1"]), "yes", "{profile}");
        assert_eq!(recovered(&["--set", "flow.budget.capacity=5"]), "yes", "{profile}");
    }
}

/// `metastable` with less time around its burst: four seconds before, and afterwards six, or sixteen for the recovery, whose
/// three good seconds in a row another's work on this machine may delay.
const SHORT: [&str; 6] =
    ["--warmup", "2s", "--set", "overload.burst.at=4s", "--set", "overload.burst.for=4s"];

/// Three immediate further calls of each operation keep the overload up that a burst has begun, and a budget for them lets it
/// end: on real servers and in the simulation.
#[test]
fn a_burst_is_outlived_by_what_it_started_and_a_budget_ends_it_in_the_lab_and_in_the_model() {
    let _alone = block_on(alone());
    let target = ["--uri", &shared_lab().uri, "--allow-faults=tickets,hold_tickets", "--ui", "none"];
    for (recovered, more) in [
        ("no", &["--duration", "14s"][..]),
        ("yes", &["--duration", "24s", "--set", "flow.budget.capacity=20"]),
    ] {
        let set = [&SHORT[..], more].concat();
        let model = simulated("metastable", "burst", &set);
        assert_eq!(model["recovered"], recovered, "{model:?}");
        // A machine that stands still keeps seconds from being good, or begins overload before the burst does. It never makes
        // a wrong verdict right: what disagrees is measured again, and no more than that once it was in time.
        let wrong: Vec<bool> = (0..3).map_while(|_| disagreement(&target, &set, recovered)).collect();
        assert!(
            wrong.len() < 3 || wrong.iter().all(|&slow| slow),
            "with {set:?} it is not to be '{recovered}' on real servers"
        );
        if wrong.len() == 3 {
            eprintln!("SKIPPED, since this machine was too slow to keep time");
        }
    }
}

/// Measures `metastable`; `None` when its burst has this verdict, and the goodput afterwards is as much as that says.
/// Otherwise whether this machine was too slow for it.
fn disagreement(target: &[&str], set: &[&str], recovered: &str) -> Option<bool> {
    let place = Place::new("");
    let args = [&["run", "metastable"], target, set].concat();
    let finished = finish(overdrive(args).current_dir(place.path()));
    let directory = finished.assert_code(0).directory();
    let row = table(directory, "recovery.csv").into_iter().find(|row| row["overload"] == "burst").unwrap();
    let goodput = |when: &str| row[&format!("goodput_{when}_ops_per_s")].parse::<f64>().unwrap();
    let share = if recovered == "yes" { 0.75..1.5 } else { 0.0..0.5 };
    if row["recovered"] == recovered && share.contains(&(goodput("after") / goodput("before"))) {
        return None;
    }
    let slow = excuse(directory);
    eprintln!("again, {slow:?}: {row:?}");
    Some(slow.is_some())
}

/// The generator's own word that this machine was too slow: its processors were the limit, or before the burst operations that
/// were due waited for longer than is let pass for a good second. In the burst and after it they may wait for what it does to
/// the servers, which is what is measured.
fn excuse(directory: &Path) -> Option<String> {
    if table(directory, "events.csv").iter().any(|event| event["kind"] == "generator_saturated") {
        return Some("the generator was saturated".to_owned());
    }
    let intervals = table(directory, "intervals.csv");
    let measured = intervals.iter().filter(|row| row["op"] == "all" && row["phase"] == "measure");
    let before: Vec<_> = measured.take_while(|row| !row["segment"].contains("burst")).collect();
    assert!((3..=6).contains(&before.len()), "four seconds: {before:?}");
    let behind_ms = before.iter().map(|row| row["behind_ms"].parse::<f64>().unwrap()).fold(0.0, f64::max);
    (behind_ms > 100.0).then(|| format!("{behind_ms} ms behind before the burst"))
}

#[test]
fn every_shipped_profile_of_one_client_can_be_simulated() {
    let place = Place::new("");
    for (name, _) in shipped::list() {
        let short = ["--duration", "3s", "--warmup", "1s", "--ui", "none"];
        // At rates that an unoptimized program simulates in no time.
        let several = name == "critical-and-batch";
        let load = if several || name == "connection-storm" { [].as_slice() } else { &["--rate", "300"] };
        let args = [&["simulate", name, "--out", name], &short[..], load].concat();
        let finished = finish(overdrive(&args).current_dir(place.path()));
        if several {
            let told = &finished.assert_code(2).stderr;
            assert!(told.contains("several clients are not simulated yet"), "{told}");
            continue;
        }
        finished.assert_code(0);
        let run = runs_in(&place.path().join(name)).remove(0);
        assert_eq!(run_json(&run)["ok"], true, "{name}");
        assert!(whole(&run)["offered"].parse::<u64>().unwrap() > 100, "{name}");
    }
}

/// Runs a profile against such a stub, and simulates that run: its directory, and the last row of the two beside each other.
fn beside(place: &Place, stub: &str) -> (String, Vec<String>) {
    let measured = finish(&mut place.run(&[&format!("--stub={stub}"), "--ui", "none"]));
    let run = measured.assert_code(0).directory().to_str().unwrap().to_owned();
    let args = ["simulate", "--against", &run, "--ui", "none", "--out", "model"];
    let finished = finish(overdrive(args).current_dir(place.path()));
    let text = &finished.assert_code(0).stdout;
    let row = text.lines().rfind(|line| line.starts_with("| base")).unwrap();
    (run, row.split('|').map(|cell| cell.trim().to_owned()).collect())
}

#[test]
fn a_model_is_held_against_what_was_measured() {
    let place = Place::new(
        "[load]\nrate = \"100/s\"\nwarmup = \"1s\"\nduration = \"4s\"\n[model]\nservers = 1\n\
         [op.ping.run_command]\ncommand = { ping = 1 }\n",
    );
    let (run, cells) = beside(&place, "service=1ms");
    assert_eq!(
        [2, 9, 10, 12, 13].map(|at| &*cells[at]),
        ["all", "0.0%", "0.0%", "1.00", "1.00"],
        "{cells:?}"
    );

    for (args, part) in [
        (&["--against", "nowhere"][..], "nowhere"),
        (&["--against", &run, "--set", "rate=5"], "only keys of the model can be set"),
        (&["--against", &run, "--rate", "5"], "cannot be used with"),
        (&["--against", &run, "profile.toml"], "cannot be used with"),
        (&["--against", "model/none"], "model/none"),
    ] {
        let refused = finish(overdrive([&["simulate"], args].concat()).current_dir(place.path()));
        assert!(refused.assert_code(2).stderr.contains(part), "{args:?}: {}", refused.stderr);
    }
    let simulated = runs_in(&place.path().join("model")).remove(0);
    let again =
        finish(overdrive(["simulate", "--against", simulated.to_str().unwrap()]).current_dir(place.path()));
    assert!(again.assert_code(2).stderr.contains("was simulated itself"), "{}", again.stderr);
}

/// Sixty a second, one at a time, of 20 ms each when measured and 10 ms in the model: all succeed in both, but only the model
/// keeps up.
#[test]
fn a_model_that_does_more_in_its_time_is_told_though_goodput_is_the_same() {
    let place = Place::new(
        "[load]\nrate = \"60/s\"\narrivals = \"even\"\nwarmup = \"1s\"\nduration = \"2s\"\ncooldown = \"30s\"\n\
         [model]\nservers = 1\nservice_time = \"10ms\"\nservice_distribution = \"fixed\"\n\
         [flow.limit]\nkind = \"aimd\"\ninitial = 1\nfloor = 1\nceiling = 1\n\
         [op.ping.run_command]\ncommand = { ping = 1 }\n",
    );
    let (_, cells) = beside(&place, "service=20ms");
    assert_eq!(cells[5], "+0.0%", "goodput: {cells:?}");
    let [measured, model] = [6, 7].map(|at| cells[at].strip_suffix("/s").unwrap().parse::<f64>().unwrap());
    assert!(measured <= 51.0 && (59.0..=61.0).contains(&model), "{cells:?}");
    let off: f64 = cells[8].strip_suffix('%').unwrap().parse().unwrap();
    assert!((off - (model / measured - 1.0) * 100.0).abs() < 3.0, "{cells:?}");
}

#[test]
fn what_cannot_be_simulated_is_told_with_the_way_out() {
    let place = Place::new(
        "[model]\nservers = 0\nclient = 5\nrejection_cost = 2\nrtt = \"5\"\n[op.ping.run_command]\ncommand = { ping = 1 }\n",
    );
    let refused = finish(overdrive(["simulate", "profile.toml"]).current_dir(place.path()));
    let told = &refused.assert_code(2).stderr;
    for part in [
        "`model.servers` must be from 1 to 64",
        "did you mean `clients`?",
        "must be a share from 0 to 1",
        "has no unit",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for (set, part) in [
        ("model.tickets=0", "no whole number from 1"),
        ("model.service_distribution=even", "only fixed or exponential"),
        ("maxAdaptiveRetrys=3", "maxAdaptiveRetries"),
        ("overload.limit.members=none", "only all"),
    ] {
        let refused =
            finish(overdrive(["simulate", "request-limit", "--set", set]).current_dir(place.path()));
        assert!(refused.assert_code(2).stderr.contains(part), "{set}: {}", refused.stderr);
    }
    let alone = ["simulate", "mixed", "--set", "readPreference=secondary", "--set", "model.servers=1"];
    let refused = finish(overdrive(alone).current_dir(place.path()));
    assert!(refused.assert_code(2).stderr.contains("set model.servers to 2"), "{}", refused.stderr);
    assert!(place.runs().is_empty(), "nothing was begun");
    let crossed =
        ["simulate", "request-limit", "--duration", "5s", "--fail-if", "error_rate > 10%", "--ui", "none"];
    finish(overdrive(crossed).current_dir(place.path())).assert_code(3);
}

/// Forty a second for five seconds, in steps that are always the same, on a server that takes SERVICE.
const APPLICATION: &str = r#"
[data]
documents = 10
[load]
rate = "40/s"
arrivals = "even"
warmup = "1s"
duration = "5s"
[model]
servers = 1
service_time = "SERVICE"
service_distribution = "fixed"
[client]
maxPoolSize = 100
maxAdaptiveRetries = 0
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

/// The same flow in a run on a stub and in the simulation: both directories.
fn both(place: &Place, stub: &str) -> [std::path::PathBuf; 2] {
    let measured = finish(&mut place.run(&[stub, "--ui", "none"]));
    let simulated = ["simulate", "profile.toml", "--ui", "none", "--out", "simulated"];
    finish(overdrive(simulated).current_dir(place.path())).assert_code(0);
    [measured.assert_code(0).directory().to_owned(), runs_in(&place.path().join("simulated")).remove(0)]
}

/// How many operations were not sent for a reason.
fn reasons(directory: &Path, kind: &str) -> u64 {
    let rows = table(directory, "errors.csv");
    let of_kind = rows.iter().filter(|row| row["level"] == "operation" && row["kind"] == kind);
    of_kind.map(|row| count(row, "count")).sum()
}

#[test]
fn what_the_application_does_comes_to_the_same_in_the_simulation() {
    let flow = "[flow]\nqueue = 4\nwhen_full = \"drop\"\n\
                [flow.limit]\nkind = \"aimd\"\ninitial = 1\nfloor = 1\nceiling = 1\n";
    let place = Place::new(APPLICATION.replace("SERVICE", "200ms") + flow);
    for directory in both(&place, "--stub=service=200ms") {
        assert_sums(&directory);
        let row = whole(&directory);
        let (ok, dropped) = (count(&row, "ops_ok"), count(&row, "ops_dropped"));
        // Five a second, and those that were due before or end after.
        assert!((20..=27).contains(&ok) && ok + dropped == 200, "{}: {ok}, {dropped}", directory.display());
        let intervals = table(&directory, "intervals.csv");
        let busy = intervals.iter().filter(|row| row["op"] == "all" && row["phase"] == "measure");
        let shown: Vec<_> = busy.map(|row| (&*row["flow_limit"], count(row, "queue_depth"))).collect();
        assert!(shown.iter().all(|&(limit, depth)| limit == "1" && depth <= 4), "{shown:?}");
        assert!(reasons(&directory, "queue_full") >= dropped);
    }

    let flow = "[flow]\nqueue = 64\nwhen_full = \"drop\"\n\
                [flow.breaker]\nthreshold = 0.5\nwindow = \"10s\"\nminimum = 10\ncool_down = \"2s\"\n\
                [[overload]]\nname = \"fail\"\nat = \"-1s\"\nfor = \"1h\"\n\
                fail_command = { commands = [\"find\"], probability = 1.0 }\n";
    let place = Place::new(APPLICATION.replace("SERVICE", "1ms") + flow);
    for directory in both(&place, "--stub=fail=every:1") {
        let events = table(&directory, "events.csv").into_iter().filter(|event| event["kind"] == "breaker");
        let changes: Vec<String> = events.map(|event| event["detail"].clone()).collect();
        assert_eq!(changes[..3], ["closed to open", "open to half_open", "half_open to open"]);
        let probes = changes.iter().filter(|change| *change == "open to half_open").count() as u64;
        assert!((2..=3).contains(&probes), "{changes:?}");
        let intervals = table(&directory, "intervals.csv");
        let sent: u64 =
            intervals.iter().filter(|row| row["op"] == "all").map(|row| count(row, "attempts")).sum();
        assert!((10 + probes..=14 + probes).contains(&sent), "{sent} with {probes} probes");
        let last = intervals.iter().rfind(|row| row["op"] == "all" && row["phase"] == "measure").unwrap();
        assert_eq!(last["breaker"], "open");
        assert!(reasons(&directory, "breaker_open") >= count(&whole(&directory), "ops_dropped"));
    }
}

/// A simulation of `request-limit` of half a minute in a terminal: ten times as fast as it would go.
fn on_screen(place: &Place, more: &[&str]) -> Terminal {
    let args = ["simulate", "request-limit", "--duration", "25s", "--warmup", "5s", "--ui", "tui"];
    let mut command = overdrive(args.iter().chain(more));
    let terminal = Terminal::start(command.current_dir(place.path()), (120, 40), Output::Terminal);
    terminal.wait_for("last 1 s");
    terminal
}

#[test]
fn a_simulation_on_the_screen_comes_to_the_same_files_at_any_speed() {
    let place = Place::new("");
    let began = Instant::now();
    let mut terminal = on_screen(&place, &["--speed", "10", "--out", "shown"]);
    // The panel of the load generator comes last.
    let text =
        terminal.wait_until("all of it", |text| text.contains("simulated   ") && text.contains("ON limit"));
    for part in [
        "request-limit",
        "driver simulated",
        "server simulated",
        "retries per operation",
        "simulated-0:27017",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    assert_eq!(terminal.end().code(), Some(0), "{}", terminal.text());
    let took = began.elapsed();
    assert!((3.0..30.0).contains(&took.as_secs_f64()), "{took:?} for half a minute at ten times its speed");
    assert!(terminal.is_clean() && terminal.text().contains("Results: shown/"), "{}", terminal.text());

    let quick = [
        "simulate",
        "request-limit",
        "--duration",
        "25s",
        "--warmup",
        "5s",
        "--ui",
        "none",
        "--out",
        "quick",
    ];
    let finished = finish(overdrive(quick).current_dir(place.path()));
    assert!(finished.assert_code(0).stderr.contains("attempts per second"), "{}", finished.stderr);
    let [shown, quick] = ["shown", "quick"].map(|out| files(&runs_in(&place.path().join(out))[0]));
    assert_eq!(shown, quick);
}

#[test]
fn the_keys_of_the_screen_do_in_a_simulation_what_they_can() {
    let place = Place::new("");
    let mut terminal = on_screen(&place, &["--speed", "1"]);
    terminal.keys("+");
    terminal.wait_for("knobs are for a run of one trial and one client against real servers");
    terminal.keys(" ");
    let frozen = terminal.wait_for("FROZEN at");
    sleep(Duration::from_millis(1500));
    let figures = |text: &str| text.lines().skip(3).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(figures(&terminal.text()), figures(&frozen), "it stands still");
    let pressed = Instant::now();
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130), "{}", terminal.text());
    assert!(
        pressed.elapsed() < Duration::from_secs(10),
        "what is left is not waited for: {:?}",
        pressed.elapsed()
    );
    assert!(terminal.is_clean() && terminal.text().contains("Results: results/"), "{}", terminal.text());
    let run = place.runs().remove(0);
    assert_sums(&run);
    let seconds = table(&run, "intervals.csv").iter().filter(|row| row["op"] == "all").count();
    assert!((3..20).contains(&seconds), "{seconds} intervals");

    let mut terminal = on_screen(&place, &["--speed", "1", "--out", "left"]);
    terminal.keys("Q");
    assert_eq!(terminal.end().code(), Some(1), "{}", terminal.text());
    assert!(
        terminal.is_clean()
            && terminal.text().contains("left at once, as asked")
            && !terminal.text().contains("second request"),
        "{}",
        terminal.text()
    );
}

#[test]
fn a_screen_or_a_speed_that_cannot_be_is_told() {
    let place = Place::new("");
    for (args, part) in [
        (&["--ui", "tui"][..], "--ui tui needs a terminal on standard error"),
        (&["--speed", "0"], "neither 'max' nor a number"),
    ] {
        let refused =
            finish(overdrive([&["simulate", "request-limit"], args].concat()).current_dir(place.path()));
        assert!(refused.assert_code(2).stderr.contains(part), "{}", refused.stderr);
    }
}
