//! Figures for Prometheus: those that are served during a run are those of its files.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Place, Running, finish, table};

const PROFILE: &str = r#"
[data]
documents = 0
[load]
arrivals = "even"
rate = "100/s"
warmup = "1s"
duration = "4s"
[client]
maxPoolSize = 20
[op.ping.run_command]
command = { ping = 1 }
"#;

/// What is answered to a request for a path.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(sample))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn figures_are_served_while_the_run_goes_on() {
    let place = Place::new(PROFILE);
    let mut running = Running::start(&mut place.run(&["--stub", "--metrics", "0"]));
    let told = running.wait_for("metrics: http://");
    let address = told.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert!(get(&address, "/").starts_with("HTTP/1.1 404"));
    let offered =
        "overdrive_operations_offered_total{trial=\"1\",op=\"ping\",phase=\"measure\",segment=\"measure\"}";
    let since = Instant::now();
    let text = loop {
        let text = get(&address, "/metrics");
        if value(&text, offered).is_some_and(|offered| offered >= 200.0) {
            break text;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{text}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(text.contains("Content-Type: text/plain; version=0.0.4"), "{text}");
    let finished = running.finish();
    let directory = finished.assert_code(0).directory();
    // They are of a whole second, and what the files have until then.
    let rows = table(directory, "intervals.csv");
    let mut sum = 0.0;
    let sums: Vec<f64> = rows
        .iter()
        .filter(|row| row["phase"] == "measure" && row["op"] == "ping")
        .map(|row| {
            sum += row["offered"].parse::<f64>().unwrap();
            sum
        })
        .collect();
    let served = value(&text, offered).unwrap();
    assert!(sums.contains(&served), "{served} in {sums:?}");
    assert!(TcpStream::connect(&address).is_err(), "it ends with the run");
}

#[test]
fn where_it_cannot_listen_is_told() {
    let place = Place::new(PROFILE);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let finished = finish(&mut place.run(&["--stub", "--metrics", &port]));
    finished.assert_code(1);
    assert!(
        finished.stderr.contains("cannot listen at") && finished.stderr.contains("--metrics"),
        "{}",
        finished.stderr
    );
    let wrong = finish(&mut place.run(&["--stub", "--metrics", "here"]));
    wrong.assert_code(2);
    assert!(wrong.stderr.contains("0.0.0.0:9464"), "{}", wrong.stderr);
}
