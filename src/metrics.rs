//! Figures of the trial that runs, for whoever asks over HTTP: the text that Prometheus reads, made from the snapshots that
//! everyone else gets. It only looks on; a thread of its own answers.

mod text;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tiny_http::{Header, Request, Response, Server};

use crate::cluster::Cluster;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::results::TrialFacts;
use crate::results::accumulated::Accumulated;
use crate::snapshot::{Event, Generator, Preparing, ServerFacts, Snapshot};
use crate::stderr::tell;

/// Where the figures are found.
const PATH: &str = "/metrics";

/// What the text is, as Prometheus names its format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that is told of the trial that runs.
struct Now {
    facts: TrialFacts,
    sums: Accumulated,
    /// In the last interval.
    generator: Generator,
    /// CPU time of the load generator so far.
    cpu_ns: u64,
    /// By overload: whether it is on.
    overloads: BTreeMap<String, bool>,
}

impl Now {
    fn new(facts: &TrialFacts) -> Self {
        Self {
            sums: Accumulated::new(&facts.plan),
            generator: Generator::default(),
            cpu_ns: 0,
            overloads: facts.plan.overloads.iter().map(|overload| (overload.name.clone(), false)).collect(),
            facts: facts.clone(),
        }
    }

    fn add(&mut self, snapshot: &Snapshot) {
        self.sums.add(&self.facts.plan, snapshot);
        self.generator = snapshot.generator;
        self.cpu_ns += snapshot.generator.cpu_ns;
    }
}

/// Somebody who tells people what happens, and a server that tells programs.
pub struct Metrics {
    people: Box<dyn Progress + Send>,
    now: Arc<Mutex<Option<Now>>>,
    server: Arc<Server>,
}

impl Metrics {
    /// Listens at an address, of which it says the port where any was good.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub fn start(people: Box<dyn Progress + Send>, address: SocketAddr) -> anyhow::Result<Self> {
        let server = Server::http(address).map_err(|why| {
            anyhow!("cannot listen at {address}: {why}; choose another port with --metrics")
        })?;
        let server = Arc::new(server);
        tell(&format!("metrics: http://{}{PATH}", server.server_addr()));
        let now = Arc::new(Mutex::new(None));
        let (theirs, asked) = (Arc::clone(&now), Arc::clone(&server));
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                for request in asked.incoming_requests() {
                    // Whoever does not wait for the answer needs none.
                    let _ = answer(request, &theirs);
                }
            })
            .context("no thread for the metrics")?;
        Ok(Self { people, now, server })
    }

    fn begin(&self, facts: &TrialFacts) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(Now::new(facts));
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        if let Some(now) = &mut *self.now.lock().unwrap_or_else(PoisonError::into_inner) {
            change(now);
        }
    }
}

fn answer(request: Request, now: &Mutex<Option<Now>>) -> io::Result<()> {
    if request.url().split('?').next() != Some(PATH) {
        let nothing = format!("nothing is here but {PATH}\n");
        return request.respond(Response::from_string(nothing).with_status_code(404));
    }
    let text = now.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(text::render);
    let mut response = Response::from_string(text.unwrap_or_default());
    if let Ok(header) = Header::from_bytes("Content-Type", TYPE) {
        response.add_header(header);
    }
    request.respond(response)
}

impl Drop for Metrics {
    fn drop(&mut self) {
        // The thread ends as well, unless somebody who does not read keeps it: nothing waits for that.
        self.server.unblock();
    }
}

impl Progress for Metrics {
    fn note(&mut self, text: &str) {
        self.people.note(text);
    }

    fn found(&mut self, cluster: &Cluster) {
        self.people.found(cluster);
    }

    fn preparing(&mut self, data: Preparing) {
        self.people.preparing(data);
    }

    fn started(&mut self, facts: &TrialFacts, directory: &Path) {
        self.begin(facts);
        self.people.started(facts, directory);
    }

    fn taken_over(&mut self, facts: &TrialFacts, since_go: Duration) {
        self.begin(facts);
        self.people.taken_over(facts, since_go);
    }

    fn snapshot(&mut self, plan: &Plan, snapshot: &Snapshot) {
        self.change(|now| now.add(snapshot));
        self.people.snapshot(plan, snapshot);
    }

    fn servers(&mut self, facts: &[ServerFacts]) {
        self.people.servers(facts);
    }

    fn event(&mut self, event: &Event) {
        let on = match event.kind.as_str() {
            "overload_on" => Some(true),
            "overload_off" => Some(false),
            _ => None,
        };
        if let Some(on) = on {
            self.change(|now| {
                now.overloads.insert(event.subject.clone(), on);
            });
        }
        self.people.event(event);
    }
}
