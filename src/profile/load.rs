//! `[load]` as it was written. What was left out stays `None` until the plan is made, because the command line may
//! still change the model.

use std::ops::Range;
use std::time::Duration;

use crate::plan::load::MOST_WORKERS;
use crate::plan::{Arrivals, Stage};
use crate::units::{Rate, Span};

use super::diagnostic::Diagnostic;
use super::mistakes::Mistakes;
use super::reader::{Table, Value};

/// Who decides when an operation starts, by name alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelName {
    /// The arrival process.
    #[default]
    Open,
    /// The workers.
    Closed,
}

/// What was written in `[load]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenLoad {
    /// `model`
    pub model: Option<ModelName>,
    /// `rate`
    pub rate: Option<Rate>,
    /// `workers`
    pub workers: Option<u32>,
    /// `max_in_flight`
    pub max_in_flight: Option<u32>,
    /// `warmup`
    pub warmup: Option<Span>,
    /// `duration`
    pub duration: Option<Span>,
    /// `cooldown`
    pub cooldown: Option<Span>,
    /// `stages`; empty when there are none.
    pub stages: Vec<Stage>,
    /// `arrivals`
    pub arrivals: Option<Arrivals>,
}

/// The words for the models.
pub const MODELS: [(&str, ModelName); 2] = [("open", ModelName::Open), ("closed", ModelName::Closed)];
/// The words for the kinds of arrival.
pub const ARRIVALS: [(&str, Arrivals); 2] = [("poisson", Arrivals::Poisson), ("even", Arrivals::Even)];
/// The most operations under way in the open model.
pub const MOST_IN_FLIGHT: u32 = 1_000_000;

impl WrittenLoad {
    /// The length of all stages together.
    pub fn staged(&self) -> Option<Span> {
        let total = self.stages.iter().map(|stage| stage.length.duration());
        (!self.stages.is_empty()).then(|| total.fold(Duration::ZERO, Duration::saturating_add).into())
    }

    /// Whether it says how many operations are due.
    pub fn says_rate(&self) -> bool {
        self.rate.is_some() || !self.stages.is_empty()
    }

    /// The model of one of several clients, if it says anything of it: a rate and a number of workers do, too.
    pub fn says_model(&self) -> Option<ModelName> {
        let open = self.says_rate().then_some(ModelName::Open);
        self.model.or(open).or(self.workers.map(|_| ModelName::Closed))
    }

    /// What one of several clients says of its load, with what it does not say taken from the profile's.
    pub fn over(self, base: &Self) -> Self {
        let model = self.says_model().or(base.model);
        let (rate, stages) = match self.says_rate() {
            true => (self.rate, self.stages),
            false => (base.rate, base.stages.clone()),
        };
        Self {
            model,
            rate,
            workers: self.workers.or(base.workers),
            max_in_flight: self.max_in_flight.or(base.max_in_flight),
            warmup: base.warmup,
            duration: base.duration.or(base.staged()),
            cooldown: base.cooldown,
            stages,
            arrivals: self.arrivals.or(base.arrivals),
        }
    }
}

/// Reads `[load]`; without one, everything has its default.
pub fn read(root: &mut Table<'_>) -> WrittenLoad {
    let Some(mut table) = root.table("load") else { return WrittenLoad::default() };
    let load = WrittenLoad {
        warmup: table.quantity("warmup").map(|span| span.into_inner()),
        duration: above_zero(&mut table, "duration"),
        cooldown: table.quantity("cooldown").map(|span| span.into_inner()),
        ..read_model(&mut table)
    };
    check_model(&table, &load);
    check_stages(&table, &load);
    table.finish();
    load
}

/// Reads the load of one of several clients: how much, but not when. What it does not say it takes from the profile's.
pub fn read_of_client(client: &mut Table<'_>, base: &WrittenLoad) -> WrittenLoad {
    let Some(mut table) = client.table("load") else { return WrittenLoad::default() };
    let load = read_model(&mut table);
    for key in ["warmup", "duration", "cooldown"] {
        if table.take(key).is_some() {
            let message =
                format!("`{}` is not for one client to say: all of them share the time", table.path_of(key));
            let place = table.key_span(key).unwrap_or_default();
            table.mistakes().add(Diagnostic::error(place, message).help("write it in [load]"));
        }
    }
    // What is wrong and has been reported says which model was meant, too.
    let says = |keys: &[&str]| keys.iter().any(|key| table.key_span(key).is_some());
    let open = says(&["rate", "stages"]).then_some(ModelName::Open);
    let meant = load.model.or(open).or(says(&["workers"]).then_some(ModelName::Closed));
    let whole = WrittenLoad { model: meant, ..load.clone() }.over(base);
    check_model(&table, &whole);
    let duration = base.duration.or(base.staged());
    check_stages(&table, &WrittenLoad { duration, ..load.clone() });
    table.finish();
    load
}

fn read_model(table: &mut Table<'_>) -> WrittenLoad {
    let stages = read_stages(table);
    WrittenLoad {
        model: table.word("model", &MODELS),
        rate: table.quantity("rate").map(|rate| rate.into_inner()),
        workers: table.integer("workers", 1, MOST_WORKERS),
        max_in_flight: table.integer("max_in_flight", 1, MOST_IN_FLIGHT),
        stages: stages.unwrap_or_default(),
        arrivals: table.word("arrivals", &ARRIVALS),
        ..WrittenLoad::default()
    }
}

/// A length of time that must not be 0.
pub fn above_zero(table: &mut Table<'_>, key: &'static str) -> Option<Span> {
    let span = table.quantity::<Span>(key)?;
    if *span.get_ref() == Span::ZERO {
        table.wrong(span.span(), format!("`{}` must be longer than 0", table.path_of(key)));
        return None;
    }
    Some(span.into_inner())
}

/// All stages; `None` when there are none, or mistakes in them.
fn read_stages(table: &mut Table<'_>) -> Option<Vec<Stage>> {
    let (mistakes, path, place) = (table.mistakes(), table.path_of("stages"), table.key_span("stages"));
    let items: Vec<&Value<'_>> = table.array("stages")?.collect();
    if let (true, Some(place)) = (items.is_empty(), place) {
        mistakes.add(Diagnostic::error(place, format!("`{path}` must not be empty")));
    }
    // Every stage is read before giving up, so that all mistakes are reported.
    let stages: Vec<_> = items.into_iter().map(|item| read_stage(mistakes, item, &path)).collect();
    stages.into_iter().collect()
}

fn read_stage(mistakes: &Mistakes, item: &Value<'_>, path: &str) -> Option<Stage> {
    let mut table = Table::of(mistakes, item, path.to_owned())?;
    let length = above_zero(&mut table, "for");
    if table.key_span("for").is_none() {
        table.missing("for");
    }
    let mut rate = |key| table.quantity::<Rate>(key).map(|rate| rate.into_inner());
    let (steady, from, to) = (rate("rate"), rate("from"), rate("to"));
    let has = |key| table.key_span(key).is_some();
    let rates = match (has("rate"), has("from"), has("to")) {
        (true, false, false) => steady.zip(steady),
        (false, true, true) => from.zip(to),
        _ => {
            let message = "a stage has either `rate`, or both `from` and `to`";
            table.wrong(table.span.clone(), message);
            None
        }
    };
    table.finish();
    let (from, to) = rates?;
    Some(Stage { length: length?, from, to })
}

/// Keys that say nothing in the model at hand are mistakes: something was expected of them.
fn check_model(table: &Table<'_>, load: &WrittenLoad) {
    let (foreign, model, other): (&[&str], _, _) = match load.model.unwrap_or_default() {
        ModelName::Open => (&["workers"], "open", "closed"),
        ModelName::Closed => (&["rate", "stages", "max_in_flight", "arrivals"], "closed", "open"),
    };
    let written = |key: &&&str| table.key_span(key).is_some();
    for key in foreign.iter().filter(written) {
        let path = table.path_of(key);
        let message = format!("`{path}` belongs to the {other} model, and this load is {model}");
        let help = format!("leave it out, or write model = \"{other}\"");
        let place: Range<usize> = table.key_span(key).unwrap_or_default();
        table.mistakes().add(Diagnostic::error(place, message).help(help));
    }
    if load.model == Some(ModelName::Closed) && load.workers.is_none() && table.key_span("workers").is_none()
    {
        table.wrong(table.span.clone(), "a closed load lacks `workers`");
    }
}

fn check_stages(table: &Table<'_>, load: &WrittenLoad) {
    let (Some(staged), Some(place)) = (load.staged(), table.key_span("stages")) else { return };
    let is_open = load.model.unwrap_or_default() == ModelName::Open;
    if let (true, Some(rate)) = (is_open, table.key_span("rate")) {
        let (one, other) = (table.path_of("rate"), table.path_of("stages"));
        let message = format!("`{one}` and `{other}` both say how much load there is");
        table.mistakes().add(Diagnostic::error(rate, message).help("leave one of them out"));
    }
    if let Some(duration) = load.duration.filter(|duration| *duration != staged) {
        let message = format!("the stages last {staged} together, but `load.duration` is {duration}");
        let help = match table.path.as_str() {
            "load" => "leave the duration out",
            _ => "let them last as long: all clients share the time",
        };
        table.mistakes().add(Diagnostic::error(place.clone(), message).help(help));
    }
    if staged.to_string().parse::<Span>().is_err() {
        table.wrong(place, "the stages last longer than a year together");
    }
}
