//! overdrive loads a MongoDB deployment until it pushes back, and shows what the driver does about it.
//!
//! ```text
//!  profile.toml ──reader──▶ Profile ──resolve──▶ Plan   (one a trial; nothing optional left, no secret in it)
//!    text + spans                                 │
//!                                                 ▼
//!  ┌───── trial (coordinator): overload timeline · servers' own word · staleness · results ─────┐
//!  │   prepare: the data                  │ Control: Go, Stop     ▲ Report: Hello, Ready,       │
//!  │                                      ▼                       │ Snapshot, Closed, Done      │
//!  │   engine, in this process, or in a child with another driver (protocol: a line of JSON each) │
//!  │            pacer ─▶ queue of due times ─▶ workers ─▶ Records ─▶ recorder                   │
//!  │            (schedule)                  (operation, client)    (stats)                      │
//!  └────────────────────────────────────────────────────────────────────────────────────────────┘
//!                                               │ Snapshot: an interval's delta, immutable, mergeable
//!             ├─▶ progress lines, tui, metrics  └─▶ results writer: every snapshot, flushed ─▶ Summary ─▶ verdicts, report
//!                                                                      └─▶ files ─▶ compare, report, export
//! ```
//!
//! Several processes, on one machine or many, may make one load, each a *shard* of it ([`plan::shard`]). They know nothing of
//! each other but when they begin; the files that they leave are merged to those of one run ([`merge`]).
//!
//! A load may also be that of several *clients* ([`plan::clients`]), each with an engine of its own in this process. Their snapshots
//! of an interval are folded into one ([`snapshot::Folding`]), so that all that follows sees one engine.
//!
//! Beside it: the *lab* (real servers that end with us), the *gate* (a proxy that sheds load as newer servers do; `wire` and
//! `limiter` are its parts) and the *stub* (a server with scripted answers, in a process of its own, for measuring what
//! measures).
//!
//! Each arrow is one type. Nothing flows back but [`control::Control`] into the engine, and from the screen
//! [`knobs::Turn`] into the trial, which answers with a live trial: an engine of its own that takes over the load. The
//! engine knows nothing of labs, faults, files or screens, so that it can run in another process. Thresholds are the
//! coordinator's, too: it stops a trial that has become hopeless as it does when a user asks for an end.
//!
//! A simulation ([`simulate`]) takes the place of trial and engine: it carries a plan out in virtual time, and makes the same
//! snapshots.
//!
//! A search for the largest rate is a run of which each trial follows from what those before came to; which one does is
//! a pure function of that ([`search`]).
//!
//! A child is this program built with another version of the driver, or a worker in another language ([`driver`]);
//! [`trial::protocol`] is what it and the coordinator say to each other.
//!
//! Whether a driver keeps the specification of backpressure at all is looked at without any load ([`verify`]).
//!
//! The words, everywhere: an *operation* is what the workload wants done; a *call* is one application try of it; a
//! *command* is what a call sends; an *attempt* is one try of a command on a server. *Retries* are attempts less commands.
//! An attempt is *rejected* when it fails with the label `SystemOverloadedError`.

pub mod cache;
pub mod calibration;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod command;
pub mod compare;
pub mod control;
pub mod document;
pub mod drain;
pub mod driver;
pub mod engine;
pub mod export;
pub mod flow;
pub mod gate;
pub mod interrupts;
pub mod knobs;
pub mod lab;
pub mod limiter;
pub mod merge;
pub mod metric;
pub mod metrics;
pub mod operation;
pub mod overload;
pub mod owner;
pub mod panics;
pub mod plan;
pub mod profile;
pub mod progress;
pub mod report;
pub mod results;
pub mod search;
pub mod simulate;
pub mod snapshot;
pub mod stats;
pub mod stderr;
pub mod stub;
pub mod thresholds;
pub mod timer;
pub mod trial;
pub mod tui;
pub mod units;
pub mod variants;
pub mod verify;
pub mod wire;

use cli::{Cli, Command};
use command::Outcome;

/// Does what the command line says.
///
/// # Errors
/// [`command::UsageError`] for mistakes in arguments or profile; anything else is a failure of what was asked for.
pub async fn run(cli: Cli) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Run(args) => command::run::run(*args).await,
        Command::Simulate(args) => command::simulate::run(*args).await,
        Command::Check(args) => command::check::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Merge(args) => command::merge::run(&args),
        Command::Completions(args) => command::completions::run(&args),
        Command::Man(args) => command::man::run(&args),
        Command::Calibrate(args) => command::calibrate::run(args).await,
        Command::Profiles => command::profiles::run(),
        Command::Lab(args) => command::lab::run(args).await,
        Command::Gate(args) => command::gate::run(args).await,
        Command::Restore(args) => command::restore::run(args).await,
        Command::Drain(args) => command::drain::run(args).await,
        Command::Driver(args) => command::driver::run(args.command).await,
        Command::Verify(args) => command::verify::run(args).await,
        Command::Child => command::child::run().await.map(|()| Outcome::Done),
        Command::Keeper => command::keeper::run().await.map(|()| Outcome::Done),
        Command::Stub => command::stub::run().await.map(|()| Outcome::Done),
    }
}
