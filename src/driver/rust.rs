//! Versions of the Rust driver: overdrive itself, built from its own source with another lock file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::build::Building;
use crate::plan::Driver;
use crate::trial::child::Launch;

/// The hidden subcommand that makes a trial's load.
const SUBCOMMAND: &str = "child";

const PROGRAM: &str = "overdrive";

/// What the source tree holds that no build of it needs, or that each build has for itself.
const LEFT_OUT: [&str; 5] = ["Cargo.lock", "target", "results", ".git", ".ci"];

/// How to start the driver that this program is built with.
///
/// # Errors
/// When the system does not tell where this program is.
pub fn own() -> anyhow::Result<Launch> {
    let program = std::env::current_exe().context("cannot tell where this program's file is")?;
    Ok(Launch { program, arguments: vec![SUBCOMMAND.into()] })
}

/// How to start the one that is kept in a directory; `None` when it is not there.
pub fn launch(directory: &Path) -> Option<Launch> {
    let program = directory.join(PROGRAM);
    program.is_file().then(|| Launch { program, arguments: vec![SUBCOMMAND.into()] })
}

/// Builds it: a tree of links to the source with a lock file of its own, in a target directory that all versions share,
/// since cargo takes no two versions of the driver into one build.
///
/// # Errors
/// When there is no source tree, no such version, or it does not build.
pub fn build(driver: &Driver, home: &Path, building: &Building) -> anyhow::Result<PathBuf> {
    let source = source(building.source.as_deref())?;
    let tree = home.join("build").join(format!("{}-{}", driver.name, driver.version));
    link(&source, &tree)?;
    // From the project's own lock file each time: all versions have everything else in common as far as that can be.
    fs::copy(source.join("Cargo.lock"), tree.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
    let package = ["update", "--quiet", "--package", "mongodb", "--precise", &driver.version];
    cargo(&tree, &package).with_context(|| format!("there is no lock file with driver {driver}"))?;
    let target = home.join("target");
    let mut arguments = vec!["build", "--locked", "--bin", PROGRAM];
    if !building.debug {
        arguments.push("--release");
    }
    let shared = target.to_str().context("the path of the drivers' directory is no UTF-8")?;
    arguments.extend(["--target-dir", shared]);
    cargo(&tree, &arguments).with_context(|| format!("driver {driver} does not build"))?;
    let program = target.join(if building.debug { "debug" } else { "release" }).join(PROGRAM);
    let directory = home.join(format!("{}-{}", driver.name, driver.version));
    fs::create_dir_all(&directory)?;
    fs::copy(tree.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    // By a rename: the one that is there may be running.
    let new = directory.join("overdrive.new");
    fs::copy(&program, &new).with_context(|| format!("cannot copy {}", program.display()))?;
    fs::rename(&new, directory.join(PROGRAM))?;
    Ok(directory)
}

/// The project's source tree: the one that is named, or around this directory, or around this program.
fn source(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        let named = fs::canonicalize(named).with_context(|| format!("--source {}", named.display()))?;
        ensure!(is_source(&named), "--source {}: there is no source tree of overdrive", named.display());
        return Ok(named);
    }
    let around = [std::env::current_dir(), std::env::current_exe()];
    let mut around = around.iter().flatten().flat_map(|path| path.ancestors());
    let found = around.find(|path| is_source(path)).map(Path::to_owned);
    let found = found.with_context(|| {
        "versions of the Rust driver are built from overdrive's source tree, and neither this directory nor this program \
         lies in one: name it with --source DIR"
    })?;
    Ok(fs::canonicalize(found)?)
}

fn is_source(path: &Path) -> bool {
    let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap_or_default();
    manifest.lines().any(|line| line.trim() == "name = \"overdrive\"") && path.join("Cargo.lock").is_file()
}

/// Makes a tree whose entries are links to the source's.
fn link(source: &Path, tree: &Path) -> anyhow::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    fs::create_dir_all(tree).with_context(|| format!("cannot make {}", tree.display()))?;
    for entry in fs::read_dir(source)? {
        let name = entry?.file_name();
        if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
            symlink(source.join(&name), tree.join(&name))?;
        }
    }
    Ok(())
}

fn cargo(directory: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(&cargo)
        .args(arguments)
        .current_dir(directory)
        // Standard output is for results.
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot run {}: Rust's cargo builds drivers", cargo.display()))?;
    if !status.success() {
        bail!("`cargo {}` failed ({status})", arguments.join(" "));
    }
    Ok(())
}
