//! What a gate does to bytes: clients without a driver, servers that are stubs.

use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use futures_util::future::join_all;
use overdrive::gate::Gate;
use overdrive::plan::{GateSettings, Generation, Limit};
use overdrive::stub::{Script, Service, Stub};
use overdrive::wire::reply::{Form, reply};
use overdrive::wire::{HEADER, Header, MORE_TO_COME, OpCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{ANY_PORT, gate, gate_to_primary, limit, requests};

/// A client without a driver: it sends when it is told to and sees replies as they are.
struct Raw {
    stream: TcpStream,
    id: i32,
}

impl Raw {
    async fn connect(gate: &Gate) -> Self {
        Self { stream: TcpStream::connect(gate.address()).await.unwrap(), id: 100 }
    }

    async fn send(&mut self, flags: u32, command: &RawDocumentBuf) {
        self.id += 1;
        // A reply is built like a request.
        let mut message = reply(Form::Message, self.id, 0, command).unwrap();
        message[HEADER..HEADER + 4].copy_from_slice(&flags.to_le_bytes());
        self.stream.write_all(&message).await.unwrap();
    }

    async fn receive(&mut self) -> (Header, Document) {
        let reply = tokio::time::timeout(Duration::from_secs(30), self.receive_patiently());
        reply.await.expect("a reply within 30 s")
    }

    async fn receive_patiently(&mut self) -> (Header, Document) {
        let mut head = [0; HEADER];
        self.stream.read_exact(&mut head).await.unwrap();
        let header = Header::parse(&head).unwrap();
        let mut body = vec![0; header.length - HEADER];
        self.stream.read_exact(&mut body).await.unwrap();
        assert_eq!((header.op_code, &body[..5]), (OpCode::Message, &[0; 5][..]));
        (header, Document::try_from(RawDocumentBuf::from_bytes(body[5..].to_vec()).unwrap()).unwrap())
    }

    async fn ask(&mut self, command: &RawDocumentBuf) -> Document {
        self.send(0, command).await;
        let (header, answer) = self.receive().await;
        assert_eq!(header.response_to, self.id);
        answer
    }

    /// Whether the connection has been closed without another word.
    async fn is_closed(&mut self) -> bool {
        let read = tokio::time::timeout(Duration::from_secs(5), self.stream.read(&mut [0; 1])).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    }
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1, "$db": "admin" }
}

#[tokio::test]
async fn a_rejection_is_the_servers_own_to_the_letter() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let gate = gate(stub.address(), GateSettings { base_backoff_ms: Some(250), ..requests(1, 1000) }).await;
    let mut raw = Raw::connect(&gate).await;
    assert_eq!(raw.ask(&ping()).await.get_f64("ok").unwrap(), 1.0);
    let expected = doc! {
        "ok": 0.0,
        "errmsg": "Rate limiter 'ingressRequestRateLimiter' rate exceeded",
        "code": 462,
        "codeName": "IngressRequestRateLimitExceeded",
        "errorLabels": ["SystemOverloadedError", "RetryableError", "NoWritesPerformed"],
        "baseBackoffMS": 250_i64,
    };
    let answer = raw.ask(&ping()).await;
    assert_eq!(answer, expected);
    assert!(answer.keys().eq(expected.keys()), "in this order");
    gate.configure(GateSettings { generation: Generation::V8_2, ..requests(1, 1000) }).unwrap();
    let answer = raw.ask(&ping()).await;
    assert_eq!(answer.get_array("errorLabels").unwrap().len(), 2);
    assert_eq!(answer.get("baseBackoffMS"), None);
    // Nobody waits for an answer to this one.
    raw.send(MORE_TO_COME, &rawdoc! { "insert": "x", "$db": "x", "writeConcern": { "w": 0 } }).await;
    raw.ask(&ping()).await;
    assert_eq!(gate.counters().dropped, 1);
    assert_eq!(stub.counters().served, 1, "the rejected are not served");
}

#[tokio::test]
async fn the_admitted_rate_is_the_limit_whatever_is_offered() {
    // Long enough that a token is far less than a hundredth of all.
    for (rate, window) in [(60, Duration::from_secs(8)), (500, SHORT), (2000, SHORT)] {
        admitted_rate(rate, window).await;
    }
}

const SHORT: Duration = Duration::from_millis(3500);

async fn admitted_rate(limit: u32, window: Duration) {
    let stub = Stub::start(Script::default()).await.unwrap();
    let measure = async |percent: u32| {
        let gate = gate(stub.address(), requests(limit, 3000)).await;
        let offered = f64::from(limit * percent) / 100.0;
        let mut connections = Vec::new();
        for _ in 0..4 {
            let (mut from_gate, mut to_gate) = TcpStream::connect(gate.address()).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_gate, &mut tokio::io::sink()).await });
            connections.push(async move {
                let started = Instant::now();
                let message = reply(Form::Message, 1, 0, &ping()).unwrap();
                // At more than the limit the bucket is emptied first, and then never gets full again, unless this task
                // is late by its 3 s.
                let full = f64::from(limit) * 3.0 / 4.0;
                let mut sent = if percent > 100 { -1.2 * full } else { 0.0 };
                while started.elapsed() < window + Duration::from_millis(1500) {
                    while sent < started.elapsed().as_secs_f64() * offered / 4.0 {
                        to_gate.write_all(&message).await.unwrap();
                        sent += 1.0;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
        let window = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (before, start) = (gate.counters().requests, Instant::now());
            tokio::time::sleep(window).await;
            let (after, took) = (gate.counters().requests, start.elapsed());
            // What the bucket holds more than before was there to be taken; on a busy machine a sender may be late with
            // taking it.
            let admitted = after.successful + after.available_tokens - before.available_tokens;
            (admitted - before.successful, after.rejected - before.rejected, took)
        };
        let (_, (successful, rejected, took)) = tokio::join!(join_all(connections), window);
        (successful, rejected, took, gate.counters().requests)
    };
    let loads = [80, 120, 200, 300];
    let measured = join_all(loads.map(measure)).await;
    for (percent, (successful, rejected, took, all)) in loads.iter().zip(measured) {
        let rate = f64::from(u32::try_from(successful).unwrap()) / took.as_secs_f64();
        eprintln!(
            "limit {limit}/s, offered {percent} %: admitted {rate:.1}/s, rejected {rejected} in {took:?}"
        );
        assert_eq!(all.attempted, all.successful + all.rejected);
        if *percent < 100 {
            assert_eq!(all.rejected, 0);
        } else {
            assert!((rate / f64::from(limit) - 1.0).abs() < 0.01 && rejected > 0, "{percent} %: {rate}");
        }
    }
}

#[tokio::test]
async fn a_queue_makes_wait_instead_of_rejecting() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let queued = |depth| {
        let limit = limit(10, 100).map(|limit| Limit { queue_depth: depth, ..limit });
        GateSettings { requests: limit, ..GateSettings::default() }
    };
    let gate = gate(stub.address(), queued(5)).await;
    let mut raws = Vec::new();
    for _ in 0..8 {
        raws.push(Raw::connect(&gate).await);
    }
    let started = Instant::now();
    let answers = join_all(raws.iter_mut().map(|raw| async {
        let answer = raw.ask(&ping()).await;
        (answer.get_f64("ok").unwrap() == 1.0, started.elapsed())
    }))
    .await;
    let mut waits: Vec<_> = answers.iter().filter(|(ok, _)| *ok).map(|(_, wait)| *wait).collect();
    waits.sort_unstable();
    assert_eq!(waits.len(), 6, "one at once, five waited, two were rejected: {answers:?}");
    for (n, wait) in (0..).zip(&waits) {
        assert!(*wait >= Duration::from_millis(u64::saturating_sub(100 * n, 20)), "{waits:?}");
    }
    assert!(waits[5] < Duration::from_millis(1500), "{waits:?}");
    let counters = gate.counters().requests;
    assert_eq!((counters.attempted, counters.successful, counters.rejected), (8, 6, 2));

    // Who waits when the limit is taken away goes on at once; who goes away gives the place back.
    gate.configure(GateSettings { requests: limit(1, 1), ..queued(9) }).unwrap();
    let slow = limit(1, 1).map(|limit| Limit { queue_depth: 100, ..limit });
    gate.configure(GateSettings { requests: slow, ..GateSettings::default() }).unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(gate.counters().requests.queue_length, 8);
        gate.configure(GateSettings::default()).unwrap();
    };
    let started = Instant::now();
    let pings = join_all(raws.iter_mut().map(|raw| async { raw.ask(&ping()).await }));
    tokio::join!(pings, release);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn two_hundred_clients_at_once() {
    let gate = gate_to_primary(GateSettings::default()).await;
    let mut raws = Vec::new();
    for _ in 0..200 {
        raws.push(Raw::connect(&gate).await);
    }
    for _ in 0..3 {
        let answers = join_all(raws.iter_mut().map(|raw| async { raw.ask(&ping()).await })).await;
        assert!(answers.iter().all(|answer| answer.get_f64("ok").unwrap() == 1.0));
    }
    assert_eq!(gate.counters().open, 200);
    drop(raws);
    let started = Instant::now();
    while gate.counters().open > 0 {
        assert!(started.elapsed() < Duration::from_secs(10), "{}", gate.counters());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_malformed_frame_closes_its_connection_only() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let gate = gate(stub.address(), GateSettings::default()).await;
    let mut good = Raw::connect(&gate).await;
    good.ask(&ping()).await;
    let too_long = [48_000_001_i32, 1, 0, 2013].into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
    for bad in [&b"GET / HTTP/1.1\r\n\r\n"[..], &too_long, &[0; 64]] {
        let mut raw = Raw::connect(&gate).await;
        raw.stream.write_all(bad).await.unwrap();
        assert!(raw.is_closed().await);
        let mut later = Raw::connect(&gate).await;
        later.ask(&ping()).await;
        later.stream.write_all(bad).await.unwrap();
        assert!(later.is_closed().await);
        good.ask(&ping()).await;
    }
    assert_eq!(gate.counters().malformed, 6);
}

#[tokio::test]
async fn a_server_that_goes_takes_its_clients_with_it() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let gate = gate(stub.address(), GateSettings::default()).await;
    let mut raw = Raw::connect(&gate).await;
    raw.ask(&ping()).await;
    drop(stub);
    assert!(raw.is_closed().await);
    let mut late = Raw::connect(&gate).await;
    late.stream.write_all(&reply(Form::Message, 1, 0, &ping()).unwrap()).await.unwrap();
    assert!(late.is_closed().await, "nobody is behind the gate");
}

#[tokio::test]
async fn a_client_that_has_said_all_still_gets_its_answers() {
    let service = Service::Fixed(Duration::from_millis(200));
    let stub = Stub::start(Script { service, ..Script::default() }).await.unwrap();
    let gate = gate(stub.address(), requests(1, 1000)).await;
    let mut raw = Raw::connect(&gate).await;
    // Two at once, the second of which the gate could answer long before the first.
    raw.send(0, &ping()).await;
    raw.send(0, &ping()).await;
    raw.stream.shutdown().await.unwrap();
    let (first, second) = (raw.receive().await, raw.receive().await);
    assert_eq!((first.0.response_to, first.1.get_f64("ok").unwrap()), (101, 1.0));
    assert_eq!((second.0.response_to, second.1.get_i32("code").unwrap()), (102, 462));
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn a_server_that_has_stopped_holds_up_nobody_else_and_fills_no_memory() {
    let deaf = TcpListener::bind(ANY_PORT).await.unwrap();
    let gate = gate(deaf.local_addr().unwrap(), requests(1, 1000)).await;
    // Connections stay in the system's queue, and what is sent to them in its buffers.
    let mut stuck = Raw::connect(&gate).await;
    let text = "x".repeat(15 << 20);
    let mut sent = 0;
    let message = reply(Form::Message, 1, 0, &rawdoc! { "insert": text, "$db": "x" }).unwrap();
    for _ in 0..10 {
        let write = tokio::time::timeout(Duration::from_millis(500), stuck.stream.write(&message[sent..]));
        sent += write.await.map_or(0, Result::unwrap);
    }
    assert!(sent < message.len(), "{sent} bytes went where nobody reads");
    let mut other = Raw::connect(&gate).await;
    other.send(0, &ping()).await;
    // The bucket is empty: this one is the gate's own to answer, once the other is.
    let mut third = Raw::connect(&gate).await;
    assert_eq!(third.ask(&ping()).await.get_i32("code").unwrap(), 462);
}

#[tokio::test]
async fn literal_gates_shed_handshakes_too() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let hello = rawdoc! { "hello": 1, "$db": "admin" };
    for (literal, code) in [(false, None), (true, Some(462))] {
        let gate = gate(stub.address(), GateSettings { literal, ..requests(1, 1) }).await;
        let mut raw = Raw::connect(&gate).await;
        assert_eq!(raw.ask(&hello).await.get_i32("code").ok(), code);
        let counters = gate.counters().requests;
        assert_eq!((counters.exempted, counters.rejected), if literal { (0, 1) } else { (1, 0) });
    }
}
