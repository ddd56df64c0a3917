//! A trial whose load runs: its engine, and where what that says goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::child;
use super::staleness::Probing;
use super::watch::{POOL_WEDGED, Watch};
use super::{Ground, Keeping, REPORTS, Setup, groups, options_of};
use crate::control::Control;
use crate::driver;
use crate::engine::{self, parking::SPOOL};
use crate::plan::Driver;
use crate::plan::timeline::nanos;
use crate::results::{Early, EndFacts, Summary, TrialFacts, Writer};
use crate::snapshot::{Event, Report, ServerFacts, Snapshot, Totals};

/// An engine that has prepared everything and waits for Go.
pub struct Engine {
    task: AbortOnDropHandle<anyhow::Result<()>>,
    control: mpsc::Sender<Control>,
    reports: mpsc::Receiver<Report>,
    driver: Driver,
}

impl Engine {
    /// Starts it: in this process, or in a child when another driver is to make the load. The data has to be there.
    ///
    /// # Errors
    /// What keeps it from being ready.
    pub async fn start(setup: &Setup) -> anyhow::Result<Self> {
        let (control, requests) = mpsc::channel(4);
        let (sender, reports) = mpsc::channel(REPORTS);
        let (plan, uri) = (Arc::clone(&setup.plan), setup.target.uri.clone());
        let task = match &setup.plan.driver {
            None if plan.clients.is_empty() => tokio::spawn(engine::run(plan, uri, requests, sender)),
            None => {
                let uris = setup.clients.iter().map(|target| target.uri.clone()).collect();
                tokio::spawn(groups::run(plan, uris, requests, sender))
            }
            Some(driver) => {
                let launch = driver::launch(driver)?;
                tokio::spawn(child::run(launch, driver.clone(), plan, uri, requests, sender))
            }
        };
        let task = AbortOnDropHandle::new(task);
        let mut engine = Self { task, control, reports, driver: setup.plan.driver() };
        loop {
            match engine.report().await? {
                Report::Hello(driver) => engine.driver = driver,
                Report::Ready => return Ok(engine),
                Report::Snapshot(_) | Report::Closed(_) | Report::Done(_) => {
                    bail!("the engine began before it was told to")
                }
            }
        }
    }

    /// What results need to know of a trial that it runs from now on.
    pub fn facts(&self, setup: &Setup, ground: &Ground) -> TrialFacts {
        TrialFacts {
            trial: setup.place.trial,
            variant: setup.variant.clone(),
            repeat: setup.place.repeat,
            plan: (*setup.plan).clone(),
            driver: self.driver.clone(),
            server_versions: vec![ground.cluster.version.clone()],
            mechanism: match &setup.stub {
                Some(stub) => stub.script().mechanism().to_owned(),
                None => ground.bench.mechanism(&setup.plan.overloads),
            },
            params: setup.params.clone(),
            knobs: setup.knobs.clone(),
            options: options_of(&setup.plan, &setup.target, &setup.clients),
            go: setup.plan.shard.and_then(|shard| shard.start_at).unwrap_or_else(Timestamp::now),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    async fn report(&mut self) -> anyhow::Result<Report> {
        match self.reports.recv().await {
            Some(report) => Ok(report),
            // Why it has fallen silent.
            None => match (&mut self.task).await {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) => Err(anyhow!("the engine ended without its totals")),
                Err(died) => Err(anyhow!("the engine died: {died}")),
            },
        }
    }
}

/// Where a trial's results go.
enum Record {
    Files(Writer),
    /// Kept until those of the trial before are whole: its rows and these would mix.
    Aside(Vec<Kept>),
}

enum Kept {
    Interval(Box<Snapshot>, Vec<ServerFacts>),
    Event(Event),
}

/// A trial under way.
pub struct Underway {
    /// What results know of it.
    pub facts: TrialFacts,
    /// When it began.
    pub go: Instant,
    engine: Engine,
    ground: Arc<Ground>,
    probing: Option<Probing>,
    keeping: Arc<Keeping>,
    record: Record,
    watch: Watch,
    notes: Vec<String>,
    early: Option<Early>,
    /// When it was told to end before its time.
    stopped_ns: Option<u64>,
}

impl Underway {
    /// Lets the load begin, with this number for its first operation. Without a writer results are kept aside until
    /// [`Self::open`].
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn begin(
        engine: Engine,
        facts: TrialFacts,
        setup: &Setup,
        ground: &Arc<Ground>,
        first: u64,
        writer: Option<Writer>,
    ) -> anyhow::Result<Self> {
        let spool = match (&facts.plan.flow.spool, setup.keeping.found()) {
            (Some(_), Some(directory)) => Some(directory.path().join(format!("spool-{}", facts.trial))),
            _ => None,
        };
        engine.control.send(Control::Go { first, spool }).await.context("the engine is gone")?;
        let go = Instant::now();
        Ok(Self {
            facts,
            go,
            engine,
            ground: Arc::clone(ground),
            probing: ground.probe.as_ref().map(|probe| probe.start(go)),
            keeping: Arc::clone(&setup.keeping),
            record: writer.map_or_else(|| Record::Aside(Vec::new()), Record::Files),
            watch: Watch::of(&setup.plan),
            notes: setup.notes.clone(),
            early: None,
            stopped_ns: None,
        })
    }

    /// Opens the run's files, and writes what was kept aside.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn open(&mut self) -> anyhow::Result<()> {
        let Record::Aside(kept) = &mut self.record else { return Ok(()) };
        let kept = std::mem::take(kept);
        let directory = self.keeping.directory(&self.facts.plan.profile)?;
        let mut writer = Writer::start(directory, self.facts.clone())?;
        for kept in kept {
            match kept {
                Kept::Interval(snapshot, facts) => writer.snapshot(*snapshot, facts)?,
                Kept::Event(event) => writer.event(event)?,
            }
        }
        self.record = Record::Files(writer);
        Ok(())
    }

    /// What the engine says next.
    ///
    /// # Errors
    /// Why it says nothing more.
    pub async fn report(&mut self) -> anyhow::Result<Report> {
        self.engine.report().await
    }

    /// Takes an interval, and asks the servers about its end. Returns what they said, and what is worth an event.
    ///
    /// # Errors
    /// When results cannot be written.
    pub async fn interval(
        &mut self,
        snapshot: Box<Snapshot>,
    ) -> anyhow::Result<(Vec<ServerFacts>, Vec<Event>)> {
        // Asked now, so that what they say is of this interval's end; none is waited for a second.
        let leads = self.facts.plan.leads();
        let mut facts = if leads { self.ground.bench.facts().await } else { Vec::new() };
        if let Some(probing) = &self.probing {
            probing.add_to(&mut facts, snapshot.end_ns);
        }
        let mut events = self.watch.events(&snapshot, &facts);
        events.extend(snapshot.events.iter().cloned());
        for event in &events {
            if event.kind == POOL_WEDGED {
                let at = Duration::from_nanos(event.at_ns.unsigned_abs()).as_secs_f64();
                let whose = match event.subject.as_str() {
                    "" => String::new(),
                    client => format!(" of client {client}"),
                };
                self.notes.push(format!(
                    "pool{whose} wedged at {at:.0} s, a fault of the driver's and not of the servers: {}",
                    event.detail
                ));
            }
            if event.kind == SPOOL {
                self.notes.push(format!("spool: {}", event.detail));
            }
            self.event(event.clone())?;
        }
        match &mut self.record {
            Record::Files(writer) => writer.snapshot(*snapshot, facts.clone())?,
            Record::Aside(kept) => kept.push(Kept::Interval(snapshot, facts.clone())),
        }
        Ok((facts, events))
    }

    /// Takes an event.
    ///
    /// # Errors
    /// When results cannot be written.
    pub fn event(&mut self, event: Event) -> anyhow::Result<()> {
        match &mut self.record {
            Record::Files(writer) => writer.event(event)?,
            Record::Aside(kept) => kept.push(Kept::Event(event)),
        }
        Ok(())
    }

    /// Asks for an end before its time.
    pub async fn stop(&mut self) {
        if self.stopped_ns.is_none() {
            self.stopped_ns = Some(nanos(self.go.elapsed()));
            // One that is gone has a reason, which is heard next.
            let _ = self.engine.control.send(Control::Stop).await;
        }
    }

    /// Whether its warm-up is over.
    pub fn is_measured(&self) -> bool {
        self.go.elapsed() >= self.facts.plan.load.warmup.duration()
    }

    /// Something more that people should read beside the numbers.
    pub fn note(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    /// It ends before its time as it is meant to; `note` is what people read of that under its numbers.
    pub fn ends_early(&mut self, why: Early, note: String) {
        self.early = Some(why);
        self.notes.insert(0, note);
    }

    /// Goes on to the end with nobody looking, and makes the files whole.
    ///
    /// # Errors
    /// When the engine failed, or results cannot be written.
    pub async fn end_unseen(mut self) -> anyhow::Result<Summary> {
        loop {
            match self.report().await? {
                Report::Snapshot(snapshot) => drop(self.interval(snapshot).await?),
                Report::Done(totals) => return self.finish(totals).await,
                _ => {}
            }
        }
    }

    /// Writes the trial's last rows and adds it up.
    ///
    /// # Errors
    /// When results cannot be written.
    pub async fn finish(mut self, totals: Totals) -> anyhow::Result<Summary> {
        self.open()?;
        let Record::Files(writer) = self.record else { bail!("the results have no files") };
        let end = EndFacts {
            ended: Some(Timestamp::now()),
            early: self.early,
            stopped_ns: self.stopped_ns,
            notes: self.notes,
        };
        // Files are written and synced on the writer's thread; waiting for it must not hold up a runtime thread.
        Ok(tokio::task::spawn_blocking(move || writer.finish(totals, end)).await??)
    }

    /// Keeps the intervals of a trial that failed.
    pub async fn abandon(self) {
        if let Record::Files(writer) = self.record {
            // The error that it failed with tells more than what may befall the rest of the files.
            let _ = tokio::task::spawn_blocking(move || writer.abandon()).await;
        }
    }
}
