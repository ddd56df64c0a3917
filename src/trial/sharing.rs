//! The data of a load that several processes make: one of them prepares it, and the others wait until it is there.
//!
//! The first shard says so in a document of `overdrive.markers` beside the collection's own marker. What it says is of one
//! start alone, so that nobody takes the word of an earlier load for this one's.

use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use bson::{Document, doc};
use jiff::Timestamp;
use mongodb::{Client, Collection};

use super::prepare::{self, MARKERS, failed, fingerprint, persist};
use crate::owner;
use crate::plan::{Plan, Shard};
use crate::snapshot::Preparing;

/// How often those who wait look again.
const LOOK: Duration = Duration::from_millis(250);

/// Sees to it that the data is there as the plan wants it: by preparing it, or by waiting for the shard that does.
///
/// # Errors
/// As for [`prepare::prepare`]; and when the load is to begin and the data is not there, or another shard has prepared
/// other data.
pub async fn prepare(client: &Client, plan: &Plan, preparing: impl FnMut(Preparing)) -> anyhow::Result<()> {
    let Some((shard, start_at)) = plan.shard.and_then(|shard| Some((shard, shard.start_at?))) else {
        return prepare::prepare(client, plan, preparing).await;
    };
    let word = Word {
        markers: client.database(&plan.data.database).collection(MARKERS),
        collection: plan.data.collection.clone(),
        place: format!("{}.{}", plan.data.database, plan.data.collection),
        shard,
        start_at,
        fingerprint: fingerprint(plan),
    };
    if !shard.leads() {
        return word.wait().await;
    }
    word.tell(false).await?;
    prepare::prepare(client, plan, preparing).await?;
    word.tell(true).await
}

/// What the first shard says of the data.
struct Word {
    markers: Collection<Document>,
    collection: String,
    /// The namespace, for people.
    place: String,
    shard: Shard,
    start_at: Timestamp,
    fingerprint: String,
}

impl Word {
    fn id(&self) -> Document {
        doc! { "_id": { "shards_of": &self.collection } }
    }

    async fn tell(&self, ready: bool) -> anyhow::Result<()> {
        let mut fields = doc! {
            "start_at": self.start_at.to_string(),
            "shards": i64::from(self.shard.count),
            "fingerprint": &self.fingerprint,
            "ready": ready,
        };
        fields.extend(owner::this());
        persist("writing the marker for the other shards", || async {
            let change = doc! { "$set": fields.clone() };
            self.markers.update_one(self.id(), change).upsert(true).await.map(drop)
        })
        .await
    }

    async fn wait(&self) -> anyhow::Result<()> {
        loop {
            let told = self.markers.find_one(self.id()).await;
            let told = told.map_err(|e| failed(&e, "looking whether the data is there"))?.unwrap_or_default();
            let state = self.state(&told).with_context(|| self.who())?;
            if state == State::Ready {
                return Ok(());
            }
            let left = self.start_at.duration_since(Timestamp::now());
            if !left.is_positive() {
                bail!("{}: {}", self.who(), self.too_late(state));
            }
            // Of a positive time there is always an unsigned one.
            tokio::time::sleep(left.unsigned_abs().min(LOOK)).await;
        }
    }

    fn who(&self) -> String {
        format!("shard {} waits for the data in {}", self.shard, self.place)
    }

    /// What the marker says of this load.
    fn state(&self, told: &Document) -> anyhow::Result<State> {
        let ours = told.get_str("start_at").is_ok_and(|at| at == self.start_at.to_string());
        if !ours {
            return Ok(State::NotBegun);
        }
        let shards = told.get_i64("shards").unwrap_or(0);
        ensure!(
            shards == i64::from(self.shard.count),
            "shard 0 of the load that begins at {} is one of {shards}, not of {}: give all of them the same count",
            self.start_at,
            self.shard.count
        );
        let same = told.get_str("fingerprint").is_ok_and(|told| told == self.fingerprint);
        if !same {
            return Err(anyhow!(
                "shard 0 prepares other documents: give all shards the same profile, --set and --seed"
            ));
        }
        Ok(if told.get_bool("ready").unwrap_or(false) { State::Ready } else { State::Preparing })
    }

    fn too_late(&self, state: State) -> String {
        let why = match state {
            State::Preparing => "shard 0 still stores documents",
            State::NotBegun | State::Ready => {
                "shard 0 has not begun to prepare it (does it run, with the same --start-at and namespace?)"
            }
        };
        format!(
            "the load was to begin at {} and {why}. Choose a --start-at that leaves it more time",
            self.start_at
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no word of this load.
    NotBegun,
    /// The first shard is at it.
    Preparing,
    /// The data is there.
    Ready,
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn word() -> Word {
        // Never connected to: only what the marker says is looked at.
        let client = Client::with_uri_str("mongodb://127.0.0.1:1").await.unwrap();
        Word {
            markers: client.database("overdrive").collection(MARKERS),
            collection: "load".to_owned(),
            place: "overdrive.load".to_owned(),
            shard: Shard { index: 1, count: 4, start_at: None },
            start_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            fingerprint: "abc".to_owned(),
        }
    }

    #[tokio::test]
    async fn only_the_word_of_this_load_counts() {
        let word = word().await;
        let told = |at: &str, shards: i64, fingerprint: &str, ready: bool| {
            let marker =
                doc! { "start_at": at, "shards": shards, "fingerprint": fingerprint, "ready": ready };
            word.state(&marker).map_err(|error| error.to_string())
        };
        let now = "2026-01-01T00:00:00Z";
        assert_eq!(word.state(&doc! {}).unwrap(), State::NotBegun);
        assert_eq!(told("2025-01-01T00:00:00Z", 4, "abc", true), Ok(State::NotBegun), "an earlier load's");
        assert_eq!(told(now, 4, "abc", false), Ok(State::Preparing));
        assert_eq!(told(now, 4, "abc", true), Ok(State::Ready));
        assert!(told(now, 3, "abc", true).unwrap_err().contains("one of 3, not of 4"));
        assert!(told(now, 4, "other", true).unwrap_err().contains("--seed"));
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_load_was_to_begin() {
        let word = word().await;
        assert!(word.too_late(State::NotBegun).contains("has not begun to prepare"));
        let late = word.too_late(State::Preparing);
        assert!(late.contains("2026-01-01T00:00:00Z") && late.contains("--start-at"), "{late}");
    }
}
