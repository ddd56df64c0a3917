//! `overdrive calibrate`, what is kept of it, and what becomes of a stub whose run is gone.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Finished, Place, Running, finish, overdrive, run_json};

const PROFILE: &str = r#"
[data]
documents = 0
[load]
rate = 50
warmup = "0s"
duration = "500ms"
[client]
maxPoolSize = 10
[op.ping.run_command]
command = { ping = 1 }
"#;

fn calibrate(place: &Place, duration: &str) -> Command {
    let mut command = overdrive(["calibrate", "--duration", duration]);
    command.current_dir(place.path()).env("XDG_CACHE_HOME", place.path());
    command
}

fn kept(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path().join("overdrive/calibrations")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A run at this rate; returns also the notes that it keeps.
fn at_rate(place: &Place, rate: &str) -> (Finished, String) {
    let mut command = place.run(&["--stub", "--ui", "none", "--rate", rate]);
    let finished = finish(command.env("XDG_CACHE_HOME", place.path()));
    finished.assert_code(0);
    // Two runs may begin in one second, so that their names are no order.
    let notes = run_json(finished.directory())["trials"][0]["notes"].to_string();
    (finished, notes)
}

fn set_ceiling(file: &Path, ceiling: f64) {
    let mut kept: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert!(
        kept["ceiling_ops_per_s"].as_f64().unwrap() > 0.0 && kept["cpu_us_per_op"].as_f64().unwrap() > 0.0
    );
    kept["ceiling_ops_per_s"] = ceiling.into();
    fs::write(file, kept.to_string()).unwrap();
}

#[test]
fn a_calibration_is_kept_and_runs_that_ask_for_more_say_so() {
    let place = Place::new(PROFILE);
    let (_, notes) = at_rate(&place, "90");
    assert!(!notes.contains("calibrated"), "without one nothing is said: {notes}");

    let finished = finish(&mut calibrate(&place, "500ms"));
    finished.assert_code(0);
    for part in
        ["driver rust", "cores", "32 workers", "25% of it", "50% of it", "80% of it", "The ceiling is"]
    {
        assert!(finished.stdout.contains(part), "no '{part}' in: {}", finished.stdout);
    }
    assert!(finished.stderr.contains("calibrating: 32 workers"), "{}", finished.stderr);
    assert_eq!(fs::read_dir(place.path().join("results")).unwrap().count(), 2, "it keeps no run of its own");
    let files = kept(&place);
    let [file] = &files[..] else { panic!("{files:?}") };

    set_ceiling(file, 100.0);
    let (_, notes) = at_rate(&place, "80");
    assert!(!notes.contains("calibrated"), "{notes}");
    let (finished, notes) = at_rate(&place, "81");
    for text in [&finished.stderr, &finished.stdout, &notes] {
        for part in ["81 operations/s", "80 %", "100 operations/s", "calibrated on 20"] {
            assert!(text.contains(part), "no '{part}' in: {text}");
        }
    }
    fs::write(file, "{").unwrap();
    let (_, notes) = at_rate(&place, "81");
    assert!(notes.contains("run `overdrive calibrate`"), "{notes}");
}

#[test]
fn a_calibration_that_is_stopped_keeps_nothing() {
    let place = Place::new(PROFILE);
    let mut running = Running::start(&mut calibrate(&place, "20s"));
    running.wait_for("calibrating: 32 workers");
    running.signal(Signal::INT);
    let finished = running.finish();
    finished.assert_code(130);
    assert!(finished.stderr.contains("nothing is kept"), "{}", finished.stderr);
    assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    assert_eq!(kept(&place), [] as [PathBuf; 0]);
}

#[test]
fn a_stub_ends_with_its_run_even_when_that_is_killed() {
    let place = Place::new(PROFILE);
    let mut running = Running::start(&mut place.run(&["--stub", "--duration", "60s"]));
    let line = running.wait_for("version stub, at ");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    TcpStream::connect(&address).expect("it listens");
    running.signal(Signal::KILL);
    running.finish();
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < deadline, "it still listens at {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stub_is_named_alone_and_rightly() {
    let place = Place::new(PROFILE);
    for (arguments, parts) in [
        (&["--stub=serivce=1ms"][..], ["--stub", "did you mean 'service'?"]),
        (&["--stub=fail=2"], ["fail: '2'", "every:10"]),
        (&["--stub", "--uri", "mongodb://127.0.0.1"], ["--stub", "--uri"]),
        (&["--stub", "--uri-file", "x"], ["--stub", "--uri-file"]),
        (&["--stub", "--mongod", "/bin/true"], ["--stub", "--mongod"]),
    ] {
        let finished = finish(&mut place.run(arguments));
        finished.assert_code(2);
        assert!(parts.iter().all(|part| finished.stderr.contains(part)), "{}", finished.stderr);
    }
    assert!(place.runs().is_empty());
    // What the environment says is for those who name nothing.
    let mut command = place.run(&["--stub", "--ui", "none"]);
    command.env("OVERDRIVE_URI", "mongodb://127.0.0.1:1").env("OVERDRIVE_MONGOD", "/nowhere");
    finish(&mut command).assert_code(0);
}
