//! The machine that makes the load.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// What a reader needs to judge whether two results may be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Processors this process may use.
    pub cores: usize,
    /// The operating system and its release.
    pub os: String,
    /// The processor's architecture.
    pub arch: String,
    /// The processor's name, where the system tells it.
    pub cpu_model: Option<String>,
}

impl HostFacts {
    /// Looks at this machine.
    pub fn detect() -> Self {
        let system = rustix::system::uname();
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            os: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
            arch: std::env::consts::ARCH.to_owned(),
            cpu_model: fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_model(&text)),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let host = HostFacts::detect();
        assert!(host.cores >= 1);
        assert!(host.os.contains(' '));
        assert_eq!(
            cpu_model("flags\t: a b\nmodel name\t: Some CPU: 3 GHz\n"),
            Some("Some CPU: 3 GHz".to_owned())
        );
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
