//! The wire protocol, as far as a gate and a stub need it: where messages begin and end, what command a request is, and
//! how it is answered. See the MongoDB wire protocol specification; all integers are little-endian.
//!
//! Everything here but [`reader`] is pure, and nothing trusts a length before it has been checked: whatever bytes come,
//! the worst is [`Malformed`].

pub mod compression;
pub mod frames;
pub mod reader;
pub mod reply;
pub mod request;

use std::io;

pub use compression::Compressor;
pub use frames::Frames;
pub use reader::MessageReader;
pub use request::Command;

/// The bytes of a message's header.
pub const HEADER: usize = 16;

/// The longest message: what servers say in `maxMessageSizeBytes`.
pub const MAX_MESSAGE: usize = 48_000_000;

/// A flag of [`OpCode::Message`]: the last four bytes are a checksum.
pub const CHECKSUM_PRESENT: u32 = 1;
/// A flag of [`OpCode::Message`]: another message follows without being asked for; on a request, no reply is wanted.
pub const MORE_TO_COME: u32 = 1 << 1;
/// A flag of [`OpCode::Message`]: the reply may come as several messages.
pub const EXHAUST_ALLOWED: u32 = 1 << 16;

/// The kinds of message that servers since 4.2 know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCode {
    /// The answer to a [`OpCode::Query`].
    Reply,
    /// A command in the old form, which old handshakes still use.
    Query,
    /// Any other kind, compressed.
    Compressed,
    /// Commands and their replies.
    Message,
}

impl OpCode {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        match self {
            Self::Reply => 1,
            Self::Query => 2004,
            Self::Compressed => 2012,
            Self::Message => 2013,
        }
    }

    /// The length of the shortest message of this kind that has all its fixed fields.
    const fn shortest(self) -> usize {
        HEADER
            + match self {
                // Flags, cursor id, starting from, number returned.
                Self::Reply => 20,
                // Flags, an empty name's end, skip, limit.
                Self::Query => 13,
                // Original kind, uncompressed size, compressor.
                Self::Compressed => 9,
                // Flags.
                Self::Message => 4,
            }
    }
}

/// The beginning of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of the whole message, this header included; between [`HEADER`] and [`MAX_MESSAGE`].
    pub length: usize,
    /// The message's own number.
    pub request_id: i32,
    /// The number of the request that it answers; 0 in requests.
    pub response_to: i32,
    /// What follows.
    pub op_code: OpCode,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// When no sane message begins like this.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, Malformed> {
        let [length, request_id, response_to, number] = [0, 4, 8, 12].map(|at| int(bytes, at).unwrap_or(0));
        let op_code = [OpCode::Message, OpCode::Compressed, OpCode::Query, OpCode::Reply]
            .into_iter()
            .find(|op_code| op_code.number() == number)
            .ok_or(Malformed::OpCode(number))?;
        let known = usize::try_from(length).ok();
        let length = known
            .filter(|length| (op_code.shortest()..=MAX_MESSAGE).contains(length))
            .ok_or(Malformed::Length(length))?;
        Ok(Self { length, request_id, response_to, op_code })
    }

    /// The same as it is on the wire.
    pub fn to_bytes(&self) -> [u8; HEADER] {
        // No header that parses or is built here is longer than `MAX_MESSAGE`.
        let length = i32::try_from(self.length).unwrap_or(i32::MAX);
        let mut bytes = [0; HEADER];
        for (place, field) in
            bytes.chunks_exact_mut(4).zip([length, self.request_id, self.response_to, self.op_code.number()])
        {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }
}

/// Why bytes are no message. The connection cannot go on: nobody knows where the next message would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too short for its kind, or too long for anybody.
    #[error("a message of {0} bytes")]
    Length(i32),
    /// A kind that no server since 4.2 knows.
    #[error("a message of the unknown kind {0}")]
    OpCode(i32),
}

impl From<Malformed> for io::Error {
    fn from(error: Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// The integer at an offset, if there are bytes for it.
fn int(bytes: &[u8], at: usize) -> Option<i32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(four.try_into().ok()?))
}

/// The flags at an offset, if there are bytes for them.
fn flags(bytes: &[u8], at: usize) -> Option<u32> {
    int(bytes, at).map(i32::cast_unsigned)
}

#[cfg(test)]
mod tests;
