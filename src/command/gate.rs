//! `overdrive gate`: a gate before somebody's server, until Ctrl-C.

use anyhow::{Context, Result};
use tokio::net::TcpStream;

use super::{Outcome, print};
use crate::cli::GateArgs;
use crate::gate::Gate;
use crate::interrupts::Interrupts;
use crate::stderr::tell;

/// Opens a gate, prints the URI that leads through it, and keeps it until a signal says otherwise.
///
/// # Errors
/// When nobody listens at the server's address, or the gate cannot listen at its own.
pub async fn run(args: GateArgs) -> Result<Outcome> {
    let mut interrupts = Interrupts::listen()?;
    // A gate without a server works and lets nobody in; here that is most likely a mistake in the address.
    let reach = async {
        TcpStream::connect(&args.upstream)
            .await
            .with_context(|| format!("cannot reach the server at {}", args.upstream))
    };
    tokio::select! {
        reached = reach => drop(reached?),
        () = interrupts.reached(1) => return Ok(Outcome::Done),
    }
    let gate = Gate::start(args.upstream.clone(), args.listen, args.limits.settings())
        .await
        .with_context(|| format!("cannot listen at {}", args.listen))?;
    // The only line on standard output, for scripts. Without the option a driver would ask the server who its
    // replica set's members are, and go round the gate.
    print(&format!("mongodb://{}/?directConnection=true\n", gate.address()))?;
    if !args.listen.ip().is_loopback() {
        tell(&format!(
            "Warning: whoever can reach {} can reach {} through it.",
            gate.address(),
            args.upstream
        ));
    }
    tell(&format!("The gate before {} is open. Ctrl-C closes it.", args.upstream));
    interrupts.reached(1).await;
    tell(&format!("{}.", gate.counters()));
    tokio::select! {
        () = gate.stop() => {}
        () = interrupts.reached(2) => {}
    }
    Ok(Outcome::Done)
}
