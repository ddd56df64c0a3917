//! The engines of several clients as one: started together, told the same, and heard as if there were one. It takes the same
//! part as [`crate::engine::run`], so that whoever runs a trial need not know how many make the load.

use std::sync::Arc;
use std::task::Poll;

use anyhow::{Context, anyhow, bail};
use futures_util::StreamExt;
use futures_util::stream::{poll_fn, select_all};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::REPORTS;
use crate::client::uri::Uri;
use crate::control::Control;
use crate::engine::{self, accord::Accord};
use crate::plan::Plan;
use crate::snapshot::{Folding, Report, Snapshot, Totals};

/// Runs one trial's load with an engine for each client of the plan, and a connection string for each. Dropping it ends them.
///
/// # Errors
/// When one of them cannot go on: its client's name comes with the reason.
pub async fn run(
    plan: Arc<Plan>,
    uris: Vec<Uri>,
    mut control: mpsc::Receiver<Control>,
    reports: mpsc::Sender<Report>,
) -> anyhow::Result<()> {
    let accord = Arc::new(Accord::of(plan.clients.len()));
    let (mut engines, mut controls, mut said) = (JoinSet::new(), Vec::new(), Vec::new());
    for ((index, own), uri) in plan.engines().into_iter().enumerate().zip(uris) {
        let (ask, asked) = mpsc::channel(4);
        let (say, mut heard) = mpsc::channel(REPORTS);
        let name = plan.clients[index].name.clone();
        let accord = Arc::clone(&accord);
        engines.spawn(async move {
            let ran = engine::run_with(accord, Arc::new(own), uri, asked, say).await;
            ran.with_context(|| format!("client {name}"))
        });
        controls.push(ask);
        said.push(poll_fn(move |context| match heard.poll_recv(context) {
            Poll::Ready(report) => Poll::Ready(report.map(|report| (index, report))),
            Poll::Pending => Poll::Pending,
        }));
    }
    let mut said = select_all(said);
    let mut heard = Heard::new(&plan);
    loop {
        let report = tokio::select! {
            report = said.next() => report,
            Some(ended) = engines.join_next() => {
                ended.context("an engine died")??;
                continue;
            }
            asked = control.recv() => {
                let Some(asked) = asked else { bail!("nobody listens to the engines") };
                for ask in &controls {
                    // One that is gone has a reason, which is heard next.
                    let _ = ask.send(asked.clone()).await;
                }
                continue;
            }
        };
        let Some((index, report)) = report else {
            // One that ended with an error may be looked at only now.
            while let Some(ended) = engines.join_next().await {
                ended.context("an engine died")??;
            }
            bail!("the engines ended without their totals");
        };
        for report in heard.take(index, report) {
            let last = matches!(report, Report::Done(_));
            reports.send(report).await.map_err(|_| anyhow!("nobody listens to the engines"))?;
            if last {
                return Ok(());
            }
        }
    }
}

/// What the engines have said so far.
struct Heard {
    engines: usize,
    greeted: bool,
    ready: usize,
    closed: (usize, u64),
    folding: Folding,
    totals: Vec<Option<Totals>>,
}

impl Heard {
    fn new(plan: &Plan) -> Self {
        let engines = plan.clients.len();
        Self {
            engines,
            greeted: false,
            ready: 0,
            closed: (0, 0),
            folding: Folding::new(plan),
            totals: vec![None; engines],
        }
    }

    /// What is said for all of them once one has said this.
    fn take(&mut self, index: usize, report: Report) -> Vec<Report> {
        match report {
            // All have the driver that this program is built with.
            Report::Hello(driver) => match std::mem::replace(&mut self.greeted, true) {
                true => Vec::new(),
                false => vec![Report::Hello(driver)],
            },
            Report::Ready => {
                self.ready += 1;
                if self.ready == self.engines { vec![Report::Ready] } else { Vec::new() }
            }
            Report::Snapshot(snapshot) => intervals(self.folding.add(index, *snapshot)),
            Report::Closed(next) => {
                let (closed, most) = self.closed;
                self.closed = (closed + 1, most.max(next));
                if closed + 1 == self.engines { vec![Report::Closed(self.closed.1)] } else { Vec::new() }
            }
            Report::Done(totals) => {
                self.totals[index] = Some(totals);
                let mut said = intervals(self.folding.end(index));
                let all: Option<Vec<Totals>> = self.totals.iter().cloned().collect();
                said.extend(all.map(|all| Report::Done(Totals::of_all(all))));
                said
            }
        }
    }
}

fn intervals(folded: Vec<Snapshot>) -> Vec<Report> {
    folded.into_iter().map(|snapshot| Report::Snapshot(Box::new(snapshot))).collect()
}
