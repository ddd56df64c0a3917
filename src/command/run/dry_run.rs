//! What a run would do, without doing it.

use super::matrix::{self, Prepared};
use crate::cli::RunArgs;
use crate::client::uri::Uri;
use crate::profile::describe::{Destination, describe, describe_clients};
use crate::units::Span;
use crate::variants::Place;

/// The deployment, where overdrive starts it.
const LAB: &str = "a lab: a replica set of three servers on this machine, which end with the run";

/// And a stub.
const STUB: &str = "a stub: a server that answers as its script says, in a process that ends with the run";

/// What would be done, variant by variant.
pub fn describe_all(args: &RunArgs, given: Option<&Uri>, variants: &[Prepared], places: &[Place]) -> String {
    let deployment = match (given, &args.stub) {
        (Some(uri), _) => deployment(uri, args.yes),
        (None, Some(_)) => STUB.to_owned(),
        (None, None) => LAB.to_owned(),
    };
    let describe = |variant: &Prepared| {
        if !variant.clients.is_empty() {
            let options: Vec<_> = variant.clients.iter().map(|target| target.options.as_slice()).collect();
            return describe_clients(&variant.written, Some(&deployment), &options, &variant.notes);
        }
        let destination = Destination { deployment: &deployment, options: &variant.target.options };
        describe(&variant.written, Some(destination), &variant.notes)
    };
    if let [only] = places {
        return describe(&variants[only.variant]);
    }
    let each: Vec<String> = variants
        .iter()
        .map(|variant| format!("variant {}\n\n{}", variant.variant.name, describe(variant)))
        .collect();
    let seconds = matrix::length(variants, places).as_secs();
    let trials: Vec<String> = places
        .iter()
        .map(|place| format!("  {} {}", place.trial, variants[place.variant].variant.name))
        .collect();
    let order = format!("{} trials, about {}\n{}\n", places.len(), Span::seconds(seconds), trials.join("\n"));
    format!("{}\n{order}", each.join("\n"))
}

/// The deployment as a dry run names it.
fn deployment(uri: &Uri, yes: bool) -> String {
    let hosts = uri.hosts().join(", ");
    let found = if uri.is_srv() { " (its hosts come from DNS)" } else { "" };
    let asks =
        if uri.is_loopback() || yes { "" } else { "; not on this machine: a run asks first, or wants --yes" };
    format!("{hosts}{found}{asks}")
}
