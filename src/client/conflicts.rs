//! Options that exclude one another, as the driver and its specification have it. Options come from several
//! places, so a message says of each where it came from.

use super::options;
use crate::plan::client::OptionSource;

/// An option with a valid value, and who gave it.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: &'a str,
    pub(crate) from: OptionSource,
}

/// What of a connection string decides which options it can have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) srv: bool,
    pub(crate) hosts: usize,
    pub(crate) user: bool,
    pub(crate) password: bool,
}

/// How a message names a source.
pub(crate) fn source_name(from: OptionSource) -> &'static str {
    match from {
        OptionSource::Vary => "--vary",
        OptionSource::Set => "--set",
        OptionSource::Profile => "the profile's [client]",
        OptionSource::Uri => "the connection string",
        OptionSource::Overdrive => "overdrive itself",
        OptionSource::Default => "the driver's default",
    }
}

/// Every contradiction among the options.
pub(crate) fn find(shape: Shape, given: &[Given<'_>]) -> Vec<String> {
    let options = Options(given);
    let mut found = Vec::new();
    tls(options, &mut found);
    topology(shape, options, &mut found);
    reads_and_writes(options, &mut found);
    authentication(shape, options, &mut found);
    found
}

#[derive(Clone, Copy)]
struct Options<'a>(&'a [Given<'a>]);

impl<'a> Options<'a> {
    fn get(self, name: &str) -> Option<Given<'a>> {
        self.0.iter().find(|given| given.name == name).copied()
    }

    fn with(self, name: &str, value: &str) -> Option<Given<'a>> {
        self.get(name).filter(|given| given.value == value)
    }
}

impl Given<'_> {
    /// The option by name, with a value that is one plain word (a number, a mode), and where it came from.
    fn named(self) -> String {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let shown = !self.value.is_empty()
            && self.value.len() <= 20
            && self.value.chars().all(word)
            && !options::may_be_secret(self.name);
        let value = if shown { format!("={}", self.value) } else { String::new() };
        format!("`{}{value}` (from {})", self.name, source_name(self.from))
    }
}

fn exclude(one: Option<Given<'_>>, other: Option<Given<'_>>, found: &mut Vec<String>) {
    if let (Some(one), Some(other)) = (one, other) {
        found.push(format!(
            "{} and {} exclude each other; take one of them away",
            one.named(),
            other.named()
        ));
    }
}

fn tls(options: Options<'_>, found: &mut Vec<String>) {
    for name in [
        "tlsAllowInvalidCertificates",
        "tlsCAFile",
        "tlsCertificateKeyFile",
        "tlsCertificateKeyFilePassword",
        "tlsInsecure",
    ] {
        exclude(options.with("tls", "false"), options.get(name), found);
    }
    exclude(options.get("tlsInsecure"), options.get("tlsAllowInvalidCertificates"), found);
}

fn topology(shape: Shape, options: Options<'_>, found: &mut Vec<String>) {
    let direct = options.with("directConnection", "true");
    let balanced = options.with("loadBalanced", "true");
    let limited = options.get("srvMaxHosts").filter(|given| given.value != "0");
    exclude(direct, balanced, found);
    exclude(balanced, options.get("replicaSet"), found);
    exclude(limited, options.get("replicaSet"), found);
    exclude(limited, balanced, found);
    for single in [direct, balanced].into_iter().flatten() {
        if shape.hosts > 1 {
            let (named, hosts) = (single.named(), shape.hosts);
            found.push(format!("{named} allows one host, but there are {hosts}; keep one of them"));
        }
    }
    if let Some(direct) = direct.filter(|_| shape.srv) {
        found.push(format!(
            "{} needs a host, but mongodb+srv:// leaves the hosts to DNS; write mongodb://host:port/",
            direct.named()
        ));
    }
    for name in ["srvMaxHosts", "srvServiceName"] {
        if let Some(given) = options.get(name).filter(|_| !shape.srv) {
            found.push(format!("{} is for mongodb+srv:// only", given.named()));
        }
    }
}

fn reads_and_writes(options: Options<'_>, found: &mut Vec<String>) {
    let preference = options.get("readPreference");
    let stale = options.get("maxStalenessSeconds").filter(|given| given.value != "-1");
    for given in [options.get("readPreferenceTags"), stale].into_iter().flatten() {
        match preference {
            None => {
                found.push(format!("{} needs a `readPreference` other than primary beside it", given.named()))
            }
            Some(mode) if mode.value.eq_ignore_ascii_case("primary") => found.push(format!(
                "{} does not go with {}; take one of them away",
                given.named(),
                mode.named()
            )),
            Some(_) => {}
        }
    }
    // The specification: a heartbeat and an idle server's 10 s write must fit into the staleness.
    let number = |given: Given<'_>| given.value.parse::<u64>().ok();
    if let (Some(stale), Some(beat)) = (stale, options.get("heartbeatFrequencyMS"))
        && let (Some(seconds), Some(millis)) = (number(stale), number(beat))
        && seconds * 1000 < millis + 10_000
    {
        found.push(format!("{} must be at least 10 s longer than {}", stale.named(), beat.named()));
    }
    let unacknowledged = options.get("w").filter(|given| given.value.parse() == Ok(0));
    exclude(unacknowledged, options.with("journal", "true"), found);
}

fn authentication(shape: Shape, options: Options<'_>, found: &mut Vec<String>) {
    let Some(mechanism) = options.get("authMechanism") else {
        return;
    };
    let (named, value) = (mechanism.named(), mechanism.value);
    if matches!(value, "SCRAM-SHA-1" | "SCRAM-SHA-256" | "PLAIN" | "GSSAPI") && !shape.user {
        found.push(format!("{named} needs a user name before the hosts (user:password@)"));
    }
    if (value == "PLAIN" || value == "MONGODB-AWS") && shape.user && !shape.password {
        found.push(format!("{named} needs a password beside the user name"));
    }
    if matches!(value, "MONGODB-X509" | "MONGODB-OIDC") && shape.password {
        found.push(format!("{named} takes no password; leave it out"));
    }
    let source = options.get("authSource");
    if matches!(value, "MONGODB-X509" | "MONGODB-OIDC" | "GSSAPI")
        && let Some(source) = source.filter(|source| source.value != "$external")
    {
        found.push(format!("{named} needs {} to be $external", source.named()));
    }
    let missing = match value {
        "MONGODB-AWS" if !cfg!(feature = "aws-auth") => Some("aws-auth"),
        "GSSAPI" if !cfg!(feature = "gssapi-auth") => Some("gssapi-auth"),
        _ => None,
    };
    if let Some(feature) = missing {
        found.push(format!("{named} is not in this build; build overdrive with --features {feature}"));
    }
}
