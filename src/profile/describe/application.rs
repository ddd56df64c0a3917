//! What the application does beside what the driver does, in words.

use crate::plan::flow::LONGEST_MAX_TIME;
use crate::plan::{
    Backoff, BackoffKind, Breaker, Budget, BudgetLaw, ConcurrencyLimit, LimitLaw, OnTimeout, Plan, Producer,
    Signal, SpoolPlan, Timeout, WhenFull,
};
use crate::profile::flow::backoff;

use super::section;

/// One line for each part that is there.
pub fn application(plan: &Plan) -> String {
    let flow = &plan.flow;
    let parts = [
        deadline(&plan.timeout),
        max_time(&plan.timeout),
        plan.backoff.map(calls),
        flow.budget.map(budget),
        flow.limit.map(limit),
        flow.breaker.map(breaker),
        flow.producer.map(producer),
        flow.spool.map(spool),
    ];
    section("application", &parts.into_iter().flatten().collect::<Vec<_>>())
}

fn deadline(timeout: &Timeout) -> Option<String> {
    let operation = timeout.operation?;
    Some(match timeout.on_timeout {
        OnTimeout::Cancel => {
            format!("waits {operation} for a call, then drops it, and the driver its connection")
        }
        OnTimeout::ReadInBackground => format!(
            "waits {operation} for a call, then lets its reply come in the background for {}, to keep the connection",
            timeout.grace
        ),
    })
}

fn max_time(timeout: &Timeout) -> Option<String> {
    let max_time = timeout.max_time.filter(|max_time| *max_time <= LONGEST_MAX_TIME)?;
    Some(format!("tells servers to give up what is no write after {max_time} (maxTimeMS)"))
}

fn calls(calls: Backoff) -> String {
    let Backoff { kind, max_attempts, base, cap } = calls;
    let pauses = match kind {
        BackoffKind::Immediate => "at once".to_owned(),
        BackoffKind::Fixed => format!("{base} apart"),
        kind => {
            let words = backoff::KINDS;
            let word = words.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word);
            format!("after pauses ({word}, base {base}, cap {cap})")
        }
    };
    format!("calls up to {max_attempts} times in all, {pauses}")
}

fn budget(budget: Budget) -> String {
    let ends = ends(budget.signal);
    match budget.law {
        BudgetLaw::TokenBucket { capacity, per_success } => format!(
            "takes a token for each further call out of a bucket of {capacity}, and puts {per_success} back for each of \
             the {ends} that succeeds"
        ),
        BudgetLaw::Throttle { k, window } => format!(
            "leaves out calls by itself, to make no more than {k} for each that was accepted ({ends} of the last {window})"
        ),
    }
}

fn limit(limit: ConcurrencyLimit) -> String {
    let ConcurrencyLimit { signal, initial, floor, ceiling, law } = limit;
    let ends = ends(signal);
    let moved = match law {
        LimitLaw::Aimd { increase, decrease, once_per_round_trip } => {
            let once = if once_per_round_trip { ", once per round trip" } else { "" };
            format!(
                "aimd: up by {increase} after a full window of {ends} without a rejection, times {decrease} at a \
                 rejection{once}"
            )
        }
        LimitLaw::Gradient { smoothing, tolerance, memory } => format!(
            "gradient: less when round trips of {ends} take more than {tolerance} times the shortest of {memory}, \
             {smoothing} of the way at a time"
        ),
    };
    format!("has {initial} operations under way at first, then from {floor} to {ceiling} ({moved})")
}

fn breaker(breaker: Breaker) -> String {
    let Breaker { signal, threshold, window, minimum, cool_down } = breaker;
    // As exact as it was written, and no more: half a percent is 0.5 %.
    let percent = (threshold * 1e10).round() / 1e8;
    format!(
        "stops sending for {cool_down} when {percent} % of at least {minimum} {} within {window} were rejected, then tries \
         one operation",
        ends(signal)
    )
}

fn producer(producer: Producer) -> String {
    let further = match producer.when_full {
        WhenFull::Block => "the next one waits before the queue, and counts from when it was due",
        WhenFull::Drop => "further ones are dropped, and counted",
        WhenFull::Spool => "further ones go to the spool",
    };
    format!("lets up to {} arrivals wait in a queue; {further}", producer.queue)
}

fn spool(spool: SpoolPlan) -> String {
    let SpoolPlan { max_bytes, rotate_bytes, drain } = spool;
    format!(
        "spools up to {max_bytes} on disk, in files of {rotate_bytes}, and sends at most {drain} of it later"
    )
}

const fn ends(signal: Signal) -> &'static str {
    match signal {
        Signal::Operation => "operations",
        Signal::Attempt => "attempts",
    }
}
