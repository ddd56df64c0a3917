//! How late this machine's timers are while waits are measured: what a driver waits longer than it meant to.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// What the timer is asked for, again and again.
const PAUSE: Duration = Duration::from_millis(7);

/// What a driver does besides between a failure and the next attempt: it hears the event handlers out, and hands the error
/// to the task that watches the servers. Each of that may be as late as a timer, so lateness counts so many times.
const STEPS: u32 = 3;

/// And takes some time even if nothing is late.
const LEAST: Duration = Duration::from_millis(5);

/// Does the work, and tells by how much its waits may be too long, in milliseconds.
pub async fn alongside<T>(work: impl Future<Output = T>) -> (T, f64) {
    let (stop, mut stopped) = oneshot::channel::<()>();
    let probe = tokio::spawn(async move {
        let mut latest = Duration::ZERO;
        while matches!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
            let start = Instant::now();
            tokio::time::sleep(PAUSE).await;
            latest = latest.max(start.elapsed().saturating_sub(PAUSE));
        }
        latest
    });
    let done = work.await;
    drop(stop);
    let latest = probe.await.unwrap_or_default();
    (done, (latest * STEPS + LEAST).as_secs_f64() * 1000.0)
}
