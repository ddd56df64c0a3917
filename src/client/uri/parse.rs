//! Text → [`Uri`]. No message repeats anything that could be part of user name or password, which is
//! where a forgotten escape puts them: behind the `?`, in a host's place, before the scheme.

use super::encoding;
use super::{Uri, UriError, Userinfo, host, option_list};
use crate::client::conflicts::{self, Given};
use crate::plan::client::OptionSource;

const RESERVED: &str = "one of `: / ? # [ ] @`; write them %3A %2F %3F %23 %5B %5D %40";

pub(super) fn parse(text: &str) -> Result<Uri, UriError> {
    let one = |message: &str| UriError::new(vec![format!("connection string: {message}")]);

    let (srv, rest) = if let Some(rest) = text.strip_prefix("mongodb://") {
        (false, rest)
    } else if let Some(rest) = text.strip_prefix("mongodb+srv://") {
        (true, rest)
    } else {
        return Err(one("must begin with mongodb:// or mongodb+srv://"));
    };
    let (before, option_text) = match rest.split_once('?') {
        Some((before, options)) => (before, options),
        None => (rest, ""),
    };
    // `mongodb://user:pass?word@host` looks like this. Whatever it was meant to be, parts of a password
    // may be anywhere from here on, so that nothing further is looked at.
    if option_text.contains('@') {
        return Err(one(
            "there is an `@` after the first `?`; a `?` in user name or password must be written %3F, and an `@` in \
             an option's value %40",
        ));
    }
    let (userinfo_text, place) = match before.rsplit_once('@') {
        Some((userinfo, place)) => (Some(userinfo), place),
        None => (None, before),
    };
    let (host_text, database) = match place.split_once('/') {
        Some((hosts, database)) => (hosts, database),
        None => (place, ""),
    };

    let mut mistakes = Vec::new();
    let userinfo = userinfo_text.and_then(|text| userinfo(text, &mut mistakes));
    let hosts = hosts(host_text, srv, &mut mistakes);
    check_database(database, &mut mistakes);
    // With the `@` forgotten, or something else wrong so far, the rest may be one of a password.
    let options = if mistakes.is_empty() {
        let quiet = password_in(userinfo.as_ref(), option_text);
        option_list::parse(option_text, quiet, &mut mistakes)
    } else {
        Vec::new()
    };
    let uri = Uri { srv, userinfo, hosts, database: database.to_owned(), options, text: String::new() };
    if mistakes.is_empty() {
        let given: Vec<_> = uri
            .options
            .iter()
            .map(|option| Given { name: option.spec.name, value: &option.value, from: OptionSource::Uri })
            .collect();
        mistakes = conflicts::find(uri.shape(), &given);
    }
    if mistakes.is_empty() {
        return Ok(uri.rendered());
    }
    // There is but one source here, which every message begins with.
    let source = format!(" (from {})", conflicts::source_name(OptionSource::Uri));
    let mistakes = mistakes
        .iter()
        .map(|mistake| format!("connection string: {}", mistake.replace(&source, "")))
        .collect();
    Err(UriError::new(mistakes))
}

fn userinfo(text: &str, mistakes: &mut Vec<String>) -> Option<Userinfo> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    if user.is_empty() {
        mistakes
            .push("the user name before the `@` is empty; write user:password@ or leave out the `@`".into());
    }
    check_credential("user name", user, mistakes);
    if let Some(password) = password {
        check_credential("password", password, mistakes);
    }
    Some(Userinfo { user: user.to_owned(), password: password.map(str::to_owned) })
}

/// Whether somebody repeated the password among the options; a shorter one is found by chance.
fn password_in(userinfo: Option<&Userinfo>, text: &str) -> bool {
    const SHORTEST: usize = 4;
    let Some(password) = userinfo.and_then(|userinfo| userinfo.password.as_deref()) else {
        return false;
    };
    // What cannot be decoded was found out before.
    let decoded = encoding::decode(password).unwrap_or_default();
    [password, &decoded].iter().any(|form| form.len() >= SHORTEST && text.contains(form))
}

fn check_credential(what: &str, text: &str, mistakes: &mut Vec<String>) {
    if text.contains([':', '/', '?', '#', '[', ']', '@']) {
        mistakes.push(format!("the {what} holds {RESERVED}"));
    } else if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        mistakes.push(format!("the {what} holds white space or a control character; write it as %XX"));
    } else if let Err(error) = encoding::decode(text) {
        mistakes.push(format!("the {what} {}", error.reason()));
    }
}

fn hosts(text: &str, srv: bool, mistakes: &mut Vec<String>) -> Vec<String> {
    let hosts: Vec<String> = text.split(',').map(str::to_owned).collect();
    if text.is_empty() {
        mistakes.push("there is no host; write mongodb://host:port/".into());
        return hosts;
    }
    for (i, host) in hosts.iter().enumerate() {
        if let Err(reason) = host::check(host) {
            mistakes.push(format!("host {} of {} {reason}", i + 1, hosts.len()));
        }
    }
    if srv {
        if hosts.len() > 1 {
            mistakes.push("mongodb+srv:// takes exactly one name; DNS gives the hosts".into());
        } else if host::is_socket(text) {
            mistakes.push("mongodb+srv:// takes a DNS name, not a Unix socket".into());
        } else if host::has_port(text) {
            mistakes.push("mongodb+srv:// takes a name without a port; DNS gives the ports".into());
        }
    }
    hosts
}

fn check_database(text: &str, mistakes: &mut Vec<String>) {
    match encoding::decode(text) {
        Err(error) => mistakes.push(format!("the database name {}", error.reason())),
        Ok(name) if name.contains(['/', '\\', ' ', '"', '$']) => mistakes.push(
            "the database name (after the hosts' `/`) holds one of `/ \\ \" $` or a space, which MongoDB does not \
             allow; a `/` within the password is written %2F"
                .into(),
        ),
        Ok(name) if name.chars().any(|c| c.is_whitespace() || c.is_control() || "?#&=".contains(c)) => {
            mistakes.push("the database name (after the hosts' `/`) holds a character that does not belong there; options begin with `?`".into());
        }
        Ok(_) => {}
    }
}
