//! Versions of PyMongo: each in a virtual environment of its own, with the worker that comes with overdrive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::build::Building;
use crate::plan::{BackoffKind, Driver, Flow, Model, OnTimeout, Plan};
use crate::trial::child::Launch;

/// What says that an environment is whole.
const WHOLE: &str = "whole";

/// A file of the worker: its name and its text.
macro_rules! worker {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../workers/pymongo/", $name)))),*]
    };
}

/// The worker, as this program knows it.
const WORKER: &[(&str, &str)] = worker![
    "__main__.py",
    "application.py",
    "attempts.py",
    "drive.py",
    "failures.py",
    "histogram.py",
    "items.py",
    "keys.py",
    "ledger.py",
    "mix.py",
    "operations.py",
    "protocol.py",
    "recorder.py",
    "records.py",
    "schedule.py",
    "splitmix.py",
    "stats.py",
    "template.py",
    "trial.py",
    "workers.py",
];

/// How to start the one that is kept in a directory; `None` when it is not there.
///
/// # Errors
/// When the worker's files cannot be written.
pub fn launch(directory: &Path) -> anyhow::Result<Option<Launch>> {
    let python = directory.join("bin/python");
    if !python.is_file() || !directory.join(WHOLE).is_file() {
        return Ok(None);
    }
    let worker = directory.join("worker");
    write_worker(&worker).with_context(|| format!("cannot write the worker to {}", worker.display()))?;
    // Unbuffered, and without compiled files beside the worker's.
    Ok(Some(Launch { program: python, arguments: vec!["-u".into(), "-B".into(), worker] }))
}

/// The most operations that it has under way: each takes a thread.
const MOST_THREADS: u32 = 1000;

/// Makes a plan one that the worker can carry out, and returns what people must know of that.
///
/// # Errors
/// What the worker cannot do at all. What it says of an operation or a generator is told by itself, before the load begins.
pub fn fit(plan: &mut Plan) -> Result<Option<String>, String> {
    let Flow { limit, breaker, budget, producer, spool } = &plan.flow;
    let server_guided = plan.backoff.is_some_and(|backoff| backoff.kind == BackoffKind::ServerGuided);
    let beyond = [
        (plan.shard.is_some(), "--shard"),
        (plan.timeout.on_timeout != OnTimeout::Cancel, "timeout.on_timeout = \"read_in_background\""),
        (plan.timeout.max_time.is_some(), "timeout.max_time"),
        (server_guided, "flow.backoff.kind = \"server_guided\""),
        (limit.is_some(), "[flow.limit]"),
        (breaker.is_some(), "[flow.breaker]"),
        (budget.is_some(), "[flow.budget]"),
        (producer.is_some() || spool.is_some(), "flow.queue"),
    ];
    if let Some((_, what)) = beyond.iter().find(|(asked_for, _)| *asked_for) {
        return Err(format!(
            "the worker for PyMongo does not have {what}: leave it out, or load with the Rust driver"
        ));
    }
    match &mut plan.load.model {
        Model::Closed { workers } if *workers > MOST_THREADS => {
            Err(format!("the worker for PyMongo has at most {MOST_THREADS} workers: each takes a thread"))
        }
        Model::Open { max_in_flight, .. } if *max_in_flight > MOST_THREADS => {
            *max_in_flight = MOST_THREADS;
            Ok(Some(format!(
                "`max_in_flight` is {MOST_THREADS} with PyMongo: each operation under way takes a thread"
            )))
        }
        _ => Ok(None),
    }
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
    made.with_context(|| format!("driver {driver} cannot be installed"))?;
    fs::write(directory.join(WHOLE), "")?;
    Ok(directory)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_worker_is_in_this_program() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers/pymongo");
        let names =
            fs::read_dir(source).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".py")).collect();
        names.sort();
        assert_eq!(names, WORKER.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn a_worker_of_another_version_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mix.py"), "old").unwrap();
        write_worker(directory.path()).unwrap();
        for (name, text) in WORKER {
            assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), *text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), WORKER.len());
    }
}
