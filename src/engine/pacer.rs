//! Hands out due operations on time, whatever the servers do.
//!
//! tokio's own timers are good to a millisecond or two. On Linux the pacer waits on a timerfd instead, which the
//! runtime's event loop watches like a socket; it wakes no more often than every 250 µs and then hands out all that has
//! become due. A full queue leaves arrivals in the schedule: memory stays constant and intended starts stay true.

use std::io;
use std::time::{Duration, Instant};

use async_channel::{Sender, TrySendError};

use self::timer::Timer;
use super::schedule::{Due, Schedule};

/// The shortest sleep: what becomes due meanwhile goes out together.
const SHORTEST: Duration = Duration::from_micros(250);

/// The longest sleep, so that a closed queue is noticed at low rates too.
const LONGEST: Duration = Duration::from_millis(100);

/// Hands out operations from `go` on until the queue is closed. `handed_out` is called after each batch, to see to it
/// that there are workers. Returns the number of the first operation that was not handed out.
///
/// # Errors
/// When the operating system gives no timer.
pub async fn pace(
    mut schedule: Schedule,
    queue: Sender<Due>,
    go: Instant,
    mut handed_out: impl FnMut(),
) -> io::Result<u64> {
    let timer = Timer::new()?;
    loop {
        let now = go.elapsed();
        let mut next = schedule.peek();
        while Duration::from_nanos(next.at_ns) <= now {
            match queue.try_send(next) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => break,
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

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel's own resolution.
    pub struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub fn new() -> io::Result<Self> {
            let fd =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            #[expect(
                deprecated,
                reason = "what takes its place is unsafe; an OwnedFd keeps what is asked there"
            )]
            Ok(Self(AsyncFd::new(fd)?))
        }

        /// Waits for less than a second.
        pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let it_value = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
            let once = Itimerspec { it_interval, it_value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let mut expirations = [0; 8];
                match ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?)) {
                    Ok(read) => return read.map(|_| ()),
                    Err(_would_block) => {}
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Duration;

    /// A thread's sleep, which elsewhere is finer than the runtime's timers.
    pub struct Timer;

    impl Timer {
        pub fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
            tokio::task::spawn_blocking(move || std::thread::sleep(wait)).await.map_err(io::Error::other)
        }
    }
}
