//! Which process something on a cluster belongs to: the fault of a run that was killed is undone by the next one, that of
//! a run which still needs it is not, and neither is its data loaded anew.

use bson::{Document, doc};
use rustix::process::{Pid, test_kill_process};

/// The fields by which this process claims something.
pub fn this() -> Document {
    doc! { "at": bson::DateTime::now(), "host": host(), "process": i64::from(std::process::id()) }
}

/// The process that claimed something, if it is another one on this machine that still runs. Of other machines'
/// processes nothing is known here.
pub fn running(entry: &Document) -> Option<i64> {
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
        let mine = this();
        assert_eq!(running(&mine), None, "not another one");
        let by = |process: i64, host: &str| doc! { "process": process, "host": host };
        if cfg!(target_os = "linux") {
            let parent = i64::from(std::os::unix::process::parent_id());
            assert_eq!(running(&by(parent, &host())), None, "it lives, but is no overdrive");
        }
        assert_eq!(running(&by(i64::MAX, &host())), None);
        assert_eq!(running(&by(1, "another-machine")), None);
        assert_eq!(running(&doc! { "kind": "of an older version" }), None);
    }
}
