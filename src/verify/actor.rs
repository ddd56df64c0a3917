//! A server that plays a part: it answers the n-th attempt of each call as it was told, where real servers cannot be told
//! to. Calls are told apart by their `comment`. It also keeps what clients say of themselves when they connect.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bson::{Bson, Document, RawDocumentBuf, doc};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::observe::Observed;
use crate::client::errors::{OVERLOADED, RETRYABLE};
use crate::client::uri::Uri;
use crate::stub::Role;
use crate::stub::answers::{REPLICA_SET, is_aside, success};
use crate::wire::reply::{Form, reply};
use crate::wire::request::{Command, flags_of};
use crate::wire::{MORE_TO_COME, MessageReader};

/// How much of a request is looked at; none of ours is longer.
const LOOK: usize = 16 * 1024;

/// A code that reads are retried after, and that says nothing of the server's state: ExceededTimeLimit.
pub const ORDINARY: i32 = 262;

/// A running actor. Dropping it ends it and its connections.
#[derive(Debug)]
pub struct Actor {
    address: SocketAddr,
    stage: Arc<Stage>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Stage {
    address: SocketAddr,
    /// The replies to a call's attempts, in order; what comes after them succeeds.
    part: Vec<Document>,
    /// How many attempts each call has made.
    attempts: Mutex<HashMap<String, usize>>,
    /// The first message of each connection, as far as it is a hello.
    hellos: Mutex<Vec<Document>>,
    /// Whether new connections are closed at their first message.
    closing: AtomicBool,
    next_id: AtomicI32,
}

impl Actor {
    /// One on any free port of the loopback interface.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(part: Vec<Document>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("no port for a server that plays a part")?;
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage {
            address,
            part,
            attempts: Mutex::default(),
            hellos: Mutex::default(),
            closing: AtomicBool::new(false),
            next_id: AtomicI32::new(1),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stage)));
        Ok(Self { address, stage, accepting })
    }

    /// A client of it that knows it, with these further options of the connection string.
    ///
    /// # Errors
    /// When the driver does not take them.
    pub async fn client(&self, options: &str) -> Result<Observed> {
        let text = format!(
            "mongodb://{}/?replicaSet={REPLICA_SET}&appName=overdrive-verify&maxPoolSize=200{options}",
            self.address
        );
        let observed = Observed::connect(&Uri::parse(&text)?).await?;
        observed.knows(1).await?;
        Ok(observed)
    }

    /// From here on new connections are closed at their first message, as by a limiter of connections.
    pub fn close_new_connections(&self) {
        self.stage.closing.store(true, Ordering::Relaxed);
    }

    /// What clients have said of themselves so far, a document for each connection.
    pub fn hellos(&self) -> Vec<Document> {
        self.stage.hellos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What a server that sheds load replies; `more` are further fields.
pub fn overloaded(more: Document) -> Document {
    failed(462, &[OVERLOADED, RETRYABLE], more)
}

/// An error that a read is retried after, and that is none of overload.
pub fn ordinary() -> Document {
    failed(ORDINARY, &[], Document::new())
}

/// An error with these labels.
pub fn failed(code: i32, labels: &[&str], more: Document) -> Document {
    let mut document = doc! {
        "ok": 0.0,
        "errmsg": format!("played error {code}"),
        "code": code,
        "codeName": format!("Location{code}"),
    };
    if !labels.is_empty() {
        document.insert("errorLabels", labels.to_vec());
    }
    document.extend(more);
    document
}

/// Accepts until it is aborted; its connections end with it.
async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                let stage = Arc::clone(&stage);
                // Whatever ends a connection, ending it is all that there is to do.
                connections.spawn(async move { drop(stage.serve(client).await) });
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

impl Stage {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        if self.closing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (from_client, mut to_client) = client.split();
        let mut requests = MessageReader::new(from_client);
        let mut first = true;
        while let Some(header) = requests.header().await? {
            let beginning = requests.beginning(&header, LOOK).await?;
            let wants_reply = flags_of(&header, beginning).is_none_or(|flags| flags & MORE_TO_COME == 0);
            // It offers no compression, so what it does not understand is not its client's language.
            let form = Form::of_request(&header, beginning).ok_or(ErrorKind::InvalidData)?;
            let command = Command::find(&header, beginning).ok_or(ErrorKind::InvalidData)?;
            if std::mem::take(&mut first) && command.is_hello() {
                self.keep(&command);
            }
            let document = self.answer(&command)?;
            let message =
                reply(form, self.next_id.fetch_add(1, Ordering::Relaxed), header.request_id, &document)?;
            requests.skip(&header).await?;
            if wants_reply {
                to_client.write_all(&message).await?;
            }
        }
        Ok(())
    }

    fn keep(&self, command: &Command<'_>) {
        if let Some(hello) = command.body.and_then(|body| Document::try_from(body).ok()) {
            self.hellos.lock().unwrap_or_else(PoisonError::into_inner).push(hello);
        }
    }

    fn answer(&self, command: &Command<'_>) -> io::Result<RawDocumentBuf> {
        let played = if is_aside(command) { None } else { self.next(command) };
        match played {
            None => Ok(success(command, self.address, Role::Primary)),
            Some(document) => RawDocumentBuf::try_from(&document).map_err(io::Error::other),
        }
    }

    /// The reply to a call's next attempt, if it is no success.
    fn next(&self, command: &Command<'_>) -> Option<Document> {
        let comment = command.body.and_then(|body| body.get("comment").ok().flatten());
        let call = comment.map(|comment| format!("{comment:?}")).unwrap_or_default();
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = attempts.entry(call).or_default();
        *attempt += 1;
        self.part.get(*attempt - 1).cloned()
    }
}

/// What tells call number `n` from others.
pub fn call(n: usize) -> Bson {
    Bson::String(format!("call {n}"))
}
