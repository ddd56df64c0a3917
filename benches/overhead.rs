//! What overdrive costs: the same operations by a bare loop over the driver and by the engine with results written, in
//! alternation, in one process, on one lab. Prints medians of operations per second and of client CPU per operation,
//! and the ratios that the README shows; before that, memory with many workers, how late operations start, and what the
//! screen costs (which takes the command `script` of util-linux, for a terminal to draw on).
//!
//! `cargo bench --bench overhead` (about eight minutes; `-- quick` for one short round that only shows that it works,
//! `-- rounds=25` for more rounds than five, `-- find` for the workloads with that in their name). Rounds go through the
//! ways forwards and backwards in turn, so that a drift of the machine's speed meets all of them alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bson::{Document, RawDocumentBuf, doc};
use mongodb::event::EventHandler;
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};
use overdrive::client::merge::resolve_options;
use overdrive::client::options;
use overdrive::client::uri::Uri;
use overdrive::engine::generator::{cpu_ns, rss_bytes};
use overdrive::interrupts::Interrupts;
use overdrive::lab::{Lab, LabOptions};
use overdrive::plan::Attempts;
use overdrive::profile::{Overrides, Profile, Source, resolve};
use overdrive::progress::Silent;
use overdrive::results::Summary;
use overdrive::results::tables::RunsRow;
use overdrive::stub::{Script, Stub};
use overdrive::trial::{self, Keeping, Setup};
use overdrive::variants::Place;

const WORKERS: u32 = 32;
const DOCUMENTS: u64 = 1000;

/// What is compared, in the order of a round.
const WAYS: [Way; 5] = [Way::Bare, Way::BarePool, Way::BareCommands, Way::Light, Way::Full];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// A loop over the driver, nothing else.
    Bare,
    /// The same with pool-event handlers that do nothing.
    BarePool,
    /// The same with pool-event and command handlers that do nothing.
    BareCommands,
    /// overdrive, counting by pool events.
    Light,
    /// overdrive, counting by pool and command events.
    Full,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare loop",
            Self::BarePool => "bare loop, no-op pool handlers",
            Self::BareCommands => "bare loop, no-op command handler",
            Self::Light => "overdrive --attempts light",
            Self::Full => "overdrive",
        }
    }
}

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    insert: bool,
    payload: usize,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "find, 100 B", insert: false, payload: 100 },
    Workload { name: "find, 15 kB", insert: false, payload: 15_000 },
    Workload { name: "insert, 100 B", insert: true, payload: 100 },
    Workload { name: "insert, 15 kB", insert: true, payload: 15_000 },
];

#[derive(Clone, Copy)]
struct Figure {
    per_s: f64,
    cpu_us: f64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let quick = std::env::args().any(|arg| arg == "quick");
    let option = |arg: &String| arg == "quick" || arg.starts_with('-') || arg.starts_with("rounds=");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !option(arg)).collect();
    let more = std::env::args().find_map(|arg| arg.strip_prefix("rounds=")?.parse().ok());
    let (rounds, measured) =
        if quick { (1, Duration::from_secs(1)) } else { (more.unwrap_or(5), Duration::from_secs(3)) };
    let lab = Lab::start(&LabOptions::kept_by(env!("CARGO_BIN_EXE_overdrive")), &|text| eprintln!("{text}"))
        .await?;
    let mut interrupts = Interrupts::listen()?;
    memory(&lab, quick, &mut interrupts).await?;
    lateness(measured, &mut interrupts).await?;
    screen(&lab, rounds, measured)?;
    println!("\n| {WORKERS} workers, median of {rounds} | operations/s | CPU µs/operation | CPU ratio |");
    println!("|---|---|---|---|");
    for workload in
        WORKLOADS.into_iter().filter(|w| wanted.is_empty() || wanted.iter().any(|part| w.name.contains(part)))
    {
        let mut figures = vec![Vec::new(); WAYS.len()];
        for round in 0..rounds {
            let mut ways: Vec<_> = WAYS.into_iter().zip(&mut figures).collect();
            if round % 2 == 1 {
                ways.reverse();
            }
            for (way, seen) in ways {
                eprintln!("{}, round {} of {rounds}: {}", workload.name, round + 1, way.name());
                seen.push(match way {
                    Way::Light | Way::Full => engine(&lab, workload, way, measured, &mut interrupts).await?,
                    _ => bare(&lab, workload, way, measured).await?,
                });
            }
        }
        let medians: Vec<Figure> = figures.iter().map(|seen| median(seen)).collect();
        for (way, figure) in WAYS.into_iter().zip(&medians) {
            // Round by round, since the machine's speed drifts.
            let ratio = match way {
                Way::Light => paired(&figures[3], &figures[1]),
                Way::Full => paired(&figures[4], &figures[2]),
                _ => String::new(),
            };
            println!(
                "| {}: {} | {:.0} | {:.1} | {ratio} |",
                workload.name,
                way.name(),
                figure.per_s,
                figure.cpu_us
            );
        }
    }
    lab.stop().await
}

async fn bare(lab: &Lab, workload: Workload, way: Way, measured: Duration) -> anyhow::Result<Figure> {
    let mut options = ClientOptions::parse(format!("{}&maxPoolSize=100", lab.uri())).await?;
    if way != Way::Bare {
        options.cmap_event_handler = Some(EventHandler::callback(drop));
    }
    if way == Way::BareCommands {
        options.command_event_handler = Some(EventHandler::callback(drop));
    }
    let client = Client::with_options(options)?;
    let inserts: Collection<Document> = client.database("bench").collection("bare");
    let finds: Collection<RawDocumentBuf> = client.database("bench").collection("bare");
    inserts.drop().await?;
    let payload = "x".repeat(workload.payload);
    let all = (0..i64::try_from(DOCUMENTS)?).map(|key| doc! { "_id": key, "payload": &payload });
    inserts.insert_many(all).await?;
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(DOCUMENTS)));
    let tasks: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (stop, next) = (Arc::clone(&stop), Arc::clone(&next));
            let (inserts, finds, payload) = (inserts.clone(), finds.clone(), payload.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    if workload.insert {
                        inserts.insert_one(doc! { "_id": key.cast_signed(), "payload": &payload }).await?;
                    } else {
                        finds.find_one(doc! { "_id": (key % DOCUMENTS).cast_signed() }).await?;
                    }
                }
                Ok::<(), mongodb::error::Error>(())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (start, cpu, done) = (Instant::now(), cpu_ns(), next.load(Ordering::Relaxed));
    tokio::time::sleep(measured).await;
    let (time, cpu, done) = (start.elapsed(), cpu_ns() - cpu, next.load(Ordering::Relaxed) - done);
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    client.shutdown().immediate(true).await;
    Ok(figure(done, time.as_secs_f64(), cpu))
}

async fn engine(
    lab: &Lab,
    workload: Workload,
    way: Way,
    measured: Duration,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Figure> {
    let operation = if workload.insert {
        "[op.insert.insert_one]"
    } else {
        "[op.find.find_one]\nfilter = { _id = { \"^Key\" = \"uniform\" } }"
    };
    let text = format!(
        "[data]\ndocuments = {DOCUMENTS}\ndocument = {{ _id = {{ \"^Key\" = \"sequential\" }}, payload = \"{}\" }}\n\
         [load]\nmodel = \"closed\"\nworkers = {WORKERS}\nwarmup = \"1s\"\nduration = \"{}s\"\n\
         [client]\nmaxPoolSize = 100\n{operation}\n",
        "x".repeat(workload.payload),
        measured.as_secs()
    );
    let attempts = if way == Way::Light { Attempts::Light } else { Attempts::Full };
    let summary = run(lab.uri(), text, attempts, interrupts).await?;
    let (whole, all) = (summary.whole(), &summary.overall().stats);
    Ok(figure(all.outcomes.sum(), whole.duration_s, whole.generator.cpu_ns))
}

/// Memory with 2 000 workers: in the first third of the time and in the last.
async fn memory(lab: &Lab, quick: bool, interrupts: &mut Interrupts) -> anyhow::Result<()> {
    let seconds = if quick { 2 } else { 30 };
    let text = format!(
        "[load]\nmodel = \"closed\"\nworkers = 2000\nwarmup = \"{seconds}s\"\nduration = \"{seconds}s\"\n\
         [client]\nmaxPoolSize = 100\n[op.find.find_one]\nfilter = {{ _id = {{ \"^Key\" = \"uniform\" }} }}\n"
    );
    let summary = run(lab.uri(), text, Attempts::Full, interrupts).await?;
    let rss = summary.whole().generator.rss_max_bytes / (1 << 20);
    let now = rss_bytes().unwrap_or(0) / (1 << 20);
    println!(
        "memory with 2000 workers: at most {rss} MiB over {seconds} s after {seconds} s of warm-up, {now} MiB at the end"
    );
    Ok(())
}

/// From the intended to the actual start, with 2 000 operations due each second, against a stub that leaves the
/// processors alone.
async fn lateness(measured: Duration, interrupts: &mut Interrupts) -> anyhow::Result<()> {
    let stub = Stub::start(Script::default()).await?;
    let text = format!(
        "[data]\ndocuments = 0\n[load]\nrate = 2000\nwarmup = \"2s\"\nduration = \"{}s\"\n[client]\nmaxPoolSize = 100\n\
         [op.ping.run_command]\ncommand = {{ ping = 1 }}\n",
        measured.as_secs() * 3
    );
    let summary = run(&stub.uri(), text, Attempts::Full, interrupts).await?;
    let (lag, service) = (&summary.overall().stats.lag, &summary.overall().stats.service);
    let show = |us: Option<u64>| us.map_or("-".to_owned(), |us| us.to_string());
    println!(
        "lag at 2000/s: p50 {} µs, p99 {} µs (service time p50 {} µs)",
        show(lag.percentile_us(0.5)),
        show(lag.percentile_us(0.99)),
        show(service.percentile_us(0.5)),
    );
    Ok(())
}

/// Operations per second of the program with the screen, held against the same with lines, in a terminal of 120×40.
fn screen(lab: &Lab, rounds: usize, measured: Duration) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let seconds = measured.as_secs() * 2;
    let text = format!(
        "[data]\ncollection = \"screen\"\n[load]\nmodel = \"closed\"\nworkers = {WORKERS}\nwarmup = \"1s\"\n\
         duration = \"{seconds}s\"\n[client]\nmaxPoolSize = 100\n\
         [op.find.find_one]\nfilter = {{ _id = {{ \"^Key\" = \"uniform\" }} }}\n"
    );
    std::fs::write(place.path().join("screen.toml"), text)?;
    let goodput = |ui: &str, out: &str| -> anyhow::Result<f64> {
        eprintln!("--ui {ui}, {out}");
        let command = format!(
            "stty cols 120 rows 40; exec '{}' run screen.toml --ui {ui} --out {out} --uri '{}'",
            env!("CARGO_BIN_EXE_overdrive"),
            lab.uri()
        );
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
        script.current_dir(place.path()).env("TERM", "xterm").stdin(std::process::Stdio::null());
        let output = script.output().context("the command `script` does not start")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let mut runs = csv::Reader::from_path(place.path().join(out).join("runs.csv"))?;
        let row: RunsRow = runs.deserialize().next().context("no run is there")??;
        row.goodput_ops_per_s.context("nothing succeeded")
    };
    let mut ratios = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let of = |ui: &str| goodput(ui, &format!("{ui}-{round}"));
        let (with, without) = if round % 2 == 0 {
            let with = of("tui")?;
            (with, of("lines")?)
        } else {
            let without = of("lines")?;
            (of("tui")?, without)
        };
        ratios.push(with / without);
    }
    println!("operations/s with the screen, of those with lines: {}", quarters(ratios));
    Ok(())
}

async fn run(
    uri: &str,
    text: String,
    attempts: Attempts,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Summary> {
    let source = Source { name: "overhead".to_owned(), shown: "overhead".to_owned(), text: text.clone() };
    let profile = Profile::read(source, &options::check)?;
    let overrides = Overrides { attempts: Some(attempts), ..Overrides::default() };
    let plan = resolve(&profile, &overrides, &options::check)?;
    let out = tempfile::tempdir()?;
    let setup = Setup {
        clients: Vec::new(),
        target: resolve_options(&Uri::parse(uri)?, &plan.client, None, &plan.driver())?,
        plan: Arc::new(plan),
        place: Place::ONLY,
        variant: "base".to_owned(),
        params: Vec::new(),
        knobs: Vec::new(),
        keeping: Arc::new(Keeping::new(out.path().to_owned(), None, text)),
        notes: Vec::new(),
        lab: None,
        stub: None,
    };
    let summaries = trial::run(setup, &mut Silent, interrupts, None).await?.summaries;
    let summary = summaries.into_iter().next().context("no trial ended")?;
    ensure!(summary.broken.is_empty(), "sums do not add up: {:?}", summary.broken);
    Ok(summary)
}

#[expect(clippy::cast_precision_loss, reason = "counts and times of a few seconds")]
fn figure(operations: u64, seconds: f64, cpu_ns: u64) -> Figure {
    Figure { per_s: operations as f64 / seconds, cpu_us: cpu_ns as f64 / 1000.0 / operations as f64 }
}

fn median(figures: &[Figure]) -> Figure {
    Figure {
        per_s: middle(figures.iter().map(|f| f.per_s).collect()),
        cpu_us: middle(figures.iter().map(|f| f.cpu_us).collect()),
    }
}

/// The median of the rounds' ratios of CPU time, and between which quarters half of them lie.
fn paired(these: &[Figure], those: &[Figure]) -> String {
    quarters(these.iter().zip(those).map(|(a, b)| a.cpu_us / b.cpu_us).collect())
}

/// The median, and between which quarters half of them lie.
fn quarters(mut ratios: Vec<f64>) -> String {
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |quarter: usize| ratios[(ratios.len() - 1) * quarter / 4];
    format!("{:.2} ({:.2} to {:.2})", at(2), at(1), at(3))
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
