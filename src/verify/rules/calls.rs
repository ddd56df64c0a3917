//! Calls that rules are looked at by.

use std::time::Duration;

use bson::{Document, doc};
use mongodb::Collection;
use tokio::task::JoinSet;

use crate::verify::actor::call;
use crate::verify::observe::{Call, Observed, watch};

/// Between the starts of calls that are measured.
const STAGGER: Duration = Duration::from_millis(8);

/// The namespace at servers that play a part.
pub fn collection(client: &Observed) -> Collection<Document> {
    client.client.database("verify").collection("things")
}

/// One find, as call number `n`.
pub async fn find(collection: &Collection<Document>, n: usize) -> Call<Option<Document>> {
    watch(async { collection.find_one(doc! {}).comment(call(n)).await }).await
}

/// So many finds, one soon after the other, each a task of its own: what delays one of them must not be another.
pub async fn finds(client: &Observed, count: usize) -> Vec<Call<Option<Document>>> {
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let collection = collection(client);
        tasks.spawn(async move { find(&collection, n).await });
        tokio::time::sleep(STAGGER).await;
    }
    tasks.join_all().await
}

/// One insert.
pub async fn insert(collection: &Collection<Document>, document: Document) -> Call<()> {
    watch(async { collection.insert_one(document).await.map(drop) }).await
}

/// A number of attempts, in words.
pub fn attempts(count: usize) -> String {
    if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") }
}
