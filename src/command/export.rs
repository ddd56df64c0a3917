//! `overdrive export`: what other tools read of runs that are stored.

use anyhow::Result;

use super::{Outcome, UsageError, print, refuse_uri};
use crate::cli::{ExportArgs, ExportFormat};
use crate::compare::Error;
use crate::export::{benchfmt, hgrm};
use crate::report::stored::selected;
use crate::stderr::tell;

/// Exports to standard output.
///
/// # Errors
/// When the run cannot be read, or has nothing of what is asked for.
pub fn run(args: &ExportArgs) -> Result<Outcome> {
    refuse_uri("export", &args.run)?;
    let text = exported(args).map_err(|error| match error {
        Error::Asked(what) => anyhow::Error::new(UsageError::new(what)),
        Error::Stored(_) => error.into(),
    })?;
    print(&text)?;
    Ok(Outcome::Done)
}

fn exported(args: &ExportArgs) -> Result<String, Error> {
    let mut notes = Vec::new();
    let trials = selected(&args.run, &mut notes)?;
    let (segment, op) = (args.segment.as_deref(), args.op.as_deref());
    let exported = match args.format {
        ExportFormat::Benchfmt => benchfmt::render(&trials, segment, op)?,
        ExportFormat::Hgrm => hgrm::render(&trials, segment, op)?,
    };
    notes.extend(exported.notes);
    notes.iter().for_each(|note| tell(note));
    Ok(exported.text)
}
