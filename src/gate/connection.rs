//! One connection through the gate.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::limits::{InForce, Limits, Which};
use super::visitor::Visitor;
use crate::wire::reply::{Form, reply};
use crate::wire::request::{FLAGS_PREFIX, flags_of};
use crate::wire::{Frames, Header, MORE_TO_COME, MessageReader, OpCode};

/// What is read from the server at once.
const BUFFER: usize = 16 * 1024;

/// How much of a rejected message that is not compressed is looked at; the flags and the form are in it.
const SHORT_PREFIX: usize = 32;

/// Serves a client until either side ends it.
pub(super) async fn serve(client: TcpStream, upstream: &str, limits: &Limits) {
    limits.accepted.fetch_add(1, Ordering::Relaxed);
    limits.open.fetch_add(1, Ordering::Relaxed);
    let _open = Open(limits);
    match pass(client, upstream, limits).await {
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            limits.malformed.fetch_add(1, Ordering::Relaxed);
        }
        // Closing is all that can be done, and what both sides expect.
        Ok(()) | Err(_) => {}
    }
}

/// Counts a connection as open.
struct Open<'a>(&'a Limits);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn pass(mut client: TcpStream, upstream: &str, limits: &Limits) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (from_client, mut to_client) = client.split();
    let mut requests = MessageReader::new(from_client);
    let mut visitor = Visitor::default();
    // A server knows nothing of a client yet when it limits connections, but its administrator exempts its members'
    // addresses. Here all have the same address, so the first message has to tell them apart.
    let literal = limits.is_literal();
    if literal && limits.admit(Which::Connections, |_| false).await.is_err() {
        return Ok(());
    }
    let Some(first) = requests.header().await? else { return Ok(()) };
    visitor.look(&first, &mut requests).await?;
    let known = |settings: &_| visitor.is_known(settings);
    if !literal && limits.admit(Which::Connections, known).await.is_err() {
        return Ok(());
    }
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_server) = server.split();

    let unanswered = Unanswered::default();
    let (own_replies, replies) = mpsc::channel(1);
    let upwards = Upwards { limits, visitor, unanswered: &unanswered, replies: own_replies };
    let up = upwards.run(first, requests, &mut to_server);
    let mut down = std::pin::pin!(down(&mut from_server, &mut to_client, replies, &unanswered));
    tokio::select! {
        biased;
        // A server that has gone takes its clients with it.
        ended = &mut down => return ended,
        ended = up => ended?,
    }
    // A client that has said all may still be told something.
    down.await
}

/// The last request that was passed on and awaits its reply. The server answers in order, so nothing else is under way
/// once that has been answered.
#[derive(Default)]
struct Unanswered(AtomicU64);

impl Unanswered {
    const ONE: u64 = 1 << 32;

    fn expect(&self, request_id: i32) {
        self.0.store(Self::ONE | u64::from(request_id.cast_unsigned()), Ordering::Relaxed);
    }

    fn answered(&self, response_to: i32) {
        let expected = Self::ONE | u64::from(response_to.cast_unsigned());
        // Otherwise it answers an earlier one, or none.
        self.0.compare_exchange(expected, 0, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    fn none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// From the client to the server.
struct Upwards<'a> {
    limits: &'a Limits,
    visitor: Visitor,
    unanswered: &'a Unanswered,
    replies: mpsc::Sender<Vec<u8>>,
}

impl Upwards<'_> {
    /// Treats one message after the other, beginning with one whose header has been read, until the client has no more.
    async fn run(
        mut self,
        first: Header,
        mut requests: MessageReader<impl AsyncRead + Unpin>,
        server: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut header = first;
        loop {
            match self.limits.admit(Which::Requests, |settings| self.visitor.is_exempt(settings)).await {
                Ok(()) => {
                    self.expect_reply(&header, &mut requests).await?;
                    requests.forward(&header, server).await?;
                }
                Err(in_force) => self.reject(&header, &mut requests, &in_force).await?,
            }
            header = match requests.header().await? {
                Some(next) => next,
                None => return server.shutdown().await,
            };
            self.visitor.look(&header, &mut requests).await?;
        }
    }

    async fn expect_reply(
        &self,
        header: &Header,
        requests: &mut MessageReader<impl AsyncRead + Unpin>,
    ) -> io::Result<()> {
        // Whether a compressed one wants a reply is dear to find out, and matters only to a client that sends the next
        // request before it has the reply: its replies may change places.
        if header.op_code != OpCode::Compressed {
            let beginning = requests.beginning(header, SHORT_PREFIX).await?;
            if flags_of(header, beginning).is_none_or(|flags| flags & MORE_TO_COME == 0) {
                self.unanswered.expect(header.request_id);
            }
        }
        Ok(())
    }

    async fn reject(
        &self,
        header: &Header,
        requests: &mut MessageReader<impl AsyncRead + Unpin>,
        in_force: &InForce,
    ) -> io::Result<()> {
        let wanted = if header.op_code == OpCode::Compressed { FLAGS_PREFIX } else { SHORT_PREFIX };
        let beginning = requests.beginning(header, wanted).await?;
        let flags = flags_of(header, beginning).unwrap_or(0);
        let form = Form::of_request(header, beginning).ok_or(ErrorKind::InvalidData)?;
        requests.skip(header).await?;
        if flags & MORE_TO_COME != 0 {
            self.limits.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let message = reply(form, self.limits.next_id(), header.request_id, &in_force.rejection)?;
        // The other direction ends only when the connection does.
        self.replies.send(message).await.map_err(|_| ErrorKind::BrokenPipe.into())
    }
}

/// From the server to the client; the gate's own replies go in between, when all that was asked before is answered.
async fn down(
    server: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
    mut replies: mpsc::Receiver<Vec<u8>>,
    unanswered: &Unanswered,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut frames = Frames::new();
    let mut own: Option<Vec<u8>> = None;
    loop {
        if let Some(reply) = own.take_if(|_| frames.is_between() && unanswered.none()) {
            client.write_all(&reply).await?;
        }
        tokio::select! {
            biased;
            read = server.read(&mut buffer) => match read? {
                0 => {
                    if let Some(reply) = own.or_else(|| replies.try_recv().ok()).filter(|_| frames.is_between()) {
                        client.write_all(&reply).await?;
                    }
                    return client.shutdown().await;
                }
                read => {
                    let bytes = &buffer[..read];
                    frames.walk(bytes, |header| unanswered.answered(header.response_to))?;
                    client.write_all(bytes).await?;
                }
            },
            Some(reply) = replies.recv(), if own.is_none() => own = Some(reply),
        }
    }
}
