//! Rejection by the server's own `failCommand` failpoint. What it rejects does not depend on the load.

use anyhow::{anyhow, bail};
use bson::{Document, doc};
use mongodb::Client;

use crate::client::errors;
use crate::plan::FailCommand;

/// Whether the member can do it, and is not doing it for somebody else.
///
/// # Errors
/// When test commands are off, or the failpoint is on already.
pub async fn check(client: &Client, address: &str) -> anyhow::Result<()> {
    let reply = client
        .database("admin")
        .run_command(doc! { "getParameter": 1, "failpoint.failCommand": 1 })
        .await
        .map_err(|error| {
            anyhow!(
                "{address} has no failpoint failCommand ({}): it must run with --setParameter enableTestCommands=1, \
                 as the lab's members do",
                errors::message(&error)
            )
        })?;
    if mode(&reply) == Some(0) {
        return Ok(());
    }
    bail!(
        "failCommand is on already at {address}, and not by this run: turn it off first \
         (db.adminCommand({{configureFailPoint: 'failCommand', mode: 'off'}}))"
    )
}

/// Turns it on for connections of this application name only, and returns how many commands it had rejected before,
/// since the server started.
///
/// # Errors
/// When the member refuses.
pub async fn apply(client: &Client, address: &str, fault: &FailCommand, app: &str) -> anyhow::Result<i64> {
    let mode = if fault.probability >= 1.0 {
        bson::Bson::String("alwaysOn".to_owned())
    } else {
        bson::Bson::Document(doc! { "activationProbability": fault.probability })
    };
    let command = doc! {
        "configureFailPoint": "failCommand",
        "mode": mode,
        "data": {
            "failCommands": &fault.commands,
            "errorCode": fault.code,
            "errorLabels": &fault.labels,
            "appName": app,
        },
    };
    run(client, address, command).await.map(|reply| count(&reply))
}

/// Turns it off, and returns how many commands it has rejected since the server started.
///
/// # Errors
/// When the member does not answer.
pub async fn undo(client: &Client, address: &str) -> anyhow::Result<i64> {
    let reply = run(client, address, doc! { "configureFailPoint": "failCommand", "mode": "off" }).await?;
    Ok(count(&reply))
}

fn count(reply: &Document) -> i64 {
    reply.get_i64("count").or_else(|_| reply.get_i32("count").map(i64::from)).unwrap_or(0)
}

async fn run(client: &Client, address: &str, command: Document) -> anyhow::Result<Document> {
    client
        .database("admin")
        .run_command(command)
        .await
        .map_err(|error| anyhow!("failCommand at {address}: {}", errors::message(&error)))
}

/// 0 is off.
fn mode(reply: &Document) -> Option<i64> {
    let failpoint = reply.get_document("failpoint.failCommand").ok()?;
    failpoint.get_i32("mode").map(i64::from).or_else(|_| failpoint.get_i64("mode")).ok()
}
