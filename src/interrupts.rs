//! Ctrl-C, SIGTERM, SIGHUP, SIGQUIT and the keys of the screen that mean the same: the first asks for an end, the second for
//! an immediate one. What ends the process by itself would leave faults on.

use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The user wanted an end before there was any load.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the load began: nothing was measured, nothing is kept")]
pub struct NotBegun;

/// How often the user has asked for an end.
#[derive(Clone)]
pub struct Interrupts {
    asked: watch::Receiver<u32>,
    ask: Arc<watch::Sender<u32>>,
}

impl Interrupts {
    /// From here on the signals no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system gives no signal handlers.
    pub fn listen() -> anyhow::Result<Self> {
        let kinds =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
        let mut kinds = kinds
            .map(|kind| signal(kind).context("cannot listen for signals"))
            .into_iter()
            .collect::<anyhow::Result<Vec<_>>>()?;
        let (ask, asked) = watch::channel(0);
        let ask = Arc::new(ask);
        let count = Arc::clone(&ask);
        tokio::spawn(async move {
            let [interrupt, terminate, hangup, quit] = &mut kinds[..] else { return };
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                    _ = quit.recv() => {}
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self { asked, ask })
    }

    /// Asks as the user does who sends a signal.
    pub fn ask(&self) {
        self.ask.send_modify(|count| *count += 1);
    }

    /// Asks as if this many signals had come by now; those that have come count.
    pub fn ask_up_to(&self, times: u32) {
        self.ask.send_modify(|count| *count = times.max(*count));
    }

    /// Waits for the n-th request.
    pub async fn reached(&mut self, times: u32) {
        // The sender is held here; without it no request could come any more.
        if self.asked.wait_for(|&count| count >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Does what comes before the load, unless an end is asked for.
    ///
    /// # Errors
    /// Those of the work, or that it was cut short.
    pub async fn before_load<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let mut asked = self.clone();
        tokio::select! {
            result = work => result,
            () = asked.reached(1) => {
                Err(NotBegun.into())
            }
        }
    }

    /// Whether an immediate end was asked for.
    pub fn are_urgent(&self) -> bool {
        *self.asked.borrow() > 1
    }

    /// Whether an end was asked for.
    pub fn any(&self) -> bool {
        *self.asked.borrow() > 0
    }
}
