//! The limiter that newer servers have of their own, played by a server that knows its parameters: what a run sets, in
//! which order, and that it sets everything back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bson::{Bson, Document, doc};
use overdrive::stub::{Script, Stub};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Finished, Place, Running, assert_sums, finish, table, whole};

const RATE: &str = "ingressRequestAdmissionRatePerSec";
const BURST: &str = "ingressRequestAdmissionBurstCapacitySecs";
const SWITCH: &str = "ingressRequestRateLimiterEnabled";
const CONNECTIONS: [&str; 4] = [
    "ingressConnectionEstablishmentRatePerSec",
    "ingressConnectionEstablishmentBurstCapacitySecs",
    "ingressConnectionEstablishmentMaxQueueDepth",
    "ingressConnectionEstablishmentRateLimiterEnabled",
];
const EXEMPTIONS: &str = "ingressRequestRateLimiterApplicationExemptions";

const PROFILE: &str = r#"
[data]
documents = 0
[load]
rate = "50/s"
warmup = "500ms"
duration = "2s"
[client]
maxPoolSize = 20
[op.find.find_one]
filter = { _id = 1 }
[[overload]]
name = "limit"
at = "500ms"
for = "1s"
limit_requests = { rate = "20/s", burst = "100ms" }
"#;

/// What a server with a limiter knows.
struct Server {
    parameters: BTreeMap<String, Bson>,
    /// Everything that was set, in that order.
    sets: Vec<(String, Bson)>,
    exempted: i64,
    /// Whether the list of exemptions does what it should.
    obeys: bool,
}

impl Server {
    fn new(obeys: bool) -> Self {
        let parameters = [
            (RATE, Bson::Int32(1000)),
            (BURST, Bson::Double(2.0)),
            (SWITCH, Bson::Boolean(false)),
            (EXEMPTIONS, Bson::Document(doc! { "appNames": ["backup"] })),
        ];
        let numbers = [Bson::Int32(500), Bson::Double(1.0), Bson::Int32(9), Bson::Boolean(false)];
        let connections = CONNECTIONS.into_iter().zip(numbers);
        let parameters =
            parameters.into_iter().chain(connections).map(|(name, value)| (name.to_owned(), value)).collect();
        Self { parameters, sets: Vec::new(), exempted: 0, obeys }
    }

    /// The answer to a command, if it is one about the limiter. Exempt is the only one who talks to it here.
    fn answer(&mut self, command: &Document) -> Option<Document> {
        let list = self.parameters[EXEMPTIONS].as_document().unwrap().get_array("appNames").unwrap();
        let exempt = list.contains(&"overdrive-control".into()) && self.obeys;
        if exempt && self.parameters[SWITCH] == Bson::Boolean(true) {
            self.exempted += 1;
        }
        let (name, _) = command.iter().next()?;
        let asked = || command.iter().filter(|(name, _)| self.parameters.contains_key(*name));
        match name.as_str() {
            "getParameter" => {
                let mut reply = doc! { "quiet": false };
                reply.extend(asked().map(|(name, _)| (name.clone(), self.parameters[name].clone())));
                reply.insert("ok", 1.0);
                Some(reply)
            }
            "setParameter" => {
                let sets: Vec<_> = asked().map(|(name, value)| (name.clone(), value.clone())).collect();
                self.parameters.extend(sets.clone());
                self.sets.extend(sets);
                Some(doc! { "ok": 1.0 })
            }
            "serverStatus" => {
                let limiter = doc! { "exemptedAdmissions": self.exempted, "rejectedAdmissions": 7_i64 };
                Some(doc! { "network": { "ingressRequestRateLimiter": limiter }, "ok": 1.0 })
            }
            _ => None,
        }
    }
}

/// A stub, and before it somebody who answers for its limiter.
struct Played {
    uri: String,
    server: Arc<Mutex<Server>>,
    _stub: Stub,
}

impl Played {
    async fn start(obeys: bool) -> Self {
        let stub = Stub::start(Script::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("mongodb://{}/?directConnection=true", listener.local_addr().unwrap());
        let (server, behind) = (Arc::new(Mutex::new(Server::new(obeys))), stub.address());
        let played = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Whatever ends a connection ends it.
                tokio::spawn(serve(client, behind, Arc::clone(&played)));
            }
        });
        Self { uri, server, _stub: stub }
    }

    fn sets(&self) -> Vec<(String, Bson)> {
        self.server.lock().unwrap().sets.clone()
    }

    fn parameters(&self) -> BTreeMap<String, Bson> {
        self.server.lock().unwrap().parameters.clone()
    }
}

async fn message(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; 16];
    from.read_exact(&mut bytes).await?;
    let length = i32::from_le_bytes(bytes[..4].try_into().unwrap());
    bytes.resize(usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut bytes[16..]).await?;
    Ok(bytes)
}

async fn serve(mut client: TcpStream, behind: SocketAddr, server: Arc<Mutex<Server>>) -> std::io::Result<()> {
    let mut stub = TcpStream::connect(behind).await?;
    loop {
        let request = message(&mut client).await?;
        // A message of the newer kind is flags, the kind of its first section, and the command.
        let newer = i32::from_le_bytes(request[12..16].try_into().unwrap()) == 2013;
        let command = newer.then(|| Document::from_reader(&request[21..]).unwrap());
        let own = command.and_then(|command| server.lock().unwrap().answer(&command));
        let reply = match own {
            Some(document) => {
                let body = document.to_vec().unwrap();
                let length = i32::try_from(21 + body.len()).unwrap();
                let header =
                    [length.to_le_bytes(), [0; 4], request[4..8].try_into().unwrap(), 2013_i32.to_le_bytes()];
                [&header.concat()[..], &[0; 5], &body].concat()
            }
            None => {
                stub.write_all(&request).await?;
                message(&mut stub).await?
            }
        };
        client.write_all(&reply).await?;
    }
}

fn run(played: &Played) -> (Place, Finished) {
    run_with(played, PROFILE, "--allow-faults=limit_requests")
}

fn run_with(played: &Played, profile: &str, allowed: &str) -> (Place, Finished) {
    let place = Place::new(profile);
    let args = ["--uri", &played.uri, allowed];
    let finished = tokio::task::block_in_place(|| finish(&mut place.run(&args)));
    (place, finished)
}

fn names(sets: &[(String, Bson)]) -> Vec<&str> {
    sets.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_exempt_before_a_limit_is_set_and_until_it_is_set_back() {
    let played = Played::start(true).await;
    let before = played.parameters();
    let (_place, finished) = run(&played);
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    assert_eq!(whole(directory)["mechanism"], "native");
    let sets = played.sets();
    let probe = [RATE, BURST, SWITCH, SWITCH, BURST, RATE];
    let limit = [RATE, BURST, SWITCH, SWITCH, BURST, RATE];
    assert_eq!(names(&sets), [&[EXEMPTIONS][..], &probe, &limit, &[EXEMPTIONS]].concat());
    // The probe's limit is one that nobody meets, and the switch goes off before the numbers change.
    assert_eq!((&sets[1].1, &sets[3].1, &sets[4].1), (&1_000_000.into(), &true.into(), &false.into()));
    assert_eq!((&sets[7].1, &sets[8].1, &sets[9].1), (&20.into(), &0.1.into(), &true.into()));
    let list = sets[0].1.as_document().unwrap().get_array("appNames").unwrap();
    for name in ["backup", "OplogFetcher", "NetworkInterfaceTL-", "overdrive-control"] {
        assert!(list.contains(&name.into()), "{name}: {list:?}");
    }
    assert_eq!(played.parameters(), before);
    // The server's own count is what servers.csv has.
    assert!(table(directory, "servers.csv").iter().all(|row| row["server_admissions_rejected"] == "7"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_working_exemption_no_limit_is_set() {
    let played = Played::start(false).await;
    let before = played.parameters();
    let (place, finished) = run(&played);
    finished.assert_code(1);
    assert!(finished.stderr.contains("does not exempt the control connection"), "{}", finished.stderr);
    assert!(!place.path().join("results").exists());
    assert_eq!(played.parameters(), before);
    assert!(!played.sets().contains(&(RATE.to_owned(), 20.into())), "{:?}", played.sets());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_servers_limit_on_connections_is_set_and_set_back() {
    let played = Played::start(true).await;
    let before = played.parameters();
    let limit = "limit_connections = { rate = \"5/s\", burst = \"2s\" }";
    let profile = PROFILE.replace("limit_requests = { rate = \"20/s\", burst = \"100ms\" }", limit);
    let (_place, finished) = run_with(&played, &profile, "--allow-faults=limit_connections");
    let directory = finished.assert_code(0).directory();
    assert_sums(directory);
    assert_eq!(whole(directory)["mechanism"], "native");
    let sets = played.sets();
    let mut there_and_back = CONNECTIONS.to_vec();
    there_and_back.extend(CONNECTIONS.iter().rev());
    assert_eq!(names(&sets), there_and_back, "the switch goes on last and off first, and no list is touched");
    let numbers: Vec<&Bson> = sets[..4].iter().map(|(_, value)| value).collect();
    assert_eq!(numbers, [&5.into(), &2.0.into(), &0.into(), &true.into()]);
    assert_eq!(played.parameters(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_sets_the_limiter_back_too() {
    let played = Played::start(true).await;
    let before = played.parameters();
    let place = Place::new(PROFILE.replace("for = \"1s\"", "for = \"1h\""));
    let args = ["--uri", &played.uri, "--allow-faults=limit_requests", "--duration=10m"];
    tokio::task::block_in_place(|| {
        let mut running = Running::start(&mut place.run(&args));
        running.wait_for("overload_on");
        running.signal(Signal::TERM);
        running.finish().assert_code(130);
    });
    assert_eq!(played.parameters(), before);
}
