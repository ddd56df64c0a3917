//! `overdrive report`: a page, plots or Markdown of runs that are stored.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::Builder;

use super::{Outcome, UsageError, print, refuse_uri};
use crate::cli::ReportArgs;
use crate::compare::Error;
use crate::report::groups::{Report, gather};
use crate::report::plots::Plots;
use crate::report::{html, markdown};

/// The page's name, where nobody gives one.
const PAGE: &str = "report.html";

/// Reports.
///
/// # Errors
/// When runs cannot be read, or the report not be written.
pub fn run(args: &ReportArgs) -> Result<Outcome> {
    for text in &args.runs {
        refuse_uri("report", text)?;
    }
    let report = gather(&args.runs, &args.across).map_err(|error| match error {
        Error::Asked(what) => anyhow::Error::new(UsageError::new(what)),
        Error::Stored(_) => error.into(),
    })?;
    let plots = Plots::of(&report);
    if let Some(directory) = &args.svg {
        write_plots(&plots, directory)?;
    }
    if args.markdown {
        print(&markdown::render(&report))?;
        return Ok(Outcome::Done);
    }
    let page = html::render(&report, &plots);
    let file = args.output.clone().unwrap_or_else(|| usual_place(&report));
    if file == Path::new("-") {
        print(&page)?;
        return Ok(Outcome::Done);
    }
    write(&file, &page)?;
    let plots = args.svg.as_ref().map(|directory| format!("Plots: {}\n", directory.display()));
    print(&format!("Report: {}\n{}", file.display(), plots.unwrap_or_default()))?;
    Ok(Outcome::Done)
}

/// In the run's directory, if it is of one run; else here.
fn usual_place(report: &Report) -> PathBuf {
    let mut directories =
        report.groups.iter().flat_map(|group| &group.trials).map(|trial| &trial.trial.directory);
    let first = directories.next();
    match first {
        Some(first) if directories.all(|other| other == first) => first.join(PAGE),
        _ => PathBuf::from(PAGE),
    }
}

fn write_plots(plots: &Plots, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| {
        format!("cannot make '{}' for the plots: choose another --svg", directory.display())
    })?;
    for plot in plots.all() {
        write(&directory.join(format!("{}.svg", plot.stem)), &plot.file())?;
    }
    Ok(())
}

/// Writes a file whole or not at all: under another name beside it first. What is there and no regular file, as a pipe, is
/// written to as it is.
fn write(file: &Path, text: &str) -> Result<()> {
    let failed = || format!("cannot write '{}': choose another place", file.display());
    if file.is_dir() {
        return Err(UsageError::new(format!("'{}' is a directory: give a file", file.display())).into());
    }
    if file.exists() && !file.is_file() {
        return fs::write(file, text).with_context(failed);
    }
    // A link stays one: what it leads to is replaced.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    replace(&file, text).with_context(failed)
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = Builder::new();
    builder.prefix(".overdrive-");
    // Others may read it as they may read any new file here; drafts are for their owner alone, if nobody says so.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = builder.tempfile_in(directory)?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_whole_and_leave_no_draft() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a.html");
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        let error = format!("{:#}", write(&home.path().join("none/a.html"), "x").unwrap_err());
        assert!(error.contains("none/a.html") && error.contains("choose another place"), "{error}");
        let error = write(home.path(), "x").unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn links_and_devices_stay_what_they_are() {
        let home = tempfile::tempdir().unwrap();
        let (file, link) = (home.path().join("a.html"), home.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write(Path::new("/dev/null"), "x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
