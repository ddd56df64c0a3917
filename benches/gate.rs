//! What a gate costs: latency added to a ping, messages a second that one core can pass or reject, and memory for a
//! thousand connections. A stub stands behind the gate, and each has a thread of its own.
//!
//! `cargo bench --bench gate` (about half a minute).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bson::rawdoc;
use overdrive::engine::generator::rss_bytes;
use overdrive::gate::Gate;
use overdrive::plan::{GateSettings, Limit};
use overdrive::stub::{Script, Stub};
use overdrive::units::Span;
use overdrive::wire::Header;
use overdrive::wire::reply::{Form, reply};
use rustix::time::{ClockId, clock_gettime};

/// Pings in a round of one way, and rounds of each way in alternation.
const PINGS: usize = 1000;
const ROUNDS: usize = 15;
/// Clients that keep a gate busy, and for how long.
const CLIENTS: usize = 16;
const BUSY: Duration = Duration::from_secs(4);
/// Idle connections.
const MANY: usize = 1000;

fn main() {
    let (stub, _) = in_a_thread(async || {
        let stub = Stub::start(Script::default()).await.expect("a port for the stub");
        (stub.address(), stub)
    });
    let gate = |rate| {
        let limit = Limit { rate, burst: Span::seconds(1), queue_depth: 0 };
        let settings = GateSettings { requests: Some(limit), ..GateSettings::default() };
        in_a_thread(async move || {
            let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let gate = Gate::start(stub.to_string(), any_port, settings).await.expect("a port for the gate");
            (gate.address(), gate)
        })
    };
    // One that never rejects, but has to find that out each time; and one that always does.
    let (open, open_cpu) = gate(NonZeroU32::MAX);
    let (shut, shut_cpu) = gate(NonZeroU32::MIN);

    latencies(stub, open);
    for (what, address, cpu) in [("passed", open, &open_cpu), ("rejected", shut, &shut_cpu)] {
        let before = cpu();
        let (messages, wall) = busy(address);
        let used = cpu() - before;
        let per_core = f64::from(u32::try_from(messages).unwrap_or(u32::MAX)) / used.as_secs_f64();
        println!(
            "{what}: {per_core:.0} messages per second of one core ({messages} in {:.1} s by {CLIENTS} clients, {:.0} % of a core)",
            wall.as_secs_f64(),
            100.0 * used.as_secs_f64() / wall.as_secs_f64()
        );
    }
    memory(open);
}

/// Runs something in a thread of its own for as long as the process lives. Gives its address, and a way to ask for the
/// CPU time that it has used.
fn in_a_thread<T, F>(start: F) -> (SocketAddr, impl Fn() -> Duration)
where
    F: AsyncFnOnce() -> (SocketAddr, T) + Send + 'static,
{
    let (ready, address) = channel();
    let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel::<std::sync::mpsc::Sender<Duration>>();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (address, _kept) = start().await;
            ready.send(address).expect("somebody waits");
            while let Some(answer) = asked.recv().await {
                let used = clock_gettime(ClockId::ThreadCPUTime);
                let used = Duration::try_from(used).expect("a time that is not negative");
                answer.send(used).expect("somebody waits");
            }
            std::future::pending::<()>().await;
        });
    });
    let cpu = move || {
        let (answer, used) = channel();
        ask.send(answer).expect("the thread lives");
        used.recv().expect("the thread answers")
    };
    (address.recv().expect("the thread starts"), cpu)
}

struct Client(TcpStream, Vec<u8>);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket option");
        Self(stream, reply(Form::Message, 1, 0, &rawdoc! { "ping": 1, "$db": "admin" }).expect("a message"))
    }

    fn ping(&mut self) {
        let mut buffer = [0; 1024];
        self.0.write_all(&self.1).expect("it reads");
        let mut have = self.0.read(&mut buffer).expect("it answers");
        while buffer.first_chunk().is_none_or(|head| Header::parse(head).expect("a header").length > have) {
            have += self.0.read(&mut buffer[have..]).expect("it answers");
        }
    }
}

fn latencies(stub: SocketAddr, gate: SocketAddr) {
    let mut clients = [stub, gate].map(Client::connect);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (client, times) in clients.iter_mut().zip(&mut times) {
            for _ in 0..PINGS {
                let started = Instant::now();
                client.ping();
                // The first round is to get warm.
                if round > 0 {
                    times.push(started.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
    }
    let percentile = |times: &mut Vec<f64>, percent: usize| {
        times.sort_by(f64::total_cmp);
        times[times.len() * percent / 100]
    };
    for percent in [50, 99] {
        let [direct, through] = times.each_mut().map(|times| percentile(times, percent));
        println!(
            "ping p{percent}: direct {direct:.0} µs, through the gate {through:.0} µs: {:+.0} µs",
            through - direct
        );
    }
}

fn busy(gate: SocketAddr) -> (u64, Duration) {
    let (messages, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::connect(gate);
                while !over.load(Ordering::Relaxed) {
                    client.ping();
                    messages.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(BUSY);
        over.store(true, Ordering::Relaxed);
    });
    (messages.load(Ordering::Relaxed), started.elapsed())
}

fn memory(gate: SocketAddr) {
    let before = rss_bytes().unwrap_or(0);
    let mut clients: Vec<_> = (0..MANY).map(|_| Client::connect(gate)).collect();
    let started = Instant::now();
    for client in &mut clients {
        client.ping();
    }
    let took = started.elapsed();
    let grown = rss_bytes().unwrap_or(0).saturating_sub(before) / 1024;
    println!("{MANY} connections: {grown} KiB in gate and stub together; a ping on each took {took:?}");
}
