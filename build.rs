//! Tells the program which version of the driver it is built with: results of two drivers differ at equal options.

use std::fs;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.lock");
    // Cargo runs build scripts in the package's own directory; a packaged crate has its lock file there, too.
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = locked_version(&lock, "mongodb").unwrap_or("unknown");
    println!("cargo::rustc-env=OVERDRIVE_DRIVER_VERSION={version}");
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
