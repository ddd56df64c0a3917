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
    run(member, doc! { "replSetStepDown": seconds, "secondaryCatchUpPeriodSecs": CATCH_UP }).await
}

/// Lets it stand again.
///
/// # Errors
/// When it does not answer.
pub async fn undo(member: &Member) -> anyhow::Result<()> {
    match run(member, doc! { "replSetFreeze": 0 }).await {
        // It is primary again already.
        Err(error) if error.to_string().contains("NotSecondary") || error.to_string().contains("PRIMARY") => {
            Ok(())
        }
        result => result,
    }
}

async fn run(member: &Member, command: Document) -> anyhow::Result<()> {
    let name = command.keys().next().cloned().unwrap_or_default();
    let result = member.client.database("admin").run_command(command).await;
    result.map(drop).map_err(|error| anyhow!("{name} at {}: {}", member.address, errors::message(&error)))
}
