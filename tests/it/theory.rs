//! What a limiter and a driver's retries do to a load, held against theory, and the simulation of it against both.

use std::num::NonZeroU32;
use std::time::Duration;

use overdrive::gate::Gate;
use overdrive::plan::{GateSettings, Limit};
use overdrive::stub::{Script, Stub};

use crate::alone;
use crate::support::{Place, Row, Running, assert_sums, finish, overdrive, runs_in, whole};

/// Requests per second that each gate lets through.
const R: u32 = 30;

/// Poisson arrivals, and a limiter that has been on for fifteen seconds when the measured time begins: steady state.
const LOAD: &str = r#"
[data]
documents = 0
[load]
rate = "RATE/s"
arrivals = "poisson"
warmup = "15s"
duration = "20s"
cooldown = "30s"
[client]
maxPoolSize = 100
maxAdaptiveRetries = RETRIES
[op.ping.run_command]
command = { ping = 1 }
"#;

/// A limiter whose rejections cost nothing, λ operations offered per second, R let through, n retries at most. In steady
/// state with λ > R every token is used, so goodput is R and the error rate 1 − R/λ whatever n is. An attempt is
/// rejected with probability p; an operation fails when all its n + 1 attempts are: p^(n+1) = 1 − R/λ. Attempts per
/// operation are the first n + 1 terms of the geometric series, (1 − p^(n+1)) / (1 − p). Below R nothing is rejected.
fn theory(offered: f64, retries: i32) -> (f64, f64) {
    let failed = (1.0 - f64::from(R) / offered).max(0.0);
    let p = failed.powf(1.0 / f64::from(retries + 1));
    (failed, (1.0 - failed) / (1.0 - p))
}

#[test]
fn the_model_gives_what_was_worked_out_by_hand() {
    let close = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 0.001 && (b - d).abs() < 0.01;
    let cell = |load: f64, retries| theory(load * f64::from(R), retries);
    assert!(close(cell(0.8, 5), (0.0, 1.0)));
    assert!(close(cell(1.2, 2), (0.1667, 1.85)));
    assert!(close(cell(2.0, 2), (0.5, 2.42)));
    assert!(close(cell(3.0, 2), (0.6667, 2.64)));
    assert!(close(cell(3.0, 5), (0.6667, 5.10)));
}

/// A gate and a server of its own for each cell of the grid, so that all can run at the same time.
struct Cell {
    load: f64,
    retries: i32,
    running: Running,
    _place: Place,
    _gate: Gate,
    _stub: Stub,
}

impl Cell {
    async fn start(load: f64, retries: i32) -> Self {
        let stub = Stub::start(Script::default()).await.unwrap();
        // Ten tokens. With few, arrivals that come together are rejected while others leave tokens unused; with many, or
        // at a lower rate, a retry comes back before the bucket has forgotten the attempt before it, and the attempts are
        // no longer independent of each other as the theory has them.
        let burst = Duration::from_millis(334).into();
        let limit = Limit { rate: NonZeroU32::new(R).unwrap(), burst, queue_depth: 0 };
        let settings = GateSettings { requests: Some(limit), ..GateSettings::default() };
        let any = "127.0.0.1:0".parse().unwrap();
        let gate = Gate::start(stub.address().to_string(), any, settings).await.unwrap();
        let rate = (load * f64::from(R)).to_string();
        let place = Place::new(LOAD.replace("RATE", &rate).replace("RETRIES", &retries.to_string()));
        let uri = format!("mongodb://{}/?directConnection=true", gate.address());
        let running = Running::start(&mut place.run(&["--uri", &uri, "--ui", "none", "--seed", "7"]));
        Self { load, retries, running, _place: place, _gate: gate, _stub: stub }
    }

    /// The same by the simulation: the same arrivals, and the limiter as a part of the profile.
    fn simulated(&self) -> Row {
        let limiter = format!(
            "[[overload]]\nat = \"-15s\"\nfor = \"1h\"\nlimit_requests = {{ rate = \"{R}/s\", burst = \"334ms\" }}\n"
        );
        let rate = (self.load * f64::from(R)).to_string();
        let load = LOAD.replace("RATE", &rate).replace("RETRIES", &self.retries.to_string());
        let place = Place::new(load + &limiter);
        let args = ["simulate", "profile.toml", "--seed", "7", "--ui", "none", "--out", "simulated"];
        finish(overdrive(args).current_dir(place.path())).assert_code(0);
        whole(&runs_in(&place.path().join("simulated"))[0])
    }

    /// Whether what was measured is what theory says, and the simulation.
    fn finish(self) -> Result<(), Disagreement> {
        let simulated = self.simulated();
        let finished = self.running.finish();
        let directory = finished.assert_code(0).directory();
        assert_sums(directory);
        let row = whole(directory);
        let number = |column: &str| row[column].parse::<f64>().unwrap();
        // What arrived, rather than what was asked for: Poisson arrivals are off by the root of their number.
        let (errors, attempts) = theory(number("offered_ops_per_s"), self.retries);
        let seen = (number("error_rate"), number("amplification"));
        let model = |column: &str| simulated[column].parse::<f64>().unwrap();
        let goodput = number("goodput_ops_per_s") / model("goodput_ops_per_s");
        let text = format!(
            "λ/R = {}, n = {}: errors {:.1} % (theory {:.1} %, simulated {:.1} %), attempts {:.2} (theory {attempts:.2}, \
             simulated {:.2}), goodput {goodput:.3} of the simulated",
            self.load,
            self.retries,
            seen.0 * 100.0,
            errors * 100.0,
            model("error_rate") * 100.0,
            seen.1,
            model("amplification"),
        );
        eprintln!("{text}");
        let agrees = (seen.0 - errors).abs() <= 0.03
            && (seen.1 / attempts - 1.0).abs() <= 0.1
            && (goodput - 1.0).abs() <= 0.03
            && (seen.0 - model("error_rate")).abs() <= 0.03
            && (seen.1 / model("amplification") - 1.0).abs() <= 0.1;
        // From the intended to the actual start: the generator's own word on whether it could keep time.
        let late = row["lag_p99_us"].parse::<u64>().is_ok_and(|lag| lag > LATE_US);
        if agrees { Ok(()) } else { Err(Disagreement { text, late }) }
    }
}

/// A cell that is not what theory says.
struct Disagreement {
    text: String,
    /// Whether this machine was too slow for it.
    late: bool,
}

/// A generator that starts one operation in a hundred later than this shares its machine with too much else: bursts are
/// then made here, and tokens run over, whatever the limiter does.
const LATE_US: u64 = 50_000;

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_depend_on_retries_and_attempts_do_as_theory_says() {
    let _alone = alone().await;
    let mut grid: Vec<(f64, i32)> =
        [0.8, 1.2, 2.0, 3.0].iter().flat_map(|&load| [0, 1, 2, 5].map(|n| (load, n))).collect();
    // A machine that stands still for longer than a bucket lasts wastes tokens, so that more is rejected than theory
    // says. It never makes a wrong count right: cells that disagree are measured again, with less beside them.
    let mut wrong: Vec<Disagreement> = Vec::new();
    for _ in 0..3 {
        let mut cells = Vec::new();
        for (load, retries) in std::mem::take(&mut grid) {
            cells.push(Cell::start(load, retries).await);
        }
        wrong.clear();
        for cell in cells {
            let place = (cell.load, cell.retries);
            if let Err(disagreement) = tokio::task::block_in_place(|| cell.finish()) {
                wrong.push(disagreement);
                grid.push(place);
            }
        }
        if wrong.is_empty() {
            return;
        }
        eprintln!("{} cells are measured again", wrong.len());
    }
    let texts =
        |late: bool| wrong.iter().filter(|d| d.late == late).map(|d| d.text.as_str()).collect::<Vec<_>>();
    assert!(texts(false).is_empty(), "it disagrees with theory: {:#?}", texts(false));
    eprintln!("SKIPPED, since this machine was too slow to keep time: {:#?}", texts(true));
}
