//! Who is at the other end of a connection, as far as that decides about limits.

use std::io;

use bson::RawDocument;
use tokio::io::AsyncRead;

use crate::plan::GateSettings;
use crate::wire::{Command, Header, MessageReader, OpCode};

/// How much of a handshake's message is looked at. What clients say of themselves is 512 bytes at most.
const LOOK: usize = 16 * 1024;

/// How a member finds out which address of its configuration is its own. It sends this without any hello, and a member
/// that gets no answer is none any more.
const FIND_SELF: &str = "_isSelf";

/// The longest name that is remembered.
const NAME: usize = 256;

/// What is known of a client.
#[derive(Debug, Default)]
pub(super) struct Visitor {
    /// Has sent an ordinary command. Until then it may be a monitor, or still authenticating.
    ordinary: bool,
    /// What its first hello said, once there was one.
    identity: Option<Identity>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Identity {
    /// Is another server of the same deployment.
    internal: bool,
    /// How its application and its driver call themselves.
    names: Vec<String>,
}

impl Visitor {
    /// Learns from a message, as long as there is something to learn. The message stays in the reader.
    pub(super) async fn look(
        &mut self,
        header: &Header,
        reader: &mut MessageReader<impl AsyncRead + Unpin>,
    ) -> io::Result<()> {
        // The protocol forbids compressing handshakes.
        if self.ordinary || header.op_code == OpCode::Compressed {
            self.ordinary = true;
            return Ok(());
        }
        let message = reader.beginning(header, LOOK).await?;
        let command = Command::find(header, message);
        self.ordinary = !command.as_ref().is_some_and(Command::is_handshake);
        if let (Some(command), None) = (command, &self.identity) {
            if command.is_hello() {
                self.identity = Some(command.body.map(Identity::of).unwrap_or_default());
            } else if command.name == FIND_SELF {
                self.identity = Some(Identity { internal: true, names: Vec::new() });
            }
        }
        Ok(())
    }

    /// Whether its next message costs no token.
    pub(super) fn is_exempt(&self, settings: &GateSettings) -> bool {
        (!self.ordinary && !settings.literal) || self.is_known(settings)
    }

    /// Whether it is one of those whom no limit applies to.
    pub(super) fn is_known(&self, settings: &GateSettings) -> bool {
        self.identity.as_ref().is_some_and(|identity| {
            let exempt = |name: &String| settings.exempt_apps.iter().any(|app| name.starts_with(app));
            identity.internal || identity.names.iter().any(exempt)
        })
    }
}

impl Identity {
    fn of(hello: &RawDocument) -> Self {
        let name_of = |field| {
            let name = hello.get_document("client").ok()?.get_document(field).ok()?.get_str("name").ok()?;
            (name.len() <= NAME).then(|| name.to_owned())
        };
        Self {
            internal: hello.get("internalClient").is_ok_and(|value| value.is_some()),
            names: ["application", "driver"].into_iter().filter_map(name_of).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::{Form, reply};
    use bson::{RawDocumentBuf, rawdoc};

    async fn visitor(messages: &[RawDocumentBuf]) -> Visitor {
        let mut visitor = Visitor::default();
        for document in messages {
            // A reply is built like a request.
            let message = reply(Form::Message, 1, 0, document).unwrap();
            let mut reader = MessageReader::new(&message[..]);
            let header = reader.header().await.unwrap().unwrap();
            visitor.look(&header, &mut reader).await.unwrap();
        }
        visitor
    }

    fn hello(application: &str) -> RawDocumentBuf {
        rawdoc! { "hello": 1, "client": { "application": { "name": application }, "driver": { "name": "x" } } }
    }

    #[tokio::test]
    async fn monitors_and_handshakes_are_exempt_until_the_first_ordinary_command() {
        let usual = GateSettings::default();
        let literal = GateSettings { literal: true, ..usual.clone() };
        let handshake = [hello("shop"), rawdoc! { "saslStart": 1 }, rawdoc! { "saslContinue": 1 }];
        assert!(visitor(&handshake).await.is_exempt(&usual));
        assert!(!visitor(&handshake).await.is_exempt(&literal));
        let monitor = vec![rawdoc! { "hello": 1, "topologyVersion": {}, "maxAwaitTimeMS": 10_000 }; 5];
        assert!(visitor(&monitor).await.is_exempt(&usual));
        let user = [hello("shop"), rawdoc! { "ping": 1 }, rawdoc! { "hello": 1 }];
        assert!(!visitor(&user).await.is_exempt(&usual), "what comes later costs what all costs");
    }

    #[tokio::test]
    async fn the_known_are_exempt_by_what_their_first_hello_says() {
        let settings = GateSettings { literal: true, ..GateSettings::default() };
        let find = rawdoc! { "find": "x" };
        let internal =
            rawdoc! { "isMaster": 1, "internalClient": { "minWireVersion": 0, "maxWireVersion": 17 } };
        for known in [
            hello("overdrive-control"),
            hello("OplogFetcher"),
            rawdoc! { "hello": 1, "client": { "driver": { "name": "NetworkInterfaceTL-Repl" } } },
            rawdoc! { "_isSelf": 1 },
            internal.clone(),
        ] {
            assert!(visitor(&[known.clone(), find.clone()]).await.is_exempt(&settings), "{known:?}");
        }
        assert!(!visitor(&[hello("shop"), internal]).await.is_exempt(&settings), "only the first counts");
        assert!(!visitor(&[find]).await.is_exempt(&settings));
    }
}
