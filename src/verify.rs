//! Whether a driver keeps the client-backpressure specification: its rules in prose, and its files of tests, each looked at
//! through the driver itself.
//!
//! ```text
//!  deployment ──▶ Stage: members, rejections for our connections alone, a database of our own
//!                   ├─▶ rules: the prose; by the deployment, or by an actor, a server that plays a part ─┐
//!                   └─▶ unified: the files of tests ──────────────────────────────────────────────────────┴─▶ Findings ─▶ report
//! ```

mod actor;
mod faults;
mod finding;
pub mod kolmogorov;
mod lateness;
pub mod observe;
pub mod report;
mod rules;
mod stage;
mod unified;

use std::panic::AssertUnwindSafe;

use anyhow::{Result, anyhow};
use futures_util::FutureExt;

pub use self::finding::{Finding, Verdict};
pub use self::report::Report;
use self::stage::Stage;
use crate::client::uri::Uri;
use crate::interrupts::Interrupts;
use crate::plan::Driver;

/// Looks at every rule; `None` when an end was asked for. Whatever happens, nothing of ours stays on the deployment.
///
/// # Errors
/// When the deployment does not do what it takes, or something of ours could not be undone.
pub async fn verify(uri: &Uri, lab: bool, interrupts: &mut Interrupts) -> Result<Option<Report>> {
    let Some(stage) = Stage::prepare(uri, lab, interrupts).await? else { return Ok(None) };
    let looking = async {
        let mut findings = rules::look(&stage).await;
        findings.extend(unified::look(&stage).await);
        findings
    };
    let looked = tokio::select! {
        findings = AssertUnwindSafe(looking).catch_unwind() => Some(findings),
        () = interrupts.reached(1) => None,
    };
    let server = format!("{} {}", stage.cluster.kind, stage.cluster.version);
    stage.end().await?;
    match looked {
        None => Ok(None),
        Some(Err(_)) => Err(anyhow!("looking at the rules panicked; nothing of it is left on the servers")),
        Some(Ok(rules)) => Ok(Some(Report { driver: Driver::built_in().to_string(), server, rules })),
    }
}
