//! Errors by class: what the driver says went wrong, without the particulars.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bson::Document;
use mongodb::error::{Error, ErrorKind, WriteFailure};

use crate::snapshot::ErrorClass;

/// The label of an error that says the server has too much to do.
pub const OVERLOADED: &str = "SystemOverloadedError";
/// The label of an error after which any command may safely be sent again.
pub const RETRYABLE: &str = "RetryableError";

/// Beyond this many classes the rest is counted as kind `other`: memory must not grow with errors.
const MOST_CLASSES: usize = 256;

/// Characters kept of an example.
const EXAMPLE: usize = 200;

/// Every class met so far, numbered in that order, with one example each.
pub struct ErrorTable {
    rows: RwLock<Rows>,
    /// Takes credentials out of a text.
    redact: Box<dyn Fn(&str) -> String + Send + Sync>,
}

#[derive(Default)]
struct Rows {
    numbers: HashMap<ErrorClass, u32>,
    rows: Vec<(ErrorClass, String)>,
}

impl ErrorTable {
    /// An empty table whose examples go through `redact`.
    pub fn new(redact: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { rows: RwLock::default(), redact: Box::new(redact) }
    }

    /// The number of a driver error's class.
    pub fn number(&self, error: &Error) -> u32 {
        self.number_of(classify(error), || message(error))
    }

    /// The number of a class that no driver error stands for; `kind` says what happened.
    pub fn number_of_kind(&self, kind: &str, example: &str) -> u32 {
        self.number_of(ErrorClass { kind: kind.to_owned(), ..ErrorClass::default() }, || example.to_owned())
    }

    /// Class and example behind a number.
    pub fn get(&self, number: u32) -> Option<(ErrorClass, String)> {
        let number = usize::try_from(number).ok()?;
        self.rows.read().unwrap_or_else(PoisonError::into_inner).rows.get(number).cloned()
    }

    /// The number of a class.
    pub fn number_of(&self, class: ErrorClass, example: impl FnOnce() -> String) -> u32 {
        if let Some(&known) = self.rows.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&class) {
            return known;
        }
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let class = if rows.rows.len() < MOST_CLASSES {
            class
        } else {
            ErrorClass { kind: "other".to_owned(), ..ErrorClass::default() }
        };
        if let Some(&known) = rows.numbers.get(&class) {
            return known;
        }
        let number = u32::try_from(rows.rows.len()).unwrap_or(u32::MAX);
        let example = (self.redact)(&example()).chars().take(EXAMPLE).collect();
        rows.numbers.insert(class.clone(), number);
        rows.rows.push((class, example));
        number
    }
}

/// Whether it is an overload error.
pub fn is_overload(error: &Error) -> bool {
    error.contains_label(OVERLOADED)
}

/// Whether it is a retryable overload error (client-backpressure specification, 'Retryable Overload Error').
pub fn is_retryable_overload(error: &Error) -> bool {
    error.contains_label(OVERLOADED) && error.contains_label(RETRYABLE)
}

/// Labels by which a server or the driver says that the same again may succeed.
const PASSING: [&str; 3] = [OVERLOADED, "RetryableWriteError", "TransientTransactionError"];

/// Whether an application may hope that another call succeeds: the server was overloaded, gone, no longer the primary,
/// in somebody's way or out of time. Never a duplicate key or a query that no server takes.
pub fn is_worth_another_call(error: &Error) -> bool {
    PASSING.iter().any(|label| error.contains_label(label))
        || match error.kind.as_ref() {
            ErrorKind::Io(_)
            | ErrorKind::ServerSelection { .. }
            | ErrorKind::ConnectionPoolCleared { .. } => true,
            ErrorKind::Command(e) => passes(e.code),
            // What ended a bulk write before its end.
            ErrorKind::BulkWrite(_) => {
                let source = error.source().and_then(|source| source.downcast_ref::<Error>());
                source.is_some_and(is_worth_another_call)
            }
            _ => false,
        }
}

/// Whether the same may succeed later where a server gives this code: those of the specification on retryable reads, a write
/// conflict, and a time limit.
pub const fn passes(code: i32) -> bool {
    matches!(
        code,
        6 | 7 | 50 | 89 | 91 | 112 | 134 | 189 | 262 | 9001 | 10107 | 11600 | 11602 | 13435 | 13436
    )
}

/// Whether it lies with what was to be written, like a duplicate key or an invalid document, so that no other try and no
/// other server would take it.
pub fn is_hopeless(error: &Error) -> bool {
    let told = matches!(
        error.kind.as_ref(),
        ErrorKind::Write(WriteFailure::WriteError(_)) | ErrorKind::InsertMany(_)
    );
    told && !is_worth_another_call(error)
}

/// Whether it is a server's answer, and not the want of one.
pub fn is_a_servers(error: &Error) -> bool {
    matches!(
        error.kind.as_ref(),
        ErrorKind::Command(_) | ErrorKind::Write(_) | ErrorKind::InsertMany(_) | ErrorKind::BulkWrite(_)
    )
}

/// What drivers before the method of this name knew of a server's answer. Where the driver has one, that is called.
#[allow(dead_code, reason = "drivers that have the method need no other")]
trait Response {
    fn server_response(&self) -> Option<&bson::RawDocumentBuf>;
}

impl Response for Error {
    fn server_response(&self) -> Option<&bson::RawDocumentBuf> {
        None
    }
}

/// How long the server asked to be left alone at least, where it did (`baseBackoffMS`).
pub fn base_backoff(error: &Error) -> Option<Duration> {
    let asked = error.server_response()?.get("baseBackoffMS").ok()??;
    let millis = asked.as_i64().or_else(|| asked.as_i32().map(i64::from))?;
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// Kind, code, code name and labels. Never the error's own text: the driver puts whole replies into it.
pub fn classify(error: &Error) -> ErrorClass {
    let (code, code_name) = match error.kind.as_ref() {
        ErrorKind::Command(e) => (Some(e.code), e.code_name.clone()),
        ErrorKind::Write(WriteFailure::WriteError(e)) => {
            (Some(e.code), e.code_name.clone().unwrap_or_else(|| name_of(e.code).to_owned()))
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(e)) => (Some(e.code), e.code_name.clone()),
        ErrorKind::InsertMany(e) => {
            match (e.write_errors.as_ref().and_then(|w| w.first()), &e.write_concern_error) {
                (Some(e), _) => {
                    (Some(e.code), e.code_name.clone().unwrap_or_else(|| name_of(e.code).to_owned()))
                }
                (None, Some(e)) => (Some(e.code), e.code_name.clone()),
                (None, None) => (None, String::new()),
            }
        }
        _ => (None, String::new()),
    };
    let mut labels: Vec<String> = error.labels().iter().cloned().collect();
    labels.sort_unstable();
    ErrorClass { kind: kind(error).to_owned(), code, code_name, labels }
}

/// The error of the write concern in a reply that is otherwise a success, and its message.
pub fn classify_reply(reply: &Document) -> Option<(ErrorClass, String)> {
    let error = reply.get_document("writeConcernError").ok()?;
    let text = |key: &str| error.get_str(key).unwrap_or_default().to_owned();
    let list = reply.get_array("errorLabels").or_else(|_| error.get_array("errorLabels"));
    let mut labels: Vec<String> =
        list.into_iter().flatten().filter_map(|label| label.as_str().map(str::to_owned)).collect();
    labels.sort_unstable();
    let code = error.get_i32("code").ok();
    Some((
        ErrorClass { kind: "write_concern".to_owned(), code, code_name: text("codeName"), labels },
        text("errmsg"),
    ))
}

/// One line about the error for people; may hold what the server said, never a reply's bytes.
pub fn message(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => e.message.clone(),
        ErrorKind::Write(WriteFailure::WriteError(e)) => e.message.clone(),
        ErrorKind::Write(WriteFailure::WriteConcernError(e)) => e.message.clone(),
        ErrorKind::InsertMany(e) => e
            .write_errors
            .as_ref()
            .and_then(|errors| errors.first())
            .map(|e| e.message.clone())
            .unwrap_or_else(|| "some documents were not inserted".to_owned()),
        ErrorKind::Io(e) => e.to_string(),
        ErrorKind::ServerSelection { message, .. }
        | ErrorKind::ConnectionPoolCleared { message, .. }
        | ErrorKind::Authentication { message, .. }
        | ErrorKind::InvalidArgument { message, .. }
        | ErrorKind::InvalidResponse { message, .. }
        | ErrorKind::InvalidTlsConfig { message, .. }
        | ErrorKind::DnsResolve { message, .. }
        | ErrorKind::Transaction { message, .. }
        | ErrorKind::IncompatibleServer { message, .. }
        | ErrorKind::Internal { message, .. } => message.clone(),
        ErrorKind::Custom(_) => error.get_custom::<String>().cloned().unwrap_or_default(),
        _ => format!("the driver reports an error of kind '{}'", kind(error)),
    }
}

fn kind(error: &Error) -> &'static str {
    match error.kind.as_ref() {
        ErrorKind::Command(_) => "command",
        ErrorKind::Write(WriteFailure::WriteError(_)) => "write",
        ErrorKind::Write(_) => "write_concern",
        ErrorKind::InsertMany(_) => "insert_many",
        ErrorKind::BulkWrite(_) => "bulk_write",
        ErrorKind::Io(_) => "io",
        ErrorKind::ServerSelection { .. } => "server_selection",
        ErrorKind::ConnectionPoolCleared { .. } => "pool_cleared",
        ErrorKind::Authentication { .. } => "authentication",
        ErrorKind::InvalidArgument { .. } => "invalid_argument",
        ErrorKind::InvalidResponse { .. } => "invalid_response",
        ErrorKind::InvalidTlsConfig { .. } => "tls",
        ErrorKind::DnsResolve { .. } => "dns",
        ErrorKind::Transaction { .. } => "transaction",
        ErrorKind::IncompatibleServer { .. } => "incompatible_server",
        ErrorKind::SessionsNotSupported => "sessions_not_supported",
        ErrorKind::BsonSerialization(_) | ErrorKind::BsonDeserialization(_) => "bson",
        ErrorKind::Custom(_) => "template",
        ErrorKind::Shutdown => "shutdown",
        ErrorKind::Internal { .. } => "internal",
        _ => "other",
    }
}

/// Servers leave the names of write errors out; these are the ones a load meets.
pub fn name_of(code: i32) -> &'static str {
    match code {
        112 => "WriteConflict",
        121 => "DocumentValidationFailure",
        11000 => "DuplicateKey",
        _ => "",
    }
}
