//! What drivers and replica sets make of a gate.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use futures_util::future::join_all;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};
use overdrive::lab::{Lab, LabOptions};
use overdrive::plan::GateSettings;
use overdrive::stub::{Failures, Pick, Role, Script, Service, Stub};

use super::{client, gate, gate_to_primary, limit, requests, run_ping};
use crate::lab_options;

#[tokio::test]
async fn a_replica_set_forms_and_elects_through_gates_that_let_hardly_anything_through() {
    let options = LabOptions { gates: Some(requests(1, 1000)), ..lab_options() };
    let lab = Lab::start(&options, &|_| {}).await.unwrap();
    let gates: BTreeSet<_> = lab.gates().iter().map(|gate| gate.address().to_string()).collect();
    let members: BTreeSet<_> = lab.addresses().iter().map(ToString::to_string).collect();
    assert!(gates.is_disjoint(&members));
    for gate in &gates {
        assert!(lab.uri().contains(gate));
    }
    let uri = format!("{}&appName=overdrive-control", lab.uri());
    let control = Client::with_uri_str(&uri).await.unwrap();
    let things: Collection<Document> = control.database("gate").collection("things");
    things.insert_one(doc! { "_id": 1 }).await.unwrap();

    let primary = |hello: Document| hello.get_str("primary").ok().map(str::to_owned);
    let ask = |address: SocketAddr| async move {
        let uri = format!("mongodb://{address}/?directConnection=true&appName=overdrive-control");
        let client = Client::with_uri_str(uri).await.unwrap();
        client.database("admin").run_command(doc! { "hello": 1 }).await.unwrap()
    };
    let addresses = lab.addresses();
    let hello = ask(addresses[0]).await;
    let hosts: BTreeSet<_> =
        hello.get_array("hosts").unwrap().iter().map(|host| host.as_str().unwrap().to_owned()).collect();
    assert_eq!(hosts, gates);
    let first = primary(hello).unwrap();
    assert_eq!(first, lab.gates()[0].address().to_string());

    let pid = i32::try_from(lab.pids()[0]).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let started = Instant::now();
    while primary(ask(addresses[1]).await).is_none_or(|now| now == first) {
        assert!(started.elapsed() < Duration::from_secs(60), "nobody is elected");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprintln!("another primary after {:.1} s", started.elapsed().as_secs_f64());
    things.insert_one(doc! { "_id": 2 }).await.unwrap();
    lab.restart(0).await.unwrap();
    let started = Instant::now();
    while !ask(addresses[0]).await.get_bool("secondary").unwrap()
        && !ask(addresses[0]).await.get_bool("isWritablePrimary").unwrap()
    {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not come back");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for gate in lab.gates() {
        let counters = gate.counters();
        assert!(counters.requests.exempted > 10, "{counters}");
        assert_eq!(counters.requests.rejected, 0, "{counters}");
    }
    lab.stop().await.unwrap();
}

#[tokio::test]
async fn sixty_increments_at_20_per_second_are_applied_exactly_once() {
    let gate = gate_to_primary(requests(20, 1000)).await;
    let client = client(&gate, "&maxAdaptiveRetries=20&maxPoolSize=30").await;
    let things: Collection<Document> = client.database("gate").collection("increments");
    let round = async |from: i32| {
        join_all((from..from + 20).map(|_| {
            let update = things.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).upsert(from == 0);
            async move { update.await.unwrap() }
        }))
        .await
    };
    // The document is made alone, so that no two make it.
    things.update_one(doc! { "_id": 1 }, doc! { "$set": { "n": 0 } }).upsert(true).await.unwrap();
    for from in [1, 21, 41] {
        for done in round(from).await {
            assert_eq!((done.matched_count, done.modified_count), (1, 1));
        }
    }
    let found = loop {
        // This find costs a token, too.
        match things.find_one(doc! { "_id": 1 }).await {
            Ok(found) => break found.unwrap(),
            Err(error) => assert!(error.contains_label("SystemOverloadedError"), "{error}"),
        }
    };
    assert_eq!(found.get("n"), Some(&Bson::Int32(60)));
    let counters = gate.counters().requests;
    eprintln!("{counters:?}");
    assert_eq!(counters.attempted, counters.successful + counters.rejected);
    assert!(counters.successful >= 62 && counters.rejected > 0 && counters.exempted > 0, "{counters:?}");
    gate.configure(GateSettings::default()).unwrap();
    things.drop().await.unwrap();
}

#[tokio::test]
async fn fifteen_transactions_commit_under_a_limit() {
    // Fifteen begin at once, and there are two tokens.
    let gate = gate_to_primary(requests(20, 100)).await;
    let client = client(&gate, "&maxAdaptiveRetries=20").await;
    let things: Collection<Document> = client.database("gate").collection("transactions");
    things.insert_one(doc! { "_id": "first" }).await.unwrap();
    let commit = async |i: i32| {
        let mut session = client.start_session().await.unwrap();
        session.start_transaction().await.unwrap();
        for part in 0..3 {
            things.insert_one(doc! { "_id": i * 3 + part }).session(&mut session).await.unwrap();
        }
        session.commit_transaction().await.unwrap();
    };
    join_all((0..15).map(commit)).await;
    let counters = gate.counters().requests;
    assert!(counters.rejected > 0, "{counters:?}");
    gate.configure(GateSettings::default()).unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 46);
    things.drop().await.unwrap();
}

#[tokio::test]
async fn compressed_clients_understand_their_rejection() {
    for compressor in ["zstd", "zlib", "snappy"] {
        let gate = gate_to_primary(requests(1, 1000)).await;
        let client = client(&gate, &format!("&compressors={compressor}&maxAdaptiveRetries=0")).await;
        run_ping(&client).await.unwrap();
        let error = run_ping(&client).await.unwrap_err();
        assert!(error.contains_label("RetryableError"), "{compressor}: {error}");
        let mongodb::error::ErrorKind::Command(error) = error.kind.as_ref() else { panic!("{error}") };
        assert_eq!((error.code, error.code_name.as_str()), (462, "IngressRequestRateLimitExceeded"));
        let counters = gate.counters();
        assert_eq!((counters.malformed, counters.requests.rejected), (0, 1));
    }
}

/// The driver waits jitter × base × 2ⁿ before its n-th retry, so that on average three retries take half of 14 bases.
#[tokio::test]
async fn the_driver_backs_off_from_the_base_that_it_is_told() {
    let stub = Stub::start(Script::default()).await.unwrap();
    let mut took = Vec::new();
    for base in [1, 200] {
        let settings = GateSettings { base_backoff_ms: Some(base), ..requests(1, 1) };
        let gate = gate(stub.address(), settings).await;
        let client = client(&gate, "&maxAdaptiveRetries=3").await;
        let started = Instant::now();
        let pings = (0..20).map(|_| run_ping(&client));
        assert!(join_all(pings).await.iter().all(Result::is_err));
        took.push(started.elapsed());
        assert_eq!(gate.counters().requests.rejected, 80);
    }
    eprintln!("20 pings with 3 retries each: {took:?}");
    // By the driver's own base of 100 ms nobody waits for longer than 14 × 100 ms; by this one half of them do, so that the
    // longest of 20 does but for one run in a million.
    assert!(took[0] < took[1] && took[1] > Duration::from_millis(1400), "{took:?}");
}

#[tokio::test]
async fn a_connection_limit_closes_handshakes_and_the_driver_keeps_its_pool() {
    let service = Service::Fixed(Duration::from_millis(100));
    let stub = Stub::start(Script { service, role: Role::Standalone, ..Script::default() }).await.unwrap();
    let gate = gate(stub.address(), GateSettings::default()).await;
    let (clears, closed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let uri =
        format!("mongodb://{}/?directConnection=true&maxPoolSize=50&maxAdaptiveRetries=5", gate.address());
    let mut options = ClientOptions::parse(uri).await.unwrap();
    let counted = (Arc::clone(&clears), Arc::clone(&closed));
    options.cmap_event_handler = Some(EventHandler::callback(move |event| match event {
        CmapEvent::PoolCleared(_) => drop(counted.0.fetch_add(1, Ordering::Relaxed)),
        CmapEvent::ConnectionClosed(_) => drop(counted.1.fetch_add(1, Ordering::Relaxed)),
        _ => {}
    }));
    let client = Client::with_options(options).unwrap();
    run_ping(&client).await.unwrap();
    // The monitor has its connection.
    gate.configure(GateSettings { connections: limit(5, 200), ..GateSettings::default() }).unwrap();
    let pings = (0..30).map(|_| run_ping(&client));
    let done = join_all(pings).await;
    let counters = gate.counters().connections;
    eprintln!("{counters:?}; {} of 30 pings", done.iter().filter(|done| done.is_ok()).count());
    assert_eq!(counters.attempted, counters.successful + counters.rejected);
    assert!(counters.rejected > 0 && closed.load(Ordering::Relaxed) > 0, "{counters:?}");
    assert_eq!(clears.load(Ordering::Relaxed), 0);
    for error in done.into_iter().filter_map(Result::err) {
        assert!(error.contains_label("SystemOverloadedError"), "{error}");
    }
}

#[tokio::test]
async fn a_driver_takes_the_stub_for_a_server() {
    let failures =
        Failures { pick: Pick::Every(10), code: 462, labels: vec!["SystemOverloadedError".to_owned()] };
    let service = Service::Fixed(Duration::from_millis(2));
    let script = Script { role: Role::Primary, service, failures: Some(failures), ..Script::default() };
    let stub = Stub::start(script).await.unwrap();
    let client = Client::with_uri_str(stub.uri()).await.unwrap();
    let things: Collection<Document> = client.database("stub").collection("things");
    let started = Instant::now();
    things.insert_one(doc! { "_id": 1 }).await.unwrap();
    assert_eq!(things.update_one(doc! {}, doc! { "$inc": { "n": 1 } }).await.unwrap().matched_count, 1);
    assert_eq!(things.find_one(doc! {}).await.unwrap(), None);
    assert_eq!(things.find_one_and_delete(doc! {}).await.unwrap(), None);
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 0);
    assert!(things.distinct("_id", doc! {}).await.unwrap().is_empty());
    let mut session = client.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    things.insert_one(doc! { "_id": 2 }).session(&mut session).await.unwrap();
    session.commit_transaction().await.unwrap();
    run_ping(&client).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(18), "nine commands of 2 ms");
    let error = run_ping(&client).await.unwrap_err();
    assert!(error.contains_label("SystemOverloadedError"), "{error}");
    let counters = stub.counters();
    assert_eq!((counters.served, counters.failed), (9, 1), "{counters:?}");
}
