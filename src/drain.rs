//! Sending operations that were parked, each once: a write goes with its mark in one transaction, so that whoever sends it
//! again after a crash finds the mark and leaves it at that.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use bson::{Document, doc};
use mongodb::error::Error;
use mongodb::{Client, Collection};
use serde::{Deserialize, Serialize};

use crate::client::errors;
use crate::flow::spool::Parked;
use crate::operation::Workload;
use crate::operation::execute::Target;
use crate::operation::items::Items;
use crate::operation::mix::Mix;
use crate::plan::{Action, Plan};

/// Where marks live, beside the data.
const MARKS: &str = "overdrive.drained";

/// A failure that may pass is met again this often, about a minute in all.
const TRIES: u32 = 12;

const DUPLICATE_KEY: i32 = 11000;

/// An operation in a spool. With the plan it tells everything: keys and documents are drawn from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number in the load.
    pub n: u64,
    /// When it was due, in nanoseconds since Go.
    pub due_ns: u64,
}

/// What came of sending one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was done now.
    Now,
    /// It had been done before.
    Before,
    /// It never will be: the servers say that it cannot be done, for this reason.
    Never(String),
}

/// Whether an operation can be parked and sent later: one whose changes a transaction can hold.
pub const fn can_wait(action: &Action) -> bool {
    !matches!(
        action,
        Action::Transaction(_)
            | Action::BulkWrite(_)
            | Action::CreateCollection(_)
            | Action::Drop(_)
            | Action::RunCommand(_)
    )
}

/// Where the plan of a spool's operations is kept.
pub fn plan_beside(spool: &Path) -> PathBuf {
    spool.with_extension("json")
}

/// Keeps the plan of a spool's operations beside it.
///
/// # Errors
/// When it cannot be written.
pub fn keep_plan(spool: &Path, plan: &Plan) -> anyhow::Result<()> {
    let path = plan_beside(spool);
    let written = fs::write(&path, serde_json::to_vec(plan)?);
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The plan of a spool's operations.
///
/// # Errors
/// When there is none that this version understands.
pub fn read_plan(spool: &Path) -> anyhow::Result<Plan> {
    let path = plan_beside(spool);
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no plan of this version", path.display()))
}

/// Sends a spool's operations.
pub struct Drain {
    client: Client,
    target: Target,
    workload: Workload,
    mix: Mix,
    writes: Vec<bool>,
    marks: Collection<Document>,
}

impl Drain {
    /// Over this client, by the plan that the operations belong to.
    pub fn new(client: &Client, plan: &Plan) -> Self {
        let (workload, mix) = Workload::new(plan);
        Self {
            client: client.clone(),
            target: Target::new(client, &plan.data, None),
            workload,
            mix,
            writes: plan.operations.iter().map(|operation| operation.action.writes()).collect(),
            marks: client.database(&plan.data.database).collection(MARKS),
        }
    }

    /// Sends one, as often as it takes.
    ///
    /// # Errors
    /// What no further try would mend, or has not mended in a minute.
    pub async fn send(&self, parked: &Parked<Order>) -> anyhow::Result<Sent> {
        for tries in 0..TRIES {
            match self.try_to_send(parked).await {
                Ok(sent) => return Ok(sent),
                Err(error) if errors::is_worth_another_call(&error) => {
                    let most = Duration::from_millis(100 << tries.min(6));
                    tokio::time::sleep(most.mul_f64(rand::random())).await;
                }
                Err(error) if errors::is_hopeless(&error) => {
                    return Ok(Sent::Never(errors::message(&error)));
                }
                Err(error) => bail!("operation {}: {}", parked.operation.n, errors::message(&error)),
            }
        }
        bail!("operation {}: it failed {TRIES} times", parked.operation.n)
    }

    async fn try_to_send(&self, parked: &Parked<Order>) -> Result<Sent, Error> {
        let mut instance = self.workload.instance(&self.mix, parked.operation.n);
        if !self.writes[instance.operation] {
            return self
                .target
                .execute(instance.statement, &Items::default(), &mut instance.draw)
                .await
                .map(|()| Sent::Now);
        }
        let mut session = self.client.start_session().await?;
        session.start_transaction().await?;
        let marked = self.marks.insert_one(doc! { "_id": &parked.id }).session(&mut session).await;
        let done = match marked {
            Ok(_) => self.target.execute_within(instance.statement, &mut instance.draw, &mut session).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // Whatever becomes of this, the transaction does not stand.
            let _ = session.abort_transaction().await;
            return match errors::classify(&error).code {
                // The mark is there, or the operation's own document was.
                Some(DUPLICATE_KEY) if self.has_mark(&parked.id).await? => Ok(Sent::Before),
                _ => Err(error),
            };
        }
        // One of which it is not known whether it stands is met again, with its mark.
        session.commit_transaction().await.map(|()| Sent::Now)
    }

    async fn has_mark(&self, id: &str) -> Result<bool, Error> {
        Ok(self.marks.find_one(doc! { "_id": id }).await?.is_some())
    }

    /// Takes the marks of operations away that no spool holds any more. What it cannot take away does no harm.
    pub async fn unmark(&self, ids: &[String]) {
        let _ = self.marks.delete_many(doc! { "_id": { "$in": ids } }).await;
    }
}
