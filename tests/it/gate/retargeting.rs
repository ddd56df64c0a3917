//! What `enableOverloadRetargeting` changes, by read preference and by who is overloaded.

use bson::{Document, doc};
use futures_util::future::join_all;
use mongodb::{Client, Collection};
use overdrive::lab::{Lab, LabOptions};
use overdrive::plan::GateSettings;

use super::requests;
use crate::lab_options;

const FINDS: usize = 100;

/// How many of the finds succeed while these members reject everything, and how many attempts those rejected.
async fn finds(lab: &Lab, preference: &str, retarget: bool, overloaded: &[usize]) -> (usize, u64) {
    // A wide window, so that each member is as near as the others.
    let uri = format!(
        "{}&readPreference={preference}&enableOverloadRetargeting={retarget}&maxAdaptiveRetries=2&maxPoolSize=100\
         &localThresholdMS=10000",
        lab.uri()
    );
    let client = Client::with_uri_str(uri).await.unwrap();
    let things: Collection<Document> = client.database("gate").collection("retargeting");
    // The first operations may come before all members are known.
    join_all((0..20).map(|_| things.find_one(doc! {}).into_future())).await;
    // A bucket that never holds a whole token.
    let shut = |index| if overloaded.contains(&index) { requests(1, 100) } else { GateSettings::default() };
    let rejected = || lab.gates().iter().map(|gate| gate.counters().requests.rejected).sum::<u64>();
    for (index, gate) in lab.gates().iter().enumerate() {
        gate.configure(shut(index)).unwrap();
    }
    let before = rejected();
    let results = join_all((0..FINDS).map(|_| things.find_one(doc! {}).into_future())).await;
    let rejected = rejected() - before;
    for gate in lab.gates() {
        gate.configure(GateSettings::default()).unwrap();
    }
    client.shutdown().immediate(true).await;
    (results.iter().filter(|result| result.is_ok()).count(), rejected)
}

#[tokio::test(flavor = "multi_thread")]
async fn retargeting_helps_whoever_may_go_elsewhere() {
    let options = LabOptions { gates: Some(GateSettings::default()), ..lab_options() };
    let lab = Lab::start(&options, &|_| {}).await.unwrap();
    let all = FINDS;
    let three = 3 * u64::try_from(FINDS).unwrap();

    // Nowhere to go: every attempt meets the limit.
    for retarget in [false, true] {
        assert_eq!(finds(&lab, "primary", retarget, &[0]).await, (0, three), "primary, {retarget}");
    }
    // Off, the preferred server is asked again; on, one step aside is enough.
    for (preference, overloaded) in [("primaryPreferred", &[0][..]), ("secondaryPreferred", &[1, 2])] {
        assert_eq!(finds(&lab, preference, false, overloaded).await, (0, three), "{preference}, off");
        let (ok, rejected) = finds(&lab, preference, true, overloaded).await;
        assert_eq!(ok, all, "{preference}, on");
        // Two secondaries may be tried before the primary is.
        let most = u64::try_from(FINDS * overloaded.len()).unwrap();
        assert!((three / 3..=most).contains(&rejected), "{preference}, on: {rejected}");
    }
    // Off, each attempt picks one of two at random, and one operation in eight picks the wrong one three times: that all
    // hundred are lucky happens once in 600 000 times. On, the second attempt goes to the other one.
    let (ok, rejected) = finds(&lab, "secondary", false, &[1]).await;
    assert!(ok < all && ok > all / 2 && rejected > 30, "secondary, off: {ok}, {rejected}");
    let (ok, rejected_on) = finds(&lab, "secondary", true, &[1]).await;
    assert_eq!(ok, all, "secondary, on");
    assert!(rejected_on <= three / 3, "once an operation at most: {rejected_on}");
    // One in three is wrong: off, one operation in 27 fails; on, none, and fewer attempts are lost.
    let (ok, rejected) = finds(&lab, "nearest", false, &[0]).await;
    assert!(ok > all * 4 / 5, "nearest, off: {ok}, {rejected}");
    let (ok, rejected_on) = finds(&lab, "nearest", true, &[0]).await;
    assert_eq!(ok, all, "nearest, on");
    assert!(rejected_on <= three / 3, "once an operation at most: {rejected_on}");
    lab.stop().await.unwrap();
}
