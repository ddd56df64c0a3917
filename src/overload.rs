//! Pushing servers past their limit, and undoing it whatever happens.
//!
//! Every fault is written down before it is applied: in this process, so that any end of the run can undo it, and on the
//! cluster in overdrive's own namespace, so that the next start can when this process was killed.

pub mod fail_command;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bson::{Document, doc};
use futures_util::future::join_all;
use mongodb::{Client, Collection};

use crate::client::errors;
use crate::cluster::{Cluster, Member};
use crate::owner;
use crate::plan::{Fault, Members, Overload};

/// Where applied faults are written down, in the data's database.
const JOURNAL: &str = "overdrive.faults";

/// No member is waited for longer when a fault is applied or undone.
const PATIENCE: Duration = Duration::from_secs(3);

/// The servers that faults are applied to.
pub struct Bench {
    cluster: Arc<Cluster>,
    journal: Collection<Document>,
    app: String,
    /// Members with a fault on.
    applied: Mutex<BTreeMap<usize, Applied>>,
}

/// A fault that is on.
struct Applied {
    /// The overload it is part of.
    overload: String,
    /// What its counter said before; `None` until the member has answered.
    before: Option<i64>,
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
    /// `control` writes the journal; faults hit connections that call themselves `app`.
    pub fn new(cluster: Arc<Cluster>, control: &Client, database: &str, app: String) -> Self {
        Self {
            cluster,
            journal: control.database(database).collection(JOURNAL),
            app,
            applied: Mutex::default(),
        }
    }

    /// Undoes what a run that was killed has left on, and says where that was.
    ///
    /// # Errors
    /// When the journal cannot be read, a member it names does not obey, or the run that put the fault on still runs.
    pub async fn undo_leftovers(&self) -> anyhow::Result<Vec<String>> {
        let mut undone = Vec::new();
        for (number, member) in self.cluster.members.iter().enumerate() {
            let key = doc! { "_id": &member.address };
            let entry = self
                .journal
                .find_one(key)
                .await
                .map_err(|e| anyhow!("reading the journal of faults failed: {}", errors::message(&e)))?;
            if let Some(entry) = entry {
                if let Some(process) = owner::running(&entry) {
                    bail!(
                        "another run on this machine (process {process}) has a fault on at {}: let it end first",
                        member.address
                    );
                }
                self.undo_member(number, None).await?;
                undone.push(member.address.clone());
            }
        }
        Ok(undone)
    }

    /// Whether every fault can be applied, before anything starts.
    ///
    /// # Errors
    /// When a member cannot do what the plan wants of it.
    pub async fn check(&self, overloads: &[Overload]) -> anyhow::Result<()> {
        for overload in overloads {
            self.numbers(overload)?;
            match &overload.fault {
                Fault::FailCommand(_) => {
                    for member in &self.cluster.members {
                        patiently(member, fail_command::check(&member.client, &member.address)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The addresses of members.
    pub fn names(&self, members: &[usize]) -> Vec<&str> {
        members.iter().map(|&number| self.cluster.members[number].address.as_str()).collect()
    }

    /// Applies an overload and returns the members it hits, by number.
    ///
    /// # Errors
    /// When a member refuses; what was applied before stays written down, to be undone.
    pub async fn apply(&self, overload: &Overload) -> anyhow::Result<Vec<usize>> {
        let targets = self.targets(&overload.members).await?;
        for &number in &targets {
            // Roles can change hands between two overloads that the plan kept apart by them.
            anyhow::ensure!(
                !self.applied().contains_key(&number),
                "{} has a fault on already, and can have one alone",
                self.cluster.members[number].address
            );
        }
        for &number in &targets {
            self.applied().insert(number, Applied { overload: overload.name.clone(), before: None });
        }
        // All at once: what is between the planned and the real time of the change is not overloaded yet.
        join_all(targets.iter().map(|&number| self.write_down(number, overload)))
            .await
            .into_iter()
            .collect::<anyhow::Result<()>>()?;
        let Fault::FailCommand(fault) = &overload.fault;
        let counts = join_all(targets.iter().map(|&number| {
            let member = &self.cluster.members[number];
            patiently(member, fail_command::apply(&member.client, &member.address, fault, &self.app))
        }))
        .await;
        for (&number, before) in targets.iter().zip(counts) {
            let before = Some(before?);
            self.applied().insert(number, Applied { overload: overload.name.clone(), before });
        }
        Ok(targets)
    }

    async fn write_down(&self, number: usize, overload: &Overload) -> anyhow::Result<()> {
        let member = &self.cluster.members[number];
        let mut entry = owner::this();
        entry.insert("kind", overload.fault.kind());
        let written =
            self.journal.update_one(doc! { "_id": &member.address }, doc! { "$set": entry }).upsert(true);
        tokio::time::timeout(PATIENCE, async { written.await })
            .await
            .context("writing the fault down took too long")?
            .map(drop)
            .map_err(|e| anyhow!("writing the fault down failed: {}", errors::message(&e)))
    }

    /// Undoes an overload where it is on.
    pub async fn undo(&self, overload: &Overload) -> Undone {
        self.undo_where(|applied| applied.overload == overload.name).await
    }

    /// Undoes everything that is on. Called at every end.
    pub async fn undo_all(&self) -> Undone {
        self.undo_where(|_| true).await
    }

    async fn undo_where(&self, wanted: impl Fn(&Applied) -> bool) -> Undone {
        let on: Vec<(usize, String, Option<i64>)> = self
            .applied()
            .iter()
            .filter(|(_, applied)| wanted(applied))
            .map(|(&number, applied)| (number, applied.overload.clone(), applied.before))
            .collect();
        let answers = join_all(on.iter().map(|(number, _, before)| self.undo_member(*number, *before))).await;
        let mut undone = Undone::default();
        for ((_, overload, _), answer) in on.into_iter().zip(answers) {
            let line = answer.unwrap_or_else(|error| {
                undone.failed.push(format!("overload '{overload}': {error:#}"));
                format!("{error:#}")
            });
            undone.said.entry(overload).or_default().push(line);
        }
        undone
    }

    async fn undo_member(&self, number: usize, before: Option<i64>) -> anyhow::Result<String> {
        let member = &self.cluster.members[number];
        let count = patiently(member, fail_command::undo(&member.client, &member.address)).await?;
        self.applied().remove(&number);
        // The fault is off; an entry that stays only makes the next start turn it off again.
        let _ = tokio::time::timeout(PATIENCE, async {
            self.journal.delete_one(doc! { "_id": &member.address }).await
        })
        .await;
        Ok(match before {
            Some(before) => format!("{}: {} commands rejected", member.address, count - before),
            None => format!("{}: turned off", member.address),
        })
    }

    fn applied(&self) -> MutexGuard<'_, BTreeMap<usize, Applied>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn targets(&self, members: &Members) -> anyhow::Result<Vec<usize>> {
        let count = self.cluster.members.len();
        let primary = || async { self.cluster.primary().await.context("there is no primary to overload") };
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
    fn numbers(&self, overload: &Overload) -> anyhow::Result<()> {
        let Members::Numbers(numbers) = &overload.members else { return Ok(()) };
        let count = self.cluster.members.len();
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

/// A control connection waits long for a server that is gone; a fault is worth seconds.
async fn patiently<T>(member: &Member, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, work)
        .await
        .with_context(|| format!("{} does not answer, whether a fault is on or not", member.address))?
}
