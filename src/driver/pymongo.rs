//! Versions of PyMongo: each in a virtual environment of its own, with the worker that comes with overdrive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::build::Building;
use crate::plan::Driver;
use crate::trial::child::Launch;

/// The worker's files, as this program knows them.
const WORKER: &[(&str, &str)] = &[];

/// How to start the one that is kept in a directory; `None` when it is not there.
///
/// # Errors
/// When the worker's files cannot be written.
pub fn launch(directory: &Path) -> anyhow::Result<Option<Launch>> {
    let python = directory.join("bin/python");
    if !python.is_file() {
        return Ok(None);
    }
    let worker = directory.join("worker");
    write_worker(&worker).with_context(|| format!("cannot write the worker to {}", worker.display()))?;
    // Unbuffered, and without compiled files beside the worker's.
    Ok(Some(Launch { program: python, arguments: vec!["-u".into(), "-B".into(), worker] }))
}

/// Makes the environment and puts the driver into it.
///
/// # Errors
/// When Python or the version cannot be had.
pub fn build(driver: &Driver, home: &Path, building: &Building) -> anyhow::Result<PathBuf> {
    let directory = home.join(format!("{}-{}", driver.name, driver.version));
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    let made = python(&building.python, &[Path::new("-m"), Path::new("venv"), &directory]).and_then(|()| {
        let package = format!("pymongo=={}", driver.version);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package];
        python(&directory.join("bin/python"), &pip.map(Path::new))
    });
    if made.is_err() {
        // Half an environment would be taken for one.
        let _ = fs::remove_dir_all(&directory);
    }
    made.with_context(|| format!("driver {driver} cannot be installed")).map(|()| directory)
}

fn python(program: &Path, arguments: &[&Path]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(arguments)
        // Standard output is for results.
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot run {}; name a Python with --python", program.display()))?;
    if !status.success() {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        bail!("`{} {}` failed ({status})", program.display(), arguments.join(" "));
    }
    Ok(())
}

/// Writes those of the worker's files that are not there as they should be, each by a rename: one that is there may be
/// in use.
fn write_worker(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in WORKER {
        let path = directory.join(name);
        if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            continue;
        }
        let new = directory.join(format!("{name}.{}", std::process::id()));
        fs::write(&new, text)?;
        fs::rename(&new, &path)?;
    }
    Ok(())
}
