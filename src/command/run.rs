//! `overdrive run`: resolve, find a deployment, run the trials, show what came of them.

mod checks;
mod dry_run;
pub(super) mod matrix;
mod resume;
mod search;
mod shard;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use jiff::Timestamp;
use tokio::sync::mpsc;

use self::matrix::Prepared;
use self::search::Hunt;
use super::target::given_uri;
use super::{Outcome, UsageError, colour, open_profile, print, stub};
use crate::cli::{RunArgs, Ui};
use crate::client::uri::Uri;
use crate::interrupts::{Interrupts, NotBegun};
use crate::knobs::Turns;
use crate::lab::{Lab, LabOptions};
use crate::metrics::Metrics;
use crate::plan::{GateSettings, Shard};
use crate::progress::{Lines, Progress, Silent};
use crate::report;
use crate::results::resume::Earlier;
use crate::results::{HostFacts, RunFacts, Summary};
use crate::search::Findings;
use crate::stderr::tell;
use crate::stub::Script;
use crate::thresholds::{Verdict, evaluate};
use crate::trial::live::Stand;
use crate::trial::{self, Finished, Keeping, Setup};
use crate::tui::{self, Screen, Theme};
use crate::units::Span;
use crate::variants::{Place, order};

/// A connection string of the same shape as the lab's.
const LIKE_THE_LAB: &str = "mongodb://127.0.0.1/?replicaSet=overdrive";

/// Runs the trials of every variant.
///
/// # Errors
/// [`super::UsageError`] for what can be told from the arguments alone; anything else means that the run failed.
pub async fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    let profile = open_profile(&args.load.profile)?;
    let given = if args.stub.is_some() { None } else { given_uri(&args.target)? };
    let shard = shard::asked_for(&args)?;
    checks::arguments(&args, given.is_some()).await?;
    if given.is_none() && shard.is_some_and(Shard::is_part) {
        return Err(UsageError::new(
            "shards load one deployment together, and each would start a lab of its own: name one with --uri, --uri-file or \
             $OVERDRIVE_URI (`overdrive lab` starts one)",
        )
        .into());
    }
    // Options that no deployment would take are told before a lab is started for them.
    let uri = given.clone().map_or_else(|| Uri::parse(LIKE_THE_LAB), Ok)?;
    let mut hunt = Hunt::asked_for(&profile, &args, &uri)?;
    let mut variants = match &hunt {
        Some(hunt) => vec![hunt.first()?],
        None => matrix::prepare(&profile, &args, &uri)?,
    };
    checks::drivers(variants.iter().map(|variant| &*variant.plan)).await?;
    match (&given, &args.stub) {
        (Some(_), _) => {
            variants.iter().try_for_each(|variant| checks::faults(&variant.plan, &args.allow_faults))?;
        }
        (None, None) => variants.iter().try_for_each(|variant| checks::members(&variant.plan))?,
        (None, Some(_)) => {}
    }
    let all = order(variants.len(), args.repeat);
    let earlier = args.resume.as_deref().map(Earlier::read).transpose().map_err(UsageError::new)?;
    let places = match &earlier {
        Some(earlier) => resume::left(earlier, &profile.text, &variants, &all)?,
        None => all.clone(),
    };
    if let (true, Some(earlier)) = (places.is_empty(), &earlier) {
        return resume::nothing_left(earlier);
    }
    if args.dry_run {
        let searched = hunt.as_ref().map(|hunt| format!("\n{hunt}\n")).unwrap_or_default();
        print(&(dry_run::describe_all(&args, given.as_ref(), &variants, &places) + &searched))?;
        return Ok(Outcome::Done);
    }
    if args.ui == Ui::Tui && !tui::is_possible() {
        return Err(UsageError::new("--ui tui needs a terminal on standard error").into());
    }
    if let Some(uri) = &given {
        // While Ctrl-C still ends this program by itself: it is an answer, too.
        let more = hunt.as_ref().map(Hunt::to_string);
        checks::confirm(uri, variants.iter().map(|variant| &*variant.plan), more, args.yes)?;
    }
    let mut interrupts = Interrupts::listen()?;
    // What is held against each other must not be changed by hand, a stub's script belongs to one trial, and the other
    // shards of a load know nothing of a hand here. Of several clients nobody could say which one a knob is for.
    let by_hand = all.len() == 1
        && args.stub.is_none()
        && hunt.is_none()
        && shard.is_none()
        && variants.iter().all(|variant| variant.plan.clients.is_empty());
    let (progress, turns) = progress(&args, by_hand, &interrupts)?;
    let lab = match (given, &args.stub) {
        (None, None) => Some(Arc::new(start_lab(&variants, args.mongod.as_deref(), &interrupts).await?)),
        _ => None,
    };
    if let Some(lab) = &lab {
        let uri = Uri::parse(lab.uri())?;
        variants.iter_mut().try_for_each(|variant| variant.retarget(&uri))?;
        hunt.iter_mut().for_each(|hunt| hunt.uri = uri.clone());
    }
    let keeping = match &earlier {
        Some(earlier) => Keeping::going_on(earlier.clone()),
        None => {
            let label = match shard {
                Some(shard) => Some(shard::label(shard, args.label.as_deref())),
                None => args.label.clone(),
            };
            Keeping::new(args.out.clone(), label, profile.text.clone())
        }
    };
    let keeping = Arc::new(keeping);
    let mut run = Run {
        variants,
        lab,
        script: args.stub.clone(),
        keeping,
        progress,
        turns,
        planned: all.len(),
        crossed: earlier.as_ref().is_some_and(Earlier::has_crossed),
        earlier,
        told: Vec::new(),
        search: None,
    };
    if let Some(earlier) = &run.earlier {
        run.progress.note(&format!(
            "going on: {} of {} trials are whole, and in the files; what follows is of the others",
            earlier.trials.len(),
            run.planned
        ));
    }
    let (trials, failure) = match &hunt {
        Some(hunt) => run.search(hunt, &mut interrupts).await,
        None => run.trials(&places, &mut interrupts).await,
    };
    let stopped = stop_lab(run.lab.take(), &mut interrupts).await;
    let keeping = Arc::clone(&run.keeping);
    let Some(directory) = keeping.found().filter(|_| !trials.is_empty()) else {
        if failure.is_none() && run.earlier.is_some() {
            return Ok(Outcome::Interrupted);
        }
        return Err(failure.unwrap_or_else(|| anyhow!("nothing was measured")));
    };
    let mut facts = run.facts(&trials);
    facts.notes.iter().for_each(|note| run.progress.note(note));
    facts.complete &= failure.is_none();
    facts.notes.extend(failure.iter().map(|failure| format!("{failure:#}")));
    directory.finish(&facts, &trials)?;
    // The terminal has to be given back before anything is printed on it.
    drop(run.progress);
    print(&match &run.search {
        Some(findings) => report::search::render(findings, &trials, directory.path()),
        None => report::render(&trials, directory.path()),
    })?;
    if trials.iter().any(|trial| !trial.broken.is_empty()) {
        bail!("the numbers do not add up, so this run cannot be trusted");
    }
    failure.map_or(Ok(()), Err)?;
    stopped?;
    if let Some(findings) = &run.search {
        return Ok(search::outcome(findings));
    }
    Ok(match (run.crossed, interrupts.any()) {
        (true, _) => Outcome::ThresholdCrossed,
        (false, true) => Outcome::Interrupted,
        (false, false) => Outcome::Done,
    })
}

/// Whoever tells what happens, and what is turned on a screen, if there is one and the run may be changed by hand.
fn progress(
    args: &RunArgs,
    by_hand: bool,
    interrupts: &Interrupts,
) -> anyhow::Result<(Box<dyn Progress + Send>, Option<Turns>)> {
    let (people, turns): (Box<dyn Progress + Send>, _) = match args.ui {
        Ui::None => (Box::new(Silent), None),
        Ui::Auto if !tui::is_expected() => (Box::new(Lines::default()), None),
        Ui::Lines => (Box::new(Lines::default()), None),
        Ui::Auto | Ui::Tui => {
            let (hand, turns) = by_hand.then(mpsc::unbounded_channel).unzip();
            let screen = Screen::new(Theme::new(colour(), args.ascii), interrupts.clone(), hand)?;
            (Box::new(screen), turns)
        }
    };
    Ok(match args.metrics {
        Some(address) => (Box::new(Metrics::start(people, address)?), turns),
        None => (people, turns),
    })
}

/// A run under way.
struct Run {
    variants: Vec<Prepared>,
    lab: Option<Arc<Lab>>,
    script: Option<Script>,
    keeping: Arc<Keeping>,
    progress: Box<dyn Progress + Send>,
    /// What is turned while the load runs; `None` where it is not changed by hand.
    turns: Option<Turns>,
    /// How many trials there are in all.
    planned: usize,
    /// What an earlier start has done of them.
    earlier: Option<Earlier>,
    /// Whether a trial crossed a threshold before the user asked for an end: the first reason wins.
    crossed: bool,
    /// What has been said of variants: each note once.
    told: Vec<String>,
    /// What a search has come to, once it is under way.
    search: Option<Findings>,
}

impl Run {
    /// Runs one trial after the other, until one fails or the user wants no more. Those that ended before are whole
    /// whatever befalls the next.
    async fn trials(
        &mut self,
        places: &[Place],
        interrupts: &mut Interrupts,
    ) -> (Vec<Summary>, Option<anyhow::Error>) {
        let params = matrix::params(&self.variants);
        let mut summaries = Vec::new();
        for (i, place) in places.iter().enumerate() {
            if self.planned > 1 {
                self.announce(*place, &places[i..]);
            }
            match self.trial(*place, params[place.variant].clone(), interrupts).await {
                Ok(Finished { summaries: ended, aborted, trouble }) => {
                    // Each of them, since each is told.
                    let failed =
                        ended.iter().map(|summary| self.judge(summary)).collect::<Vec<_>>().contains(&true);
                    // What a trial came to that the user has cut short says nothing of what it would have come to.
                    self.crossed |= aborted || (failed && !interrupts.any());
                    summaries.extend(ended);
                    let kept = self.keep(&summaries);
                    if trouble.is_some() || kept.is_err() {
                        return (summaries, trouble.or(kept.err()));
                    }
                }
                // It had not begun, and what ended before is whole. Any other failure is one, whoever asked for an end:
                // faults may still be on.
                Err(failure)
                    if failure.is::<NotBegun>() && !(summaries.is_empty() && self.earlier.is_none()) =>
                {
                    break;
                }
                Err(failure) => return (summaries, Some(failure)),
            }
            if interrupts.any() {
                break;
            }
        }
        (summaries, None)
    }

    /// Keeps what a later start needs to know, should this one come to no end.
    fn keep(&self, trials: &[Summary]) -> anyhow::Result<()> {
        let Some(directory) = self.keeping.found().filter(|_| self.planned > 1) else { return Ok(()) };
        Ok(directory.keep(&self.facts(trials), trials)?)
    }

    fn facts(&self, trials: &[Summary]) -> RunFacts {
        let earlier = self.earlier.as_ref().map_or_else(Vec::new, |earlier| earlier.trials.clone());
        let began = self.earlier.as_ref().map(|earlier| earlier.started);
        let ran = earlier.len() + trials.iter().filter(|trial| !trial.facts.plan.live).count();
        let (complete, short) = match &self.search {
            Some(findings) => (findings.ending.is_some(), "the search did not come to its end".to_owned()),
            None => (ran == self.planned, format!("{ran} of {} trials ran", self.planned)),
        };
        RunFacts {
            started: began.or_else(|| Some(trials.first()?.facts.go)).unwrap_or_else(Timestamp::now),
            ended: Timestamp::now(),
            complete,
            host: HostFacts::detect(),
            notes: (!complete).then_some(short).into_iter().collect(),
            earlier,
            search: self.search.as_ref().map(Findings::json),
            shards: None,
        }
    }

    /// Says which thresholds a trial failed by, and whether it did.
    fn judge(&mut self, summary: &Summary) -> bool {
        let failed: Vec<_> = evaluate(summary).into_iter().filter(Verdict::failed).collect();
        for verdict in &failed {
            self.progress.note(&verdict.told(summary));
        }
        !failed.is_empty()
    }

    fn announce(&mut self, place: Place, left: &[Place]) {
        let variant = &self.variants[place.variant];
        // Whole seconds: it is a guess.
        let seconds = matrix::length(&self.variants, left).as_secs();
        self.progress.note(&format!(
            "trial {} of {}: {} (repeat {}); about {} left",
            place.trial,
            self.planned,
            variant.variant.name,
            place.repeat,
            Span::seconds(seconds)
        ));
    }

    async fn trial(
        &mut self,
        place: Place,
        params: Vec<(String, Option<String>)>,
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<Finished> {
        let variant = &mut self.variants[place.variant];
        // Each trial has a stub of its own, whose script begins anew.
        let stub = match &self.script {
            Some(script) => {
                let starting = stub::start(script.clone(), &variant.plan);
                let stub = Arc::new(interrupts.before_load(starting).await?);
                variant.retarget(&Uri::parse(stub.uri())?)?;
                Some(stub)
            }
            None => None,
        };
        for note in &variant.notes {
            if !self.told.contains(note) {
                self.progress.note(note);
                self.told.push(note.clone());
            }
        }
        let setup = Setup {
            plan: Arc::clone(&variant.plan),
            target: variant.target.clone(),
            clients: variant.clients.clone(),
            place,
            variant: variant.variant.name.clone(),
            params,
            knobs: match self.turns {
                Some(_) => Stand::of(&variant.target).knobs(&variant.plan),
                None => Vec::new(),
            },
            keeping: Arc::clone(&self.keeping),
            notes: variant.notes.clone(),
            lab: self.lab.clone(),
            stub,
        };
        trial::run(setup, &mut *self.progress, interrupts, self.turns.as_mut()).await
    }
}

async fn start_lab(
    variants: &[Prepared],
    mongod: Option<&Path>,
    interrupts: &Interrupts,
) -> anyhow::Result<Lab> {
    // Gates that let everything through until the timeline says otherwise; without such an overload they would only cost.
    let mut overloads = variants.iter().flat_map(|variant| &variant.plan.overloads);
    let gates = overloads.any(|overload| overload.fault.takes_gates()).then(GateSettings::default);
    let options = LabOptions { mongod: mongod.map(Path::to_owned), gates, ..LabOptions::new()? };
    let starting = async { Lab::start(&options, &tell).await.context("the lab did not start") };
    interrupts.before_load(starting).await
}

async fn stop_lab(lab: Option<Arc<Lab>>, interrupts: &mut Interrupts) -> anyhow::Result<()> {
    // Whoever should still hold it holds it no longer than this process: then its keeper ends it.
    let Some(lab) = lab.and_then(Arc::into_inner) else { return Ok(()) };
    tokio::select! {
        stopped = lab.stop() => stopped,
        // Leaving now is safe: the keeper ends the mongods without us.
        () = interrupts.reached(2) => Ok(()),
    }
}
