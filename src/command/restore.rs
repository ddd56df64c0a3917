//! `overdrive restore`: undoes by hand what the next run would undo at its start.

use std::sync::Arc;

use anyhow::anyhow;
use mongodb::{Client, Namespace};

use super::target::{check_tls_files, given_uri};
use super::{Outcome, UsageError, print};
use crate::cli::RestoreArgs;
use crate::client::{connect, errors, shut_down};
use crate::cluster::{Cluster, saying_so_if_long};
use crate::overload::journal::COLLECTION;
use crate::overload::{Bench, Ground};
use crate::stderr::tell;

/// Undoes every fault that is written down on a deployment, and says each.
///
/// # Errors
/// When a server does not obey, or the run that put a fault on still runs.
pub async fn run(args: RestoreArgs) -> anyhow::Result<Outcome> {
    let Some(uri) = given_uri(&args.target)? else {
        let why =
            "say where: --uri, --uri-file or $OVERDRIVE_URI. A lab needs no restoring: it ends with its run";
        return Err(UsageError::new(why).into());
    };
    check_tls_files(&uri)?;
    let looking = Cluster::connect(&uri, |_| None);
    let cluster = Arc::new(saying_so_if_long(&uri, looking, tell).await?);
    let control = connect(&uri.control()).await?;
    let mut lines = Vec::new();
    for database in databases(&control).await? {
        let ground = Ground {
            cluster: Arc::clone(&cluster),
            lab: None,
            control: control.clone(),
            data: Namespace::new(database, ""),
            app: String::new(),
        };
        Bench::new(ground).undo_leftovers(|line| lines.push(format!("{line}\n"))).await?;
    }
    shut_down(control).await;
    if lines.is_empty() {
        lines.push("Nothing of overdrive's is on.\n".to_owned());
    }
    print(&lines.concat())?;
    Ok(Outcome::Done)
}

/// The databases that have a journal.
async fn databases(control: &Client) -> anyhow::Result<Vec<String>> {
    let failed = |e: mongodb::error::Error| anyhow!("looking for journals: {}", errors::message(&e));
    let mut databases = Vec::new();
    for name in control.list_database_names().await.map_err(failed)? {
        let collections = control.database(&name).list_collection_names().await.map_err(failed)?;
        if collections.iter().any(|collection| collection == COLLECTION) {
            databases.push(name);
        }
    }
    Ok(databases)
}
