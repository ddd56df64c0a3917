//! What this machine's generator can do, measured once and kept, so that a run can be told when it asks for more.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::client::version::DRIVER_VERSION;
use crate::plan::{Model, Plan};

/// The share of the ceiling above which a rate is too much to be made on time.
pub const SAFE_SHARE: f64 = 0.8;

/// What a calibration is of: another machine, driver or build has another ceiling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The machine's name.
    pub host: String,
    /// Processors that may be used.
    pub cores: usize,
    /// The Rust driver's version.
    pub driver_version: String,
    /// overdrive's version.
    pub version: String,
    /// `release` or `debug`, which is several times slower.
    pub build: String,
}

impl Key {
    /// That of this program on this machine.
    pub fn here() -> Self {
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            driver_version: DRIVER_VERSION.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }

    /// The file's name. The host's is not ours to choose, so it is cut to what may stand there.
    fn file(&self, cache: &Path) -> PathBuf {
        let Self { host, cores, driver_version, version, build } = self;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '_' };
        let host: String = host.chars().map(plain).collect();
        cache.join("calibrations").join(format!("{host}-{cores}-{driver_version}-{version}-{build}.json"))
    }
}

/// A measured ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Of what.
    pub key: Key,
    /// When.
    pub at: Timestamp,
    /// Operations per second that the generator made of a stub on the same machine.
    pub ceiling_ops_per_s: f64,
    /// Its CPU time for each.
    pub cpu_us_per_op: f64,
}

impl Calibration {
    /// The highest rate that is made on time.
    pub fn safe_ops_per_s(&self) -> f64 {
        self.ceiling_ops_per_s * SAFE_SHARE
    }

    /// Keeps it in the cache, whole or not at all, in place of the one before. Returns where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&self, cache: &Path) -> Result<PathBuf> {
        let file = self.key.file(cache);
        let write = || -> Result<()> {
            let directory = file.parent().context("it has no directory")?;
            fs::create_dir_all(directory)?;
            let mut draft = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer_pretty(&mut draft, self)?;
            writeln!(draft)?;
            draft.as_file().sync_all()?;
            draft.persist(&file)?;
            Ok(())
        };
        write().with_context(|| format!("cannot keep the calibration in {}", file.display()))?;
        Ok(file)
    }

    /// The one that was kept for this key; `None` if there is none.
    ///
    /// # Errors
    /// When there is one that cannot be read.
    pub fn load(cache: &Path, key: &Key) -> Result<Option<Self>> {
        let file = key.file(cache);
        let wrong =
            || format!("the calibration in {} cannot be used: run `overdrive calibrate`", file.display());
        let text = match fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(wrong),
        };
        let kept: Self = serde_json::from_slice(&text).with_context(wrong)?;
        // Names of hosts that are cut alike share a file.
        Ok(Some(kept).filter(|kept| kept.key == *key))
    }

    /// What people must know of a plan that asks for more than is made on time.
    pub fn doubt(&self, plan: &Plan) -> Option<String> {
        let Model::Open { stages, .. } = &plan.load.model else { return None };
        let most = stages.iter().map(|s| s.from.get().max(s.to.get())).fold(0.0, f64::max);
        (most > self.safe_ops_per_s()).then(|| {
            format!(
                "{most:.0} operations/s are above 80 % of the {:.0} operations/s that this machine made when it was \
                 calibrated on {}: the numbers may show the generator's limit",
                self.ceiling_ops_per_s,
                self.at.strftime("%Y-%m-%d"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing;

    fn calibration() -> Calibration {
        Calibration {
            key: Key { host: "a host/with näme".to_owned(), ..Key::here() },
            at: "2026-08-09T10:11:12Z".parse().unwrap(),
            ceiling_ops_per_s: 1000.0,
            cpu_us_per_op: 80.0,
        }
    }

    #[test]
    fn what_is_kept_is_found_again_for_the_same_key_alone() {
        let cache = tempfile::tempdir().unwrap();
        let (kept, key) = (calibration(), calibration().key);
        assert_eq!(Calibration::load(cache.path(), &key).unwrap(), None);
        let older = Calibration { ceiling_ops_per_s: 7.0, ..kept.clone() };
        let file = older.store(cache.path()).unwrap();
        assert_eq!(kept.store(cache.path()).unwrap(), file);
        assert_eq!(Calibration::load(cache.path(), &key).unwrap(), Some(kept));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no drafts are left");
        for other in [
            Key { cores: key.cores + 1, ..key.clone() },
            Key { driver_version: "3.3.0".to_owned(), ..key.clone() },
            Key { host: "a host/with näm_".to_owned(), ..key.clone() },
            Key { host: "a_host_with_n_me".to_owned(), ..key.clone() },
        ] {
            assert_eq!(Calibration::load(cache.path(), &other).unwrap(), None, "{other:?}");
        }
        fs::write(&file, "{").unwrap();
        let error = format!("{:#}", Calibration::load(cache.path(), &key).unwrap_err());
        assert!(error.contains(file.to_str().unwrap()) && error.contains("overdrive calibrate"), "{error}");
    }

    #[test]
    fn a_rate_above_four_fifths_of_the_ceiling_is_doubted() {
        let plan = |rate| testing::plan_with_stages(&[(10, 10.0, 10.0), (10, 10.0, rate)]);
        assert_eq!(calibration().doubt(&plan(800.0)), None);
        let doubt = calibration().doubt(&plan(801.0)).unwrap();
        for part in ["801 operations/s", "80 %", "1000 operations/s", "2026-08-09"] {
            assert!(doubt.contains(part), "no '{part}' in: {doubt}");
        }
        let mut closed = plan(5000.0);
        closed.load.model = Model::Closed { workers: 500 };
        assert_eq!(calibration().doubt(&closed), None, "it asks for no rate");
    }
}
