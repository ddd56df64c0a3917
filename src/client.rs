//! The driver's client: made from the connection string alone, so that one source serves every driver version.

pub mod attempt;
pub mod conflicts;
pub mod errors;
pub mod merge;
pub mod options;
pub mod servers;
pub mod tls_files;
pub mod uri;
pub mod version;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use bson::doc;
use mongodb::Client;
use mongodb::event::EventHandler;
use mongodb::options::ClientOptions;

use self::attempt::Ledger;
use self::uri::Uri;
use crate::plan::Attempts;

/// No shutdown is waited for longer: the driver's own can hang (its pool's queue may hold futures that were dropped).
const SHUTDOWN: Duration = Duration::from_secs(1);

/// A client without any event handler, for control connections.
///
/// # Errors
/// When the driver refuses the connection string; the text is free of credentials.
pub async fn connect(uri: &Uri) -> anyhow::Result<Client> {
    with_options(uri, parse(uri).await?)
}

/// A client whose attempts are recorded in the ledger.
///
/// # Errors
/// As for [`connect`].
pub async fn connect_observed(uri: &Uri, ledger: &Arc<Ledger>, attempts: Attempts) -> anyhow::Result<Client> {
    let mut options = parse(uri).await?;
    let pool = Arc::clone(ledger);
    options.cmap_event_handler = Some(EventHandler::callback(move |event| pool.on_pool_event(&event)));
    if attempts == Attempts::Full {
        let commands = Arc::clone(ledger);
        options.command_event_handler =
            Some(EventHandler::callback(move |event| commands.on_command_event(&event)));
    }
    with_options(uri, options)
}

/// Waits until writes have somewhere to go. A primary that sheds load is one.
///
/// # Errors
/// When no primary is found within the client's server selection timeout.
pub async fn wait_for_primary(client: &Client, uri: &Uri) -> anyhow::Result<()> {
    let pinged = client.database("admin").run_command(doc! { "ping": 1 }).await;
    let Err(error) = pinged.map(drop) else { return Ok(()) };
    if errors::is_overload(&error) {
        return Ok(());
    }
    let reason = uri.redact(&errors::message(&error));
    Err(match errors::classify(&error).kind.as_str() {
        "server_selection" => {
            anyhow!(
                "no primary answers at {uri}: is it running, and reachable from here?\n  the driver says: {reason}"
            )
        }
        _ => anyhow!("{uri} does not let us in: {reason}"),
    })
}

/// Ends a client without waiting for what it still does.
pub async fn shut_down(client: Client) {
    let _ = tokio::time::timeout(SHUTDOWN, client.shutdown().immediate(true)).await;
}

async fn parse(uri: &Uri) -> anyhow::Result<ClientOptions> {
    ClientOptions::parse(uri.expose()).await.map_err(|error| refused(uri, &error))
}

fn with_options(uri: &Uri, options: ClientOptions) -> anyhow::Result<Client> {
    Client::with_options(options).map_err(|error| refused(uri, &error))
}

fn refused(uri: &Uri, error: &mongodb::error::Error) -> anyhow::Error {
    anyhow!("the driver refuses the connection string: {}", uri.redact(&errors::message(error)))
}
