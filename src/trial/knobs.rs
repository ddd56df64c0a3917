//! The knobs while trials run: waits until their user has turned enough, and prepares the trial that follows.

use std::pin::Pin;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::Setup;
use super::live::{self, Stand};
use super::underway::Engine;
use crate::knobs::{Turn, Turns};
use crate::variants::Place;

/// Turns that come within this are one change.
const SETTLE: Duration = Duration::from_millis(700);

/// From the decision to the change: time to connect, so that the change comes when the plan has it.
const LEAD: Duration = Duration::from_secs(1);

/// No change comes later than this after the time that it was made for.
const LATE: Duration = Duration::from_millis(500);

/// How soon another look is taken at a trial that cannot be followed yet.
const AGAIN: Duration = Duration::from_millis(100);

/// The trial that follows, and the engine that waits for its Go.
pub struct Successor {
    /// What it needs to know.
    pub setup: Setup,
    /// Who runs it.
    pub engine: Engine,
}

/// Times that people read need no more digits.
fn rounded_up(time: Duration) -> Duration {
    let step = 100;
    let steps = time.as_millis().div_ceil(step);
    Duration::from_millis(u64::try_from(steps * step).unwrap_or(u64::MAX))
}

type Preparing = Pin<Box<dyn Future<Output = anyhow::Result<Box<Successor>>> + Send>>;

/// What is to be done about the knobs.
pub enum Step {
    /// One was turned.
    Turned(Turn),
    /// It is time to prepare the trial that follows, if it may.
    Begin,
    /// It is prepared, and its time has come; or there will be none.
    Ready(anyhow::Result<Box<Successor>>),
}

/// The knobs of a run.
pub struct Knobs<'a> {
    turns: &'a mut Turns,
    /// Where they stand in the trial that runs.
    pub now: Stand,
    /// Where the user wants them.
    pub wanted: Stand,
    /// Where they will stand in the trial that is being prepared.
    next: Option<Stand>,
    due: Option<Instant>,
    preparing: Option<Preparing>,
    /// The variants of live trials so far.
    variants: Vec<String>,
}

impl<'a> Knobs<'a> {
    /// As they stand in the first trial.
    pub fn new(turns: &'a mut Turns, first: &Setup) -> Self {
        let now = Stand::of(&first.target);
        Self { turns, wanted: now.clone(), now, next: None, due: None, preparing: None, variants: Vec::new() }
    }

    /// Waits for the next step. It may be dropped and called again.
    pub async fn next(&mut self) -> Step {
        let (due, is_due) = (self.due.unwrap_or_else(Instant::now), self.due.is_some());
        let preparing = async {
            match &mut self.preparing {
                Some(preparing) => preparing.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            turn = self.turns.recv() => match turn {
                Some(turn) => Step::Turned(turn),
                None => std::future::pending().await,
            },
            ready = preparing => {
                self.preparing = None;
                Step::Ready(ready)
            }
            () = tokio::time::sleep_until(due.into()), if is_due => Step::Begin,
        }
    }

    /// Turns one. `pushed` says whether something is being done to the servers.
    pub fn turn(&mut self, turn: Turn, pushed: bool) {
        self.wanted.turn(turn, &self.now, pushed);
        self.due = Some(Instant::now() + SETTLE);
    }

    /// The trial that runs cannot be followed yet.
    pub fn wait(&mut self) {
        self.due = Some(Instant::now() + AGAIN);
    }

    /// Prepares the trial that follows, `began` being when the first one did.
    ///
    /// # Errors
    /// Why there is none; the knobs stand where they stood, then.
    pub fn prepare(&mut self, first: &Setup, began: Instant) -> Result<(), String> {
        self.due = None;
        let at = began + rounded_up(began.elapsed() + LEAD);
        let number = u32::try_from(self.variants.len()).unwrap_or(u32::MAX);
        let place = Place { trial: first.place.trial + number + 1, variant: 0, repeat: 1 };
        let made = live::setup(first, &self.wanted, place, at - began);
        let mut setup = made.inspect_err(|_| self.wanted = self.now.clone())?;
        setup.place.repeat +=
            u32::try_from(self.variants.iter().filter(|v| **v == setup.variant).count()).unwrap_or(0);
        self.next = Some(self.wanted.clone());
        self.preparing = Some(Box::pin(async move {
            let engine = Engine::start(&setup).await?;
            // The plan is one for this time: what is cut there would be cut elsewhere.
            ensure!(
                Instant::now() < at + LATE,
                "the servers were not connected to in time; turn the knob again"
            );
            tokio::time::sleep_until(at.into()).await;
            Ok(Box::new(Successor { setup, engine }))
        }));
        Ok(())
    }

    /// Whether a trial is being prepared.
    pub const fn is_preparing(&self) -> bool {
        self.next.is_some()
    }

    /// The trial that was prepared runs now. Returns where the knobs stood before.
    pub fn taken_over(&mut self, variant: &str) -> Stand {
        self.variants.push(variant.to_owned());
        let now = self.next.take().unwrap_or_else(|| self.wanted.clone());
        if now != self.wanted {
            self.due = Some(Instant::now() + SETTLE);
        }
        std::mem::replace(&mut self.now, now)
    }

    /// No trial is to follow, or it cannot.
    pub fn given_up(&mut self) {
        (self.next, self.due) = (None, None);
        self.wanted = self.now.clone();
    }
}
