//! Kinds of command that no earlier policy retried: each is rejected twice and has to succeed with the third attempt.

use anyhow::Result;
use bson::doc;
use futures_util::TryStreamExt;

use super::calls::attempts;
use crate::verify::finding::Seen;
use crate::verify::observe::{Call, Observed, watch};
use crate::verify::stage::{Stage, times};

/// A kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `updateMany`, which is no retryable write.
    UpdateMany,
    /// `deleteMany`, likewise.
    DeleteMany,
    /// A cursor's next batch.
    GetMore,
    /// A generic command.
    RunCommand,
    /// Making a collection.
    Create,
    /// Dropping one.
    Drop,
    /// Dropping a database.
    DropDatabase,
}

impl Kind {
    /// The name of its command, as servers and failpoints know it.
    const fn command(self) -> &'static str {
        match self {
            Self::UpdateMany => "update",
            Self::DeleteMany => "delete",
            Self::GetMore => "getMore",
            Self::RunCommand => "ping",
            Self::Create => "create",
            Self::Drop => "drop",
            Self::DropDatabase => "dropDatabase",
        }
    }
}

/// Whether commands of a kind are retried.
pub(super) async fn retried(stage: &Stage, kind: Kind) -> Result<Seen> {
    let client = stage.client(&[]).await?;
    stage.collection(&client).insert_many((0..3).map(|n| doc! { "kind": n })).await?;
    stage.overload(&[kind.command()], times(2)).await?;
    let call = call(stage, &client, kind).await;
    stage.faults.off().await?;
    let seen = call.of(kind.command()).count();
    Ok(Seen::judge(
        seen == 3 && call.result.is_ok(),
        format!("rejected twice: {} of 3; {}", attempts(seen), call.ended()),
    ))
}

async fn call(stage: &Stage, client: &Observed, kind: Kind) -> Call<()> {
    let collection = stage.collection(client);
    let database = client.client.database(&stage.database);
    match kind {
        Kind::UpdateMany => {
            let update = doc! { "$inc": { "n": 1 } };
            watch(async { collection.update_many(doc! {}, update).await.map(drop) }).await
        }
        Kind::DeleteMany => watch(async { collection.delete_many(doc! {}).await.map(drop) }).await,
        Kind::GetMore => {
            let finding = async {
                collection.find(doc! {}).batch_size(2).await?.try_collect::<Vec<_>>().await.map(drop)
            };
            watch(finding).await
        }
        Kind::RunCommand => watch(async { database.run_command(doc! { "ping": 1 }).await.map(drop) }).await,
        Kind::Create => watch(async { database.create_collection("created").await }).await,
        Kind::Drop => watch(async { collection.drop().await }).await,
        Kind::DropDatabase => {
            // Another one of ours: the first has what other rules need.
            let database = client.client.database(&format!("{}_dropped", stage.database));
            watch(async { database.drop().await }).await
        }
    }
}
