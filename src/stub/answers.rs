//! What a stub says.

use std::net::SocketAddr;

use bson::raw::cstr;
use bson::{DateTime, RawArrayBuf, RawDocumentBuf, rawdoc};

use super::script::{Failures, Role};
use crate::wire::Command;

/// The name of the set that a stub with [`Role::Primary`] is.
pub(crate) const REPLICA_SET: &str = "overdrive";

/// The version it says it is: results name their server by it.
const VERSION: &str = "stub";

/// The wire version of 7.0: any driver since 2019 talks to it, and none expects of it what it cannot do.
const WIRE_VERSION: i32 = 21;

/// Whether a command is none of the load's, so that it is answered at once and never fails.
pub(crate) fn is_aside(command: &Command<'_>) -> bool {
    const NAMES: [&str; 3] = ["serverStatus", "endSessions", "killCursors"];
    command.is_handshake() || NAMES.contains(&command.name)
}

/// Without `topologyVersion`, so that monitors ask from time to time instead of waiting for news.
fn hello(address: SocketAddr, role: Role) -> RawDocumentBuf {
    let mut hello = rawdoc! {
        "helloOk": true,
        "isWritablePrimary": true,
        "ismaster": true,
        "maxBsonObjectSize": 16 * 1024 * 1024,
        "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000,
        "localTime": DateTime::now(),
        "minWireVersion": 0,
        "maxWireVersion": WIRE_VERSION,
        "readOnly": false,
        "ok": 1.0,
    };
    if role == Role::Primary {
        let address = address.to_string();
        hello.append(cstr!("setName"), REPLICA_SET);
        hello.append(cstr!("setVersion"), 1);
        hello.append(cstr!("secondary"), false);
        hello.append(cstr!("hosts"), RawArrayBuf::from_iter([address.as_str()]));
        hello.append(cstr!("primary"), address.as_str());
        hello.append(cstr!("me"), address.as_str());
        // Sessions, and with them retryable writes and transactions.
        hello.append(cstr!("logicalSessionTimeoutMinutes"), 30);
    }
    hello
}

/// What monitors look at: who is what.
fn server_status(role: Role) -> RawDocumentBuf {
    let mut status = rawdoc! { "version": VERSION, "process": "overdrive stub", "ok": 1.0 };
    if role == Role::Primary {
        status.append(cstr!("repl"), rawdoc! { "setName": REPLICA_SET, "isWritablePrimary": true });
    }
    status
}

/// What a driver wants to hear after a command of this name: nothing was found, or one thing was done.
pub(crate) fn success(command: &Command<'_>, address: SocketAddr, role: Role) -> RawDocumentBuf {
    if command.is_hello() {
        return hello(address, role);
    }
    match command.name {
        "buildInfo" => rawdoc! { "version": VERSION, "versionArray": [7, 0, 0, 0], "ok": 1.0 },
        "serverStatus" => server_status(role),
        "find" | "aggregate" | "listCollections" | "listIndexes" => cursor(command, cstr!("firstBatch")),
        "getMore" => cursor(command, cstr!("nextBatch")),
        "update" => rawdoc! { "n": 1, "nModified": 1, "ok": 1.0 },
        "delete" => rawdoc! { "n": 1, "ok": 1.0 },
        // Nobody has counted the documents: drivers take as many of theirs for written as they are told, and no more than
        // they sent; what they take for missing they send again.
        "insert" => rawdoc! { "n": i32::MAX, "ok": 1.0 },
        "findAndModify" => {
            rawdoc! { "lastErrorObject": { "n": 0, "updatedExisting": false }, "value": null, "ok": 1.0 }
        }
        "count" => rawdoc! { "n": 0, "ok": 1.0 },
        "distinct" => rawdoc! { "values": [], "ok": 1.0 },
        _ => rawdoc! { "ok": 1.0 },
    }
}

fn cursor(command: &Command<'_>, batch: &bson::raw::CStr) -> RawDocumentBuf {
    let text = |field| command.body.and_then(|body| body.get_str(field).ok()).unwrap_or("$cmd");
    let namespace = format!("{}.{}", text("$db"), text(command.name));
    let mut cursor = rawdoc! { "id": 0_i64, "ns": namespace };
    cursor.append(batch, RawArrayBuf::new());
    rawdoc! { "cursor": cursor, "ok": 1.0 }
}

/// A failure as the script has it.
pub(super) fn failure(failures: Option<&Failures>) -> RawDocumentBuf {
    let (code, labels) = failures.map_or((1, &[][..]), |failures| (failures.code, &failures.labels));
    rawdoc! {
        "ok": 0.0,
        "errmsg": "the stub's script says so",
        "code": code,
        "codeName": format!("Location{code}"),
        "errorLabels": RawArrayBuf::from_iter(labels.iter().map(String::as_str)),
    }
}
