//! Live trials: where the knobs stand, and the trial that follows when one was turned. Pure, but for the setup's handles.
//!
//! A live trial ends when the first one would have ended: knobs change what is done, not how long. It begins with a
//! transition, in which its own client's pool fills and operations of the trial before still end.

use std::sync::Arc;
use std::time::Duration;

use super::Setup;
use crate::client::merge::Resolved;
use crate::engine;
use crate::knobs::Turn;
use crate::plan::client::OptionSource;
use crate::plan::load::MOST_WORKERS;
use crate::plan::timeline::{nanos, on_time};
use crate::plan::{Model, OptionSetting, Overload, Plan, Stage};
use crate::units::{Offset, Rate, Span};
use crate::variants::{Place, Variant};

const RETRIES: &str = "maxAdaptiveRetries";
const RETARGETING: &str = "enableOverloadRetargeting";

/// A live trial's first phase. Nothing of the trial before is left when it ends, since its engine takes away what has not
/// ended by then.
const TRANSITION: Duration = engine::DRAIN;

/// The shortest measured time that is worth a trial.
const SHORTEST: Duration = Duration::from_secs(2);

/// One step of the load; five steps are about three times as much.
const STEP: f64 = 1.25;

/// The most steps in either direction: a factor of about 90.
const MOST_STEPS: i32 = 20;

/// Where the knobs stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    retries: u32,
    retargeting: bool,
    /// Steps from the plan's own load.
    load: i32,
    overload: Pushing,
}

/// What is done to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushing {
    /// What the plan says, when it says so.
    Timeline,
    /// The plan's first overload, all the time.
    On,
    /// Nothing.
    Off,
}

impl Pushing {
    const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl Stand {
    /// Where they stand before anyone turns them.
    pub fn of(target: &Resolved) -> Self {
        let value = |name| target.options.iter().find(|option| option.name == name).map(|o| o.value.as_str());
        Self {
            retries: value(RETRIES).and_then(|value| value.parse().ok()).unwrap_or(0),
            retargeting: value(RETARGETING) == Some("true"),
            load: 0,
            overload: Pushing::Timeline,
        }
    }

    /// Turns one. In the trial that runs they stand `now`, and `pushed` says whether something is being done to the servers
    /// there.
    pub fn turn(&mut self, turn: Turn, now: &Self, pushed: bool) {
        match turn {
            Turn::MoreRetries => self.retries = self.retries.saturating_add(1),
            Turn::FewerRetries => self.retries = self.retries.saturating_sub(1),
            Turn::Retargeting => self.retargeting = !self.retargeting,
            Turn::MoreLoad => self.load = (self.load + 1).min(MOST_STEPS),
            Turn::LessLoad => self.load = (self.load - 1).max(-MOST_STEPS),
            // Whoever turns it back at once means what was there.
            Turn::Overload if self.overload != now.overload => self.overload = now.overload,
            Turn::Overload => {
                let is_on = now.overload == Pushing::On || now.overload == Pushing::Timeline && pushed;
                self.overload = if is_on { Pushing::Off } else { Pushing::On };
            }
        }
    }

    /// What is done to the servers.
    pub const fn pushing(&self) -> Pushing {
        self.overload
    }

    /// The knobs and where they stand, on a plan that was there before any was turned.
    pub fn knobs(&self, plan: &Plan) -> Vec<(String, String)> {
        let (load, amount) = match &plan.load.model {
            Model::Closed { workers } => ("workers", stepped_workers(*workers, self.load).to_string()),
            Model::Open { stages, .. } => match stages[..] {
                [Stage { from, to, .. }] if from == to => {
                    ("rate", stepped(from, self.load).unwrap_or(from).to_string())
                }
                _ => ("rate", format!("x{:.3}", STEP.powi(self.load))),
            },
        };
        let mut knobs = vec![
            (RETRIES.to_owned(), self.retries.to_string()),
            (RETARGETING.to_owned(), self.retargeting.to_string()),
            (load.to_owned(), amount),
        ];
        if !plan.overloads.is_empty() {
            knobs.push(("overload".to_owned(), self.overload.name().to_owned()));
        }
        knobs
    }

    /// Those knobs that stand elsewhere than before, with both places: `maxAdaptiveRetries 2 to 3`.
    pub fn changes(&self, before: &Self, plan: &Plan) -> String {
        let both = before.knobs(plan).into_iter().zip(self.knobs(plan));
        let changed = both.filter(|(old, new)| old != new);
        changed.map(|((name, old), (_, new))| format!("{name} {old} to {new}")).collect::<Vec<_>>().join(", ")
    }
}

/// What the run's trials are told apart by, with the values of a live one. Columns stay what they are: a knob that nobody
/// had set is none of them.
fn params(first: &Setup, knobs: &[(String, String)]) -> Vec<(String, Option<String>)> {
    let turned = |name: &str| {
        let name = name.strip_prefix("load.").unwrap_or(name);
        knobs.iter().find(|(knob, _)| knob.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    };
    first.params.iter().map(|(name, value)| (name.clone(), turned(name).or_else(|| value.clone()))).collect()
}

/// The trial that begins `since_go` after the first one did, with the knobs as they stand.
///
/// # Errors
/// Why there is none, in a sentence: it would be too short, or the driver or a unit does not take the value.
pub fn setup(first: &Setup, stand: &Stand, place: Place, since_go: Duration) -> Result<Setup, String> {
    let original = Stand::of(&first.target);
    let mut plan = (*first.plan).clone();
    plan.live = true;
    let begin = since_go + TRANSITION;
    let load = &mut plan.load;
    let end = load.warmup.duration() + load.duration.duration();
    let measured = end.saturating_sub(begin);
    if measured < SHORTEST {
        return Err(format!(
            "too late for a change: it takes {} of transition and {} to measure",
            Span::from(TRANSITION),
            Span::from(SHORTEST)
        ));
    }
    let measured_so_far = begin.saturating_sub(load.warmup.duration());
    match &mut load.model {
        Model::Closed { workers } => *workers = stepped_workers(*workers, stand.load),
        Model::Open { stages, .. } => *stages = later(stages, measured_so_far, stand.load)?,
    }
    (load.warmup, load.duration) = (Span::from(TRANSITION), Span::from(measured));
    plan.overloads = overloads(&plan, stand, measured_so_far);

    let settings = options(&original, stand);
    let target = first.target.with(&settings, &plan.driver()).map_err(|error| error.to_string())?;
    plan.client.extend(settings);
    let (knobs, before) = (stand.knobs(&first.plan), original.knobs(&first.plan));
    let changed: Vec<(String, String)> =
        knobs.iter().filter(|knob| !before.contains(knob)).cloned().collect();
    let live = format!(
        "a live trial: a knob was turned {:.1} s after the load began; its first {} are transition",
        since_go.as_secs_f64(),
        Span::from(TRANSITION)
    );
    Ok(Setup {
        target,
        clients: Vec::new(),
        place,
        variant: format!("live {}", Variant::name(&changed)),
        params: params(first, &knobs),
        knobs,
        keeping: Arc::clone(&first.keeping),
        notes: first.notes.iter().cloned().chain([live]).collect(),
        lab: first.lab.clone(),
        stub: None,
        plan: Arc::new(plan),
    })
}

/// The options that stand elsewhere than at first.
fn options(original: &Stand, stand: &Stand) -> Vec<OptionSetting> {
    let setting = |name: &str, value: String| OptionSetting {
        name: name.to_owned(),
        value: Some(value),
        from: OptionSource::Vary,
    };
    let mut settings = Vec::new();
    if stand.retries != original.retries {
        settings.push(setting(RETRIES, stand.retries.to_string()));
    }
    if stand.retargeting != original.retargeting {
        settings.push(setting(RETARGETING, stand.retargeting.to_string()));
    }
    settings
}

/// The overloads as seen from a measured time that begins this much later.
fn overloads(plan: &Plan, stand: &Stand, later: Duration) -> Vec<Overload> {
    let transition = i64::try_from(nanos(TRANSITION)).unwrap_or(i64::MAX);
    match stand.overload {
        Pushing::Off => Vec::new(),
        Pushing::On => {
            // The last operations are to meet the same servers as the first.
            let load = &plan.load;
            let whole = Span::from(TRANSITION + load.duration.duration() + load.cooldown.duration());
            let first = plan.overloads.first().cloned();
            first
                .map(|overload| Overload { at: Offset::from_nanos(-transition), length: whole, ..overload })
                .into_iter()
                .collect()
        }
        Pushing::Timeline => {
            let later = i64::try_from(nanos(later)).unwrap_or(i64::MAX);
            let moved = plan.overloads.iter().map(|overload| Overload {
                at: Offset::from_nanos(overload.at.nanos().saturating_sub(later)),
                ..overload.clone()
            });
            moved.filter(|overload| on_time(&plan.load, overload).is_some()).collect()
        }
    }
}

/// What is left of the stages after some time, with the load so many steps away.
fn later(stages: &[Stage], after: Duration, steps: i32) -> Result<Vec<Stage>, String> {
    let mut left = Vec::new();
    let mut start = Duration::ZERO;
    for &Stage { length, from, to } in stages {
        let (length, passed) = (length.duration(), after.saturating_sub(start));
        start += length;
        if passed >= length {
            continue;
        }
        let share = passed.as_secs_f64() / length.as_secs_f64();
        let now = Rate::per_second(from.get() + (to.get() - from.get()) * share);
        let scaled = |rate| stepped(rate, steps).map_err(|error| error.to_string());
        left.push(Stage {
            length: Span::from(length - passed),
            from: scaled(now.unwrap_or(from))?,
            to: scaled(to)?,
        });
    }
    Ok(left)
}

/// A rate so many steps away, to three digits.
fn stepped(rate: Rate, steps: i32) -> Result<Rate, crate::units::UnitError> {
    if steps == 0 {
        return Ok(rate);
    }
    let exact = rate.get() * STEP.powi(steps);
    let scale = 10_f64.powf(2.0 - exact.log10().floor());
    Rate::per_second((exact * scale).round() / scale)
}

/// As many workers so many steps away: each step is one at least, and one is left.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "above 0, and a float cast saturates"
)]
fn stepped_workers(workers: u32, steps: i32) -> u32 {
    let exact = (f64::from(workers) * STEP.powi(steps)).round() as u32;
    let by_one = workers.saturating_add_signed(steps);
    let least = if steps > 0 { exact.max(by_one) } else { exact.min(by_one) };
    least.clamp(1, MOST_WORKERS)
}

#[cfg(test)]
mod tests;
