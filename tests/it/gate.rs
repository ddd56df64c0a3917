//! The gate, in front of real servers and of stubs.

mod command;
mod drivers;
mod retargeting;
mod sockets;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use bson::{Document, doc};
use mongodb::Client;
use overdrive::gate::Gate;
use overdrive::plan::{GateSettings, Limit};
use overdrive::units::Span;

use crate::shared_lab;

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn limit(rate: u32, burst_ms: u64) -> Option<Limit> {
    let burst = Span::from(Duration::from_millis(burst_ms));
    Some(Limit { rate: NonZeroU32::new(rate).unwrap(), burst, queue_depth: 0 })
}

fn requests(rate: u32, burst_ms: u64) -> GateSettings {
    GateSettings { requests: limit(rate, burst_ms), ..GateSettings::default() }
}

async fn gate(upstream: impl ToString, settings: GateSettings) -> Gate {
    Gate::start(upstream.to_string(), ANY_PORT, settings).await.unwrap()
}

async fn gate_to_primary(settings: GateSettings) -> Gate {
    let lab = tokio::task::spawn_blocking(shared_lab).await.unwrap();
    gate(lab.members[0].address, settings).await
}

async fn client(gate: &Gate, options: &str) -> Client {
    let uri = format!("mongodb://{}/?directConnection=true{options}", gate.address());
    Client::with_uri_str(uri).await.unwrap()
}

async fn run_ping(client: &Client) -> mongodb::error::Result<Document> {
    client.database("admin").run_command(doc! { "ping": 1 }).await
}
