//! The clients, databases, collections and sessions of a test. Each is made when it is first used: most tests of a file use
//! few of those that it names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bson::{Bson, Document};
use mongodb::event::EventHandler;
use mongodb::options::ClientOptions;
use mongodb::{Client, ClientSession, Collection, Database};

use super::events;
use super::matches::Sessions;
use crate::client::{errors, options, shut_down};
use crate::verify::finding::Seen;
use crate::verify::stage::Stage;

/// What a client has seen, in order.
type Log = Arc<Mutex<Vec<Document>>>;

/// A test's entities.
pub struct Entities<'a> {
    stage: &'a Stage,
    /// By name: the kind, and how it is to be.
    wanted: BTreeMap<String, (String, Document)>,
    clients: BTreeMap<String, (Client, Log)>,
    /// What tests use sessions by, beside their ids, which matching needs while they are in use.
    pub sessions: BTreeMap<String, ClientSession>,
}

impl<'a> Entities<'a> {
    /// None is made yet.
    pub fn new(stage: &'a Stage) -> Self {
        Self { stage, wanted: BTreeMap::new(), clients: BTreeMap::new(), sessions: BTreeMap::new() }
    }

    /// Learns of further ones.
    pub fn want(&mut self, entities: &[Bson]) {
        let documents = entities.iter().filter_map(Bson::as_document);
        for (kind, how) in documents.flat_map(|entity| entity.iter()) {
            if let Some(how) = how.as_document() {
                let name = how.get_str("id").unwrap_or_default().to_owned();
                self.wanted.insert(name, (kind.clone(), how.clone()));
            }
        }
    }

    /// What kind of entity has this name.
    pub fn kind(&self, name: &str) -> Result<&str, Seen> {
        let known = self.wanted.get(name).map(|(kind, _)| kind.as_str());
        known.ok_or_else(|| Seen::untestable(format!("the test has no entity {name}")))
    }

    fn how(&self, name: &str, field: &str) -> Result<String, Seen> {
        let how = self.wanted.get(name).and_then(|(_, how)| how.get_str(field).ok());
        how.map(str::to_owned).ok_or_else(|| Seen::untestable(format!("the entity {name} has no {field}")))
    }

    /// A client.
    pub async fn client(&mut self, name: &str) -> Result<Client, Seen> {
        if let Some((client, _)) = self.clients.get(name) {
            return Ok(client.clone());
        }
        let how = self.wanted.get(name).map(|(_, how)| how.clone()).unwrap_or_default();
        let made = connect(self.stage, &how).await?;
        let client = made.0.clone();
        self.clients.insert(name.to_owned(), made);
        Ok(client)
    }

    /// A database.
    pub async fn database(&mut self, name: &str) -> Result<Database, Seen> {
        let client = self.client(&self.how(name, "client")?).await?;
        Ok(client.database(&self.how(name, "databaseName")?))
    }

    /// A collection.
    pub async fn collection(&mut self, name: &str) -> Result<Collection<Document>, Seen> {
        let database = self.database(&self.how(name, "database")?).await?;
        Ok(database.collection(&self.how(name, "collectionName")?))
    }

    /// A session; it is there afterwards.
    pub async fn session(&mut self, name: &str) -> Result<&mut ClientSession, Seen> {
        if !self.sessions.contains_key(name) {
            let client = self.client(&self.how(name, "client")?).await?;
            let session = client.start_session().await;
            let session = session.map_err(|error| Seen::untestable(errors::message(&error)))?;
            self.sessions.insert(name.to_owned(), session);
        }
        let session = self.sessions.get_mut(name);
        session.ok_or_else(|| Seen::untestable(format!("there is no session {name}")))
    }

    /// What a client has seen so far of a family of events; nothing if it was never used.
    pub fn events(&self, client: &str, family: &str) -> Vec<Document> {
        let Some((_, log)) = self.clients.get(client) else { return Vec::new() };
        let names =
            events::FAMILIES.iter().find(|(name, _)| *name == family).map_or(&[][..], |(_, names)| names);
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter(|event| names.contains(&events::name(event))).cloned().collect()
    }

    /// What a client has seen so far under this name.
    pub fn events_named(&self, client: &str, name: &str) -> Vec<Document> {
        let Some((_, log)) = self.clients.get(client) else { return Vec::new() };
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter(|event| events::name(event) == name).cloned().collect()
    }

    /// The ids of all sessions, for whoever ends them on the server.
    pub fn session_ids(&self) -> Vec<Document> {
        self.sessions.values().map(|session| session.id().clone()).collect()
    }

    /// Ends all of them.
    pub async fn end(self) {
        drop(self.sessions);
        let ends = self.clients.into_values().map(|(client, _)| shut_down(client));
        futures_util::future::join_all(ends).await;
    }
}

impl Sessions for Entities<'_> {
    fn lsid(&self, name: &str) -> Option<Document> {
        self.sessions.get(name).map(|session| session.id().clone())
    }
}

/// The application name of a test's own, for us alone.
pub fn own_app(stage: &Stage, app: &str) -> String {
    format!("{}-{app}", stage.database)
}

async fn connect(stage: &Stage, how: &Document) -> Result<(Client, Log), Seen> {
    let mut uri = stage.uri.clone();
    let wanted = how.get_document("uriOptions").cloned().unwrap_or_default();
    for (name, value) in &wanted {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match options::find(name) {
            Some(spec) if spec.name == "appName" => uri = uri.with("appName", &own_app(stage, &value)),
            Some(_) => uri = uri.with(name, &value),
            None => return Err(Seen::untestable(format!("this driver has no option {name}"))),
        }
    }
    let refused = |error| {
        let message = uri.redact(&errors::message(&error)).to_string();
        Seen::judge(false, format!("the driver refuses the test's connection string: {message}"))
    };
    let mut options = ClientOptions::parse(uri.expose()).await.map_err(refused)?;
    let log = Log::default();
    let list = |field| -> Vec<String> {
        let list = how.get_array(field).into_iter().flatten();
        list.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let (observed, ignored) = (Arc::new(list("observeEvents")), list("ignoreCommandMonitoringEvents"));
    if let Some(unknown) =
        observed.iter().find(|name| !events::FAMILIES.iter().any(|family| family.1.contains(&name.as_str())))
    {
        return Err(Seen::untestable(format!("the runner does not observe {unknown}")));
    }
    let keep = |log: &Log, observed: &Arc<Vec<String>>| {
        let (log, observed) = (Arc::clone(log), Arc::clone(observed));
        move |event: Option<Document>| {
            if let Some(event) = event.filter(|event| observed.iter().any(|name| name == events::name(event)))
            {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
        }
    };
    let [of_commands, of_pools, of_servers] = [(); 3].map(|()| keep(&log, &observed));
    options.command_event_handler =
        Some(EventHandler::callback(move |event| of_commands(events::command(&event, &ignored))));
    options.cmap_event_handler = Some(EventHandler::callback(move |event| of_pools(events::pool(&event))));
    options.sdam_event_handler =
        Some(EventHandler::callback(move |event| of_servers(events::server(&event))));
    let client = Client::with_options(options).map_err(refused)?;
    Ok((client, log))
}
