//! How often commands are retried, on the deployment.

use bson::{Document, doc};
use futures_util::TryStreamExt;

use super::calls::{attempts, insert};
use crate::client::errors::{self, OVERLOADED};
use crate::verify::finding::Seen;
use crate::verify::observe::{Call, End, Observed, watch};
use crate::verify::stage::{Stage, always, times};

/// One find while all are rejected.
async fn rejected_find(stage: &Stage, options: &[(&str, &str)]) -> anyhow::Result<Call<Option<Document>>> {
    let client = stage.client(options).await?;
    stage.overload(&["find"], always()).await?;
    let collection = stage.collection(&client);
    let call = watch(async { collection.find_one(doc! {}).await }).await;
    stage.faults.off().await?;
    Ok(call)
}

fn judge(call: &Call<Option<Document>>, expected: usize) -> Seen {
    let seen = call.of("find").count();
    let overload = call
        .result
        .as_ref()
        .err()
        .and_then(|failure| failure.error())
        .is_some_and(errors::is_retryable_overload);
    let told = if overload { "" } else { ", and it ended otherwise than with the overload error" };
    Seen::judge(seen == expected && overload, format!("{}, expected {expected}{told}", attempts(seen)))
}

/// Two retries when nobody says otherwise.
pub(super) async fn default_maximum(stage: &Stage) -> anyhow::Result<Seen> {
    Ok(judge(&rejected_find(stage, &[]).await?, 3))
}

/// As many as are configured.
pub(super) async fn configured_maximum(stage: &Stage) -> anyhow::Result<Seen> {
    let mut looks = Vec::new();
    for (maximum, expected) in [("1", 2), ("4", 5)] {
        let look = judge(&rejected_find(stage, &[("maxAdaptiveRetries", maximum)]).await?, expected);
        looks.push(Seen { seen: format!("maxAdaptiveRetries={maximum}: {}", look.seen), ..look });
    }
    Ok(Seen::all(looks))
}

/// None with 0.
pub(super) async fn zero_disables(stage: &Stage) -> anyhow::Result<Seen> {
    Ok(judge(&rejected_find(stage, &[("maxAdaptiveRetries", "0")]).await?, 1))
}

/// An overload error without RetryableError is final.
pub(super) async fn not_retryable(stage: &Stage) -> anyhow::Result<Seen> {
    let client = stage.client(&[]).await?;
    let mut looks = Vec::new();
    for command in ["find", "insert", "ping"] {
        stage.reject(&[command], always(), &[OVERLOADED]).await?;
        let seen = any(stage, &client, command).await.of(command).count();
        stage.faults.off().await?;
        looks.push(Seen::judge(seen == 1, format!("{command}: {}", attempts(seen))));
    }
    Ok(Seen::all(looks))
}

/// A command of this name, as it comes.
async fn any(stage: &Stage, client: &Observed, command: &str) -> Call<()> {
    let collection = stage.collection(client);
    match command {
        "find" => watch(async { collection.find_one(doc! {}).await.map(drop) }).await,
        "insert" => insert(&collection, doc! {}).await,
        _ => {
            let database = client.client.database(&stage.database);
            watch(async { database.run_command(doc! { command: 1 }).await.map(drop) }).await
        }
    }
}

/// A generic command is retried with both options on, and not without one of them.
pub(super) async fn run_command(stage: &Stage) -> anyhow::Result<Seen> {
    let mut looks = Vec::new();
    for (reads, writes, expected) in
        [("true", "true", 3), ("false", "true", 1), ("true", "false", 1), ("false", "false", 1)]
    {
        let client = stage.client(&[("retryReads", reads), ("retryWrites", writes)]).await?;
        stage.overload(&["ping"], always()).await?;
        let seen = any(stage, &client, "ping").await.of("ping").count();
        stage.faults.off().await?;
        looks.push(Seen::judge(
            seen == expected,
            format!("retryReads={reads}, retryWrites={writes}: {}, expected {expected}", attempts(seen)),
        ));
    }
    Ok(Seen::all(looks))
}

/// A retryable write stays the same write: same session, same number, applied once.
pub(super) async fn transaction_number(stage: &Stage) -> anyhow::Result<Seen> {
    let client = stage.client(&[]).await?;
    let collection = stage.collection(&client);
    stage.overload(&["insert"], times(2)).await?;
    let call = insert(&collection, doc! { "_id": "once" }).await;
    stage.faults.off().await?;
    let of = |field: &str| -> Vec<String> {
        call.of("insert")
            .map(|attempt| attempt.command.get(field).map_or_else(String::new, ToString::to_string))
            .collect()
    };
    let (numbers, sessions) = (of("txnNumber"), of("lsid"));
    if numbers.len() < 2 {
        return Ok(Seen::untestable("the driver makes no retry"));
    }
    if numbers.iter().all(String::is_empty) {
        return Ok(Seen::untestable("this deployment takes no retryable writes"));
    }
    let same = |values: &[String]| values.iter().all(|value| *value == values[0] && !value.is_empty());
    let holds = same(&numbers) && same(&sessions) && call.result.is_ok();
    Ok(Seen::judge(
        holds,
        format!(
            "txnNumber {} and {} session over {} attempts",
            numbers.join(", "),
            if same(&sessions) { "one" } else { "more than one" },
            numbers.len()
        ),
    ))
}

/// Each attempt's start is told, and its end once.
pub(super) async fn events_paired(stage: &Stage) -> anyhow::Result<Seen> {
    let client = stage.client(&[]).await?;
    let collection = stage.collection(&client);
    collection.insert_many((0..6).map(|n| doc! { "paired": n })).await?;
    let commands = ["find", "getMore", "insert", "update", "ping"];
    stage.overload(&commands, doc! { "activationProbability": 0.5 }.into()).await?;
    let mut attempts = Vec::new();
    for n in 0..8 {
        let finding = async { collection.find(doc! {}).batch_size(2).await?.try_collect::<Vec<_>>().await };
        attempts.extend(watch(finding).await.attempts);
        attempts.extend(insert(&collection, doc! { "paired": n }).await.attempts);
        let updating =
            async { collection.update_many(doc! { "paired": n }, doc! { "$inc": { "m": 1 } }).await };
        attempts.extend(watch(updating).await.attempts);
        attempts.extend(any(stage, &client, "ping").await.attempts);
    }
    stage.faults.off().await?;
    let failed = attempts.iter().filter(|attempt| matches!(attempt.ends[..], [End::Failed(_)])).count();
    let unpaired = attempts.iter().filter(|attempt| attempt.ends.len() != 1).count();
    let mut requests: Vec<i32> = attempts.iter().map(|attempt| attempt.request).collect();
    requests.sort_unstable();
    requests.dedup();
    let holds = unpaired == 0 && requests.len() == attempts.len();
    Ok(Seen::judge(
        holds,
        format!(
            "{} started, of which {failed} failed; {unpaired} without exactly one end, {} requests of their own",
            attempts.len(),
            requests.len()
        ),
    ))
}
