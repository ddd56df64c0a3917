//! Children that misbehave, played by a shell.

use super::*;
use crate::results::testing;
use crate::snapshot::Snapshot;
use crate::trial::protocol::{PROTOCOL, SOURCES};

/// Says what it is and waits for what it is to do.
fn hello() -> String {
    let hello = serde_json::json!({ "hello": {
        "protocol": PROTOCOL, "driver": "rust", "version": "3.8.2", "sources": SOURCES,
    } });
    format!("echo '{hello}'; read start; ")
}

/// The same, and begins when it is told to.
fn running() -> String {
    format!("{} echo '{{\"ready\":{{}}}}'; read go; ", hello())
}

/// An interval of nothing, with this instead.
fn interval(change: impl FnOnce(&mut Value)) -> String {
    let snapshot =
        Snapshot { open: vec![0; testing::overload_plan().operations.len()], ..Snapshot::default() };
    let mut message = serde_json::to_value(Message::Snapshot(Box::new(snapshot))).unwrap();
    change(&mut message["snapshot"]);
    format!("echo '{message}'; ")
}

/// What becomes of a child that does this, told to go as soon as it is ready.
async fn outcome(script: &str, silence: Duration) -> (Vec<Report>, String) {
    let launch = Launch { program: "sh".into(), arguments: vec!["-c".into(), script.into()] };
    let mut child = start(&launch).unwrap();
    let (control, requests) = mpsc::channel(4);
    let (sender, mut reports) = mpsc::channel(64);
    let uri = Uri::parse("mongodb://me:s3cret@127.0.0.1/").unwrap();
    let (driver, plan) = (Driver::rust("3.8.2"), testing::overload_plan());
    let leading = async {
        let led = lead(&mut child, &driver, &plan, &uri, requests, &sender, silence).await;
        drop(sender);
        led
    };
    let listening = async {
        let mut heard = Vec::new();
        while let Some(report) = reports.recv().await {
            if matches!(report, Report::Ready) {
                control.send(Control::Go { first: 0, spool: None }).await.unwrap();
            }
            heard.push(report);
        }
        heard
    };
    let (led, heard) = tokio::join!(leading, listening);
    (heard, led.err().map(|error| format!("{error:#}")).unwrap_or_default())
}

#[tokio::test]
async fn a_child_that_misbehaves_ends_its_trial_with_the_reason() {
    let long = Duration::from_secs(20);
    let (hello, running) = (hello(), running());
    let closed = "echo '{\"closed\":{\"next\":0}}'; ";
    for (script, part) in [
        ("exit 7".to_owned(), "ended too early (exit status: 7)"),
        ("kill -9 $$".to_owned(), "signal: 9"),
        ("echo hello".to_owned(), "nobody understands"),
        (
            r#"echo '{"hello":{"protocol":1,"driver":"rust","version":"3.8.2"}}'; sleep 9"#.to_owned(),
            "version 1 of",
        ),
        (hello.replace(SOURCES, "0"), "other sources"),
        (hello.replace("3.8.2", &"9".repeat(50_000)), "it is rust:999"),
        (format!("{hello} yes '{{\"alive\":{{}}}}'"), "floods"),
        (format!("{hello} head -c 20000000 /dev/zero; sleep 9"), "longer than 16 MiB"),
        (format!("{hello} exec >&-; sleep 1; exit 3"), "exit status: 3"),
        (format!("{hello} printf '{{\"alive'"), "no end"),
        (format!("{hello} echo '{{\"failed\":{{\"message\":\"no primary\"}}}}'"), "no primary"),
        (format!("{hello} echo '{{\"done\":{{\"ended\":[],\"attempts\":0,\"cut\":false}}}}'"), "wrong time"),
        (format!("{hello} {}", interval(|_| {})), "wrong time"),
        (format!("{running} {closed}"), "its load ends before its time"),
        (format!("{running} {}", interval(|it| it["end_ns"] = u64::MAX.into())), "cannot be"),
        (
            format!("{running} {}", interval(|it| it["end_ns"] = 60_000_000_000_u64.into())),
            "cannot have ended",
        ),
        (format!("{running} {}", interval(|it| it["segment"] = 1.into())), "not of the part"),
        (format!("{running} {}", interval(|it| it["generator"]["cpu_ns"] = u64::MAX.into())), "cannot be"),
    ] {
        let (_, error) = outcome(&script, long).await;
        assert!(error.contains(part), "{script}: {error}");
        assert!(!error.contains("s3cret"), "{script}: {error}");
    }
}

#[tokio::test]
async fn a_child_that_hangs_is_given_up() {
    let (heard, error) = outcome(&format!("{} sleep 20", hello()), Duration::from_secs(1)).await;
    assert!(matches!(heard[..], [Report::Hello(_)]), "{heard:?}");
    assert_eq!(error, "it has said nothing for 1 s");
    // Being alive is not enough once its load runs.
    let alive = "while sleep 0.2; do echo '{\"alive\":{}}'; done";
    let (_, error) = outcome(&format!("{} {alive}", running()), Duration::from_secs(1)).await;
    assert_eq!(error, "it has said nothing for 1 s");
}

#[tokio::test]
async fn its_last_words_are_told_without_secrets() {
    let hello = hello();
    // What it has started keeps its standard error open, and is killed with it.
    let script =
        format!("{hello} sleep 60 >/dev/null & echo 'cannot reach mongodb://me:s3cret@h' >&2; exit 1");
    let launch = Launch { program: "sh".into(), arguments: vec!["-c".into(), script.into()] };
    let uri = Uri::parse("mongodb://me:s3cret@127.0.0.1/").unwrap();
    let (_control, requests) = mpsc::channel(4);
    let (sender, _reports) = mpsc::channel(64);
    let plan = Arc::new(testing::overload_plan());
    let error =
        run(launch, Driver::rust("3.8.2"), plan, uri, requests, sender).await.unwrap_err().to_string();
    assert!(error.starts_with("driver rust:3.8.2: its process ended too early"), "{error}");
    assert!(error.contains("it said: cannot reach mongodb://") && !error.contains("s3cret"), "{error}");
}
