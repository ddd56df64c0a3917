//! What a request is, told from its first bytes.

use bson::RawDocument;

use super::{Compressor, HEADER, Header, OpCode, compression, flags, int};

/// Where the flags of an uncompressed message are.
const FLAGS: usize = HEADER;
/// Where the compressed part of a compressed message begins.
const COMPRESSED: usize = HEADER + 9;

/// How many bytes of a message [`flags_of`] needs at most.
pub const FLAGS_PREFIX: usize = COMPRESSED + compression::PEEK;

/// A command, as far as it lies in the bytes at hand.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Its name, as the client spells it.
    pub name: &'a str,
    /// The whole of it, if it is all there and well-formed.
    pub body: Option<&'a RawDocument>,
}

impl<'a> Command<'a> {
    /// Finds the command in the first bytes of an uncompressed request; None if it is not among them, or is none.
    pub fn find(header: &Header, message: &'a [u8]) -> Option<Self> {
        let document = match header.op_code {
            OpCode::Message => main_section(message)?,
            OpCode::Query => {
                let name = message.get(HEADER + 4..)?;
                let end = name.iter().position(|&byte| byte == 0)?;
                name.get(end + 1 + 8..)?
            }
            OpCode::Reply | OpCode::Compressed => return None,
        };
        let command = Self::of(document)?;
        // Old clients wrap a command that has a read preference.
        if let ("$query" | "query", Some(body)) = (command.name, command.body) {
            return Self::of(body.get_document(command.name).ok()?.as_bytes());
        }
        Some(command)
    }

    /// From bytes that begin with a document.
    fn of(document: &'a [u8]) -> Option<Self> {
        let key = document.get(5..)?;
        let end = key.iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&key[..end]).ok()?;
        let length = usize::try_from(int(document, 0)?).ok()?;
        let body = document.get(..length).and_then(|bytes| RawDocument::from_bytes(bytes).ok());
        Some(Self { name, body })
    }

    /// Whether it is part of how connections are set up, watched and authenticated, which no server sheds where clients
    /// authenticate.
    pub fn is_handshake(&self) -> bool {
        const NAMES: [&str; 5] = ["hello", "ismaster", "saslStart", "saslContinue", "authenticate"];
        NAMES.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }

    /// Whether it is a hello under either of its names.
    pub fn is_hello(&self) -> bool {
        self.name == "hello" || self.name.eq_ignore_ascii_case("ismaster")
    }
}

/// The part of a [`OpCode::Message`] that is the command; sequences of documents may come before it.
fn main_section(message: &[u8]) -> Option<&[u8]> {
    let mut at = FLAGS + 4;
    loop {
        let (kind, rest) = message.get(at..)?.split_first()?;
        match kind {
            0 => return Some(rest),
            1 => {
                let length = usize::try_from(int(rest, 0)?).ok().filter(|&length| length >= 4)?;
                at = at.checked_add(1)?.checked_add(length)?;
            }
            _ => return None,
        }
    }
}

/// The flags of a request, from its first bytes ([`FLAGS_PREFIX`] of them, if it has as many). None for requests of the
/// old form, which have others, and for what cannot be decompressed.
pub fn flags_of(header: &Header, message: &[u8]) -> Option<u32> {
    match header.op_code {
        OpCode::Message => flags(message, FLAGS),
        OpCode::Compressed if int(message, HEADER)? == OpCode::Message.number() => {
            let beginning = compressor_of(header, message)?.peek(message.get(COMPRESSED..)?)?;
            Some(u32::from_le_bytes(beginning))
        }
        _ => None,
    }
}

/// What a request is compressed with, from its first bytes; None if it is not.
pub fn compressor_of(header: &Header, message: &[u8]) -> Option<Compressor> {
    match header.op_code {
        OpCode::Compressed => Compressor::from_id(*message.get(COMPRESSED - 1)?),
        _ => None,
    }
}
