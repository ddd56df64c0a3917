//! The deployment that the command line names.

use std::env::VarError;
use std::path::Path;

use super::{UsageError, refuse_uri};
use crate::cli::TargetArgs;
use crate::client::tls_files;
use crate::client::uri::Uri;

/// Where the connection string comes from when the command line has none.
const VARIABLE: &str = "OVERDRIVE_URI";

/// The connection string, checked; `None` when nobody gives one.
///
/// # Errors
/// [`UsageError`] when it is none.
pub fn given_uri(args: &TargetArgs) -> anyhow::Result<Option<Uri>> {
    let text = match (&args.uri, &args.uri_file) {
        (Some(uri), _) => Some(uri.clone()),
        (None, Some(file)) => Some(read_uri(file)?),
        // By hand, since what is on the command line goes before it and does not contradict it.
        (None, None) => match std::env::var(VARIABLE) {
            Ok(uri) => Some(uri).filter(|uri| !uri.is_empty()),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => {
                return Err(UsageError::new(format!("${VARIABLE} is not UTF-8 text")).into());
            }
        },
    };
    text.map(|text| Uri::parse(text.trim()).map_err(|error| UsageError::new(error).into())).transpose()
}

/// Files that the connection string names are the user's to mend.
///
/// # Errors
/// [`UsageError`] for each that cannot be used.
pub fn check_tls_files(uri: &Uri) -> Result<(), UsageError> {
    let mistakes = tls_files::mistakes(uri);
    if mistakes.is_empty() { Ok(()) } else { Err(UsageError::new(mistakes.join("\n"))) }
}

fn read_uri(file: &Path) -> anyhow::Result<String> {
    let name = file.to_string_lossy();
    refuse_uri("--uri-file", &name)?;
    std::fs::read_to_string(file)
        .map_err(|error| UsageError::new(format!("--uri-file {name}: {error}")).into())
}
