//! `[clients.NAME]`: several clients, each with options, operations, a load and a flow of its own. What one does not say is
//! said by the profile itself.

use crate::plan::clients::MOST_GROUPS;
use crate::plan::{Operation, OptionSetting, Timeout};

use super::client::{self, CheckOption};
use super::diagnostic::Diagnostic;
use super::flow::{self, Parts, WrittenFlow};
use super::load::{self, ModelName, WrittenLoad};
use super::operations::{self, plain_name};
use super::reader::{Table, Value};
use super::timeout::{self, WrittenTimeout};
use super::{Profile, mistakes::Mistakes};

/// What a client can say, as the first part of a key.
pub const SAYS: [&str; 5] = ["client", "load", "op", "timeout", "flow"];

/// The keys of the producer in `[flow]`, which closed loads do not have.
pub const PRODUCER: [&str; 2] = ["queue", "when_full"];

/// Names that have another meaning in tables: all clients together, and the only one of a profile without `[clients]`.
const RESERVED: [&str; 2] = ["all", "default"];

/// What was written of one of several clients. What was left out is not in it.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenClient {
    /// Its name.
    pub name: String,
    load: WrittenLoad,
    client: Vec<OptionSetting>,
    /// Its own operations; `None` for those of the profile.
    operations: Option<Vec<Operation>>,
    timeout: WrittenTimeout,
    flow: WrittenFlow,
}

/// What the profile itself says.
pub struct Base<'a> {
    /// `[load]`
    pub load: &'a WrittenLoad,
    /// `[timeout]`
    pub timeout: Timeout,
    /// What checks connection-string options.
    pub check: CheckOption<'a>,
}

impl WrittenClient {
    /// Its own operations; `None` for those of the profile.
    pub fn operations(&self) -> Option<&[Operation]> {
        self.operations.as_deref()
    }

    /// Whether it says that its load is closed.
    pub fn says_closed(&self) -> bool {
        self.load.says_model() == Some(ModelName::Closed)
    }

    /// Whether it says for itself what a key of the profile, or a connection-string option, says for all.
    pub fn says(&self, key: &str) -> bool {
        let load = &self.load;
        let closed = self.says_closed();
        match key.split('.').collect::<Vec<_>>()[..] {
            ["rate"] | ["load", "rate"] => load.says_rate() || closed,
            ["load", "model"] => load.says_model().is_some(),
            ["workers"] | ["load", "workers"] => {
                load.workers.is_some() || load.says_model() == Some(ModelName::Open)
            }
            ["load", "max_in_flight"] => load.max_in_flight.is_some() || closed,
            ["load", "arrivals"] => load.arrivals.is_some() || closed,
            ["timeout", key] => self.timeout.says(key),
            ["flow", key, ..] => self.flow.says(key) || (closed && PRODUCER.contains(&key)),
            ["client", option] | [option] => {
                self.client.iter().any(|own| own.name.eq_ignore_ascii_case(option))
            }
            _ => false,
        }
    }

    /// Whether it says something of the producer, and does not only take what the profile says.
    pub fn says_producer(&self) -> bool {
        PRODUCER.iter().any(|key| self.flow.says(key))
    }

    /// The profile of this client alone: what it says, and of what it does not say what the profile itself says.
    pub fn over(&self, base: &Profile) -> Profile {
        let mut whole = Profile { clients: Vec::new(), ..base.clone() };
        whole.load = self.load.clone().over(&base.load);
        // What is said for this client alone is stronger than what is said for all, whoever says it.
        whole.client.retain(|all| !self.client.iter().any(|own| own.name == all.name));
        whole.client.extend(self.client.iter().cloned());
        if let Some(own) = &self.operations {
            whole.operations.clone_from(own);
        }
        whole.timeout = self.timeout.over(base.timeout);
        let on = Parts { backoff: base.backoff, flow: base.flow.clone() };
        let [on, numbers] = self.flow.over(&on, &base.flow_numbers);
        (whole.flow, whole.backoff, whole.flow_numbers) = (on.flow, on.backoff, numbers);
        whole
    }
}

/// Reads all clients; none where there is no such table.
pub fn read(root: &mut Table<'_>, base: &Base<'_>) -> Vec<WrittenClient> {
    let Some(table) = root.table("clients") else { return Vec::new() };
    let (mistakes, mut clients) = (table.mistakes(), Vec::new());
    for (name, value) in table.entries() {
        if let Err(message) = client_name(name.get_ref()) {
            table.wrong(name.span(), message);
        }
        clients.extend(read_one(mistakes, name.get_ref(), value, base));
    }
    let count = table.entries().count();
    if count == 0 {
        let help = "add one, like [clients.critical.load] with rate = \"100/s\", or leave it out";
        mistakes.add(Diagnostic::error(table.span.clone(), "`clients` has no client").help(help));
    }
    if count > MOST_GROUPS {
        table.wrong(table.span.clone(), format!("there are {count} clients, and {MOST_GROUPS} is the most"));
    }
    clients
}

/// Whether a client may have this name.
fn client_name(name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("a client cannot be called `{name}`: rows of tables are called that"));
    }
    plain_name(name, "a client")
}

fn read_one(mistakes: &Mistakes, name: &str, value: &Value<'_>, base: &Base<'_>) -> Option<WrittenClient> {
    let mut table = Table::of(mistakes, value, format!("clients.{name}"))?;
    let load = load::read_of_client(&mut table, base.load);
    let client = client::read(&mut table, base.check);
    let operations = table.key_span("op").map(|_| operations::read(&mut table));
    let timeout = timeout::read(&mut table, base.timeout);
    let flow = flow::read(&mut table, &load.clone().over(base.load));
    table.finish();
    Some(WrittenClient { name: name.to_owned(), load, client, operations, timeout, flow })
}

/// The operations of those clients that have none of their own.
pub fn shared_operations(root: &mut Table<'_>, clients: &[WrittenClient]) -> Vec<Operation> {
    let without: Vec<&WrittenClient> = clients.iter().filter(|client| client.operations.is_none()).collect();
    if without.len() < clients.len() && root.key_span("op").is_none() {
        without.iter().for_each(|client| idle(root, &client.name));
        return Vec::new();
    }
    if clients.is_empty() || !without.is_empty() {
        return operations::read(root);
    }
    if let Some(place) = root.key_span("op") {
        root.take("op");
        let message = "no client takes these operations: each has its own";
        let help = "leave them out, or those of a client that is to take them";
        root.mistakes().add(Diagnostic::error(place, message).help(help));
    }
    Vec::new()
}

/// Reports a client that has no operations where others have some of their own, and the profile none for it to take.
fn idle(root: &mut Table<'_>, name: &str) {
    let Some(table) = root.table("clients") else { return };
    let message = format!("client `{name}` has no operation");
    let help =
        format!("add one, like [clients.{name}.op.read.find_one], or an [op.read.find_one] for it to take");
    let place = table.key_span(name).unwrap_or_default();
    table.mistakes().add(Diagnostic::error(place, message).help(help));
}

/// Every operation that some client takes.
pub fn all_operations(shared: &[Operation], clients: &[WrittenClient]) -> Vec<Operation> {
    let own = clients.iter().filter_map(WrittenClient::operations).flatten();
    shared.iter().chain(own).cloned().collect()
}
