//! Writing replies.

use std::io;

use bson::RawDocument;

use super::{Compressor, HEADER, Header, OpCode};

/// The form in which a request wants to be answered: its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// [`OpCode::Message`].
    Message,
    /// [`OpCode::Reply`], to a [`OpCode::Query`].
    Reply,
    /// [`OpCode::Message`] within [`OpCode::Compressed`].
    Compressed(Compressor),
}

impl Form {
    /// The form for a request that begins with these bytes (25 are enough); None if it is no request, or is compressed
    /// in an unknown way.
    pub fn of_request(header: &Header, message: &[u8]) -> Option<Self> {
        match header.op_code {
            OpCode::Message => Some(Self::Message),
            OpCode::Query => Some(Self::Reply),
            OpCode::Compressed => super::request::compressor_of(header, message).map(Self::Compressed),
            OpCode::Reply => None,
        }
    }
}

/// A whole message that answers request number `response_to` with a document.
///
/// # Errors
/// When it cannot be compressed.
pub fn reply(form: Form, request_id: i32, response_to: i32, document: &RawDocument) -> io::Result<Vec<u8>> {
    let mut body = Vec::with_capacity(20 + document.as_bytes().len());
    let op_code = match form {
        Form::Message | Form::Compressed(_) => {
            // No flags; one section, of the kind that is a document.
            body.extend_from_slice(&[0; 5]);
            OpCode::Message
        }
        Form::Reply => {
            // Flags (the server may be asked to wait, as all say since 1.6), no cursor, from its start, one document.
            for field in [8_i32, 0, 0, 0, 1] {
                body.extend_from_slice(&field.to_le_bytes());
            }
            OpCode::Reply
        }
    };
    body.extend_from_slice(document.as_bytes());
    let Form::Compressed(compressor) = form else {
        return Ok(message(op_code, request_id, response_to, &body));
    };
    let mut wrapped = op_code.number().to_le_bytes().to_vec();
    // A reply that is written here is far shorter than two gigabytes.
    wrapped.extend_from_slice(&i32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes());
    wrapped.push(compressor.id());
    wrapped.extend_from_slice(&compressor.compress(&body)?);
    Ok(message(OpCode::Compressed, request_id, response_to, &wrapped))
}

/// A message with this body.
pub(super) fn message(op_code: OpCode, request_id: i32, response_to: i32, body: &[u8]) -> Vec<u8> {
    let header = Header { length: HEADER + body.len(), request_id, response_to, op_code };
    [&header.to_bytes()[..], body].concat()
}
