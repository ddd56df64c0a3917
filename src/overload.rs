//! Pushing servers past their limit, and undoing it whatever happens.
//!
//! Every fault is written down before it is applied: in this process, so that any end of the run can undo it, and, on
//! servers that outlive it, on the cluster in overdrive's own namespace, so that the next start can when this process was
//! killed. A lab needs no such note: its servers end with us.

pub(crate) mod applied;
pub mod fail_command;
mod gates;
mod hold_tickets;
pub mod journal;
mod latency_event;
mod limiter;
mod parameters;
mod processes;
mod step_down;
mod tickets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use futures_util::future::join_all;
use mongodb::{Client, Namespace};

use self::applied::Applied;
use self::journal::Journal;
use crate::cluster::{Cluster, Member};
use crate::lab::Lab;
use crate::plan::overload::exclude_each_other;
use crate::plan::{Fault, Mechanism, Members, Overload};
use crate::snapshot::ServerFacts;

/// No member is waited for longer when a fault is applied or undone. An overloaded one may take seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a primary is looked for: an election takes ten seconds and more.
const ELECTION: Duration = Duration::from_secs(20);

/// How often somebody who waits looks again.
const LOOK: Duration = Duration::from_millis(20);

/// The servers that faults are applied to, and how they are reached.
pub struct Ground {
    /// The members, each with a control connection of its own.
    pub cluster: Arc<Cluster>,
    /// Our own servers, if they are.
    pub lab: Option<Arc<Lab>>,
    /// A control connection to the deployment as a whole.
    pub control: Client,
    /// The data's collection.
    pub data: Namespace,
    /// The application name of the load's connections.
    pub app: String,
}

/// Where faults are applied and undone.
pub struct Bench {
    ground: Ground,
    journal: Option<Journal>,
    /// By overload, for those that shed load: what does.
    mechanisms: BTreeMap<String, Mechanism>,
    /// What is on, in the order in which it was applied.
    on: Mutex<Vec<On>>,
}

/// Something that is on at a member.
#[derive(Clone)]
struct On {
    /// The overload it is part of.
    overload: String,
    /// The fault's kind.
    kind: &'static str,
    /// The member, by number.
    member: usize,
    applied: Applied,
}

impl On {
    fn is(&self, other: &Self) -> bool {
        (&self.overload, self.kind, self.member) == (&other.overload, other.kind, other.member)
    }
}

/// What undoing came to.
#[derive(Debug, Default)]
pub struct Undone {
    /// By overload: a line on each member.
    pub said: BTreeMap<String, Vec<String>>,
    /// A line on each member that did not obey. It stays written down, so that the next start tries again.
    pub failed: Vec<String>,
}

impl Undone {
    /// Whether every member obeyed.
    ///
    /// # Errors
    /// Names those that did not.
    pub fn complete(&self) -> anyhow::Result<()> {
        if self.failed.is_empty() { Ok(()) } else { Err(anyhow!("{}", self.failed.join("; "))) }
    }
}

impl Bench {
    /// Undoes what a run that was killed has left on; finds out how each of these overloads can be had.
    ///
    /// # Errors
    /// When a member cannot do what the plan wants of it, a leftover cannot be undone, or its run still runs.
    pub async fn prepare(
        ground: Ground,
        overloads: &[Overload],
        say: impl FnMut(&str),
    ) -> anyhow::Result<Self> {
        let mut bench = Self::new(ground);
        bench.undo_leftovers(say).await?;
        for overload in overloads {
            bench.check_numbers(overload)?;
            let found =
                bench.check(overload).await.with_context(|| format!("overload '{}'", overload.name))?;
            bench.mechanisms.extend(found.map(|mechanism| (overload.name.clone(), mechanism)));
        }
        Ok(bench)
    }

    /// Nothing is on yet, as far as is known.
    pub fn new(ground: Ground) -> Self {
        let journal = match ground.lab {
            Some(_) => None,
            None => Some(Journal::new(&ground.control)),
        };
        Self { ground, journal, mechanisms: BTreeMap::new(), on: Mutex::default() }
    }

    /// Undoes what a run that was killed has left on, and says where that was.
    ///
    /// # Errors
    /// When the journal cannot be read, the run that put a fault on still runs, or a member does not obey: the others are
    /// set right all the same.
    pub async fn undo_leftovers(&self, mut say: impl FnMut(&str)) -> anyhow::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let mut failed = Vec::new();
        for left in journal.leftovers(&self.ground.cluster, &mut say).await? {
            let member = &self.ground.cluster.members[left.member];
            let undoing = left.applied.undo(&self.ground, left.member);
            match patiently_for(member, left.applied.patience(), undoing).await {
                Ok(_) => {
                    journal.cross_out(&left.entry).await;
                    say(&format!(
                        "{}: undid {} that an earlier run was killed over",
                        member.address, left.kind
                    ));
                }
                Err(error) => failed.push(format!("{} at {}: {error:#}", left.kind, member.address)),
            }
        }
        ensure!(
            failed.is_empty(),
            "an earlier run was killed over faults that are still on: {}",
            failed.join("; ")
        );
        Ok(())
    }

    /// What sheds load in these overloads, for the files: mechanisms joined by `+`; empty when nothing does.
    pub fn mechanism(&self, overloads: &[Overload]) -> String {
        let found = overloads.iter().filter_map(|overload| self.mechanisms.get(&overload.name));
        let all: BTreeSet<Mechanism> = found.copied().collect();
        all.into_iter().map(Mechanism::name).collect::<Vec<_>>().join("+")
    }

    /// What every member says of itself now, and what its gate says of it.
    pub async fn facts(&self) -> Vec<ServerFacts> {
        let mut facts = self.ground.cluster.facts().await;
        for facts in &mut facts {
            gates::add_counters(&self.ground, facts);
        }
        facts
    }

    /// The addresses of members.
    pub fn names(&self, members: &[usize]) -> Vec<&str> {
        members.iter().map(|&number| self.ground.cluster.members[number].address.as_str()).collect()
    }

    /// How the overload can be had; what sheds load in it, if anything does.
    async fn check(&self, overload: &Overload) -> anyhow::Result<Option<Mechanism>> {
        let ground = &self.ground;
        if overload.fault.needs_lab() && ground.lab.is_none() {
            bail!("{} is done to processes, so it takes the lab: leave --uri out", overload.fault.kind());
        }
        match &overload.fault {
            Fault::LimitRequests(fault) => {
                let settings = limiter::request_settings(fault);
                return limiter::choose(ground, fault.mechanism, limiter::REQUESTS, &settings)
                    .await
                    .map(Some);
            }
            Fault::LimitConnections(fault) => {
                let settings = limiter::connection_settings(fault);
                return limiter::choose(ground, fault.mechanism, limiter::CONNECTIONS, &settings)
                    .await
                    .map(Some);
            }
            Fault::FailCommand(_) => {
                for member in &ground.cluster.members {
                    patiently(member, fail_command::check(&member.client, &member.address)).await?;
                }
                return Ok(Some(Mechanism::Failpoint));
            }
            Fault::Tickets(fault) => tickets::check(ground, fault).await?,
            Fault::HoldTickets(_) => hold_tickets::check(ground).await?,
            Fault::StepDown {} => step_down::check(ground)?,
            Fault::LatencyEvent(_) | Fault::Stall {} | Fault::Kill {} => {}
        }
        Ok(None)
    }

    /// Does what has to be done before the load starts, so that the faults can be put on and undone at any time.
    ///
    /// # Errors
    /// When a member refuses; what was applied before stays written down, to be undone.
    pub async fn arm(&self, overloads: &[Overload]) -> anyhow::Result<()> {
        for overload in overloads {
            let native = self.mechanisms.get(&overload.name) == Some(&Mechanism::Native);
            if native && matches!(overload.fault, Fault::LimitRequests(_)) {
                limiter::exempt_members(self, overload).await?;
            }
        }
        Ok(())
    }

    /// Applies an overload and returns the members it hits, by number.
    ///
    /// # Errors
    /// When a member refuses; what was applied before stays written down, to be undone.
    pub async fn apply(&self, overload: &Overload) -> anyhow::Result<Vec<usize>> {
        let targets = self.targets(&overload.members).await?;
        let kind = overload.fault.kind();
        for &number in &targets {
            // One that ends as this one begins may still be on its way. And roles can change hands between two overloads
            // that the plan kept apart by them.
            let is_on =
                || self.on().iter().any(|on| on.member == number && exclude_each_other(on.kind, kind));
            let since = Instant::now();
            while is_on() && since.elapsed() < ELECTION {
                tokio::time::sleep(LOOK).await;
            }
            ensure!(
                !is_on(),
                "{} has a fault on that leaves no room for {kind}",
                self.ground.cluster.members[number].address
            );
        }
        // All at once: what is between the planned and the real time of the change is not overloaded yet.
        let each = targets.iter().map(|&number| self.apply_to(number, overload));
        join_all(each).await.into_iter().collect::<anyhow::Result<()>>()?;
        Ok(targets)
    }

    async fn apply_to(&self, number: usize, overload: &Overload) -> anyhow::Result<()> {
        let (ground, name) = (&self.ground, &overload.name);
        let member = &ground.cluster.members[number];
        let put =
            async |applied: Applied| self.write_down(name, overload.fault.kind(), number, applied).await;
        match &overload.fault {
            Fault::FailCommand(fault) => {
                put(Applied::FailCommand { before: None }).await?;
                let turn_on = fail_command::apply(&member.client, &member.address, fault, &ground.app);
                let before = Some(patiently(member, turn_on).await?);
                self.note(name, number, Applied::FailCommand { before });
            }
            Fault::LimitRequests(fault) => match self.mechanisms.get(name) {
                Some(Mechanism::Native) => {
                    limiter::native(member, &limiter::request_settings(fault), put).await?;
                }
                _ => gates::limit_requests(ground, number, fault, put).await?,
            },
            Fault::LimitConnections(fault) => match self.mechanisms.get(name) {
                Some(Mechanism::Native) => {
                    limiter::native(member, &limiter::connection_settings(fault), put).await?;
                }
                _ => gates::limit_connections(ground, number, fault, put).await?,
            },
            Fault::Tickets(fault) => tickets::apply(member, fault, put).await?,
            Fault::HoldTickets(fault) => put(hold_tickets::start(ground, number, fault).await?).await?,
            Fault::LatencyEvent(fault) => {
                put(Applied::LatencyEvent(ground.data.clone(), None)).await?;
                self.note(name, number, latency_event::start(ground, fault));
            }
            Fault::Stall {} => {
                put(Applied::Stall).await?;
                processes::stop(ground, number)?;
            }
            Fault::Kill {} => {
                put(Applied::Kill).await?;
                processes::kill(ground, number)?;
            }
            Fault::StepDown {} => {
                put(Applied::StepDown).await?;
                let step_down = step_down::apply(member, overload.length);
                patiently_for(member, step_down::PATIENCE, step_down).await?;
            }
        }
        Ok(())
    }

    /// Says that something is about to be on: here, and where the next start finds it.
    async fn write_down(
        &self,
        overload: &str,
        kind: &'static str,
        member: usize,
        applied: Applied,
    ) -> anyhow::Result<()> {
        let on = On { overload: overload.to_owned(), kind, member, applied };
        self.on().push(on.clone());
        match &self.journal {
            Some(journal) => {
                journal.write_down(&self.ground.cluster.members[member].address, kind, &on.applied).await
            }
            None => Ok(()),
        }
    }

    /// Knows more of something that is on.
    fn note(&self, overload: &str, member: usize, applied: Applied) {
        if let Some(on) = self.on().iter_mut().find(|on| on.overload == overload && on.member == member) {
            on.applied = applied;
        }
    }

    /// Whether something is being done to the servers.
    pub fn is_on(&self) -> bool {
        self.on().iter().any(|on| on.kind != limiter::EXEMPTIONS_KIND)
    }

    /// The overloads that are on, and where, by the members' numbers.
    pub fn on_now(&self) -> BTreeMap<String, Vec<usize>> {
        let mut now: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for on in self.on().iter().filter(|on| on.kind != limiter::EXEMPTIONS_KIND) {
            now.entry(on.overload.clone()).or_default().push(on.member);
        }
        now
    }

    /// Undoes all overloads; what lets others be put on later stays.
    pub async fn undo_overloads(&self) -> Undone {
        self.undo_where(|on| on.kind != limiter::EXEMPTIONS_KIND).await
    }

    /// Undoes an overload where it is on.
    pub async fn undo(&self, overload: &Overload) -> Undone {
        self.undo_where(|on| on.overload == overload.name && on.kind == overload.fault.kind()).await
    }

    /// Undoes everything that is on. Called at every end.
    pub async fn undo_all(&self) -> Undone {
        self.undo_where(|_| true).await
    }

    /// What is still on, for somebody who does not wait for its end.
    pub fn left_on(&self) -> anyhow::Error {
        let on: Vec<String> = self
            .on()
            .iter()
            .map(|on| format!("{} at {}", on.kind, self.ground.cluster.members[on.member].address))
            .collect();
        match (on.is_empty(), &self.journal) {
            (true, _) | (_, None) => anyhow!("left at the third request"),
            (false, Some(_)) => anyhow!(
                "left at the third request with faults on ({}): `overdrive restore` or the next run sets them right",
                on.join(", ")
            ),
        }
    }

    /// The last applied is the first undone: what made the others safe goes last.
    async fn undo_where(&self, wanted: impl Fn(&On) -> bool) -> Undone {
        let mut by_member: BTreeMap<usize, Vec<On>> = BTreeMap::new();
        for on in self.on().iter().rev().filter(|on| wanted(on)) {
            by_member.entry(on.member).or_default().push(on.clone());
        }
        let each = by_member.into_values().map(|of_member| async {
            let mut answers = Vec::new();
            for on in of_member {
                let answer = self.undo_one(&on).await;
                answers.push((on.overload, answer));
            }
            answers
        });
        let mut undone = Undone::default();
        for (overload, answer) in join_all(each).await.into_iter().flatten() {
            let line = answer.unwrap_or_else(|error| {
                undone.failed.push(format!("overload '{overload}': {error:#}"));
                format!("{error:#}")
            });
            undone.said.entry(overload).or_default().push(line);
        }
        undone
    }

    async fn undo_one(&self, on: &On) -> anyhow::Result<String> {
        let member = &self.ground.cluster.members[on.member];
        let said =
            patiently_for(member, on.applied.patience(), on.applied.undo(&self.ground, on.member)).await?;
        self.on().retain(|other| !other.is(on));
        if let Some(journal) = &self.journal {
            journal.cross_out(&Journal::entry(&member.address, on.kind)).await;
        }
        Ok(format!("{}: {said}", member.address))
    }

    fn on(&self) -> MutexGuard<'_, Vec<On>> {
        self.on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn targets(&self, members: &Members) -> anyhow::Result<Vec<usize>> {
        let cluster = &self.ground.cluster;
        let count = cluster.members.len();
        let primary = || async {
            let since = Instant::now();
            loop {
                match cluster.primary().await {
                    Some(primary) => return Ok(primary),
                    None if since.elapsed() > ELECTION => bail!("there is no primary to overload"),
                    None => tokio::time::sleep(LOOK).await,
                }
            }
        };
        Ok(match members {
            Members::All => (0..count).collect(),
            Members::Primary => vec![primary().await?],
            Members::Secondaries => {
                let primary = primary().await?;
                (0..count).filter(|&number| number != primary).collect()
            }
            Members::Numbers(numbers) => numbers.clone(),
        })
    }

    /// Whether the members that an overload numbers are there.
    fn check_numbers(&self, overload: &Overload) -> anyhow::Result<()> {
        let Members::Numbers(numbers) = &overload.members else { return Ok(()) };
        let count = self.ground.cluster.members.len();
        match numbers.iter().find(|&&number| number >= count) {
            None => Ok(()),
            Some(beyond) => bail!(
                "overload '{}': there is no member {beyond}, the last of {count} is {}",
                overload.name,
                count - 1
            ),
        }
    }
}

impl Ground {
    /// The lab's own number of a member.
    fn lab_member(&self, number: usize) -> Option<(&Lab, usize)> {
        let lab = self.lab.as_deref()?;
        Some((lab, lab.number_of(&self.cluster.members[number].address)?))
    }
}

/// A control connection waits long for a server that is gone; a fault is worth seconds.
async fn patiently<T>(member: &Member, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    patiently_for(member, PATIENCE, work).await
}

async fn patiently_for<T>(
    member: &Member,
    patience: Duration,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::time::timeout(patience, work)
        .await
        .with_context(|| format!("{} does not answer, whether a fault is on or not", member.address))?
}
