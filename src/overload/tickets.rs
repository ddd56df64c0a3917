//! Fewer operations at a time inside the storage engine: real queues, as on a server that is too small.

use anyhow::{Context, anyhow, bail};
use bson::{Bson, doc};

use super::applied::Applied;
use super::parameters::{self, Setting};
use super::{Ground, patiently};
use crate::client::errors;
use crate::cluster::Member;
use crate::plan::Tickets;

/// The parameters' names, of reads and of writes: until 6.x, and from 7.0 on.
const NAMES: [[&str; 2]; 2] = [
    ["wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions"],
    ["storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions"],
];

/// Whether every member has such parameters.
///
/// # Errors
/// When one does not.
pub async fn check(ground: &Ground, fault: &Tickets) -> anyhow::Result<()> {
    for member in &ground.cluster.members {
        patiently(member, async {
            // Setting what is in force changes nothing, and shows whether it can be set: servers from 7.0 on that choose
            // the numbers by themselves refuse.
            let (_, now) = settings(member, fault).await?;
            for setting in &now {
                parameters::set(member, setting).await?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Sets the numbers, once `put` has taken down what they were.
pub async fn apply(
    member: &Member,
    fault: &Tickets,
    put: impl AsyncFnOnce(Applied) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    patiently(member, async {
        let (wanted, before) = settings(member, fault).await?;
        put(Applied::Parameters(before)).await?;
        for setting in &wanted {
            parameters::set(member, setting).await?;
        }
        Ok(())
    })
    .await
}

/// What to set, and what it is now.
async fn settings(member: &Member, fault: &Tickets) -> anyhow::Result<(Vec<Setting>, Vec<Setting>)> {
    for names in NAMES {
        let now = parameters::get(member, &names).await?;
        let (mut wanted, mut before) = (Vec::new(), Vec::new());
        for (name, number) in names.iter().zip([fault.read, fault.write]) {
            if let (Some(number), Some(value)) = (number, now.get(name)) {
                wanted.push(((*name).to_owned(), Bson::Int64(i64::from(number))));
                before.push(((*name).to_owned(), value.clone()));
            }
        }
        if before.iter().any(|(_, value)| is_zero(value)) {
            // Nobody has set it, and 0 cannot be set: what is in force is told elsewhere.
            in_force(member, &mut before).await?;
        }
        if !wanted.is_empty() {
            return Ok((wanted, before));
        }
    }
    bail!("{} has no parameter for the storage engine's tickets", member.address)
}

fn is_zero(value: &Bson) -> bool {
    value.as_i64().or(value.as_i32().map(i64::from)) == Some(0)
}

/// Puts the numbers that are in force in the place of zeros.
async fn in_force(member: &Member, settings: &mut [Setting]) -> anyhow::Result<()> {
    let command = doc! { "serverStatus": 1 };
    let status = member.client.database("admin").run_command(command).await;
    let status =
        status.map_err(|e| anyhow!("serverStatus at {}: {}", member.address, errors::message(&e)))?;
    let tickets = status.get_document("wiredTiger").and_then(|wt| wt.get_document("concurrentTransactions"));
    for (name, value) in settings.iter_mut().filter(|(_, value)| is_zero(value)) {
        let side = if name.contains("Read") { "read" } else { "write" };
        let total =
            tickets.clone().and_then(|t| t.get_document(side)).ok().and_then(|t| t.get("totalTickets"));
        let total =
            total.with_context(|| format!("{} does not tell how many tickets it has", member.address))?;
        *value = total.clone();
    }
    Ok(())
}
