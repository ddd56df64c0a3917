//! A primary that gives up its office: a failover without anything broken.

use std::time::Duration;

use anyhow::{anyhow, ensure};
use bson::{Document, doc};

use super::Ground;
use crate::client::errors;
use crate::cluster::Member;
use crate::units::Span;

/// How long it waits for a secondary that has all it has, in seconds; as long as servers do when nobody says.
const CATCH_UP: i64 = 10;

/// The code of a server that cannot be frozen, since it is primary.
const NOT_SECONDARY: i32 = 95;

/// How long stepping down may take.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Whether there is an office to give up.
///
/// # Errors
/// When there is none, or nobody to take it over.
pub fn check(ground: &Ground) -> anyhow::Result<()> {
    ensure!(
        ground.cluster.kind == "replica set" && ground.cluster.members.len() > 1,
        "step_down takes a replica set of several members, and this is a {} of {}",
        ground.cluster.kind,
        ground.cluster.members.len()
    );
    Ok(())
}

/// Has the member step down, and not stand for election for this long.
///
/// # Errors
/// When it refuses.
pub async fn apply(member: &Member, length: Span) -> anyhow::Result<()> {
    // The time must be longer than the waiting within it; undoing ends it earlier.
    let seconds = i64::try_from(length.duration().as_secs() + 1).unwrap_or(i64::MAX).saturating_add(CATCH_UP);
    // Not by force: then it would hand its office to nobody, and the others would take ten seconds to notice.
    let command = doc! { "replSetStepDown": seconds, "secondaryCatchUpPeriodSecs": CATCH_UP };
    told("replSetStepDown", member, member.client.database("admin").run_command(command).await)
}

/// Lets it stand again.
///
/// # Errors
/// When it does not answer.
pub async fn undo(member: &Member) -> anyhow::Result<()> {
    let result = member.client.database("admin").run_command(doc! { "replSetFreeze": 0 }).await;
    match result {
        // It is primary again already, or about to be.
        Err(error) if errors::classify(&error).code == Some(NOT_SECONDARY) => Ok(()),
        result => told("replSetFreeze", member, result),
    }
}

fn told(command: &str, member: &Member, result: mongodb::error::Result<Document>) -> anyhow::Result<()> {
    result.map(drop).map_err(|error| anyhow!("{command} at {}: {}", member.address, errors::message(&error)))
}
