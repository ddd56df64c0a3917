//! The data load: whole, even when the servers reject most of it, and not repeated when nothing has changed.

use bson::{Document, doc};
use mongodb::Client;

use crate::attribution::{drive, plan_of, primary};
use crate::{alone, shared_lab};

const READS: &str = r#"
[data]
collection = "prepared"
documents = 3000
[load]
rate = 50
warmup = "0s"
duration = "1s"
[client]
maxPoolSize = 10
[op.find.find_one]
filter = { _id = { "^Key" = "uniform" } }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn data_is_stored_whole_when_most_of_it_is_rejected_and_only_once() {
    let _alone = alone().await;
    let lab = tokio::task::block_in_place(shared_lab);
    let admin = primary(lab).await.database("admin");
    // Three in four inserts are rejected: the driver's own two retries are not enough.
    let fail = doc! {
        "configureFailPoint": "failCommand",
        "mode": { "activationProbability": 0.75 },
        "data": {
            "failCommands": ["insert", "create", "drop", "update"], "errorCode": 462,
            "appName": "overdrive-control", "errorLabels": ["SystemOverloadedError", "RetryableError"],
        },
    };
    admin.run_command(fail).await.unwrap();
    let off = async || {
        admin.run_command(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await.unwrap()
    };
    let plan = plan_of(READS, "prepared");
    let (_, _, ready, _) = drive(lab, &plan, off).await;
    assert!(ready.get("count").is_some(), "{ready}");

    let client = Client::with_uri_str(&lab.uri).await.unwrap();
    let data = client.database("overdrive").collection::<Document>("prepared");
    assert_eq!(data.count_documents(doc! {}).await.unwrap(), 3000);
    let keys = data.distinct("_id", doc! {}).await.unwrap();
    assert_eq!(keys.len(), 3000, "each key once");

    // The mix only reads, so a second run finds what the first has left, and stores nothing.
    let inserts = async || {
        let status = admin.run_command(doc! { "serverStatus": 1, "metrics": 0 }).await.unwrap();
        status
            .get_document("opcounters")
            .unwrap()
            .get_i64("insert")
            .or_else(|_| status.get_document("opcounters").unwrap().get_i32("insert").map(i64::from))
    };
    let before = inserts().await.unwrap();
    drive(lab, &plan, async || ()).await;
    assert_eq!(inserts().await.unwrap(), before);

    // Another seed is other data.
    let mut other = plan.clone();
    other.seed += 1;
    drive(lab, &other, async || ()).await;
    assert_eq!(inserts().await.unwrap() - before, 3000);
}
