//! The load generator's own use of the machine, so that a generator that is the limit can be named as such.

use rustix::time::{ClockId, clock_gettime};

use crate::snapshot::Generator;

/// Reads this process's CPU time and memory.
#[derive(Default)]
pub struct Meter {
    cpu_ns: Option<u64>,
}

impl Meter {
    /// What was used since the last reading (since now, at the first), beside what the engine knows itself.
    pub fn read(&mut self, behind_ns: u64, workers: u64, in_flight: u64) -> Generator {
        let now = cpu_ns();
        let before = self.cpu_ns.replace(now).unwrap_or(now);
        Generator { cpu_ns: now - before, rss_bytes: rss_bytes().unwrap_or(0), behind_ns, workers, in_flight }
    }
}

/// CPU time of all threads of this process so far.
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Resident memory of this process, where the system tells.
pub fn rss_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
