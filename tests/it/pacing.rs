//! What is offered is what was asked for, to the operation, however the servers fare; and the closed model offers what
//! its workers begin.

use bson::doc;
use overdrive::plan::Plan;
use overdrive::plan::load::Phase;
use overdrive::plan::timeline::segments;

use crate::running::{Run, drive, fail, members, met, plan};
use crate::{alone, shared_lab};

/// Pings, and as long as it takes for all of them to end; the rest of [load] follows.
const PING: &str = r#"
[data]
collection = "COLLECTION"
documents = 0
[client]
maxPoolSize = 50
[op.ping.run_command]
command = { ping = 1 }
[load]
arrivals = "even"
cooldown = "60s"
"#;

/// The measured segment, when there is no overload: warm-up, measure, cool-down.
const MEASURED: usize = 1;

fn load(lines: &str, collection: &str) -> Plan {
    plan(&format!("{PING}{lines}"), collection)
}

async fn run(plan: &Plan) -> Run<()> {
    let lab = tokio::task::block_in_place(shared_lab);
    let run = drive(&lab.uri, plan, async || ()).await;
    run.assert_sums();
    run
}

/// Every operation of the measured time was begun and succeeded; returns how many.
fn measured(run: &Run<()>) -> u64 {
    let measured = run.segment(MEASURED);
    assert_eq!((measured.outcomes.ok, measured.lag.count()), (measured.offered, measured.offered));
    measured.offered
}

#[expect(clippy::cast_precision_loss, reason = "short times and small counts")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "short times and small counts")]
fn assert_near(got: u64, wanted: f64, by: f64, what: &str) {
    assert!((got as f64 - wanted).abs() <= by, "{what}: {got}, not {wanted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn even_arrivals_come_as_asked_at_any_rate_and_without_a_burst_anywhere() {
    let _alone = alone().await;
    let (slow, medium, fast) = (
        load("rate = 0.5\nwarmup = \"2s\"\nduration = \"6s\"", "pacing_slow"),
        load("rate = 50\nwarmup = \"1500ms\"\nduration = \"3500ms\"", "pacing_medium"),
        load("rate = 400\nwarmup = \"1s\"\nduration = \"3s\"", "pacing_fast"),
    );
    let (slow, medium, fast) = tokio::join!(run(&slow), run(&medium), run(&fast));
    for (run, rate, duration) in [(slow, 0.5, 6.0), (medium, 50.0, 3.5), (fast, 400.0, 3.0)] {
        assert_near(measured(&run), rate * duration, 1.0, "in the measured time");
        // Intervals end when the recorder wakes up, so each is held against its own length. After the last whole one
        // the load ends, and time goes on without it.
        let whole = run.snapshots.split_last().unwrap().1;
        for snapshot in whole {
            let offered = snapshot.cells.values().map(|stats| stats.offered).sum();
            let length = seconds(snapshot.end_ns - snapshot.start_ns);
            assert_near(offered, rate * length, 1.0, &format!("{rate}/s in interval {}", snapshot.sequence));
        }
        assert!(whole.iter().map(|s| s.segment).is_sorted(), "warm-up, measure, cool-down");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn poisson_arrivals_come_at_their_rate_and_the_seed_decides_which() {
    let _alone = alone().await;
    let text =
        "rate = 200\nwarmup = \"1s\"\nduration = \"3s\"\n[op.pong.run_command]\ncommand = { hello = 1 }\n";
    let text = format!("{}{text}", PING.replace("\"even\"", "\"poisson\""));
    let (first, again) = (plan(&text, "pacing_poisson"), plan(&text, "pacing_poisson_again"));
    let other = Plan { seed: first.seed + 1, ..plan(&text, "pacing_poisson_other") };
    let (first, again, other) = tokio::join!(run(&first), run(&again), run(&other));
    let offered = |run: &Run<()>| -> Vec<u64> {
        [0, 1].map(|n| run.sum(|segment, op| (segment, op) == (MEASURED, n)).offered).to_vec()
    };
    for run in [&first, &again, &other] {
        assert_near(measured(run), 600.0, 3.0 * 600.0_f64.sqrt(), "three standard deviations");
    }
    assert_eq!(offered(&first), offered(&again));
    assert_ne!(offered(&first), offered(&other));
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_give_the_area_under_their_rate() {
    let _alone = alone().await;
    let stages = r#"
warmup = "1s"
stages = [{ for = "1s", rate = 40 }, { for = "1s", rate = 160 }, { for = "2s", from = 160, to = 20 }]
[[overload]]
name = "step"
at = "1s"
for = "1s"
fail_command = {}
[[overload]]
name = "ramp"
at = "2s"
for = "2s"
fail_command = {}
"#;
    // The engine applies no overload; they only cut the measured time where the stages change.
    let plan = load(stages, "pacing_stages");
    let run = run(&plan).await;
    let areas = [("warmup", 40.0), ("before", 40.0), ("step", 160.0), ("ramp", 180.0)];
    let parts = segments(&plan);
    assert!(
        parts
            .iter()
            .map(|part| part.name.as_str())
            .eq(areas.map(|(name, _)| name).into_iter().chain(["cooldown"]))
    );
    for (number, (name, area)) in areas.into_iter().enumerate() {
        let stats = run.segment(number);
        assert_near(stats.offered, area, 1.0, name);
        assert_eq!(stats.outcomes.ok, stats.offered, "{name}");
    }
    let sum: f64 = areas[1..].iter().map(|(_, area)| area).sum();
    let offered = run.sum(|segment, _| parts[segment].phase == Phase::Measure).offered;
    assert_near(offered, sum, 1.0, "boundaries lose nothing and add nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_workers_begin_an_operation_when_the_last_has_ended() {
    let _alone = alone().await;
    let text = PING.replace("arrivals = \"even\"", "model = \"closed\"\nworkers = 8");
    let plan = plan(&format!("{text}warmup = \"500ms\"\nduration = \"2s\""), "pacing_closed");
    let run = run(&plan).await;
    assert!(measured(&run) > 0);
    assert_eq!(run.all().lag.count(), run.all().offered, "offered is started");
    assert!(run.snapshots.iter().all(|s| s.generator.in_flight <= 8));
    assert!(run.snapshots.iter().all(|s| s.generator.behind_ns == 0), "nothing is ever due");
    assert!(run.snapshots.iter().all(|s| s.open.iter().sum::<u64>() <= 8));
    assert!(!run.totals.cut);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_in_flight_is_late_or_not_started_but_never_lost() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let (primary, _) = members(lab).await;
    // Three at a time and at least 50 ms each: at most 60 of the 200 that are due each second.
    let text = PING.replace("\"60s\"", "\"500ms\"");
    let lines = "rate = 200\nwarmup = \"0s\"\nduration = \"2s\"\nmax_in_flight = 3\n";
    let plan = plan(&format!("{text}{lines}"), "pacing_behind");
    let run = drive(&lab.uri, &plan, async || {
        let slow = doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 50 };
        fail(&primary, "alwaysOn", slow).await;
    })
    .await;
    met(&primary).await;
    run.assert_sums();
    let stats = run.segment(MEASURED);
    assert_near(stats.offered, 400.0, 1.0, "whatever the servers do");
    assert!(run.totals.cut, "not everything that was measured got its turn");
    let most = 3 * (run.snapshots.last().unwrap().end_ns / 50_000_000 + 1);
    assert!(run.all().outcomes.ok <= most, "{} of at most {most}", run.all().outcomes.ok);
    assert_eq!(stats.outcomes.not_started, stats.offered - stats.outcomes.ok);
    assert_eq!(stats.lag.count(), stats.outcomes.ok);
    assert!(run.snapshots.iter().all(|s| s.generator.in_flight <= 3 && s.generator.workers <= 3));
    assert!(run.snapshots.iter().any(|s| s.generator.behind_ns > 0));
    // The longest wait of one that began is no shorter than what the queue's growth makes it: the last of n begins
    // after n ÷ 60 s and was due after n ÷ 200 s.
    let late_us = stats.lag.max_us().unwrap();
    let last = stats.outcomes.ok.saturating_sub(3);
    assert!(late_us >= last * (1_000_000 / 60 - 1_000_000 / 200) * 9 / 10, "{late_us} µs for {last}");
}
