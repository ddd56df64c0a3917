//! `overdrive restore`: undoes by hand what the next run would undo at its start.

use std::sync::Arc;

use mongodb::Namespace;

use super::target::{check_tls_files, given_uri};
use super::{Outcome, UsageError, print};
use crate::cli::RestoreArgs;
use crate::client::{connect, shut_down};
use crate::cluster::{Cluster, saying_so_if_long};
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
    let ground = Ground {
        cluster,
        lab: None,
        control: control.clone(),
        data: Namespace::new("", ""),
        app: String::new(),
    };
    let mut any = false;
    let result = Bench::new(ground)
        .undo_leftovers(|line| {
            any = true;
            tell(line);
        })
        .await;
    shut_down(control).await;
    result?;
    print(if any { "Everything is set right.\n" } else { "Nothing of overdrive's is on.\n" })?;
    Ok(Outcome::Done)
}
