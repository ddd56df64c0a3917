//! The course of a run's load: one trial, and a live one after the other when knobs are turned.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use tokio_util::task::AbortOnDropHandle;

use super::knobs::{Knobs, Step, Successor};
use super::timeline::{self, Happening, Next, Timeline};
use super::underway::{Engine, Underway};
use super::{Ground, Setup, start};
use crate::interrupts::Interrupts;
use crate::knobs::{Turn, Turns};
use crate::progress::Progress;
use crate::results::{Early, Summary, Writer};
use crate::snapshot::{Report, Totals};
use crate::thresholds::Verdict;
use crate::thresholds::hopeless::{self, Hopeless};

/// Everything that goes on while there is load.
pub struct Course<'a> {
    first: &'a Setup,
    ground: &'a Arc<Ground>,
    progress: &'a mut dyn Progress,
    interrupts: Interrupts,
    knobs: Option<Knobs<'a>>,
    /// When the first trial began.
    began: Instant,
    trial: Underway,
    /// Whether there is hope for it, where anybody asked.
    hopeless: Option<Hopeless>,
    /// The trial before, while its operations still end.
    before: Option<AbortOnDropHandle<anyhow::Result<Summary>>>,
    /// What follows the trial that runs once it begins nothing more.
    successor: Option<Box<Successor>>,
    timeline: Timeline,
    /// Nothing more is begun.
    stopping: bool,
    trouble: Option<anyhow::Error>,
}

impl<'a> Course<'a> {
    /// Lets the first trial's load begin.
    ///
    /// # Errors
    /// When results cannot be written, or the engine is gone.
    pub async fn begin(
        engine: Engine,
        setup: &'a Setup,
        ground: &'a Arc<Ground>,
        progress: &'a mut dyn Progress,
        interrupts: Interrupts,
        turns: Option<&'a mut Turns>,
    ) -> anyhow::Result<Self> {
        let directory = setup.keeping.directory(&setup.plan.profile)?;
        let facts = engine.facts(setup, ground);
        progress.started(&facts, directory.path());
        let writer = Writer::start(directory, facts.clone())?;
        if let Some(stub) = &setup.stub {
            stub.begin().await?;
        }
        start::come(&setup.plan).await?;
        let trial = Underway::begin(engine, facts, setup, ground, 0, Some(writer)).await?;
        Ok(Self {
            first: setup,
            ground,
            progress,
            interrupts,
            knobs: turns.map(|turns| Knobs::new(turns, setup)),
            began: trial.go,
            timeline: Timeline::start(ground, Arc::clone(&setup.plan), trial.go),
            hopeless: Hopeless::of(&trial.facts),
            trial,
            before: None,
            successor: None,
            stopping: false,
            trouble: None,
        })
    }

    /// With something more to read beside the first trial's numbers.
    pub fn noting(mut self, note: Option<String>) -> Self {
        self.trial.note(note);
        self
    }

    /// Lets the load run and passes on what is heard, until the last trial's engine is done, nothing of ours is on any
    /// more, and all files are whole. Each trial's summary is there once it has ended. Returns what went wrong beside it.
    ///
    /// # Errors
    /// When an engine failed, or results cannot be written.
    pub async fn run(mut self, summaries: &mut Vec<Summary>) -> anyhow::Result<Option<anyhow::Error>> {
        let ended = match self.follow(summaries).await {
            Ok(totals) => self.end(summaries).await.map(|()| totals),
            Err(error) => Err(error),
        };
        match ended {
            Ok(totals) => {
                summaries.push(self.trial.finish(totals).await?);
                Ok(self.trouble)
            }
            Err(error) => {
                // The trial before has nothing to do with it, and what there is of this one is kept as well.
                if self.end_before(summaries).await.is_ok() {
                    self.trial.abandon().await;
                }
                Err(error)
            }
        }
    }

    async fn follow(&mut self, summaries: &mut Vec<Summary>) -> anyhow::Result<Totals> {
        loop {
            let knobs = async {
                match &mut self.knobs {
                    Some(knobs) => knobs.next().await,
                    None => std::future::pending().await,
                }
            };
            let before = async {
                match &mut self.before {
                    Some(before) => before.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                report = self.trial.report() => match report? {
                    Report::Snapshot(snapshot) => {
                        self.progress.snapshot(&self.trial.facts.plan, &snapshot);
                        let crossed = self.hopeless.as_mut().and_then(|hopeless| hopeless.see(&snapshot));
                        let (facts, events) = self.trial.interval(snapshot).await?;
                        self.progress.servers(&facts);
                        events.iter().for_each(|event| self.progress.event(event));
                        if let Some(crossed) = crossed.filter(|_| !self.stopping) {
                            self.abort(&crossed).await?;
                        }
                    }
                    Report::Closed(next) => if let Some(successor) = self.successor.take() {
                        self.take_over(*successor, next).await?;
                    },
                    Report::Done(totals) => return Ok(totals),
                    _ => {}
                },
                next = self.timeline.next() => match next {
                    Next::Happened(happening) => self.happened(happening)?,
                    Next::Over(Ok(())) => {}
                    Next::Over(Err(why)) => {
                        self.progress.note(&format!("stopping: {why:#}"));
                        self.trouble = Some(why);
                        self.stop().await;
                    }
                },
                () = self.interrupts.reached(1), if !self.stopping => {
                    self.progress
                        .note("stopping: no new operations; those under way may end (again to leave at once)");
                    self.stop().await;
                }
                step = knobs => self.step(step).await,
                summary = before => {
                    self.before = None;
                    summaries.push(summary.context("a trial died")??);
                    // Only now are its rows whole.
                    self.trial.open()?;
                }
            }
        }
    }

    /// Ends the trial because there is no hope for it.
    async fn abort(&mut self, crossed: &Verdict) -> anyhow::Result<()> {
        let (condition, held) = (crossed.condition.to_string(), hopeless::held(crossed));
        self.progress.note(&format!("ending this trial early: {condition} {held}"));
        self.trial.ends_early(Early::Aborted, format!("ended early: {condition} {held}"));
        self.happened(Happening::now("aborted", &condition, held))?;
        self.stop().await;
        Ok(())
    }

    /// Begins nothing more.
    async fn stop(&mut self) {
        self.stopping = true;
        (self.knobs, self.successor) = (None, None);
        self.trial.stop().await;
    }

    /// Waits for the trial before, if its operations still end.
    async fn end_before(&mut self, summaries: &mut Vec<Summary>) -> anyhow::Result<()> {
        if let Some(before) = self.before.take() {
            summaries.push(before.await.context("a trial died")??);
        }
        self.trial.open()
    }

    /// The last trial's engine is done: what is on is undone before the files say how it ended.
    async fn end(&mut self, summaries: &mut Vec<Summary>) -> anyhow::Result<()> {
        self.end_before(summaries).await?;
        let undone = self.ground.undo_all().await;
        for happening in self.timeline.rest().await {
            self.trial.event(happening.event(self.trial.go))?;
        }
        for happening in timeline::ended(&undone) {
            self.happened(happening)?;
        }
        if let Some(stub) = &self.first.stub {
            match stub.counters().await {
                Ok(counters) => self.happened(Happening::now("stub_counted", "", counters.to_string()))?,
                Err(error) => self.trouble = self.trouble.take().or(Some(error)),
            }
        }
        Ok(())
    }

    fn happened(&mut self, happening: Happening) -> anyhow::Result<()> {
        let event = happening.event(self.trial.go);
        self.progress.event(&event);
        self.trial.event(event)
    }

    async fn step(&mut self, step: Step) {
        let Some(knobs) = &mut self.knobs else { return };
        match step {
            Step::Turned(Turn::Overload) if self.first.plan.overloads.is_empty() => {
                self.progress.note("the profile has no overload to switch");
            }
            Step::Turned(turn) => {
                knobs.turn(turn, self.ground.bench.is_on());
                let changes = knobs.wanted.changes(&knobs.now, &self.first.plan);
                self.progress.note(&match changes.as_str() {
                    "" => "knobs: all as they are".to_owned(),
                    changes => format!("knobs: {changes}, in a moment"),
                });
            }
            // One change at a time, and each trial gets its measured time.
            Step::Begin if knobs.is_preparing() || self.before.is_some() || !self.trial.is_measured() => {
                knobs.wait();
            }
            Step::Begin if knobs.wanted == knobs.now => knobs.given_up(),
            Step::Begin => {
                if let Err(why) = knobs.prepare(self.first, self.began) {
                    self.progress.note(&why);
                }
            }
            Step::Ready(Ok(successor)) => {
                self.successor = Some(successor);
                self.trial.stop().await;
            }
            Step::Ready(Err(why)) => {
                knobs.given_up();
                self.progress.note(&format!("no change: {why:#}"));
            }
        }
    }

    /// Lets the live trial's load begin, where the trial before begins nothing more.
    async fn take_over(&mut self, successor: Successor, first: u64) -> anyhow::Result<()> {
        let Some(knobs) = &mut self.knobs else { return Ok(()) };
        let Successor { setup, engine } = successor;
        let facts = engine.facts(&setup, self.ground);
        let trial = match Underway::begin(engine, facts, &setup, self.ground, first, None).await {
            Ok(trial) => trial,
            Err(error) => {
                // The trial that runs has been told to end, and is whole when it has.
                self.trouble = Some(error);
                self.stop().await;
                return Ok(());
            }
        };
        let before = knobs.taken_over(&setup.variant);
        let detail = knobs.now.changes(&before, &self.first.plan);
        let switched = knobs.now.pushing() != before.pushing();
        self.hopeless = Hopeless::of(&trial.facts);
        let mut ending = std::mem::replace(&mut self.trial, trial);
        ending.ends_early(
            Early::TakenOver,
            format!("ended by a knob: {detail}; trial {} went on", setup.place.trial),
        );
        if !self.first.plan.thresholds.fail_if.is_empty() {
            self.progress.note("knobs were turned: thresholds say nothing of this run any more");
        }
        let turned = Happening::now("knob_turned", &setup.variant, detail);
        ending.event(turned.clone().event(ending.go))?;
        self.before = Some(AbortOnDropHandle::new(tokio::spawn(ending.end_unseen())));
        self.progress.taken_over(&self.trial.facts, self.trial.go - self.began);
        self.happened(turned)?;
        // Whoever reads of this trial alone has to know what was going on when it began.
        let bench = &self.ground.bench;
        let on: Vec<Happening> = bench
            .on_now()
            .iter()
            .map(|(name, members)| Happening::now("overload_on", name, bench.names(members).join(", ")))
            .collect();
        on.into_iter().try_for_each(|happening| self.happened(happening))?;
        if switched {
            self.timeline.replace(self.ground, setup.plan, self.trial.go);
        }
        Ok(())
    }
}
