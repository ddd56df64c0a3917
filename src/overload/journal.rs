//! What is written down on the cluster about a fault, so that the next start can undo it, but only the fault of a run
//! that was killed: one that still runs needs it.

use bson::{Document, doc};
use rustix::process::{Pid, test_kill_process};

/// The fields of an entry made by this process.
pub fn entry(kind: &str) -> Document {
    doc! { "kind": kind, "at": bson::DateTime::now(), "host": host(), "process": i64::from(std::process::id()) }
}

/// The process that made the entry, if it is another one on this machine that still runs. Of other machines' processes
/// nothing is known here.
pub fn running_owner(entry: &Document) -> Option<i64> {
    let process = entry.get_i64("process").ok()?;
    let here = entry.get_str("host").is_ok_and(|name| name == host());
    let other = process != i64::from(std::process::id());
    (here && other && is_overdrive(process)).then_some(process)
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Process ids are used again; where the system tells what a process is, another program's is no run of ours, and neither
/// is one that has ended and that its parent has not asked about.
fn is_overdrive(process: i64) -> bool {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let alive = id.is_some_and(|id| test_kill_process(id).is_ok());
    // `1234 (overdrive) S …`
    let told = std::fs::read_to_string(format!("/proc/{process}/stat"));
    alive && told.map_or(true, |told| told.contains("(overdrive") && !told.contains(") Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_living_run_of_this_machine_owns_a_fault() {
        let mine = entry("fail_command");
        assert_eq!(running_owner(&mine), None, "not another one");
        let by = |process: i64, host: &str| doc! { "process": process, "host": host };
        if cfg!(target_os = "linux") {
            let parent = i64::from(std::os::unix::process::parent_id());
            assert_eq!(running_owner(&by(parent, &host())), None, "it lives, but is no overdrive");
        }
        assert_eq!(running_owner(&by(i64::MAX, &host())), None);
        assert_eq!(running_owner(&by(1, "another-machine")), None);
        assert_eq!(running_owner(&doc! { "kind": "of an older version" }), None);
    }
}
