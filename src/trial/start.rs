//! The moment at which the load of all shards begins.

use std::time::Duration;

use anyhow::bail;
use bson::doc;
use jiff::Timestamp;
use mongodb::Client;

use crate::plan::Plan;
use crate::units::Span;

/// How long before it files are opened, which may take a moment.
const AHEAD: Duration = Duration::from_secs(1);

/// What begins later than this is no part of the load any more.
const LATE: Duration = Duration::from_millis(250);

/// A clock that is off by less may as well be right: shards begin together to some milliseconds.
const ASTRAY: Duration = Duration::from_millis(100);

/// How long the primary is waited for when it is asked for its clock.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest sleep at a time: clocks are set while one waits.
const NAP: Duration = Duration::from_secs(1);

/// What is said to people who wait; `None` when there is nothing to wait for.
pub fn announcement(plan: &Plan) -> Option<String> {
    let shard = plan.shard?;
    let start_at = shard.start_at?;
    let left = start_at.duration_since(Timestamp::now());
    let seconds = u64::try_from(left.as_secs()).unwrap_or(0);
    Some(format!("shard {shard} is ready, and the load begins in {} (at {start_at})", Span::seconds(seconds)))
}

/// What people should read when this machine's clock is another than the servers', by which those of all shards can be
/// held against each other; `None` when it is not, there are no other shards, or the primary does not tell.
pub async fn clock(plan: &Plan, control: &Client) -> Option<String> {
    plan.shard.filter(|shard| shard.is_part())?;
    let asked = Timestamp::now();
    let hello = async { control.database("admin").run_command(doc! { "hello": 1 }).await };
    let hello = tokio::time::timeout(PATIENCE, hello).await.ok()?.ok()?;
    let answered = Timestamp::now();
    let theirs = hello.get_datetime("localTime").ok()?;
    let theirs = Timestamp::from_millisecond(theirs.timestamp_millis()).ok()?;
    clocks(asked, answered, theirs)
}

/// The servers' clock was read some time between two readings of ours.
fn clocks(asked: Timestamp, answered: Timestamp, theirs: Timestamp) -> Option<String> {
    let (least, most) = (asked.duration_since(theirs), answered.duration_since(theirs));
    let (off, word) = if least.is_positive() {
        (least.unsigned_abs(), "ahead of")
    } else if most.is_negative() {
        (most.unsigned_abs(), "behind")
    } else {
        return None;
    };
    (off > ASTRAY).then(|| {
        format!(
            "this machine's clock is {} ms {word} the primary's: where that is not so on the machines of all shards, they did \
             not begin together",
            off.as_millis()
        )
    })
}

/// Waits until shortly before the load begins.
///
/// # Errors
/// When it has begun.
pub async fn approached(plan: &Plan) -> anyhow::Result<()> {
    match plan.shard.and_then(|shard| shard.start_at) {
        Some(start_at) => reached(start_at, AHEAD).await,
        None => Ok(()),
    }
}

/// Waits until the load begins.
///
/// # Errors
/// When it has begun a while ago: the load would not be whole.
pub async fn come(plan: &Plan) -> anyhow::Result<()> {
    match plan.shard.and_then(|shard| shard.start_at) {
        Some(start_at) => reached(start_at, Duration::ZERO).await,
        None => Ok(()),
    }
}

async fn reached(start_at: Timestamp, before: Duration) -> anyhow::Result<()> {
    loop {
        let left = start_at.duration_since(Timestamp::now());
        if let Some(late) = too_late(left) {
            bail!(
                "the load was to begin at {start_at}, which was {late} ago, and this shard is ready only now: choose a later \
                 --start-at for all shards"
            );
        }
        let left = Duration::try_from(left).unwrap_or_default().saturating_sub(before);
        if left.is_zero() {
            return Ok(());
        }
        tokio::time::sleep(left.min(NAP)).await;
    }
}

/// How late it is, if that is too late; what is left is negative then.
fn too_late(left: jiff::SignedDuration) -> Option<Span> {
    let late = left.is_negative().then(|| left.unsigned_abs())?;
    (late > LATE).then(|| Span::millis(u64::try_from(late.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn clocks_differ_by_what_no_answer_takes() {
        let at = |millis: i64| Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap();
        assert_eq!(clocks(at(0), at(900), at(5)), None, "a slow answer tells nothing");
        assert_eq!(clocks(at(50), at(52), at(0)), None);
        let ahead = clocks(at(3000), at(3002), at(0)).unwrap();
        assert!(ahead.contains("3000 ms ahead of the primary's"), "{ahead}");
        let behind = clocks(at(0), at(2), at(302)).unwrap();
        assert!(behind.contains("300 ms behind the primary's"), "{behind}");
    }

    #[tokio::test]
    async fn a_start_is_met_and_one_that_has_passed_is_told() {
        let at = |millis| Timestamp::now() + SignedDuration::from_millis(millis);
        let start_at = at(150);
        reached(start_at, Duration::ZERO).await.unwrap();
        let off = Timestamp::now().duration_since(start_at);
        assert!(!off.is_negative() && off.unsigned_abs() < LATE, "{off}");
        reached(at(600_000), Duration::from_secs(601)).await.unwrap();
        reached(at(-100), AHEAD).await.unwrap();
        let error = reached(at(-12_000), AHEAD).await.unwrap_err().to_string();
        assert!(error.contains("which was 12s") && error.contains("--start-at"), "{error}");
    }
}
