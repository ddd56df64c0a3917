use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::results::testing;
use crate::snapshot::{
    DeadLetter, DeadLetters, ErrorClass, ErrorCount, ErrorLevel, Event, FlowState, Generator, ServerStats,
};
use crate::stats::{Latencies, OpStats};

/// The schema, which says the same for people who write in other languages.
fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../workers/protocol.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn times(micros: u64) -> Latencies {
    let mut times = Latencies::default();
    times.record_ns(micros * 1000);
    times
}

/// With something in every field.
fn snapshot() -> Snapshot {
    let mut stats =
        OpStats { offered: 3, wait_ns: 7, latency: times(9), lag: times(1), ..OpStats::default() };
    stats.outcomes.ok = 2;
    stats.with_retries(2).latency = times(5);
    *stats.backoff_before(1) = times(100);
    let error = ErrorCount {
        segment: 1,
        operation: 0,
        level: ErrorLevel::Operation,
        class: ErrorClass { kind: "command".into(), code: Some(462), ..ErrorClass::default() },
        count: 1,
        first_ns: 1,
        last_ns: 2,
        example: "no".into(),
    };
    let letter = DeadLetter {
        at_ns: 1,
        operation: 0,
        n: 7,
        item: 3,
        calls: 1,
        code: Some(11000),
        code_name: "DuplicateKey".into(),
        message: "twice".into(),
        unclear_before: false,
        write: json!({"insertOne": {"document": {"_id": 1}}}),
    };
    Snapshot {
        sequence: 4,
        start_ns: 1,
        end_ns: 2,
        segment: 1,
        cells: BTreeMap::from([((1, 0), stats)]),
        open: vec![1, 0],
        servers: vec![ServerStats { address: "h:1".into(), checkout: times(3), ..ServerStats::default() }],
        errors: vec![error],
        orphans: BTreeMap::from([("killCursors".into(), 1)]),
        flow: FlowState { limit: Some(3), ..FlowState::default() },
        clients: Vec::new(),
        events: vec![Event { at_ns: 5, kind: "breaker".into(), ..Event::default() }],
        dead_letters: DeadLetters { letters: vec![letter], left_out: 2 },
        generator: Generator { cpu_ns: 5, ..Generator::default() },
    }
}

#[test]
fn everything_that_is_said_is_as_the_schema_has_it() {
    let schema = schema();
    let check = |said: Value| {
        let mistakes: Vec<String> = schema.iter_errors(&said).map(|error| error.to_string()).collect();
        assert!(mistakes.is_empty(), "{said}: {mistakes:?}");
    };
    let start = Start::new(&testing::overload_plan(), "mongodb://h");
    for request in [Request::Start(Box::new(start)), Request::Go { first: 0, spool: None }, Request::Stop {}]
    {
        check(serde_json::to_value(request).unwrap());
    }
    for message in [
        Message::Hello {
            protocol: PROTOCOL,
            driver: "rust".into(),
            version: "3.9.1".into(),
            sources: String::new(),
        },
        Message::Ready {},
        Message::Snapshot(Box::new(snapshot())),
        Message::Closed { next: 1 },
        Message::Done(Totals { ended: vec![1, 2], attempts: 3, cut: false, ..Totals::default() }),
        Message::Failed { message: "no".into() },
        Message::Alive {},
    ] {
        check(serde_json::to_value(message).unwrap());
    }
    for nonsense in
        [json!({}), json!("stop"), json!({"ready": {}, "alive": {}}), json!({"snapshot": {"sequence": 1}})]
    {
        assert!(!schema.is_valid(&nonsense), "{nonsense}");
    }
}

#[test]
fn an_interval_comes_out_as_it_went_in() {
    let line = serde_json::to_string(&Message::Snapshot(Box::new(snapshot()))).unwrap();
    let Message::Snapshot(read) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
    let (read, written) = (*read, snapshot());
    assert_eq!((read.cells, read.open, read.errors), (written.cells, written.open, written.errors));
    assert_eq!(
        (read.sequence, read.segment, read.orphans),
        (written.sequence, written.segment, written.orphans)
    );
    assert_eq!(read.servers[0].checkout, written.servers[0].checkout);
    assert_eq!(read.generator, written.generator);
    assert_eq!(read.dead_letters, written.dead_letters);
    // What somebody else leaves out is nothing.
    let stats: OpStats = serde_json::from_value(json!({"offered": 1})).unwrap();
    assert_eq!(stats, OpStats { offered: 1, ..OpStats::default() });
}

#[test]
fn a_plan_comes_out_as_it_went_in_and_no_password_is_printed() {
    let start = Start::new(&testing::overload_plan(), "mongodb://me:s3cret@h");
    assert!(!format!("{start:?}").contains("s3cret"));
    let read: Start = serde_json::from_str(&serde_json::to_string(&start).unwrap()).unwrap();
    assert_eq!((read.plan, read.segments, read.uri), (start.plan, start.segments, start.uri));
}
