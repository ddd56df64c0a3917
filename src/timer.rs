//! A timer that is good to some tens of microseconds, where tokio's own are to a millisecond or two: on Linux a timerfd,
//! which the runtime's event loop watches like a socket.

pub use system::Timer;

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel's own resolution.
    #[derive(Debug)]
    pub struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        /// A timer of one's own; sleeps on it come one after the other.
        ///
        /// # Errors
        /// When the operating system has none to give.
        pub fn new() -> io::Result<Self> {
            let fd =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            #[expect(
                deprecated,
                reason = "what takes its place is unsafe; an OwnedFd keeps what is asked there"
            )]
            Ok(Self(AsyncFd::new(fd)?))
        }

        /// Waits.
        ///
        /// # Errors
        /// When the operating system refuses the timer.
        pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
            if wait.is_zero() {
                // To a timerfd that means never.
                return Ok(());
            }
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let tv_sec = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
            let it_value = Timespec { tv_sec, tv_nsec: wait.subsec_nanos().into() };
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
mod system {
    use std::io;
    use std::time::Duration;

    /// A thread's sleep, which elsewhere is finer than the runtime's timers.
    #[derive(Debug)]
    pub struct Timer;

    impl Timer {
        /// A timer of one's own; sleeps on it come one after the other.
        ///
        /// # Errors
        /// When the operating system has none to give.
        pub fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Waits.
        ///
        /// # Errors
        /// When the thread cannot be had.
        pub async fn sleep(&self, wait: Duration) -> io::Result<()> {
            tokio::task::spawn_blocking(move || std::thread::sleep(wait)).await.map_err(io::Error::other)
        }
    }
}
