//! `--find-max`: trials at one rate after the other, until the largest that holds is known.

use std::fmt;
use std::sync::Arc;

use super::matrix::{self, Prepared};
use super::{Finished, Interrupts, NotBegun, Outcome, Place, Run, Summary, UsageError};
use crate::cli::RunArgs;
use crate::client::uri::Uri;
use crate::command::resolve_plan;
use crate::plan::{Model, Plan};
use crate::profile::{Profile, impossible};
use crate::search::{FLOOR, Findings, NEAR, Next, PATIENCE, Role, Search, Step};
use crate::units::{Rate, Span};
use crate::variants::Variant;

/// A search that was asked for.
pub struct Hunt<'a> {
    profile: &'a Profile,
    args: &'a RunArgs,
    /// Where it goes on.
    pub uri: Uri,
    search: Search,
    /// The measured time of a step, and of a confirmation.
    times: (Span, Span),
}

impl<'a> Hunt<'a> {
    /// The search that the arguments ask for; `None` when they ask for none.
    ///
    /// # Errors
    /// When it cannot be: what else is asked for excludes it, or there can be no such figure.
    pub fn asked_for(profile: &'a Profile, args: &'a RunArgs, uri: &Uri) -> Result<Option<Self>, UsageError> {
        if args.find_max.is_empty() {
            return Ok(None);
        }
        refuse_beside(args)?;
        if let Some(client) = profile.clients.first() {
            return Err(UsageError::new(format!(
                "--find-max looks for one rate, and several clients have one each: try rates of one of them, like --vary \
                 clients.{}.load.rate=100/s,200/s",
                client.name
            )));
        }
        let (plan, _) = resolve_plan(profile, &args.load, &[])?;
        let Model::Open { stages, .. } = &plan.load.model else {
            return Err(UsageError::new(
                "--find-max raises the rate of an open load, and this one is closed: its workers wait for the servers, so \
                 it has no rate that could be too high; give --rate instead of workers",
            ));
        };
        // A plan has stages; without one there would be nothing to begin with.
        let first = stages.first().map_or(Rate::MOST, |stage| stage.from.get());
        let step = plan.load.duration;
        let times = (step, step.max(args.confirm_for));
        let search = Search { first, ceiling: Rate::MOST };
        let hunt = Self { profile, args, uri: uri.clone(), search, times };
        let wrong = impossible(&args.find_max, &hunt.first()?.plan);
        match wrong.is_empty() {
            true => Ok(Some(hunt)),
            false => Err(UsageError::new(format!("--find-max {}", wrong.join("\n--find-max ")))),
        }
    }

    /// What runs at the first rate.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn first(&self) -> Result<Prepared, UsageError> {
        self.prepare(Role::Step, self.search.first)
    }

    /// What runs at this rate. A confirmation is a step that lasts longer: overloads that no step has are not in it either.
    fn prepare(&self, role: Role, rate: f64) -> Result<Prepared, UsageError> {
        let settings = vec![("rate".to_owned(), format!("{rate}/s"))];
        let variant = Variant { name: Variant::name(&settings), settings };
        let mut prepared = matrix::prepare_one(self.profile, self.args, &self.uri, variant)?;
        if role == Role::Confirm {
            lengthen(Arc::make_mut(&mut prepared.plan), self.times.1);
        }
        Ok(prepared)
    }
}

/// What a search is not done together with.
fn refuse_beside(args: &RunArgs) -> Result<(), UsageError> {
    let why = if !args.vary.is_empty() {
        "--vary varies what a search holds fast: run a search for each value (--set KEY=VALUE)"
    } else if args.repeat > 1 {
        "--repeat repeats trials that are known before, and a search finds its own: run it several times"
    } else if args.resume.is_some() {
        "--resume goes on with trials that are known before, and those of a search depend on each other: run it anew, from \
         the rate that held (--rate)"
    } else if args.confirm_for == Span::ZERO {
        "--confirm-for must be longer than 0"
    } else {
        return Ok(());
    };
    Err(UsageError::new(format!("--find-max: {why}")))
}

/// Gives a plan of one steady rate another measured time.
fn lengthen(plan: &mut Plan, duration: Span) {
    plan.load.duration = duration;
    if let Model::Open { stages, .. } = &mut plan.load.model {
        stages.iter_mut().for_each(|stage| stage.length = duration);
    }
}

/// What will be done, for people.
impl fmt::Display for Hunt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, confirm) = self.times;
        let first = self.search.first;
        write!(f, "search: the largest rate that holds")?;
        for (i, condition) in self.args.find_max.iter().enumerate() {
            write!(f, "{} {condition}", if i == 0 { "" } else { " and" })?;
        }
        write!(
            f,
            "\n  from {first}/s, doubled until a step of {step} fails (halved down to {}/s while none holds), then bisected \
             to within {:.0} %\n  after a failure the lowest rate that held, up to {PATIENCE} times, until it holds again\n  \
             the rate that is found is confirmed for {confirm}",
            first * FLOOR,
            (NEAR - 1.0) * 100.0
        )
    }
}

impl Run {
    /// Searches, until the largest rate is known, a trial fails or the user wants no more. Those that ended before are whole
    /// whatever befalls the next.
    pub async fn search(
        &mut self,
        hunt: &Hunt<'_>,
        interrupts: &mut Interrupts,
    ) -> (Vec<Summary>, Option<anyhow::Error>) {
        let (conditions, confirm) = (hunt.args.find_max.clone(), hunt.times.1);
        let mut findings = Findings { conditions, confirm, steps: Vec::new(), ending: None };
        let mut trials = Vec::new();
        let mut failure = None;
        // Those that were prepared only showed what there would be.
        self.variants.clear();
        while failure.is_none() && !interrupts.any() {
            let (role, rate) = match hunt.search.next(&findings.history()) {
                Next::Try(role, rate) => (role, rate),
                Next::End(ending) => {
                    findings.ending = Some(ending);
                    break;
                }
            };
            let number = findings.next_number();
            self.progress.note(&announcement(role, rate, number, hunt.times));
            match self.try_rate(hunt, role, rate, interrupts).await {
                Ok(Finished { summaries, trouble, .. }) => {
                    let new =
                        summaries.iter().map(|of| Step::of(role, rate, number, &findings.conditions, of));
                    // What a trial came to that the user has cut short says nothing of its rate.
                    let new: Vec<Step> = new.filter(|_| !interrupts.any()).collect();
                    trials.extend(summaries);
                    failure = trouble.or(self.keep_steps(&mut findings, new, &trials).err());
                }
                // It had not begun, and what ended before is whole.
                Err(stopped) if stopped.is::<NotBegun>() && !trials.is_empty() => break,
                Err(error) => failure = Some(error),
            }
        }
        self.search = Some(findings);
        (trials, failure)
    }

    async fn try_rate(
        &mut self,
        hunt: &Hunt<'_>,
        role: Role,
        rate: f64,
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<Finished> {
        let prepared = hunt.prepare(role, rate)?;
        let name = &prepared.variant.name;
        let before = self.variants.iter().filter(|variant| variant.variant.name == *name).count();
        let repeat = u32::try_from(before)? + 1;
        self.variants.push(prepared);
        let place =
            Place { trial: u32::try_from(self.variants.len())?, variant: self.variants.len() - 1, repeat };
        // All have the same: the rate, and what is set.
        let params = matrix::params(&self.variants).pop().unwrap_or_default();
        self.trial(place, params, interrupts).await
    }

    /// Tells what a trial came to and writes it down, with all before it, should the next one come to no end.
    fn keep_steps(
        &mut self,
        findings: &mut Findings,
        new: Vec<Step>,
        trials: &[Summary],
    ) -> anyhow::Result<()> {
        let keeping = Arc::clone(&self.keeping);
        let Some(directory) = keeping.found() else { return Ok(()) };
        for step in new {
            self.progress.note(&step.verdict(&findings.conditions));
            directory.add_to_search(&step.row)?;
            findings.steps.push(step);
        }
        self.search = Some(findings.clone());
        Ok(directory.keep(&self.facts(trials), trials)?)
    }
}

/// What is said before a trial.
fn announcement(role: Role, rate: f64, number: u32, (step, confirm): (Span, Span)) -> String {
    match role {
        Role::Step => format!("step {number}: {rate}/s for {step}"),
        Role::Baseline => {
            format!("before step {number}: is the deployment back? {rate}/s, which held, for {step}")
        }
        Role::Confirm => format!("step {number}: confirming {rate}/s for {confirm}"),
    }
}

/// How a search ends the program that nothing went wrong with.
pub fn outcome(findings: &Findings) -> Outcome {
    match (findings.ending, findings.known().confirmed) {
        (None, _) => Outcome::Interrupted,
        (Some(_), Some(_)) => Outcome::Done,
        (Some(_), None) => Outcome::NothingFound,
    }
}
