//! Follows a stream of messages without keeping them.

use super::{HEADER, Header, Malformed};

/// Knows where in a stream of messages it is, however the bytes are cut. Holds 16 bytes of it at most.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    head: [u8; HEADER],
    /// How many bytes of `head` are there; all of them within a message's body.
    have: usize,
    /// The message whose body is passing, and how much of it is to come.
    body: Option<(Header, usize)>,
}

impl Frames {
    /// At the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows the stream through its next bytes, and calls `ended` at each message's end.
    ///
    /// # Errors
    /// When what should be a header is none; after that nothing is known any more.
    pub fn walk(&mut self, mut bytes: &[u8], mut ended: impl FnMut(&Header)) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let (header, left) = match self.body {
                Some(body) => body,
                None => {
                    let taken = bytes.len().min(HEADER - self.have);
                    self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
                    self.have += taken;
                    bytes = &bytes[taken..];
                    if self.have < HEADER {
                        return Ok(());
                    }
                    let header = Header::parse(&self.head)?;
                    // Every kind of message is longer than its header, so the end is never here.
                    (header, header.length - HEADER)
                }
            };
            let taken = bytes.len().min(left);
            bytes = &bytes[taken..];
            if taken == left {
                (self.have, self.body) = (0, None);
                ended(&header);
            } else {
                self.body = Some((header, left - taken));
            }
        }
        Ok(())
    }

    /// Whether the stream is between two messages, so that another one could be put in.
    pub const fn is_between(&self) -> bool {
        self.have == 0
    }
}
