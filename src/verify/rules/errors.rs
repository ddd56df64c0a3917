//! Which errors are retried, how often, and which one the caller gets. Asked of a server that plays a part.

use bson::Document;

use super::calls::attempts;
use super::{played, played_insert};
use crate::client::errors::{self, OVERLOADED, RETRYABLE};
use crate::verify::actor::{ORDINARY, failed, ordinary, overloaded};
use crate::verify::finding::Seen;

/// What an attempt is answered in the sequences below.
const OVERLOAD: char = 'o';

/// After an overload error its maximum is that of all retries, whatever errors follow or came before.
pub(super) async fn mixed() -> anyhow::Result<Seen> {
    // Answers, the maximum if it is configured, and how many attempts there are to be.
    let cases = [
        ("rrr", None, 2),
        ("orrr", None, 3),
        ("rorr", None, 3),
        ("rroo", None, 2),
        ("orrrrrr", Some(4), 5),
        ("ro", Some(1), 2),
        ("oro", Some(0), 1),
    ];
    let mut wrong = Vec::new();
    let mut right = Vec::new();
    for (answers, maximum, expected) in cases {
        let part = answers
            .chars()
            .map(|answer| if answer == OVERLOAD { overloaded(Document::new()) } else { ordinary() })
            .collect();
        let options =
            maximum.map(|maximum: u32| format!("&maxAdaptiveRetries={maximum}")).unwrap_or_default();
        let call = played(part, &options).await?;
        let most = maximum.map(|maximum| format!(" (maximum {maximum})")).unwrap_or_default();
        let text = format!("{answers}{most} {}", attempts(call.attempts.len()));
        if call.attempts.len() == expected {
            right.push(text);
        } else {
            wrong.push(format!("{text}, expected {expected}"));
        }
    }
    let holds = wrong.is_empty();
    let seen = if holds { right } else { wrong };
    Ok(Seen::judge(
        holds,
        format!("answers o = overload error, r = error {ORDINARY}, then success: {}", seen.join(", ")),
    ))
}

/// An error is a retryable overload error with both labels only.
pub(super) async fn both_labels() -> anyhow::Result<Seen> {
    let mut looks = Vec::new();
    for labels in [&[OVERLOADED][..], &[RETRYABLE], &[]] {
        let answer = || vec![failed(462, labels, Document::new())];
        for (what, seen) in [
            ("find", played(answer(), "").await?.attempts.len()),
            ("insert", played_insert(answer()).await?.attempts.len()),
        ] {
            looks.push(Seen::judge(
                seen == 1,
                format!("{what} with [{}]: {}", labels.join(", "), attempts(seen)),
            ));
        }
    }
    Ok(Seen::all(looks))
}

/// Which of several errors the caller gets: the latest that does not say that nothing was written, or else the first.
pub(super) async fn no_writes_performed() -> anyhow::Result<Seen> {
    const NOTHING: &str = "NoWritesPerformed";
    let error = |code: i32, nothing: bool| {
        let labels: &[&str] =
            if nothing { &[OVERLOADED, RETRYABLE, NOTHING] } else { &[OVERLOADED, RETRYABLE] };
        failed(code, labels, Document::new())
    };
    let cases = [
        ("none says NoWritesPerformed", [false, false, false], 903),
        ("all say NoWritesPerformed", [true, true, true], 901),
        ("all but the first say NoWritesPerformed", [false, true, true], 901),
        ("only the first says NoWritesPerformed", [true, false, false], 903),
    ];
    let mut looks = Vec::new();
    for (what, nothing, expected) in cases {
        let part = (901..).zip(nothing).map(|(code, nothing)| error(code, nothing)).collect();
        let call = played_insert(part).await?;
        if call.attempts.len() < 3 {
            return Ok(Seen::untestable(format!("the driver makes {} of 3", attempts(call.attempts.len()))));
        }
        let code = call.result.as_ref().err().and_then(|failure| errors::classify(failure.error()?).code);
        let returned = code.map_or_else(|| call.ended(), |code| format!("error {}", code - 900));
        looks.push(Seen::judge(
            code == Some(expected),
            format!("{what}: {returned} of 3 is returned, expected {}", expected - 900),
        ));
    }
    Ok(Seen::all(looks))
}
