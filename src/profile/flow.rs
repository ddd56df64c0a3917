//! `[flow]`: what the application does about servers that reject, and about calls that fail.

pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod limit;
pub mod producer;

use crate::plan::{
    Backoff, BackoffKind, Breaker, Budget, BudgetLaw, ConcurrencyLimit, Flow, LimitLaw, Model, Plan, Signal,
    SpoolPlan,
};
use crate::units::{ByteCount, Rate, Span};

use super::diagnostic::Diagnostic;
use super::load::WrittenLoad;
use super::reader::Table;

/// What nobody says of the pauses between calls.
pub const BACKOFF: Backoff = Backoff {
    kind: BackoffKind::FullJitter,
    max_attempts: 3,
    base: Span::millis(100),
    cap: Span::seconds(10),
};

/// What nobody says of the limit on operations under way.
pub const LIMIT: ConcurrencyLimit =
    ConcurrencyLimit { signal: Signal::Operation, initial: 10, floor: 1, ceiling: 200, law: LimitLaw::AIMD };

/// What nobody says of the breaker.
pub const BREAKER: Breaker = Breaker {
    signal: Signal::Operation,
    threshold: 0.5,
    window: Span::seconds(10),
    minimum: 20,
    cool_down: Span::seconds(5),
};

/// What nobody says of the budget.
pub const BUDGET: Budget = Budget { signal: Signal::Operation, law: BudgetLaw::TOKEN_BUCKET };

/// What nobody says of the spool.
pub const SPOOL: SpoolPlan = SpoolPlan {
    max_bytes: ByteCount::mebibytes(64),
    rotate_bytes: ByteCount::mebibytes(8),
    drain: Rate::THOUSAND,
};

/// The most operations that any of the parts counts.
pub const MOST_OPERATIONS: u32 = 1_000_000;

/// The words for what a part goes by.
pub const SIGNALS: [(&str, Signal); 2] = [("operation", Signal::Operation), ("attempt", Signal::Attempt)];

/// Everything that `[flow]` can hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Further calls.
    pub backoff: Option<Backoff>,
    /// The rest.
    pub flow: Flow,
}

/// One of the ways in which a part can work.
#[derive(Debug)]
pub struct Kind<L: 'static> {
    /// Its word.
    pub word: &'static str,
    /// Itself, with what nobody says.
    pub law: L,
    /// The keys that it alone has.
    pub keys: &'static [&'static str],
}

/// What a number must be.
#[derive(Debug)]
pub struct Bounds {
    words: &'static str,
    hold: fn(f64) -> bool,
}

/// A share that is something.
pub const SOME_SHARE: Bounds = Bounds { words: "above 0 and at most 1", hold: |n| n > 0.0 && n <= 1.0 };
/// A share, of which there may be nothing.
pub const ANY_SHARE: Bounds = Bounds { words: "from 0 to 1", hold: |n| (0.0..=1.0).contains(&n) };
/// A factor that makes less of what it multiplies, but something.
pub const SHRINKING: Bounds = Bounds { words: "above 0 and below 1", hold: |n| n > 0.0 && n < 1.0 };
/// A factor that does not make less of what it multiplies.
pub const NOT_SHRINKING: Bounds = Bounds { words: "at least 1", hold: |n| n >= 1.0 && n.is_finite() };

impl Bounds {
    /// The number, if it is within them.
    ///
    /// # Errors
    /// What is wrong with it; the key's name is to stand before it.
    pub fn check(&self, number: f64) -> Result<f64, String> {
        match (self.hold)(number) {
            true => Ok(number),
            false => Err(format!("must be {}, not {number}", self.words)),
        }
    }
}

/// What was written in `[flow]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenFlow {
    /// What is on.
    pub on: Parts,
    /// The numbers of every part, on or off.
    pub numbers: Parts,
    /// The producer and its spool, as far as they were written.
    producer: producer::WrittenProducer,
    /// The keys that are there.
    said: Vec<&'static str>,
}

impl WrittenFlow {
    /// Whether a key was written.
    pub fn says(&self, key: &str) -> bool {
        self.said.contains(&key)
    }

    /// What is on and the numbers of every part. Parts that were not written are taken from another, and of the producer each
    /// key.
    pub fn over(&self, on: &Parts, numbers: &Parts) -> [Parts; 2] {
        let says = |keys: &[&str]| keys.iter().any(|key| self.says(key));
        let pick = |ours: &Parts, base: &Parts| {
            let (backoff, limit) = (says(&["backoff"]), says(&["limit"]));
            let (breaker, budget) = (says(&["breaker"]), says(&["budget"]));
            let (producer, spool) = self.producer.over(&base.flow);
            Parts {
                backoff: if backoff { ours.backoff } else { base.backoff },
                flow: Flow {
                    limit: if limit { ours.flow.limit } else { base.flow.limit },
                    breaker: if breaker { ours.flow.breaker } else { base.flow.breaker },
                    budget: if budget { ours.flow.budget } else { base.flow.budget },
                    producer,
                    spool,
                },
            }
        };
        [pick(&self.on, on), pick(&self.numbers, numbers)]
    }
}

/// Reads `[flow]`; `load` is the one that it is about.
pub fn read(root: &mut Table<'_>, load: &WrittenLoad) -> WrittenFlow {
    let Some(mut table) = root.table("flow") else { return WrittenFlow::default() };
    let written = producer::read(&mut table, load);
    let (producer, spool) = written.over(&Flow::default());
    let backoff = part(&mut table, "backoff", backoff::read);
    let limit = part(&mut table, "limit", limit::read);
    let breaker = part(&mut table, "breaker", breaker::read);
    let budget = part(&mut table, "budget", budget::read);
    let keys = ["queue", "when_full", "spool", "backoff", "limit", "breaker", "budget"];
    let said = keys.into_iter().filter(|key| table.key_span(key).is_some()).collect();
    table.finish();
    let [on, numbers] = [0, 1].map(|i| Parts {
        backoff: backoff[i],
        flow: Flow { limit: limit[i], breaker: breaker[i], budget: budget[i], producer, spool },
    });
    WrittenFlow { on, numbers, producer: written, said }
}

/// One part: what is on, and its numbers. They may be there for the command line alone, which turns it on.
fn part<T: Copy>(flow: &mut Table<'_>, key: &'static str, read: fn(&mut Table<'_>) -> T) -> [Option<T>; 2] {
    let Some(mut table) = flow.table(key) else { return [None, None] };
    let on = table.flag("on").unwrap_or(true);
    let numbers = read(&mut table);
    table.finish();
    [on.then_some(numbers), Some(numbers)]
}

/// `kind`, which is the first if nobody says; the keys of others are mistakes.
fn law<L: Copy>(table: &mut Table<'_>, kinds: &[Kind<L>]) -> L {
    let words: Vec<(&str, &Kind<L>)> = kinds.iter().map(|kind| (kind.word, kind)).collect();
    let written = table.word("kind", &words);
    let chosen = written.unwrap_or(&kinds[0]);
    let unclear = written.is_none() && table.key_span("kind").is_some();
    for other in kinds.iter().filter(|other| other.word != chosen.word) {
        for &key in other.keys {
            if table.take(key).is_none() || unclear {
                continue;
            }
            let message = format!(
                "`{}` belongs to {}, and the kind is {}",
                table.path_of(key),
                other.word,
                chosen.word
            );
            let help = format!("leave it out, or write kind = \"{}\"", other.word);
            let place = table.key_span(key).unwrap_or_default();
            table.mistakes().add(Diagnostic::error(place, message).help(help));
        }
    }
    chosen.law
}

fn signal(table: &mut Table<'_>) -> Signal {
    table.word("signal", &SIGNALS).unwrap_or_default()
}

fn bounded(table: &mut Table<'_>, key: &'static str, bounds: &Bounds) -> Option<f64> {
    let number = table.number(key)?;
    let checked = bounds.check(*number.get_ref());
    checked.map_err(|message| table.wrong(number.span(), format!("`{}` {message}", table.path_of(key)))).ok()
}

/// What cannot be although each value is in bounds; one sentence each. The keys of one of several clients begin with
/// `clients.NAME.`.
pub fn impossible(flow: &Flow, model: &Model, whose: &str) -> Vec<String> {
    let limit = flow.limit.as_ref().and_then(limit::disorder);
    let spool = flow.spool.as_ref().and_then(producer::disorder);
    let closed = match (flow.producer, model) {
        (Some(_), Model::Closed { .. }) => Some(format!(
            "flow.queue and flow.when_full belong to the open model, and the load is closed then: \
             --set {whose}flow.when_full=none takes them away"
        )),
        _ => None,
    };
    limit.into_iter().chain(spool).chain(closed).collect()
}

/// What of it will do nothing; one sentence each.
pub fn doubts(plan: &Plan) -> Option<String> {
    let bucket = plan.flow.budget.is_some_and(|budget| matches!(budget.law, BudgetLaw::TokenBucket { .. }));
    let retries = plan.backoff.is_some_and(|backoff| backoff.max_attempts > 1);
    (bucket && !retries).then(|| {
        "flow.budget is a token bucket for further calls, and without flow.backoff there are none".to_owned()
    })
}
