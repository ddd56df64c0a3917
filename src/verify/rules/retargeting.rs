//! Where retries go.

use anyhow::Result;
use bson::doc;

use crate::client::errors::{OVERLOADED, RETRYABLE};
use crate::verify::finding::Seen;
use crate::verify::observe::{Call, watch};
use crate::verify::stage::{Stage, always};

/// Finds under each setting.
const FINDS: usize = 10;

/// Which members reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rejecting {
    Primary,
    Secondaries,
}

impl std::fmt::Display for Rejecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary rejects",
            Self::Secondaries => "secondaries reject",
        })
    }
}

/// What finds under one setting came to.
struct Outcome {
    succeeded: usize,
    attempts: usize,
    /// Retries at another server than the attempt before.
    moved: usize,
    /// Attempts at the primary.
    at_primary: usize,
}

/// Switched off, retries go where the read preference says, as if nothing had happened.
pub(super) async fn off(stage: &Stage) -> Result<Seen> {
    if let Some(reason) = alone(stage) {
        return Ok(reason);
    }
    let mut looks = Vec::new();
    for option in [None, Some("false")] {
        let said = option
            .map_or_else(|| "by default".to_owned(), |value| format!("enableOverloadRetargeting={value}"));
        let seen = finds(stage, option, "primaryPreferred", Rejecting::Primary).await?;
        looks.push(Seen::judge(
            seen.succeeded == 0 && seen.moved == 0 && seen.at_primary == seen.attempts,
            format!("{said}, primaryPreferred, primary rejects: {seen}"),
        ));
        let seen = finds(stage, option, "secondaryPreferred", Rejecting::Secondaries).await?;
        looks.push(Seen::judge(
            seen.succeeded == 0 && seen.at_primary == 0,
            format!("{said}, secondaryPreferred, secondaries reject: {seen}"),
        ));
    }
    Ok(Seen::all(looks))
}

/// Switched on, retries avoid servers that have rejected the command, as far as the read preference knows others.
pub(super) async fn on(stage: &Stage) -> Result<Seen> {
    if let Some(reason) = alone(stage) {
        return Ok(reason);
    }
    let mut looks = Vec::new();
    for (preference, rejecting) in [
        ("primaryPreferred", Rejecting::Primary),
        ("nearest", Rejecting::Primary),
        ("secondaryPreferred", Rejecting::Secondaries),
    ] {
        let seen = finds(stage, Some("true"), preference, rejecting).await?;
        let retries = seen.attempts - FINDS;
        // With two secondaries or fewer the primary is reached within the two retries of the default.
        let few = stage.cluster.members.len() <= 3;
        looks.push(Seen::judge(
            (seen.succeeded == FINDS || !few) && seen.moved == retries,
            format!("{preference}, {rejecting}: {seen}"),
        ));
    }
    let seen = finds(stage, Some("true"), "primary", Rejecting::Primary).await?;
    looks.push(Seen::judge(
        seen.attempts == 3 * FINDS && seen.at_primary == seen.attempts,
        format!("primary, which has nowhere to go: {seen}"),
    ));
    Ok(Seen::all(looks))
}

fn alone(stage: &Stage) -> Option<Seen> {
    (stage.cluster.members.len() < 2)
        .then(|| Seen::untestable("there is one server only: retries have nowhere to go"))
}

async fn finds(
    stage: &Stage,
    retargeting: Option<&str>,
    preference: &str,
    rejecting: Rejecting,
) -> Result<Outcome> {
    let mut options = vec![("readPreference", preference)];
    options.extend(retargeting.map(|value| ("enableOverloadRetargeting", value)));
    let client = stage.client(&options).await?;
    let collection = stage.collection(&client);
    let primary = stage.primary().await?;
    let data = doc! { "failCommands": ["find"], "errorCode": 462, "errorLabels": [OVERLOADED, RETRYABLE] };
    for member in 0..stage.cluster.members.len() {
        if (member == primary) == (rejecting == Rejecting::Primary) {
            stage.faults.put(member, always(), &data).await?;
        }
    }
    let calls = futures_util::future::join_all(
        (0..FINDS).map(|_| watch(async { collection.find_one(doc! {}).await.map(drop) })),
    )
    .await;
    stage.faults.off().await?;
    Ok(Outcome::of(&calls, stage.address(primary)))
}

impl Outcome {
    fn of(calls: &[Call<()>], primary: &str) -> Self {
        let servers: Vec<Vec<&str>> = calls
            .iter()
            .map(|call| call.of("find").map(|attempt| attempt.server.as_str()).collect())
            .collect();
        let moved = |call: &Vec<&str>| call.windows(2).filter(|pair| pair[0] != pair[1]).count();
        Self {
            succeeded: calls.iter().filter(|call| call.result.is_ok()).count(),
            attempts: servers.iter().map(Vec::len).sum(),
            moved: servers.iter().map(moved).sum(),
            at_primary: servers.iter().flatten().filter(|server| **server == primary).count(),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { succeeded, attempts, moved, at_primary } = self;
        write!(
            f,
            "{succeeded} of {FINDS} finds succeed with {attempts} attempts ({moved} retries elsewhere, {at_primary} at the primary)"
        )
    }
}
