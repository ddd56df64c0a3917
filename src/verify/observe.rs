//! What a driver does for one call: its events, each with its time, by the task-local that the call carries. Unlike
//! [`crate::client::attempt`], which counts, this keeps everything, commands included.

mod call;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mongodb::error::Error;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use mongodb::event::command::CommandEvent;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, ServerType};

pub use self::call::{Attempt, Call, End, Failure, is_watching, watch};
use self::call::{Event, note};
use super::finding::Refused;
use crate::client::errors;
use crate::client::uri::Uri;

/// No deployment that rules are looked at on takes longer to be known.
const DISCOVERY: Duration = Duration::from_secs(10);

/// How often it is looked whether it is known.
const LOOK: Duration = Duration::from_millis(5);

/// A client whose calls can be watched, and what it says of the deployment.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The driver's.
    pub client: Client,
    news: Arc<Mutex<News>>,
}

/// What was heard of servers.
#[derive(Debug, Default)]
struct News {
    /// What each is.
    kinds: BTreeMap<String, String>,
    /// How often one that was known was no longer.
    lost: u32,
    /// How often a pool was cleared.
    cleared: u32,
}

/// What a server is, in the specifications' spelling. Older drivers have no text of their own for it.
pub fn kind_of(server: ServerType) -> String {
    format!("{server:?}").replacen("Rs", "RS", 1)
}

impl Observed {
    /// A client for this connection string.
    ///
    /// # Errors
    /// `Refused` when the driver does not take it.
    pub async fn connect(uri: &Uri) -> Result<Self> {
        let refused = |error: Error| Refused::new(&uri.redact(&errors::message(&error)));
        let mut options = ClientOptions::parse(uri.expose()).await.map_err(refused)?;
        let news = Arc::new(Mutex::new(News::default()));
        let (pools, servers) = (Arc::clone(&news), Arc::clone(&news));
        options.command_event_handler = Some(EventHandler::callback(|event| on_command(&event)));
        options.cmap_event_handler =
            Some(EventHandler::callback(move |event: CmapEvent| on_pool(&event, &pools)));
        options.sdam_event_handler = Some(EventHandler::callback(move |event| {
            if let SdamEvent::ServerDescriptionChanged(event) = event {
                let news = &mut *locked(&servers);
                let kind = kind_of(event.new_description.server_type());
                let before = news.kinds.insert(event.address.to_string(), kind.clone());
                news.lost += u32::from(kind == UNKNOWN && before.is_some_and(|before| before != UNKNOWN));
            }
        }));
        let client = Client::with_options(options).map_err(refused)?;
        Ok(Self { client, news })
    }

    /// Waits until so many servers are known.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn knows(&self, servers: usize) -> Result<()> {
        let deadline = Instant::now() + DISCOVERY;
        while locked(&self.news).kinds.values().filter(|kind| *kind != UNKNOWN).count() < servers {
            if Instant::now() > deadline {
                bail!("a client did not find its {servers} servers within {DISCOVERY:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// How often a known server was lost, and a pool was cleared.
    pub fn losses(&self) -> (u32, u32) {
        let news = locked(&self.news);
        (news.lost, news.cleared)
    }
}

/// The driver's word for a server that it knows nothing of.
const UNKNOWN: &str = "Unknown";

fn on_command(event: &CommandEvent) {
    match event {
        CommandEvent::Started(e) => note(Event::Started {
            server: e.connection.address.to_string(),
            name: e.command_name.clone(),
            request: e.request_id,
            command: e.command.clone(),
        }),
        CommandEvent::Succeeded(e) => note(Event::Ended { request: e.request_id, end: End::Served }),
        CommandEvent::Failed(e) => {
            let end = End::Failed(errors::classify(&e.failure).labels);
            note(Event::Ended { request: e.request_id, end });
        }
        _ => {}
    }
}

fn on_pool(event: &CmapEvent, news: &Mutex<News>) {
    match event {
        CmapEvent::ConnectionCheckoutStarted(_) => note(Event::CheckoutStarted),
        CmapEvent::ConnectionCheckoutFailed(e) => {
            note(Event::CheckoutFailed { server: e.address.to_string() });
        }
        CmapEvent::PoolCleared(_) => locked(news).cleared += 1,
        _ => {}
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
