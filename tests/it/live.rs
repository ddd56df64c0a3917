//! Knobs turned on the screen of a run on real servers: live trials, what the files say of them, and what the servers do.

use std::collections::BTreeSet;
use std::path::Path;

use bson::doc;
use mongodb::bson::Document;

use crate::support::{Place, Row, assert_sums, block_on, count, finish, overdrive, run_json, table};
use crate::terminal::{Output, Terminal};
use crate::{alone, shared_lab};

/// Half of the work takes a key that nobody had. (A retryable write would make the server run a find of its own, which the
/// overload fails.)
const PROFILE: &str = r#"
[data]
collection = "live"
documents = 50
[load]
rate = "200/s"
warmup = "1s"
duration = "60s"
[client]
maxPoolSize = 50
retryWrites = false
[op.read.find_one]
filter = { _id = { "^Key" = "uniform" } }
[op.add.insert_one]
[[overload]]
name = "shed"
at = "50s"
for = "5s"
members = "all"
fail_command = { commands = ["find"], probability = 0.5 }
"#;

fn column<'a>(rows: &'a [Row], trial: &str, name: &str) -> Vec<&'a str> {
    rows.iter().filter(|row| row["trial"] == trial).map(|row| row[name].as_str()).collect()
}

fn column_of_all<'a>(rows: &'a [Row], name: &str) -> Vec<&'a str> {
    rows.iter().map(|row| row[name].as_str()).collect()
}

/// How many documents there are that no data load stored.
fn added() -> u64 {
    block_on(async {
        let client = mongodb::Client::with_uri_str(&shared_lab().uri).await.unwrap();
        let data = client.database("overdrive").collection::<Document>("live");
        data.count_documents(doc! { "_id": { "$gte": 50 } }).await.unwrap()
    })
}

#[test]
fn turned_knobs_make_live_trials_of_one_load() {
    let _alone = block_on(alone());
    let place = Place::new(PROFILE);
    let args = ["--uri", &shared_lab().uri, "--allow-faults", "fail_command"];
    let mut terminal = Terminal::start(&mut place.run(&args), (120, 40), Output::Terminal);
    terminal.wait_for("measure: before");
    // Turns that follow each other quickly are one change.
    terminal.keys("+");
    terminal.keys("+]");
    terminal.wait_for("live maxAdaptiveRetries=4 rate=250/s");
    terminal.wait_for("transition");
    // One that comes in the transition waits for its end.
    terminal.keys("o");
    terminal.wait_until("the overload of a third trial, met in its measured time", |text| {
        // Of the segment as a whole: offered, goodput, errors, retries per operation.
        let retried = text.lines().find(|line| line.starts_with("shed ")).and_then(|line| {
            line.split_whitespace().nth(4)?.parse::<f64>().ok().filter(|&retries| retries > 0.0)
        });
        text.contains("overload=on") && text.contains("ON shed") && retried.is_some()
    });
    terminal.keys("q");
    assert_eq!(terminal.end().code(), Some(130), "{}", terminal.text());
    assert!(terminal.is_clean(), "{}", terminal.text());

    let directory = &place.runs()[0];
    assert_sums(directory);
    let summary = table(directory, "summary.csv");
    let variants: Vec<String> =
        ["1", "2", "3"].map(|t| column(&summary, t, "variant")[0].to_owned()).to_vec();
    let second = "live maxAdaptiveRetries=4 rate=250/s";
    assert_eq!(variants, ["base", second, &format!("{second} overload=on")]);
    let whole: Vec<Row> =
        summary.iter().filter(|row| row["op"] == "all" && row["segment"] == "all").cloned().collect();
    let of = |name: &str| column_of_all(&whole, name);
    assert_eq!(of("live"), ["false", "true", "true"]);
    let run = run_json(directory);
    let told = |trial: usize, knob: &str| run["trials"][trial]["knobs"][knob].clone();
    assert_eq!([0, 1, 2].map(|t| told(t, "maxAdaptiveRetries")), ["2", "4", "4"]);
    assert_eq!([1, 2].map(|t| told(t, "rate")), ["250/s", "250/s"]);
    assert_eq!([1, 2].map(|t| told(t, "overload")), ["timeline", "on"]);
    let results = ["taken_over", "taken_over", "cut"];
    assert_eq!([0, 1, 2].map(|t| run["trials"][t]["result"].clone()), results);
    assert_eq!(of("target_ops_per_s"), ["200.0", "250.0", "250.0"]);
    assert_eq!(of("mechanism"), ["failpoint"; 3]);

    let intervals = table(directory, "intervals.csv");
    let phases = |trial| column(&intervals, trial, "phase").into_iter().collect::<BTreeSet<_>>();
    assert!(phases("1").contains("warmup") && !phases("1").contains("transition"));
    for trial in ["2", "3"] {
        assert!(phases(trial).contains("transition") && phases(trial).contains("measure"), "{trial}");
        let transition = intervals.iter().filter(|row| row["trial"] == trial && row["phase"] == "transition");
        let last = transition.map(|row| row["elapsed_s"].parse::<f64>().unwrap()).fold(0.0, f64::max);
        assert!((last - 5.0).abs() < 1e-9, "it is five seconds, and was {last}");
    }
    // Rows of one trial stand together.
    let mut trials: Vec<&str> = intervals.iter().map(|row| row["trial"].as_str()).collect();
    trials.dedup();
    assert_eq!(trials, ["1", "2", "3"]);

    let events = table(directory, "events.csv");
    let turned: Vec<(&str, &str)> = events
        .iter()
        .filter(|row| row["kind"] == "knob_turned")
        .map(|row| (row["trial"].as_str(), row["detail"].as_str()))
        .collect();
    let (once, again) = ("maxAdaptiveRetries 2 to 4, rate 200/s to 250/s", "overload timeline to on");
    assert_eq!(turned, [("1", once), ("2", once), ("2", again), ("3", again)]);
    assert!(events.iter().any(|row| row["kind"] == "overload_on" && row["trial"] == "3"), "{events:?}");

    // Operations go on where those of the trial before ended: no key is taken twice, and all are on the server.
    let inserts = intervals.iter().filter(|row| row["op"] == "add");
    let ok: u64 = inserts.clone().map(|row| count(row, "ops_ok")).sum();
    assert_eq!(inserts.map(|row| count(row, "ops_failed")).sum::<u64>(), 0);
    assert_eq!(added(), ok);
    let retries: u64 = summary
        .iter()
        .filter(|row| row["trial"] == "3" && row["segment"] == "all" && row["op"] == "read")
        .map(|row| count(row, "retries"))
        .sum();
    assert!(retries > 0, "the overload is met");
    assert_left_out(directory);
}

/// Live trials are not compared unless they are asked for.
fn assert_left_out(directory: &Path) {
    let run = run_json(directory);
    assert_eq!(
        (&run["trials"][0]["plan"]["live"], &run["trials"][1]["plan"]["live"]),
        (&false.into(), &true.into())
    );
    let at = directory.to_str().unwrap();
    let all = finish(&mut overdrive(["compare", at, at]));
    all.assert_code(2);
    assert!(all.stderr.contains("2 live trials are left out"), "{}", all.stderr);
    // How long each ran differs by nature; the rate is a knob that was turned.
    let sides = [format!("{at}:live=true,trial=1"), format!("{at}:live=true,trial=2")];
    let chosen = finish(&mut overdrive(["compare", &sides[0], &sides[1]]));
    chosen.assert_code(0);
    assert!(chosen.stdout.contains("maxAdaptiveRetries is 2 and 4"), "{}", chosen.stdout);
    let differ = finish(&mut overdrive(["compare", &format!("{at}:live=true")]));
    assert!(differ.assert_code(2).stderr.contains(",rate="), "{}", differ.stderr);
}

#[test]
fn what_cannot_be_turned_says_why() {
    let _alone = block_on(alone());
    let place = Place::new(PROFILE.split("[[overload]]").next().unwrap().replace("\"60s\"", "\"8s\""));
    let args = ["--uri", &shared_lab().uri, "--set", "data.collection=live_refused"];
    let mut terminal = Terminal::start(&mut place.run(&args), (120, 40), Output::Terminal);
    terminal.wait_for("last 1 s");
    terminal.keys("o");
    terminal.wait_for("the profile has no overload to switch");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    terminal.keys("+");
    terminal.wait_for("too late for a change");
    assert_eq!(terminal.end().code(), Some(0), "{}", terminal.text());
    assert_eq!(column(&table(&place.runs()[0], "summary.csv"), "2", "trial"), [""; 0]);

    let args = ["--stub", "--ui", "tui"];
    let mut terminal = Terminal::start(&mut place.run(&args), (120, 40), Output::Terminal);
    terminal.wait_for("measure");
    terminal.keys("+");
    terminal.wait_for("knobs are for a run of one trial");
    terminal.keys("q");
    terminal.end();
}
