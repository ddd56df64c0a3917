//! The staleness probe: what sending a read to another server costs is that it may see old data.
//!
//! Every period a heartbeat, a number, is written on the primary, and read from each member. It goes over control
//! connections, which no limiter sheds and nothing measures: a rejected heartbeat must not pass for lag.

pub mod heartbeats;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use bson::oid::ObjectId;
use bson::{Bson, Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Client, Collection};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use self::heartbeats::Heartbeats;
use crate::client::errors;
use crate::cluster::{Cluster, Member};
use crate::plan::staleness::HEARTBEATS;
use crate::plan::timeline::nanos;
use crate::plan::{Plan, Staleness};
use crate::snapshot::{ServerFacts, StalenessStats};

/// What does not answer within this gives no sample: how stale an answer would have been nobody knows.
const PATIENCE: Duration = Duration::from_secs(1);

/// The fraction of the golden ratio: its multiples' fractions are spread most evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// A probe that is ready: its document exists.
pub struct Probe {
    settings: Staleness,
    cluster: Arc<Cluster>,
    database: String,
    heartbeats: Collection<Document>,
    id: ObjectId,
    /// The last heartbeat's number: it only grows, whichever trial's heartbeat it was.
    last: AtomicU32,
}

/// A probe at work, until it is dropped.
pub struct Probing {
    cluster: Arc<Cluster>,
    findings: Arc<Findings>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// What the probe's tasks share.
struct Findings {
    go: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    heartbeats: Heartbeats,
    /// The member that was the primary when it last said what it is.
    primary: Option<usize>,
    /// What was found since it was last asked for: a few for each member and period.
    samples: Vec<Sample>,
}

/// One try.
struct Sample {
    at_ns: u64,
    member: usize,
    /// The member's role and how stale the read was; `None` when the try failed.
    found: Option<(&'static str, u64)>,
}

impl Probe {
    /// Makes the probe that the plan asks for, if it does, and its document.
    ///
    /// # Errors
    /// When the deployment is none whose members can be read one by one, or takes no write.
    pub async fn prepare(
        plan: &Plan,
        cluster: &Arc<Cluster>,
        control: &Client,
    ) -> anyhow::Result<Option<Self>> {
        let Some(settings) = plan.staleness else { return Ok(None) };
        if cluster.kind == "sharded cluster" {
            bail!(
                "the staleness probe reads from each member of a replica set, and this is a sharded cluster: take \
                 [staleness] out of the profile"
            );
        }
        let database = plan.data.database.clone();
        let probe = Self {
            settings,
            cluster: Arc::clone(cluster),
            heartbeats: control.database(&database).collection(HEARTBEATS),
            database,
            id: ObjectId::new(),
            last: AtomicU32::new(0),
        };
        probe.begin().await.map_err(|error| {
            let place = format!("{}.{HEARTBEATS}", probe.database);
            anyhow!("the staleness probe cannot write to {place}: {}", errors::message(&error))
        })?;
        Ok(Some(probe))
    }

    /// Lets the probe work from now on.
    pub fn start(self: &Arc<Self>, go: Instant) -> Probing {
        let findings = Arc::new(Findings { go, state: Mutex::default() });
        let mut tasks =
            vec![AbortOnDropHandle::new(tokio::spawn(Arc::clone(self).beat(Arc::clone(&findings))))];
        for number in 0..self.cluster.members.len() {
            let reading = Arc::clone(self).read_from(number, Arc::clone(&findings));
            tasks.push(AbortOnDropHandle::new(tokio::spawn(reading)));
        }
        Probing { cluster: Arc::clone(&self.cluster), findings, _tasks: tasks }
    }

    /// Takes the document away, unless nobody answers.
    pub async fn clear(&self) {
        let _ = timeout(PATIENCE, async { self.heartbeats.delete_one(doc! { "_id": self.id }).await }).await;
    }

    /// Writes heartbeats.
    async fn beat(self: Arc<Self>, findings: Arc<Findings>) {
        let mut ticks = ticks(self.settings);
        loop {
            ticks.tick().await;
            let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            let acknowledged = matches!(timeout(PATIENCE, self.write(number.into())).await, Ok(Ok(true)));
            let at_ns = findings.now();
            let mut state = findings.state();
            if acknowledged {
                state.heartbeats.acknowledge(number.into(), at_ns);
            } else if let Some(member) = state.primary {
                state.samples.push(Sample { at_ns, member, found: None });
            }
        }
    }

    /// Puts the document there.
    async fn begin(&self) -> mongodb::error::Result<()> {
        self.heartbeats.insert_one(doc! { "_id": self.id, "n": 0_i64 }).await.map(drop)
    }

    /// Writes a heartbeat, and says whether it is there now. Numbers only grow: one that was given up on may arrive after its
    /// successors, or after the document was taken away, which it must not bring back.
    async fn write(&self, number: i64) -> mongodb::error::Result<bool> {
        let concern = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
        let change = doc! { "$max": { "n": number } };
        let written =
            self.heartbeats.update_one(doc! { "_id": self.id }, change).write_concern(concern).await?;
        Ok(written.matched_count == 1)
    }

    /// Reads from one member.
    async fn read_from(self: Arc<Self>, number: usize, findings: Arc<Findings>) {
        let member = &self.cluster.members[number];
        let mut ticks = ticks(self.settings);
        let mut moment = 0.0;
        loop {
            ticks.tick().await;
            // Always as long after a heartbeat, reads would see the same part of how staleness grows and vanishes.
            moment = (moment + GOLDEN) % 1.0;
            sleep(self.settings.every.duration().mul_f64(moment)).await;
            let answer = timeout(PATIENCE, self.read(member, &findings)).await;
            let at_ns = findings.now();
            let mut state = findings.state();
            let found = match answer {
                Ok(Ok(Seen { role, number, begun_ns })) => {
                    Some((role, state.heartbeats.staleness_ns(number, begun_ns)))
                }
                _ => None,
            };
            match found {
                Some(("primary", _)) => state.primary = Some(number),
                Some(_) if state.primary == Some(number) => state.primary = None,
                _ => {}
            }
            state.samples.push(Sample { at_ns, member: number, found });
        }
    }

    /// What a member is, and the latest heartbeat that it has.
    async fn read(&self, member: &Member, findings: &Findings) -> mongodb::error::Result<Seen> {
        let hello = member.client.database("admin").run_command(doc! { "hello": 1 }).await?;
        let begun_ns = findings.now();
        let heartbeats = member.client.database(&self.database).collection::<Document>(HEARTBEATS);
        let document = heartbeats.find_one(doc! { "_id": self.id }).await?;
        // A member that has not got the document yet has seen no heartbeat.
        let number = document.as_ref().and_then(|document| document.get("n")).and_then(Bson::as_i64);
        Ok(Seen { role: role(&hello), number: number.unwrap_or(0).unsigned_abs(), begun_ns })
    }
}

/// What a read came to.
struct Seen {
    role: &'static str,
    number: u64,
    begun_ns: u64,
}

impl Probing {
    /// Adds what was found until a time since Go, and not told before, to the facts of the members.
    pub fn add_to(&self, facts: &mut [ServerFacts], until_ns: u64) {
        let mut state = self.findings.state();
        let later = state.samples.iter().position(|s| s.at_ns >= until_ns).unwrap_or(state.samples.len());
        let told: Vec<Sample> = state.samples.drain(..later).collect();
        drop(state);
        for facts in facts {
            let mut staleness = StalenessStats::default();
            let of_this = |sample: &&Sample| self.cluster.members[sample.member].address == facts.address;
            for sample in told.iter().filter(of_this) {
                match sample.found {
                    Some((role, nanos)) => {
                        staleness.by_role.entry(role.to_owned()).or_default().record_or_none_ns(nanos);
                    }
                    None => staleness.failures += 1,
                }
            }
            facts.staleness = Some(staleness);
        }
    }
}

impl Findings {
    fn now(&self) -> u64 {
        nanos(self.go.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One a period; what comes too late for one waits for the next.
fn ticks(settings: Staleness) -> tokio::time::Interval {
    let mut ticks = interval(settings.every.duration());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

fn role(hello: &Document) -> &'static str {
    if !hello.contains_key("setName") {
        "standalone"
    } else if hello.get_bool("isWritablePrimary").unwrap_or(false) {
        "primary"
    } else if hello.get_bool("secondary").unwrap_or(false) {
        "secondary"
    } else {
        "other"
    }
}
