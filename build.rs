//! Tells the program which version of the driver it is built with, since results of two drivers differ at equal options, and
//! which sources it is built from, since a driver that is built from others may understand a plan otherwise.

use std::fs;
use std::path::Path;

fn main() {
    for path in ["build.rs", "Cargo.lock", "src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Cargo runs build scripts in the package's own directory; a packaged crate has its lock file there, too.
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = locked_version(&lock, "mongodb").unwrap_or("unknown");
    println!("cargo::rustc-env=OVERDRIVE_DRIVER_VERSION={version}");
    println!("cargo::rustc-env=OVERDRIVE_SOURCES={:016x}", fingerprint(Path::new("src"), OFFSET));
}

/// The version of `package`, if the lock file has exactly one: of two, nobody could say which one runs.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut versions = lock.split("[[package]]").filter_map(|entry| {
        let value = |key: &str| {
            let mut values = entry.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            values.next().map(|value| value.trim().trim_matches('"'))
        };
        (value("name")? == package).then(|| value("version"))?
    });
    let version = versions.next()?;
    versions.next().is_none().then_some(version)
}

/// FNV-1a, which is enough to tell sources apart that nobody has made to look alike.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A fingerprint of a file, or of all in a directory, by name.
fn fingerprint(path: &Path, so_far: u64) -> u64 {
    let add = |hash: u64, bytes: &[u8]| {
        bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    };
    let named = add(so_far, path.to_string_lossy().as_bytes());
    let Ok(entries) = fs::read_dir(path) else { return add(named, &fs::read(path).unwrap_or_default()) };
    let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().fold(named, |hash, entry| fingerprint(entry, hash))
}
