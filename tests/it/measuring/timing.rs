//! Latencies against a server whose times are known.

use std::time::{Duration, Instant};

use bson::doc;
use overdrive::stub::process::StubProcess;
use overdrive::stub::{Role, Script, Service};

use super::{above, as_f64, measured, ms, results, run};
use crate::alone;
use crate::support::{PROGRAM, Place, block_on, count, run_json, whole};

/// Pings; the rest of [load] follows.
const PINGS: &str = r#"
[data]
documents = 0
[client]
maxPoolSize = 200
[op.ping.run_command]
command = { ping = 1 }
[load]
arrivals = "even"
cooldown = "60s"
"#;

/// How often a machine that was busy may try again.
const CHANCES: usize = 3;

fn profile(load: &str) -> String {
    format!("{PINGS}{load}\n")
}

/// Until it is as it should be, or the last chance is gone; what must hold on any machine is asserted within.
#[track_caller]
fn soon(mut attempt: impl FnMut() -> Result<(), String>) {
    let why: Vec<String> = (0..CHANCES).map_while(|_| attempt().err()).collect();
    assert!(why.len() < CHANCES, "not once in {CHANCES}: {}", why.join("; "));
}

/// Operations per second that this machine makes at this moment.
fn capacity() -> f64 {
    let closed = profile("model = \"closed\"\nworkers = 32\nwarmup = \"500ms\"\nduration = \"1s\"");
    let place = run(&closed.replace("arrivals = \"even\"", ""), "", &[]);
    whole(&results(&place))["goodput_ops_per_s"].parse().unwrap()
}

/// Operations due evenly at `rate` while nothing is served for a second wait from a second down to nothing: the share
/// 1 − x of them longer than x. That is a lower bound, as nobody is answered earlier. At the end of the stall all are
/// there at once, and the i-th has i − 1 before it: with a capacity of C it ends i/C later. Its latency, 1 − i/rate +
/// i/C, is above x for i < rate·(1 − x)/(1 − rate/C): the upper bound. Half the capacity seen is granted, as the
/// arrivals go on and the machine's speed varies; one that makes less than twice the rate has no upper bound.
struct Stalled {
    rate: f64,
    capacity: f64,
}

impl Stalled {
    fn bounds(&self, x: f64) -> (f64, f64) {
        let (least, spare) = (self.rate * (1.0 - x), 1.0 - self.rate / (self.capacity / 2.0));
        // One more or less at either end, as arrivals fall to either side of a boundary, and three digits of precision.
        (least - 3.0, if spare > 0.0 { least / spare + 3.0 } else { f64::INFINITY })
    }

    /// Asserts the lower bound, and says whether the upper one is met.
    #[track_caller]
    fn check(&self, latency: &hdrhistogram::Histogram<u64>) -> Result<(), String> {
        for (x, limit) in [(0.1, 100), (0.5, 500), (0.9, 900)] {
            let (least, most) = self.bounds(x);
            let seen = as_f64(above(latency, limit));
            assert!(seen >= least, "{seen} of {least} waited longer than {limit} ms");
            if seen > most {
                return Err(format!("{seen} waited longer than {limit} ms, {most:.0} should have at most"));
            }
        }
        let longest = as_f64(latency.max()) / 1e6;
        // The first of them comes within one gap of the stall's start.
        assert!(longest >= 1.0 - 2.0 / self.rate, "{longest}");
        let most = 1.05 + 2.0 * self.rate / self.capacity;
        if longest > most { Err(format!("the longest took {longest} s, not {most}")) } else { Ok(()) }
    }
}

/// The part of the mean latency that was waiting for a worker.
fn share_of_waiting(place: &Place) -> f64 {
    let run = run_json(&results(place));
    let mean = &run["trials"][0]["segments"][0]["mean_per_op"]["all"];
    mean["wait_us"].as_f64().unwrap() / mean["latency_us"].as_f64().unwrap()
}

#[test]
fn those_who_come_in_a_stall_of_a_second_wait_evenly_from_a_second_down() {
    let _alone = block_on(alone());
    let load = profile("rate = 1000\nwarmup = \"1s\"\nduration = \"4s\"");
    soon(|| {
        let theory = Stalled { rate: 1000.0, capacity: capacity() };
        let place = run(&load, "stall=2s+1s", &[]);
        let directory = results(&place);
        assert_eq!(count(&whole(&directory), "ops_ok"), 4000);
        theory.check(&measured(&directory, "latency"))?;
        // Each was started when it was due, stall or not: hardly any of it is waiting for a worker.
        let share = share_of_waiting(&place);
        if share > 0.2 { Err(format!("{share} of the latency was waiting")) } else { Ok(()) }
    });
}

#[test]
fn with_one_at_a_time_one_operation_is_slow_and_all_others_wait_for_it() {
    let _alone = block_on(alone());
    let load = profile("rate = 200\nmax_in_flight = 1\nwarmup = \"1s\"\nduration = \"4s\"");
    soon(|| {
        // One at a time, what follows from a capacity holds of the one worker's.
        let theory = Stalled { rate: 200.0, capacity: 800.0 };
        let place = run(&load, "stall=2s+1s", &[]);
        let directory = results(&place);
        theory.check(&measured(&directory, "latency"))?;
        let service = measured(&directory, "service");
        let slow = above(&service, 500);
        assert!(slow >= 1, "the one that was on its way");
        // 199.5 s of waiting in all against its one second: 99.5 %, and then what the work itself takes.
        let share = share_of_waiting(&place);
        if slow > 1 || share < 0.9 {
            Err(format!("{slow} were slow, and {share} was waiting"))
        } else {
            Ok(())
        }
    });
}

#[test]
fn one_a_second_against_a_millisecond_takes_a_millisecond() {
    let _alone = block_on(alone());
    let load = profile("rate = 1\nwarmup = \"1s\"\nduration = \"21s\"");
    soon(|| {
        let (runs, plain) = std::thread::scope(|scope| {
            let runs = [(); 3].map(|()| scope.spawn(|| run(&load, "service=1ms", &[])));
            let plain = block_on(a_plain_loop(Duration::from_millis(1), 21));
            (runs.map(|run| run.join().unwrap()), plain)
        });
        let p50 = runs.each_ref().map(|place| ms(&whole(&results(place)), "latency_p50_us"));
        assert!(p50.iter().all(|&p50| p50 >= 1.0), "nobody is answered earlier: {p50:?}");
        // 0.4 ms is what overdrive may add to the driver's own millisecond. Where that takes longer than this in a plain
        // loop, the machine is too busy to tell, and medians of twenty differ by as much as they are long.
        let most = if plain <= 1.5 { (plain + 0.4).max(1.4) } else { 2.0 * plain + 0.4 };
        let best = p50.into_iter().fold(f64::INFINITY, f64::min);
        if best > most { Err(format!("{p50:?} ms; a plain loop: {plain} ms")) } else { Ok(()) }
    });
}

/// The median, in milliseconds, of what pings take that the driver sends once a second, with nothing around it.
async fn a_plain_loop(service: Duration, times: usize) -> f64 {
    let script = Script { role: Role::Primary, service: Service::Fixed(service), ..Script::default() };
    let stub = StubProcess::start(PROGRAM.as_ref(), script).await.unwrap();
    let client = mongodb::Client::with_uri_str(stub.uri()).await.unwrap();
    stub.begin().await.unwrap();
    let mut taken = Vec::new();
    for _ in 0..times {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        client.database("overdrive").run_command(doc! { "ping": 1 }).await.unwrap();
        taken.push(start.elapsed());
    }
    taken.sort_unstable();
    taken[times / 2].as_secs_f64() * 1000.0
}

#[test]
fn exponential_times_have_their_mean_and_percentiles() {
    let _alone = block_on(alone());
    // Of mean m: the median is m·ln 2, the 99th percentile m·ln 100. The script's seed fixes the times, so that luck is
    // the same each time; of 3600 the mean is off by 1/√n = 1.7 %, the median by 2.4 % and the 99th percentile by 3.6 %
    // at one standard deviation, and two of them are allowed. Sixty at a time leave the machine alone, and what it adds
    // to each is little of 200 ms.
    let load = profile("rate = 300\nwarmup = \"1s\"\nduration = \"12s\"");
    let theory = [("mean", 200.0, 0.035), ("p50", 138.63, 0.05), ("p99", 921.03, 0.075)];
    soon(|| {
        let place = run(&load, "service=exp:200ms", &[]);
        let row = whole(&results(&place));
        assert_eq!(count(&row, "ops_ok"), 3600);
        for (figure, expected, off) in theory {
            for kind in ["latency", "service"] {
                let seen = ms(&row, &format!("{kind}_{figure}_us"));
                assert!(seen >= expected * (1.0 - off), "{kind} {figure}: {seen}, not {expected}");
                if seen > expected * (1.0 + off) {
                    return Err(format!("{kind} {figure}: {seen}, not {expected}"));
                }
            }
        }
        Ok(())
    });
}
