//! Servers' parameters: read, and set one by one.

use anyhow::anyhow;
use bson::{Bson, Document, doc};

use crate::client::errors;
use crate::cluster::Member;

/// A parameter and its value.
pub type Setting = (String, Bson);

/// A parameter that every server knows. Without any that it knows a server answers with an error that has no code, which
/// drivers cannot read.
const KNOWN: &str = "quiet";

/// The values of those of these parameters that the member knows.
///
/// # Errors
/// When it does not answer, or does not let us ask.
pub async fn get(member: &Member, names: &[&str]) -> anyhow::Result<Document> {
    let mut command = doc! { "getParameter": 1, KNOWN: 1 };
    command.extend(names.iter().map(|name| ((*name).to_owned(), Bson::Int32(1))));
    match member.client.database("admin").run_command(command).await {
        Ok(reply) => Ok(reply.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect()),
        Err(error) => Err(anyhow!("getParameter at {}: {}", member.address, errors::message(&error))),
    }
}

/// Sets one.
///
/// # Errors
/// When the member refuses.
pub async fn set(member: &Member, (name, value): &Setting) -> anyhow::Result<()> {
    let mut command = doc! { "setParameter": 1 };
    command.insert(name, value);
    let result = member.client.database("admin").run_command(command).await;
    result
        .map(drop)
        .map_err(|error| anyhow!("setParameter {name} at {}: {}", member.address, errors::message(&error)))
}
