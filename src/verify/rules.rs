//! The specification's rules in prose, each a look at what the driver does.

mod backoff;
mod calls;
mod commands;
mod connections;
mod counts;
mod errors;
mod retargeting;
mod waits;

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};

use self::calls::{collection, find, insert};
use self::commands::Kind;
use super::actor::Actor;
use super::finding::{Finding, Seen, Verdict, from_failure};
use super::observe::Call;
use super::stage::Stage;
use crate::stderr::tell;

/// No rule is looked at for longer.
const PATIENCE: Duration = Duration::from_secs(90);

/// Looks at all of them.
pub async fn look(stage: &Stage) -> Vec<Finding> {
    tell("Rules of retries, on the deployment …");
    let mut findings = staged_rules(stage).await;
    tell("Rules of backoff and errors, by servers that play a part …");
    findings.extend(played_rules().await);
    findings
}

/// Rules whose answers no real server can be told to give, or that depend on time. What is measured is so by itself.
async fn played_rules() -> Vec<Finding> {
    const POLICY: &str = "client-backpressure, overload retry policy";
    const OTHERS: &str = "client-backpressure, interaction with other retry policies";
    let mut waits = within(backoff::measure()).await;
    // What is wrong by chance is so once.
    let wrong = |waits: &backoff::Waits| {
        [backoff::bounded(waits), backoff::distributed(waits)]
            .iter()
            .any(|seen| seen.verdict == Verdict::Broken)
    };
    if waits.as_ref().is_ok_and(wrong) {
        waits = within(backoff::measure()).await;
    }
    let of_waits = |look: fn(&backoff::Waits) -> Seen| match &waits {
        Ok(waits) => look(waits),
        // Of a driver without the option it is known by now that it breaks the rule of that.
        Err(error) => Seen::untestable(format!("{error:#}")),
    };
    let mut findings = vec![
        finding("backoff is within its bound", &format!("{POLICY} 3"), of_waits(backoff::bounded)),
        finding("backoff is uniform up to its bound", &format!("{POLICY} 3"), of_waits(backoff::distributed)),
    ];
    let many = within(backoff::after_many_retries()).await;
    let many = many.or_else(|error| anyhow::Ok(Seen::untestable(format!("{error:#}"))));
    let base = confirmed(backoff::base_backoff).await;
    let only = confirmed(backoff::only_when_overloaded).await;
    let all = confirmed(backoff::counts_all).await;
    let (types, mixed, labels, writes, handshake, limiter) = tokio::join!(
        within(backoff::base_backoff_types()),
        within(errors::mixed()),
        within(errors::both_labels()),
        within(errors::no_writes_performed()),
        within(connections::handshake()),
        within(connections::limiter()),
    );
    for (rule, source, look) in [
        ("backoff is capped after many retries", format!("{POLICY} 3.2"), many),
        ("baseBackoffMS of the error is used", format!("{POLICY} 3.6"), base),
        ("baseBackoffMS of any type is survived", format!("{POLICY} 3.6"), types),
        ("backoff if and only if overloaded", OTHERS.to_owned(), only),
        ("the retry number counts all retries", format!("{POLICY} 1"), all),
        ("an overload error sets the maximum of all retries", OTHERS.to_owned(), mixed),
        (
            "one label alone is not retried",
            "client-backpressure, retryable overload error".to_owned(),
            labels,
        ),
        ("NoWritesPerformed chooses the error returned", "retryable-writes, prose test 6".to_owned(), writes),
        ("handshakes say backpressure", "client-backpressure, handshake changes".to_owned(), handshake),
        (
            "refused connections are overload errors and clear no pool",
            "server-discovery-and-monitoring, network error during connection establishment".to_owned(),
            limiter,
        ),
    ] {
        findings.push(finding(rule, &source, look.unwrap_or_else(|error| from_failure(&error))));
    }
    findings
}

/// Rules by rejections of the deployment's own servers, which take one kind of rejection at a time.
async fn staged_rules(stage: &Stage) -> Vec<Finding> {
    const POLICY: &str = "client-backpressure, overload retry policy";
    let mut findings = Vec::new();
    let mut add = |rule: &str, source: &str, look: Result<Seen>| {
        findings.push(finding(rule, source, look.unwrap_or_else(|error| from_failure(&error))));
    };
    let maximum = &format!("{POLICY} 2.2");
    add("two retries by default", maximum, on(stage, counts::default_maximum(stage)).await);
    add("as many retries as configured", maximum, on(stage, counts::configured_maximum(stage)).await);
    add("maxAdaptiveRetries=0 disables retries", maximum, on(stage, counts::zero_disables(stage)).await);
    let source = &format!("{POLICY} 2.1");
    add(
        "overload without RetryableError is not retried",
        source,
        on(stage, counts::not_retryable(stage)).await,
    );
    for (kind, rule) in [
        (Kind::UpdateMany, "updateMany is retried"),
        (Kind::DeleteMany, "deleteMany is retried"),
        (Kind::GetMore, "getMore is retried"),
        (Kind::RunCommand, "runCommand is retried"),
        (Kind::Create, "create is retried"),
        (Kind::Drop, "drop is retried"),
        (Kind::DropDatabase, "dropDatabase is retried"),
    ] {
        add(rule, POLICY, on(stage, commands::retried(stage, kind)).await);
    }
    let source =
        "client-backpressure, why must both retryWrites and retryReads be enabled to retry runCommand";
    add(
        "runCommand takes both retryReads and retryWrites",
        source,
        on(stage, counts::run_command(stage)).await,
    );
    let source = &format!("{POLICY} 5");
    add("a retried write keeps its txnNumber", source, on(stage, counts::transaction_number(stage)).await);
    let source = "client-backpressure, command monitoring";
    add("every started event has one end", source, on(stage, counts::events_paired(stage)).await);
    let source = &format!("{POLICY} 4");
    add("retargeting off stays with the read preference", source, on(stage, retargeting::off(stage)).await);
    add("retargeting on avoids servers that rejected", source, on(stage, retargeting::on(stage)).await);
    findings
}

fn finding(rule: &str, source: &str, Seen { verdict, seen }: Seen) -> Finding {
    Finding { rule: rule.to_owned(), source: source.to_owned(), verdict, seen }
}

async fn within<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(done) => done,
        Err(_) => Err(anyhow::anyhow!("it did not end within {PATIENCE:?}")),
    }
}

/// A look at something measured, which is broken if it is so twice: this machine may have been busy with something else.
async fn confirmed(look: impl AsyncFn() -> Result<Seen>) -> Result<Seen> {
    let seen = within(look()).await?;
    if seen.verdict == Verdict::Broken { within(look()).await } else { Ok(seen) }
}

/// A look at the deployment; whatever comes of it, nothing is rejected afterwards.
async fn on(stage: &Stage, look: impl Future<Output = Result<Seen>>) -> Result<Seen> {
    let seen = within(look).await;
    if seen.is_err() {
        stage.faults.off().await?;
    }
    seen
}

/// A find at a server that answers its attempts so, by a client with these options.
async fn played(part: Vec<Document>, options: &str) -> Result<Call<Option<Document>>> {
    let actor = Actor::start(part).await?;
    let client = actor.client(options).await?;
    Ok(find(&collection(&client), 0).await)
}

/// An insert there.
async fn played_insert(part: Vec<Document>) -> Result<Call<()>> {
    let actor = Actor::start(part).await?;
    let client = actor.client("").await?;
    Ok(insert(&collection(&client), doc! { "_id": 1 }).await)
}
