//! The trials of a simulation, one after the other.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;

use super::settings;
use crate::cli::SimulateArgs;
use crate::client::merge::Resolved;
use crate::command::run::matrix;
use crate::command::{Outcome, UsageError};
use crate::interrupts::Interrupts;
use crate::plan::timeline::nanos;
use crate::plan::{self, Assumptions, Plan};
use crate::profile::Profile;
use crate::progress::Progress;
use crate::results::{Early, EndFacts, HostFacts, RunDirectory, RunFacts, Summary, TrialFacts, Writer};
use crate::simulate::driver::Driver;
use crate::simulate::pace::{Pace, Speed};
use crate::simulate::{GO, Told, simulate};
use crate::stats::ratio;
use crate::thresholds::hopeless::{self, Hopeless};
use crate::thresholds::{Verdict, evaluate};
use crate::units::Span;
use crate::variants::{Place, Variant, order};

/// What simulated servers and drivers are called in files.
pub const SIMULATED: &str = "simulated";

/// A variant that is to be simulated, with nothing left to decide.
pub struct Wanted {
    pub variant: Variant,
    pub plan: Plan,
    pub options: Resolved,
    model: Assumptions,
    driver: Driver,
    notes: Vec<String>,
}

impl Wanted {
    /// A variant by its plan.
    ///
    /// # Errors
    /// When it cannot be simulated.
    pub fn new(variant: Variant, plan: Plan, mut notes: Vec<String>) -> Result<Self, UsageError> {
        let model = plan.model.clone().unwrap_or_default();
        settings::check(&plan, &model).map_err(UsageError::new)?;
        let options = settings::options(&plan).map_err(UsageError::new)?;
        let driver = settings::driver(&options, &plan, &model).map_err(UsageError::new)?;
        notes.extend(options.notices.iter().cloned());
        notes.extend(settings::notes(&plan));
        // All that was assumed is told in the files.
        let plan = Plan { model: Some(model.clone()), ..plan };
        Ok(Self { variant, plan, options, model, driver, notes })
    }
}

/// A simulation under way.
pub struct Trials {
    wanted: Vec<Wanted>,
    places: Vec<Place>,
    directory: RunDirectory,
    interrupts: Interrupts,
    progress: Box<dyn Progress>,
    speed: Speed,
    /// When the next trial begins, by its own time.
    go: Timestamp,
    crossed: bool,
}

impl Trials {
    /// Makes the run's directory.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn begin(
        args: &SimulateArgs,
        profile: &Profile,
        wanted: Vec<Wanted>,
        interrupts: Interrupts,
        progress: Box<dyn Progress>,
    ) -> anyhow::Result<Self> {
        let text = profile.text.as_bytes();
        let plans: Vec<&Plan> = wanted.iter().map(|wanted| &wanted.plan).collect();
        let same = format!("{}{}{}", profile.text, serde_json::to_string(&plans)?, args.repeat);
        let directory =
            RunDirectory::create_again(&args.out, GO, &profile.name, args.label.as_deref(), text, &same)?;
        let places = order(wanted.len(), args.repeat);
        let speed = args.speed;
        Ok(Self { wanted, places, directory, interrupts, progress, speed, go: GO, crossed: false })
    }

    /// Runs one trial after the other, until one fails or the user wants no more.
    ///
    /// # Errors
    /// When results cannot be written.
    pub fn run(&mut self) -> anyhow::Result<Vec<Summary>> {
        let mut told: Vec<String> = Vec::new();
        let mut summaries = Vec::new();
        let each: Vec<_> = self.wanted.iter().map(|wanted| wanted.params()).collect();
        let params = matrix::aligned(&each);
        for place in self.places.clone() {
            let wanted = &self.wanted[place.variant];
            if self.places.len() > 1 {
                let (all, name) = (self.places.len(), &wanted.variant.name);
                self.progress
                    .note(&format!("trial {} of {all}: {name} (repeat {})", place.trial, place.repeat));
            }
            for note in wanted.notes.iter().filter(|note| !told.contains(note)).cloned().collect::<Vec<_>>() {
                self.progress.note(&note);
                told.push(note);
            }
            let summary = self.trial(place, params[place.variant].clone())?;
            self.judge(&summary);
            self.go = summary.ended;
            summaries.push(summary);
            if self.interrupts.any() {
                break;
            }
        }
        Ok(summaries)
    }

    fn trial(&mut self, place: Place, params: Vec<(String, Option<String>)>) -> anyhow::Result<Summary> {
        let Wanted { variant, plan, options, model, driver, notes } = &self.wanted[place.variant];
        // With the same seed it would be the same trial again.
        let seed = plan.seed.wrapping_add(u64::from(place.repeat) - 1);
        let plan = Plan { seed, ..plan.clone() };
        let facts = TrialFacts {
            trial: place.trial,
            variant: variant.name.clone(),
            repeat: place.repeat,
            driver: plan::Driver { name: SIMULATED.to_owned(), version: shown(&plan.driver()) },
            server_versions: vec![SIMULATED.to_owned()],
            mechanism: settings::mechanism(&plan),
            params,
            knobs: Vec::new(),
            options: serde_json::to_value(&options.options)?,
            go: self.go,
            cores: 1,
            plan,
        };
        let (plan, progress) = (&facts.plan, &mut self.progress);
        progress.started(&facts, self.directory.path());
        let mut writer = Writer::start(&self.directory, facts.clone())?;
        let mut hopeless = Hopeless::of(&facts);
        let mut end = EndFacts { notes: notes.clone(), ..EndFacts::default() };
        let (pace, interrupts) = (Pace::new(self.speed), &self.interrupts);
        let totals = simulate(plan, model, driver, |told| {
            match told {
                Told::Event(event) => {
                    pace.wait(u64::try_from(event.at_ns).unwrap_or(0), || interrupts.any());
                    progress.event(&event);
                    writer.event(event)?;
                }
                Told::Interval(interval, servers) => {
                    pace.wait(interval.end_ns, || interrupts.any());
                    for event in &interval.events {
                        progress.event(event);
                        writer.event(event.clone())?;
                    }
                    progress.snapshot(plan, &interval);
                    progress.servers(&servers);
                    let (at_ns, crossed) =
                        (interval.end_ns, hopeless.as_mut().and_then(|of| of.see(&interval)));
                    writer.snapshot_waiting(*interval, servers)?;
                    if let Some(crossed) = crossed.filter(|_| end.stopped_ns.is_none()) {
                        let (condition, held) = (crossed.condition.to_string(), hopeless::held(&crossed));
                        end.early = Some(Early::Aborted);
                        end.notes.insert(0, format!("ended early: {condition} {held}"));
                        end.stopped_ns = Some(at_ns);
                    }
                    if interrupts.are_urgent() {
                        bail!("left at once, as asked: results are not whole");
                    }
                    if interrupts.any() {
                        end.stopped_ns.get_or_insert(at_ns);
                    }
                }
            }
            Ok::<_, anyhow::Error>(match end.stopped_ns {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        })?;
        Ok(writer.finish(totals, end)?)
    }

    fn judge(&mut self, summary: &Summary) {
        for verdict in evaluate(summary).iter().filter(|verdict: &&Verdict| verdict.failed()) {
            self.progress.note(&verdict.told(summary));
            self.crossed |= !self.interrupts.any();
        }
        self.crossed |= summary.early == Some(Early::Aborted);
    }

    /// Says how fast it went, which is of this machine and in no file.
    pub fn tell_speed(&mut self, summaries: &[Summary], took: Duration) {
        let attempts: u64 = summaries.iter().map(|summary| summary.totals.attempts).sum();
        let simulated = summaries.iter().map(|summary| summary.facts.go.duration_until(summary.ended));
        let seconds = simulated.fold(0, |sum, length| sum + length.as_secs());
        let rate = ratio(attempts.saturating_mul(1_000_000_000), nanos(took).max(1)).unwrap_or(0.0);
        self.progress.note(&format!(
            "simulated {seconds} s and {attempts} attempts in {}: {rate:.0} attempts per second",
            Span::from(Duration::from_millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1)))
        ));
    }

    /// Makes the run's files whole. Returns where they are.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(&self, summaries: &[Summary]) -> anyhow::Result<PathBuf> {
        let complete = summaries.len() == self.places.len();
        let short = format!("{} of {} trials ran", summaries.len(), self.places.len());
        let facts = RunFacts {
            started: GO,
            ended: self.go,
            complete,
            // No machine has a part in what comes of it.
            host: HostFacts { os: SIMULATED.to_owned(), arch: SIMULATED.to_owned(), ..HostFacts::default() },
            notes: (!complete).then_some(short).into_iter().collect(),
            earlier: Vec::new(),
            search: None,
            shards: None,
        };
        self.directory.finish(&facts, summaries)?;
        Ok(self.directory.path().to_owned())
    }

    /// How it ended; the first reason wins.
    pub fn outcome(&self) -> Outcome {
        match (self.crossed, self.interrupts.any()) {
            (true, _) => Outcome::ThresholdCrossed,
            (false, true) => Outcome::Interrupted,
            (false, false) => Outcome::Done,
        }
    }
}

impl Wanted {
    /// What is set or varies, with its value here.
    fn params(&self) -> Vec<(String, Option<String>)> {
        matrix::params_of(&self.options, &self.plan, &self.variant)
    }
}

/// A simulated driver's version: as it is written where one is asked for, so that those of several languages are told apart.
fn shown(driver: &plan::Driver) -> String {
    if driver.is_rust() { driver.version.clone() } else { driver.to_string() }
}
