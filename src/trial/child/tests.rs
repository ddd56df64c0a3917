//! Children that misbehave, played by a shell.

use super::*;
use crate::results::testing;
use crate::trial::protocol::PROTOCOL;

const HELLO: &str = r#"echo '{"hello":{"protocol":1,"driver":"rust","version":"3.8.2"}}'; read start; "#;

/// What becomes of a child that does this, told to go as soon as it is ready.
async fn outcome(script: &str, silence: Duration) -> (Vec<Report>, String) {
    assert_eq!(PROTOCOL, 1, "the scripts speak it");
    let launch = Launch { program: "sh".into(), arguments: vec!["-c".into(), script.into()] };
    let mut child = start(&launch).unwrap();
    let (control, requests) = mpsc::channel(4);
    let (sender, mut reports) = mpsc::channel(64);
    let uri = Uri::parse("mongodb://me:s3cret@127.0.0.1/").unwrap();
    let (driver, plan) = (Driver::rust("3.8.2"), testing::plan());
    control.send(Control::Go { first: 0 }).await.unwrap();
    let led = lead(&mut child, &driver, &plan, &uri, requests, &sender, silence).await;
    drop(sender);
    let mut heard = Vec::new();
    while let Some(report) = reports.recv().await {
        heard.push(report);
    }
    (heard, led.err().map(|error| format!("{error:#}")).unwrap_or_default())
}

#[tokio::test]
async fn a_child_that_misbehaves_ends_its_trial_with_the_reason() {
    let long = Duration::from_secs(20);
    for (script, part) in [
        ("exit 7", "ended too early (exit status: 7)"),
        ("kill -9 $$", "signal: 9"),
        ("echo hello", "nobody understands"),
        (r#"echo '{"hello":{"protocol":2,"driver":"rust","version":"3.8.2"}}'; sleep 9"#, "version 2"),
        (r#"echo '{"hello":{"protocol":1,"driver":"pymongo","version":"4.16.0"}}'"#, "it is pymongo:4.16.0"),
        (&format!("{HELLO} yes '{{\"alive\":{{}}}}'"), "floods"),
        (&format!("{HELLO} head -c 20000000 /dev/zero; sleep 9"), "longer than 16 MiB"),
        (&format!("{HELLO} exec >&-; sleep 1; exit 3"), "exit status: 3"),
        (&format!("{HELLO} printf '{{\"alive'"), "no end"),
        (&format!("{HELLO} echo '{{\"failed\":{{\"message\":\"no primary\"}}}}'"), "no primary"),
        (
            &format!(
                "{HELLO} echo '{{\"ready\":{{}}}}'; echo '{{\"done\":{{\"ended\":[],\"attempts\":0,\"cut\":false}}}}'"
            ),
            "wrong time",
        ),
    ] {
        let (_, error) = outcome(script, long).await;
        assert!(error.contains(part), "{script}: {error}");
        assert!(!error.contains("s3cret"), "{script}: {error}");
    }
}

#[tokio::test]
async fn a_child_that_hangs_is_given_up() {
    let (heard, error) = outcome(&format!("{HELLO} sleep 20"), Duration::from_secs(1)).await;
    assert!(matches!(heard[..], [Report::Hello(_)]), "{heard:?}");
    assert_eq!(error, "it has said nothing for 1 s");
}

#[tokio::test]
async fn its_last_words_are_told_without_secrets() {
    let script = format!("{HELLO} echo 'cannot reach mongodb://me:s3cret@h' >&2; exit 1");
    let launch = Launch { program: "sh".into(), arguments: vec!["-c".into(), script.into()] };
    let uri = Uri::parse("mongodb://me:s3cret@127.0.0.1/").unwrap();
    let (_control, requests) = mpsc::channel(4);
    let (sender, _reports) = mpsc::channel(64);
    let plan = Arc::new(testing::plan());
    let error =
        run(launch, Driver::rust("3.8.2"), plan, uri, requests, sender).await.unwrap_err().to_string();
    assert!(error.starts_with("driver rust:3.8.2: its process ended too early"), "{error}");
    assert!(error.contains("it said: cannot reach mongodb://") && !error.contains("s3cret"), "{error}");
}
