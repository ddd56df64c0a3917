//! `overdrive gate`, as a person runs it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use mongodb::Client;
use tokio::net::TcpListener;

use super::{ANY_PORT, run_ping};
use crate::shared_lab;

const PROGRAM: &str = env!("CARGO_BIN_EXE_overdrive");

#[tokio::test]
async fn the_command_prints_its_uri_and_at_the_end_its_counters() {
    let lab = tokio::task::spawn_blocking(shared_lab).await.unwrap();
    let upstream = lab.members[0].address.to_string();
    let mut child = Command::new(PROGRAM)
        .args(["gate", "--upstream", &upstream, "--limit-rate", "1/s", "--base-backoff-ms", "5"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut uri = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut uri).unwrap();
    let address = uri.strip_prefix("mongodb://127.0.0.1:").and_then(|rest| rest.split_once('/')).unwrap();
    assert_eq!(address.1, "?directConnection=true\n");
    let client = Client::with_uri_str(format!("{}&maxAdaptiveRetries=0", uri.trim_end())).await.unwrap();
    run_ping(&client).await.unwrap();
    assert!(run_ping(&client).await.unwrap_err().contains_label("SystemOverloadedError"));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("requests: 2 limited, of which 1 passed"), "{said}");
}

#[tokio::test]
async fn the_command_refuses_what_cannot_be_meant() {
    let free = TcpListener::bind(ANY_PORT).await.unwrap().local_addr().unwrap().to_string();
    for (arguments, code, part) in [
        (vec!["gate", "--upstream", &free], 1, "cannot reach the server"),
        (vec!["gate", "--upstream", "localhost"], 2, "write HOST:PORT"),
        (vec!["gate", "--upstream", &free, "--limit-rate", "0.5/s"], 2, "whole number"),
        (vec!["gate", "--upstream", &free, "--burst", "2s"], 2, "--limit-rate"),
        (vec!["gate", "--upstream", &free, "--generation", "7.0"], 2, "8.2 or 9.0"),
    ] {
        let output = Command::new(PROGRAM).args(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && said.contains(part), "{arguments:?}: {said}");
    }
}
