//! A driver's events as documents, in the words of the unified test format.

use bson::{Document, doc};
use mongodb::event::cmap::CmapEvent;
use mongodb::event::command::CommandEvent;
use mongodb::event::sdam::SdamEvent;

use crate::verify::observe::kind_of;

/// Commands of ours, or of nobody's tests.
const ASIDE: [&str; 1] = ["configureFailPoint"];

/// The names under which tests look for events, by their family; a list of events holds those of one.
pub const FAMILIES: [(&str, &[&str]); 3] = [
    ("command", &["commandStartedEvent", "commandSucceededEvent", "commandFailedEvent"]),
    (
        "cmap",
        &[
            "poolClearedEvent",
            "connectionCheckedOutEvent",
            "connectionCheckedInEvent",
            "connectionClosedEvent",
        ],
    ),
    ("sdam", &["serverDescriptionChangedEvent"]),
];

/// A command event, unless its command is left out; `ignored` are those that the test names.
pub fn command(event: &CommandEvent, ignored: &[String]) -> Option<Document> {
    let (kind, name, more) = match event {
        CommandEvent::Started(e) => {
            let more = doc! { "databaseName": &e.db, "command": &e.command };
            ("commandStartedEvent", &e.command_name, more)
        }
        CommandEvent::Succeeded(e) => ("commandSucceededEvent", &e.command_name, doc! { "reply": &e.reply }),
        CommandEvent::Failed(e) => ("commandFailedEvent", &e.command_name, Document::new()),
        _ => return None,
    };
    if ASIDE.contains(&name.as_str()) || ignored.contains(name) {
        return None;
    }
    let mut fields = doc! { "commandName": name };
    fields.extend(more);
    Some(doc! { kind: fields })
}

/// An event of a pool, if tests look for such.
pub fn pool(event: &CmapEvent) -> Option<Document> {
    let kind = match event {
        CmapEvent::PoolCleared(_) => "poolClearedEvent",
        CmapEvent::ConnectionCheckedOut(_) => "connectionCheckedOutEvent",
        CmapEvent::ConnectionCheckedIn(_) => "connectionCheckedInEvent",
        CmapEvent::ConnectionClosed(_) => "connectionClosedEvent",
        _ => return None,
    };
    Some(doc! { kind: {} })
}

/// An event of what is known of servers, if tests look for such.
pub fn server(event: &SdamEvent) -> Option<Document> {
    let SdamEvent::ServerDescriptionChanged(event) = event else { return None };
    let [before, after] = [&event.previous_description, &event.new_description]
        .map(|description| doc! { "type": kind_of(description.server_type()) });
    Some(doc! { "serverDescriptionChangedEvent": { "previousDescription": before, "newDescription": after } })
}

/// What an event is called.
pub fn name(event: &Document) -> &str {
    event.keys().next().map_or("", String::as_str)
}

/// An event in a few words.
pub fn shown(event: &Document) -> String {
    let fields = event.get_document(name(event));
    match fields.and_then(|fields| fields.get_str("commandName")) {
        Ok(command) => format!("{} {command}", name(event)),
        Err(_) => name(event).to_owned(),
    }
}
