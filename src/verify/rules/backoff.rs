//! How long a driver waits before retries. All of it is asked of a server that plays a part, so that waits depend on
//! nothing but the driver and this machine's timers.

use bson::{Bson, Document, doc};
use futures_util::future::join_all;

use super::calls::finds;
use super::played;
use super::waits::{BASE_MS, CAP_MS, Exponent, fits, judge};
use crate::verify::actor::{Actor, ORDINARY, ordinary, overloaded};
use crate::verify::finding::{Seen, Verdict};
use crate::verify::lateness::alongside;

/// Retries whose waits are measured: the last but one reaches the cap with either exponent.
const RETRIES: usize = 8;

/// Calls that make them.
const CALLS: usize = 150;

/// Waits before each of the first retries, and by how much they may be too long.
pub(super) struct Waits {
    /// By retry, in milliseconds.
    by_retry: Vec<Vec<f64>>,
    late: f64,
}

/// Makes calls that are rejected as often as they are retried, and measures.
pub(super) async fn measure() -> anyhow::Result<Waits> {
    let actor = Actor::start(vec![overloaded(Document::new()); RETRIES + 1]).await?;
    let client = actor.client(&format!("&maxAdaptiveRetries={RETRIES}")).await?;
    let (calls, late) = alongside(finds(&client, CALLS)).await;
    let mut by_retry = vec![Vec::new(); RETRIES];
    for call in calls {
        for (waits, waited) in by_retry.iter_mut().zip(call.waits()) {
            waits.push(waited);
        }
    }
    Ok(Waits { by_retry, late })
}

/// No wait is longer than the cap and the exponent allow.
pub(super) fn bounded(waits: &Waits) -> Seen {
    if waits.by_retry[0].is_empty() {
        return Seen::untestable("the driver makes no retry");
    }
    let mut parts = Vec::new();
    let mut holds = true;
    for (i, waits_before) in waits.by_retry.iter().enumerate() {
        let longest = waits_before.iter().copied().fold(0.0, f64::max);
        let bound = Exponent::Attempt.longest(BASE_MS, i + 1);
        holds &= longest <= bound + waits.late;
        parts.push(format!("{longest:.0} of {bound:.0}"));
    }
    Seen::judge(
        holds,
        format!(
            "the longest wait before each retry, and the bound, in ms: {} (timers up to {:.0} ms late)",
            parts.join(", "),
            waits.late
        ),
    )
}

/// Waits are distributed as the specification has them.
pub(super) fn distributed(waits: &Waits) -> Seen {
    if waits.by_retry[0].is_empty() {
        return Seen::untestable("the driver makes no retry");
    }
    judge(&waits.by_retry.iter().map(Vec::as_slice).collect::<Vec<_>>(), BASE_MS, 1, waits.late)
}

/// The wait is the server's where it names one, and only for the error that names it.
pub(super) async fn base_backoff() -> anyhow::Result<Seen> {
    const SERVERS_MS: i32 = 500;
    let actor =
        Actor::start(vec![overloaded(doc! { "baseBackoffMS": SERVERS_MS }), overloaded(Document::new())])
            .await?;
    let client = actor.client("").await?;
    let (calls, late) = alongside(finds(&client, CALLS)).await;
    let [first, second] = [0, 1].map(|retry| -> Vec<f64> {
        calls.iter().filter_map(|call| call.waits().get(retry).copied()).collect()
    });
    if first.is_empty() {
        return Ok(Seen::untestable("the driver makes no retry"));
    }
    let named = judge(&[&first], f64::from(SERVERS_MS), 1, late);
    let ignored = matches!(named.verdict, Verdict::Broken) && fits(&first, BASE_MS, 1, late);
    let ignored = if ignored { ": it is ignored, since waits fit those without it" } else { "" };
    let unnamed = second.iter().copied().fold(0.0, f64::max);
    let bound = Exponent::Attempt.longest(BASE_MS, 2);
    let forgotten = Seen::judge(
        unnamed <= bound + late,
        format!("after a second error that names none at most {unnamed:.0} ms of {bound:.0}"),
    );
    Ok(Seen::all([
        Seen { seen: format!("with baseBackoffMS {SERVERS_MS}{ignored}: {}", named.seen), ..named },
        forgotten,
    ]))
}

/// A `baseBackoffMS` of any type leaves the error what it is; one that is no positive number is as good as none.
pub(super) async fn base_backoff_types() -> anyhow::Result<Seen> {
    let values: [(&str, Bson); 7] = [
        ("int32 20", Bson::Int32(20)),
        ("int64 20", Bson::Int64(20)),
        ("double 20.0", Bson::Double(20.0)),
        ("0", Bson::Int32(0)),
        ("-20", Bson::Int32(-20)),
        ("string", Bson::String("20".to_owned())),
        ("null", Bson::Null),
    ];
    let each = values.map(|(name, value)| async move {
        let call = played(vec![overloaded(doc! { "baseBackoffMS": value })], "").await?;
        let retried = call.attempts.len() == 2 && call.result.is_ok();
        anyhow::Ok((name, retried, call.ended()))
    });
    let each = join_all(each).await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let lost: Vec<String> =
        each.iter().filter(|look| !look.1).map(|(name, _, ended)| format!("{name}: {ended}")).collect();
    Ok(match lost.is_empty() {
        true => Seen::judge(true, "int32, int64, double, 0, negative, string and null: each retried"),
        false => Seen::judge(false, format!("not retried with {}", lost.join("; with "))),
    })
}

/// After errors that are none of overload a driver retries at once, after the others it waits.
pub(super) async fn only_when_overloaded() -> anyhow::Result<Seen> {
    const FEW: usize = 40;
    const MOST_MS: f64 = 60.0;
    let mut medians = Vec::new();
    for error in [overloaded(Document::new()), ordinary()] {
        let actor = Actor::start(vec![error]).await?;
        let client = actor.client("").await?;
        let (calls, late) = alongside(finds(&client, FEW)).await;
        let mut waits: Vec<f64> = calls.iter().flat_map(|call| call.waits()).collect();
        waits.sort_by(f64::total_cmp);
        let Some(median) = waits.get(waits.len() / 2).copied().filter(|_| waits.len() == FEW) else {
            return Ok(Seen::untestable("the driver does not retry after one of the errors"));
        };
        medians.push((median, late));
    }
    let [(overloaded, _), (ordinary, late)] = medians[..] else {
        return Ok(Seen::untestable("nothing was measured"));
    };
    if late > MOST_MS {
        return Ok(Seen::untestable(format!(
            "timers are up to {late:.0} ms late here, too late to see no wait"
        )));
    }
    // The median of 40 waits between 0 and 100 ms is below 10 ms once in ten million times.
    Ok(Seen::judge(
        overloaded > 10.0 && ordinary < late + 10.0,
        format!(
            "median wait after an overload error {overloaded:.0} ms, after error {ORDINARY} {ordinary:.0} ms"
        ),
    ))
}

/// A retry's number counts all retries before it, those after other errors, too.
pub(super) async fn counts_all() -> anyhow::Result<Seen> {
    let actor = Actor::start(vec![ordinary(), overloaded(Document::new())]).await?;
    let client = actor.client("").await?;
    let (calls, late) = alongside(finds(&client, CALLS)).await;
    let waits: Vec<f64> = calls.iter().filter_map(|call| call.waits().get(1).copied()).collect();
    if waits.is_empty() {
        let ended = calls.first().map(|call| call.ended()).unwrap_or_default();
        return Ok(Seen::judge(
            false,
            format!("no second retry when an overload error follows another: {ended}"),
        ));
    }
    let seen = judge(&[&waits], BASE_MS, 2, late);
    Ok(Seen { seen: format!("overload error after error {ORDINARY}: {}", seen.seen), ..seen })
}

/// The cap holds however often a command was retried: the 32nd power of two is beyond 32 bits.
pub(super) async fn after_many_retries() -> anyhow::Result<Seen> {
    const CALLS: usize = 20;
    const RETRY: usize = 32;
    const SOON_MS: f64 = 300.0;
    // The first raises the number of retries; those in between are free.
    let mut part = vec![overloaded(Document::new())];
    part.extend(vec![ordinary(); RETRY - 2]);
    part.push(overloaded(Document::new()));
    let actor = Actor::start(part).await?;
    let client = actor.client(&format!("&maxAdaptiveRetries={}", RETRY + 8)).await?;
    let (calls, late) = alongside(finds(&client, CALLS)).await;
    let panics =
        calls.iter().filter(|call| call.result.as_ref().is_err_and(|failure| failure.error().is_none()));
    let panics = panics.count();
    if panics > 0 {
        return Ok(Seen::judge(
            false,
            format!("at retry {RETRY} {panics} of {CALLS} calls panicked in the driver"),
        ));
    }
    let waits: Vec<f64> = calls.iter().filter_map(|call| call.waits().get(RETRY - 1).copied()).collect();
    if waits.len() < CALLS {
        let ended =
            calls.iter().find(|call| call.result.is_err()).map(|call| call.ended()).unwrap_or_default();
        return Ok(Seen::untestable(format!(
            "only {} of {CALLS} calls made {RETRY} retries: {ended}",
            waits.len()
        )));
    }
    let [shortest, longest] =
        [waits.iter().copied().fold(f64::MAX, f64::min), waits.iter().copied().fold(0.0, f64::max)];
    // Of 20 waits between 0 and 10 s all are below 0.3 s once in 10^30 times.
    let holds = longest > SOON_MS && longest <= CAP_MS + late;
    Ok(Seen::judge(
        holds,
        format!("{CALLS} waits before retry {RETRY} took {shortest:.0} to {longest:.0} ms of 10000"),
    ))
}
