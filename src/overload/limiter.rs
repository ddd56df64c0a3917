//! The limiters that servers have of their own, from 8.2 and 8.0.20 on: parameters that are set and set back.
//!
//! On a replica set a low limit on requests would shed the members' own heartbeats and the very command that undoes it:
//! they cost tokens like any other. So before a limit can be set the members' names, and that of the control connection,
//! are merged into the list of exempt applications, a probe shows that the list is in force, and it is the last thing to
//! be set back.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bson::{Bson, Document, doc};

use super::applied::Applied;
use super::parameters::{self, Setting};
use super::{Bench, Ground, patiently, patiently_for};
use crate::cluster::Member;
use crate::plan::gate::EXEMPT_APPS;
use crate::plan::{LimitConnections, LimitRequests, Mechanism, Overload};

/// The switch of the limit on requests.
pub const REQUESTS: &str = "ingressRequestRateLimiterEnabled";
/// The switch of the limit on new connections.
pub const CONNECTIONS: &str = "ingressConnectionEstablishmentRateLimiterEnabled";

/// Whom the limit on requests does not apply to, by the beginnings of their applications' names.
const EXEMPTIONS: &str = "ingressRequestRateLimiterApplicationExemptions";

/// How many requests wait; servers that do not know it reject at once.
const QUEUE: &str = "ingressRequestAdmissionMaxQueueDepth";

/// Whether rejections may be retried; servers that do not know it say that they may.
const RETRIES: &str = "ingressRequestRateLimiterAllowRetries";

/// How the list of exemptions is called among what is on, and the last to be undone.
pub const EXEMPTIONS_KIND: &str = "exemptions";

/// How often the probe asks: far more than the members ask each other meanwhile, who may be exempt when it is not.
const PROBES: i64 = 500;

/// How long they may take; over a long line each takes a while.
const PROBING: Duration = Duration::from_secs(60);

/// A limit that nobody meets.
const BOUNDLESS: i32 = 1_000_000;

/// What is to shed: the servers themselves where they can, else the lab's gates. `switch` is the limiter's.
///
/// # Errors
/// When what was asked for is not to be had, or nothing is.
pub async fn choose(
    ground: &Ground,
    wanted: Option<Mechanism>,
    switch: &str,
    settings: &[Setting],
) -> anyhow::Result<Mechanism> {
    let gates = ground.lab.as_ref().is_some_and(|lab| !lab.gates().is_empty());
    let version = &ground.cluster.version;
    let native = match wanted {
        Some(Mechanism::Gate) => false,
        _ => has_limiter(ground, switch).await?,
    };
    if native && let Some(bar) = bar(switch, ground.cluster.kind) {
        // In a lab the gates do the same without harm.
        ensure!(gates && wanted.is_none(), "{bar}");
        return Ok(Mechanism::Gate);
    }
    match wanted {
        Some(Mechanism::Native) if !native => bail!(
            "these servers ({version}) have no such limiter of their own: it came with 8.2 and 8.0.20 ({switch})"
        ),
        _ if native => {
            for member in &ground.cluster.members {
                check(member, settings).await?;
            }
            Ok(Mechanism::Native)
        }
        _ if gates => Ok(Mechanism::Gate),
        Some(_) => bail!("only the lab's members have gates: leave --uri out"),
        None => bail!(
            "these servers ({version}) have no such limiter of their own: it came with 8.2 and 8.0.20. Without --uri \
             the lab's gates do it; `overdrive gate` puts one before a server of yours"
        ),
    }
}

/// Why a limiter is not used though the servers have it.
///
/// That on new connections exempts addresses, not applications. Members and load often share theirs, so that whoever lets
/// the members through lets the load through; and nothing can be asked in the members' place to prove that they are let
/// through. A limit that keeps members from one another breaks the set instead of loading it.
fn bar(switch: &str, kind: &str) -> Option<&'static str> {
    (switch == CONNECTIONS && kind == "replica set").then_some(
        "the servers' own limit on new connections would hit the members of this replica set among themselves as it hits \
         the load, and nothing could prove that they are exempt: it is only set on standalone servers and routers. Without \
         --uri the lab's gates do it; `overdrive gate` puts one before a server of yours",
    )
}

async fn has_limiter(ground: &Ground, switch: &str) -> anyhow::Result<bool> {
    for member in &ground.cluster.members {
        if patiently(member, parameters::get(member, &[switch])).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(!ground.cluster.members.is_empty())
}

/// A limit on requests as parameters, the switch last.
pub fn request_settings(fault: &LimitRequests) -> Vec<Setting> {
    let mut settings = vec![
        setting("ingressRequestAdmissionRatePerSec", rate(fault.limit.rate.get())),
        setting("ingressRequestAdmissionBurstCapacitySecs", fault.limit.burst.duration().as_secs_f64()),
    ];
    settings.push(setting(QUEUE, rate(fault.limit.queue_depth)));
    settings.push(setting(RETRIES, fault.allow_retries));
    if let Some(ms) = fault.base_backoff_ms {
        settings.push(setting("externalClientBaseBackoffMS", ms));
    }
    settings.push(setting(REQUESTS, true));
    settings
}

/// A limit on new connections as parameters, the switch last.
pub fn connection_settings(fault: &LimitConnections) -> Vec<Setting> {
    let mut settings = vec![
        setting("ingressConnectionEstablishmentRatePerSec", rate(fault.limit.rate.get())),
        setting(
            "ingressConnectionEstablishmentBurstCapacitySecs",
            fault.limit.burst.duration().as_secs_f64(),
        ),
        setting("ingressConnectionEstablishmentMaxQueueDepth", rate(fault.limit.queue_depth)),
    ];
    settings.push(setting(CONNECTIONS, true));
    settings
}

fn setting(name: &str, value: impl Into<Bson>) -> Setting {
    (name.to_owned(), value.into())
}

/// Servers take 32 bits with a sign.
fn rate(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Sets a limiter's parameters in their order, once `put` has taken down what they were.
pub async fn native(
    member: &Member,
    wanted: &[Setting],
    put: impl AsyncFnOnce(Applied) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    patiently(member, async {
        let (wanted, before) = known(member, wanted).await?;
        put(Applied::Parameters(before)).await?;
        for setting in &wanted {
            parameters::set(member, setting).await?;
        }
        Ok(())
    })
    .await
}

/// Whether a member has every parameter that these settings take.
///
/// # Errors
/// When it lacks one that matters.
async fn check(member: &Member, wanted: &[Setting]) -> anyhow::Result<()> {
    patiently(member, known(member, wanted)).await.map(drop)
}

/// Those of the settings that the member knows, and what they are now. One that it does not know may be left out where
/// it does by itself what the setting says.
async fn known(member: &Member, wanted: &[Setting]) -> anyhow::Result<(Vec<Setting>, Vec<Setting>)> {
    let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let now = parameters::get(member, &names).await?;
    let is_usual = |(name, value): &Setting| match name.as_str() {
        QUEUE => *value == Bson::Int32(0),
        RETRIES => *value == Bson::Boolean(true),
        _ => false,
    };
    let wanted: Vec<Setting> =
        wanted.iter().filter(|setting| now.contains_key(&setting.0) || !is_usual(setting)).cloned().collect();
    let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let before = before(&names, &now, &member.address)?;
    Ok((wanted, before))
}

/// What the parameters are, in the order in which to set them back: a limiter that was off goes off first, one that was
/// on stays on until it has its own numbers back.
fn before(names: &[&str], now: &Document, address: &str) -> anyhow::Result<Vec<Setting>> {
    let mut before = Vec::with_capacity(names.len());
    for name in names {
        let value = now
            .get(name)
            .with_context(|| format!("{address} has no parameter {name}: it is too old for it"))?;
        before.push(((*name).to_owned(), value.clone()));
    }
    before.reverse();
    Ok(before)
}

/// Exempts the members among themselves and the control connection from the limit on requests, and proves it.
///
/// # Errors
/// When a member refuses, or the probe sees no exemption.
pub async fn exempt_members(bench: &Bench, overload: &Overload) -> anyhow::Result<()> {
    for (number, member) in bench.ground.cluster.members.iter().enumerate() {
        if bench.on().iter().any(|on| on.member == number && on.kind == EXEMPTIONS_KIND) {
            continue;
        }
        // The list is no part of any one overload: it goes last, when all are off.
        let put = async |kind, applied| {
            let name = if kind == EXEMPTIONS_KIND { EXEMPTIONS_KIND } else { &overload.name };
            bench.write_down(name, kind, number, applied).await
        };
        patiently(member, async {
            let now = parameters::get(member, &[EXEMPTIONS]).await?;
            let list = now.get(EXEMPTIONS).with_context(|| {
                format!(
                    "{} has no parameter {EXEMPTIONS}, without which a limit sheds heartbeats",
                    member.address
                )
            })?;
            put(EXEMPTIONS_KIND, Applied::Parameters(vec![setting(EXEMPTIONS, list.clone())])).await?;
            parameters::set(member, &setting(EXEMPTIONS, merged(list))).await
        })
        .await?;
        let boundless = [
            setting("ingressRequestAdmissionRatePerSec", BOUNDLESS),
            setting("ingressRequestAdmissionBurstCapacitySecs", 1.0),
            setting(REQUESTS, true),
        ];
        native(member, &boundless, async |applied| put("limit_requests", applied).await).await?;
        let proved = patiently_for(member, PROBING, probe(member)).await;
        bench.undo_where(|on| on.member == number && on.kind == "limit_requests").await.complete()?;
        proved?;
    }
    Ok(())
}

/// The list with our names in it.
fn merged(list: &Bson) -> Document {
    let theirs = list.as_document().and_then(|list| list.get_array("appNames").ok()).into_iter().flatten();
    let mut names: Vec<String> = theirs.filter_map(|name| name.as_str().map(str::to_owned)).collect();
    for ours in EXEMPT_APPS {
        if !names.iter().any(|name| name == ours) {
            names.push(ours.to_owned());
        }
    }
    doc! { "appNames": names }
}

/// Whether what the control connection asks is counted as exempt.
async fn probe(member: &Member) -> anyhow::Result<()> {
    let before = exempted(member).await?;
    for _ in 0..PROBES {
        member.client.database("admin").run_command(doc! { "ping": 1 }).await?;
    }
    let after = exempted(member).await?;
    ensure!(
        after - before >= PROBES,
        "{} does not exempt the control connection from its limiter ({} of {PROBES} requests were exempt), so a limit \
         could not be undone: it was not set",
        member.address,
        after - before
    );
    Ok(())
}

async fn exempted(member: &Member) -> anyhow::Result<i64> {
    let status = member.client.database("admin").run_command(doc! { "serverStatus": 1 }).await?;
    let limiter = status.get_document("network").and_then(|n| n.get_document("ingressRequestRateLimiter"));
    let limiter = limiter.with_context(|| format!("{} counts no admissions", member.address))?;
    let value = limiter.get("exemptedAdmissions").and_then(|v| v.as_i64().or(v.as_i32().map(i64::from)));
    value.with_context(|| format!("{} does not count exempted admissions", member.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_replica_set_are_not_limited_by_its_servers() {
        assert!(bar(CONNECTIONS, "replica set").is_some_and(|why| why.contains("members")));
        assert_eq!(bar(CONNECTIONS, "standalone server"), None);
        assert_eq!(bar(REQUESTS, "replica set"), None);
    }

    #[test]
    fn the_members_names_are_merged_into_those_that_are_there() {
        let list = merged(&Bson::Document(doc! { "appNames": ["backup", "OplogFetcher"] }));
        let names: Vec<_> = list.get_array("appNames").unwrap().iter().filter_map(Bson::as_str).collect();
        assert_eq!(&names[..2], ["backup", "OplogFetcher"]);
        assert_eq!(names.len(), EXEMPT_APPS.len() + 1, "none twice: {names:?}");
        assert!(names.contains(&"overdrive-control") && names.contains(&"NetworkInterfaceTL-"), "{names:?}");
        assert_eq!(merged(&Bson::Null).get_array("appNames").unwrap().len(), EXEMPT_APPS.len());
    }

    #[test]
    fn a_limiter_is_switched_off_before_its_numbers_are_set_back() {
        let now = doc! { "rate": 7, "burst": 1.0, "on": false };
        let before = before(&["rate", "burst", "on"], &now, "h:1").unwrap();
        let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["on", "burst", "rate"]);
        assert!(super::before(&["queue"], &now, "h:1").unwrap_err().to_string().contains("h:1"));
    }
}
