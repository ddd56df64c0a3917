//! From a TOML text to a [`Plan`](crate::plan::Plan), with every mistake shown where it was made.
//!
//! ```text
//! name ──source──▶ text ──reader──▶ Profile ──resolve──▶ Plan ──describe──▶ what `check` prints
//!                                      ▲ overrides: what the command line changes
//! ```

mod action;
pub mod client;
mod clients;
mod data;
pub mod describe;
pub mod diagnostic;
pub mod estimate;
mod fault;
mod fields;
mod flow;
pub mod load;
mod mistakes;
mod model;
mod operations;
mod overloads;
pub mod overrides;
mod reader;
pub mod resolve;
mod secrets;
mod settable;
pub mod shipped;
pub mod source;
mod staleness;
mod thresholds;
mod timeout;
mod value;

use toml::de::DeTable;

use crate::plan::{
    Assumptions, Backoff, Data, Driver, Flow, Operation, OptionSetting, Overload, Staleness, Timeout,
};
use crate::thresholds::Thresholds;

pub use action::commands;
pub use client::CheckOption;
pub use clients::WrittenClient;
pub use describe::describe;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use fault::KINDS as FAULT_KINDS;
pub use flow::{BACKOFF as USUAL_BACKOFF, Parts};
pub use load::WrittenLoad;
pub use overrides::{OverrideErrors, Overrides};
pub use resolve::{resolve, stretched};
pub use secrets::{looks_like_uri, masked, masked_argument};
pub use source::Source;
pub use thresholds::{condition, impossible};

use clients::Base;
use flow::WrittenFlow;
use mistakes::Mistakes;
use reader::Table;

/// What was written in a profile, checked. Only the load keeps its gaps, since the command line may change its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The text it was read from, byte for byte.
    pub text: String,
    /// `description`; may be empty.
    pub description: String,
    /// `[data]`
    pub data: Data,
    /// `[load]`
    pub load: WrittenLoad,
    /// `driver`; `None` for the one that overdrive is built with.
    pub driver: Option<Driver>,
    /// `[client]`
    pub client: Vec<OptionSetting>,
    /// `[op.*.*]`
    pub operations: Vec<Operation>,
    /// `[[overload]]`
    pub overloads: Vec<Overload>,
    /// `[timeout]`
    pub timeout: Timeout,
    /// The rest of `[flow]`, as far as it is on.
    pub flow: Flow,
    /// `[flow.backoff]`, if it is on.
    pub backoff: Option<Backoff>,
    /// The numbers of all that is in `[flow]`, on or off: what the command line turns on has them.
    pub flow_numbers: Parts,
    /// `[staleness]`; `None` for no probe.
    pub staleness: Option<Staleness>,
    /// `[thresholds]`
    pub thresholds: Thresholds,
    /// `[model]`; `None` for the usual.
    pub model: Option<Assumptions>,
    /// `[clients.*]`; empty for one client, which is what the profile itself says.
    pub clients: Vec<WrittenClient>,
    /// What was probably not meant; never an error.
    pub warnings: Diagnostics,
}

impl Profile {
    /// Finds and reads a profile: a shipped one's name, or a path.
    ///
    /// # Errors
    /// When there is no such text, or with every mistake in it.
    pub fn open(wanted: &str, check_option: CheckOption<'_>) -> Result<Self, Diagnostics> {
        Self::read(source::find(wanted)?, check_option)
    }

    /// Reads a profile's text.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(source: Source, check_option: CheckOption<'_>) -> Result<Self, Diagnostics> {
        let (document, errors) = DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            // What could be rescued from broken TOML would only add mistakes that nobody made.
            let list = errors.into_iter().map(syntax_error).collect();
            return Err(Diagnostics::hiding(source.shown, &secrets::mask(&source.text, &[]), list));
        }
        let mistakes = Mistakes::default();
        let profile = read_document(&mistakes, document.get_ref(), &source, check_option);
        drop(document);
        let warnings = mistakes.into_diagnostics(source.shown, source.text);
        match profile {
            Some(profile) if !warnings.has_errors() => Ok(Self { warnings, ..profile }),
            _ => Err(warnings),
        }
    }
}

fn read_document(
    mistakes: &Mistakes,
    document: &DeTable<'_>,
    source: &Source,
    check: CheckOption<'_>,
) -> Option<Profile> {
    let mut root = Table::root(mistakes, document);
    let description = root.text("description").map(|text| text.into_inner()).unwrap_or_default();
    let data = data::read(&mut root);
    let load = load::read(&mut root);
    let driver = driver(&mut root);
    let client = client::read(&mut root, check);
    let timeout = timeout::read(&mut root, Timeout::default()).over(Timeout::default());
    let WrittenFlow { on: Parts { flow, backoff }, numbers: flow_numbers, .. } = flow::read(&mut root, &load);
    let clients = clients::read(&mut root, &Base { load: &load, timeout, check });
    let operations = clients::shared_operations(&mut root, &clients);
    let overloads = overloads::read(&mut root, &clients::all_operations(&operations, &clients));
    let staleness = staleness::read(&mut root);
    let thresholds = thresholds::read(&mut root, &overloads);
    let model = model::read(&mut root);
    refuse_uri(&mut root);
    root.finish();
    Some(Profile {
        name: source.name.clone(),
        text: source.text.clone(),
        description,
        data: data?,
        load,
        driver,
        client,
        operations,
        overloads,
        timeout,
        flow,
        backoff,
        flow_numbers,
        staleness,
        thresholds,
        model,
        clients,
        warnings: Diagnostics::default(),
    })
}

fn driver(root: &mut Table<'_>) -> Option<Driver> {
    let written = root.text("driver")?;
    written.get_ref().parse().map_err(|why| root.wrong(written.span(), format!("`driver`: {why}"))).ok()
}

/// The key that people try first, and the one that must not be: profiles are copied beside the results.
fn refuse_uri(root: &mut Table<'_>) {
    if let Some(place) = root.key_span("uri") {
        root.take("uri");
        let help = "give it with --uri, --uri-file or $OVERDRIVE_URI";
        root.mistakes().add(Diagnostic::error(place, "a profile holds no connection string").help(help));
    }
}

fn syntax_error(error: toml::de::Error) -> Diagnostic {
    let message = format!("not valid TOML: {}", error.message().trim_end());
    match error.span() {
        Some(span) => Diagnostic::error(span, message),
        None => Diagnostic::general(message),
    }
}

#[cfg(test)]
mod tests;
