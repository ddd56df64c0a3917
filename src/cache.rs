//! Where overdrive keeps what outlives a run and may be lost: a server that was fetched, this machine's calibration.

use std::env;
use std::path::PathBuf;

/// The directory, which may not be there yet; `None` when neither `XDG_CACHE_HOME` nor `HOME` says where.
pub fn directory() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(base.join("overdrive"))
}
