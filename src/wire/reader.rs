//! Reads messages from a socket, holding no more of them than somebody wants to see.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{HEADER, Header};

/// What is read at once, and what a connection holds as a rule.
const BUFFER: usize = 16 * 1024;

/// One message after the other: its header, some of its beginning if wanted, and then it goes on or is dropped. The
/// buffer only grows beyond 16 KiB for a longer [`MessageReader::beginning`], until that message is done with.
#[derive(Debug)]
pub struct MessageReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// What is in the buffer and not done with.
    start: usize,
    end: usize,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// At the beginning of a stream.
    pub fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER], start: 0, end: 0 }
    }

    /// The next message's header; None at the end of the stream. The message stays to be dealt with by one of the other
    /// methods. Cancelling loses nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] when it is no header, [`ErrorKind::UnexpectedEof`] when the stream ends in it.
    pub async fn header(&mut self) -> io::Result<Option<Header>> {
        self.trim();
        loop {
            if let Some(head) = self.held().first_chunk() {
                return Ok(Some(Header::parse(head)?));
            }
            if self.fill(HEADER).await? == 0 {
                return if self.held().is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The first bytes of the message with this header: as many as wanted, or all that it has.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] when the stream ends before.
    pub async fn beginning(&mut self, header: &Header, wanted: usize) -> io::Result<&[u8]> {
        let wanted = wanted.min(header.length);
        while self.end - self.start < wanted {
            if self.fill(wanted).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(&self.buffer[self.start..self.start + wanted])
    }

    /// Passes the message with this header on as it is.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] when the stream ends in it; others are the receiver's.
    pub async fn forward(&mut self, header: &Header, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut left = header.length;
        loop {
            let part = left.min(self.end - self.start);
            to.write_all(&self.buffer[self.start..self.start + part]).await?;
            self.start += part;
            left -= part;
            if left == 0 {
                return Ok(());
            }
            self.refill().await?;
        }
    }

    /// Drops the message with this header.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] when the stream ends in it.
    pub async fn skip(&mut self, header: &Header) -> io::Result<()> {
        let mut left = header.length;
        loop {
            let part = left.min(self.end - self.start);
            self.start += part;
            left -= part;
            if left == 0 {
                return Ok(());
            }
            self.refill().await?;
        }
    }

    fn held(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Gives back what an unusually long beginning took.
    fn trim(&mut self) {
        if self.buffer.len() > BUFFER && self.end - self.start <= BUFFER {
            self.compact();
            self.buffer.truncate(BUFFER);
            self.buffer.shrink_to_fit();
        }
    }

    fn compact(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Reads more into a buffer from which all has been taken.
    async fn refill(&mut self) -> io::Result<()> {
        match self.fill(1).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads some more, into a buffer that has room for `wanted` bytes from `start` on. 0 is the stream's end.
    async fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + wanted > self.buffer.len() {
            self.compact();
        }
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = self.source.read(&mut self.buffer[self.end..]).await?;
        self.end += read;
        Ok(read)
    }
}
