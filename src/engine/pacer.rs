//! Hands out due operations on time, whatever the servers do.
//!
//! tokio's own timers are good to a millisecond or two. On Linux the pacer waits on a timerfd instead, which the
//! runtime's event loop watches like a socket; it wakes no more often than every 250 µs and then hands out all that has
//! become due. A full queue leaves arrivals in the schedule: memory stays constant and intended starts stay true.

use std::io;
use std::time::{Duration, Instant};

use async_channel::{Sender, TrySendError};

use super::schedule::{Due, Schedule};
use crate::timer::Timer;

/// The shortest sleep: what becomes due meanwhile goes out together.
const SHORTEST: Duration = Duration::from_micros(250);

/// The longest sleep, so that a closed queue is noticed at low rates too.
const LONGEST: Duration = Duration::from_millis(100);

/// Hands out operations from `go` on until the queue is closed. `handed_out` is called after each batch, to see to it
/// that there are workers. What finds the queue full goes to `beyond`; without one it stays in the schedule until there is
/// room. Returns the number of the first operation that was not handed out.
///
/// # Errors
/// When the operating system gives no timer.
pub async fn pace(
    mut schedule: Schedule,
    queue: Sender<Due>,
    go: Instant,
    beyond: Option<impl Fn(Due)>,
    mut handed_out: impl FnMut(),
) -> io::Result<u64> {
    let timer = Timer::new()?;
    loop {
        let now = go.elapsed();
        let mut next = schedule.peek();
        while Duration::from_nanos(next.at_ns) <= now {
            match queue.try_send(next) {
                Ok(()) => {}
                Err(TrySendError::Full(due)) => match &beyond {
                    Some(beyond) => beyond(due),
                    None => break,
                },
                Err(TrySendError::Closed(_)) => return Ok(next.n),
            }
            schedule.next();
            next = schedule.peek();
        }
        handed_out();
        let wait = Duration::from_nanos(next.at_ns).saturating_sub(go.elapsed());
        timer.sleep(wait.clamp(SHORTEST, LONGEST)).await?;
        if queue.is_closed() {
            return Ok(next.n);
        }
    }
}
