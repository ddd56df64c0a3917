//! What a driver says when it connects, and what it makes of connections that are refused.

use bson::Bson;

use super::calls::{attempts, collection, find};
use crate::client::errors::{self, OVERLOADED, RETRYABLE};
use crate::verify::actor::Actor;
use crate::verify::finding::Seen;

/// Every handshake says that the driver knows of backpressure.
pub(super) async fn handshake() -> anyhow::Result<Seen> {
    let actor = Actor::start(Vec::new()).await?;
    let client = actor.client("").await?;
    find(&collection(&client), 0).await;
    let hellos = actor.hellos();
    let flags: Vec<Option<&Bson>> = hellos.iter().map(|hello| hello.get("backpressure")).collect();
    let connections = flags.len();
    let mut values: Vec<String> =
        flags.iter().map(|flag| flag.map_or_else(|| "nothing".to_owned(), Bson::to_string)).collect();
    values.sort_unstable();
    values.dedup();
    let seen =
        format!("backpressure: {} in the handshakes of {connections} connections", values.join(" and "));
    // Later drivers send the number of a version in its place, which says the same and more.
    let says = |flag: &Option<&Bson>| match flag {
        Some(Bson::Boolean(flag)) => *flag,
        Some(Bson::String(version)) => version.parse::<u32>().is_ok_and(|version| version > 0),
        _ => false,
    };
    let holds = connections > 1 && flags.iter().all(says);
    let newer = flags.iter().flatten().any(|flag| matches!(flag, Bson::String(_)));
    let note =
        if holds && newer { "; the specification's text has true, a version says the same" } else { "" };
    Ok(Seen::judge(holds, format!("{seen}{note}")))
}

/// A connection that is closed while it is being established is an overload error, and says nothing of the server.
pub(super) async fn limiter() -> anyhow::Result<Seen> {
    let actor = Actor::start(Vec::new()).await?;
    let client = actor.client("").await?;
    actor.close_new_connections();
    let call = find(&collection(&client), 0).await;
    let Some(error) = call.result.as_ref().err().and_then(|failure| failure.error()) else {
        return Ok(Seen::untestable(format!("a find without a connection {}", call.ended())));
    };
    let labelled = error.contains_label(OVERLOADED) && error.contains_label(RETRYABLE);
    let (lost, cleared) = client.losses();
    let waited: Vec<String> = call.waits().iter().map(|waited| format!("{waited:.0}")).collect();
    Ok(Seen::all([
        Seen::judge(labelled, format!("connections closed in their handshake: [{}]", labels(error))),
        Seen::judge(
            lost == 0 && cleared == 0,
            format!("pool cleared {cleared} times, server marked Unknown {lost} times"),
        ),
        Seen::judge(
            call.attempts.len() == 3,
            format!("{}, expected 3, after {} ms", attempts(call.attempts.len()), waited.join(" and ")),
        ),
    ]))
}

fn labels(error: &mongodb::error::Error) -> String {
    errors::classify(error).labels.join(", ")
}

/// What a server says of itself that plays a part is what drivers want to know; without it nothing could be seen.
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_finds_a_server_that_plays_a_part() {
        let actor = Actor::start(vec![crate::verify::actor::ordinary()]).await.unwrap();
        let client = actor.client("").await.unwrap();
        let call = find(&collection(&client), 0).await;
        assert!(call.result.is_ok(), "{}", call.ended());
        assert_eq!(call.attempts.len(), 2);
        let clients = actor.hellos();
        assert!(
            clients.len() >= 2 && clients.iter().all(|hello| hello.contains_key("client")),
            "{clients:?}"
        );
    }
}
