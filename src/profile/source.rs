//! From what the user named to a text: a shipped profile, or a file.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::diagnostic::{Diagnostic, Diagnostics, either, nearest};
use super::secrets::{looks_like_uri, masked_argument};
use super::shipped;

/// No profile is anywhere near as long; what is longer is some other file, or has no end.
const LONGEST: u64 = 1 << 20;

/// A profile's text and what to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The profile's name: a shipped profile's, or the file's stem.
    pub name: String,
    /// What messages call the text.
    pub shown: String,
    /// The text.
    pub text: String,
}

/// Finds a profile. A shipped one's name wins over a file of that name, which can still be given as `./name`.
///
/// # Errors
/// When there is no such profile, or it is no text.
pub fn find(wanted: &str) -> Result<Source, Diagnostics> {
    if let Some(text) = shipped::find(wanted) {
        let shown = format!("{wanted} (shipped)");
        return Ok(Source { name: wanted.to_owned(), shown, text: text.to_owned() });
    }
    if looks_like_uri(wanted) && !Path::new(wanted).exists() {
        let shown = masked_argument(wanted);
        let mistake = Diagnostic::general(format!("a profile is wanted in the place of {shown}"));
        let help = "a connection string is given with --uri, --uri-file or $OVERDRIVE_URI";
        return Err(Diagnostics::unreadable(&shown, mistake.help(help)));
    }
    let path = Path::new(wanted);
    let bytes =
        read(path).map_err(|message| Diagnostics::unreadable(wanted, why_not_found(wanted, message)))?;
    let text = decode(bytes).map_err(|message| {
        Diagnostics::unreadable(wanted, Diagnostic::general(format!("{wanted} {message}")))
    })?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(Source { name, shown: wanted.to_owned(), text })
}

/// The bytes of a file, or why there are none (`None` if it does not exist).
fn read(path: &Path) -> Result<Vec<u8>, Option<String>> {
    let told = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => None,
        _ => Some(error.to_string()),
    };
    if path.is_dir() {
        return Err(Some("it is a directory; a profile is a TOML file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(told)?.take(LONGEST + 1).read_to_end(&mut bytes).map_err(told)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > LONGEST) {
        return Err(Some("it is longer than 1 MiB, which no profile is".to_owned()));
    }
    Ok(bytes)
}

fn why_not_found(wanted: &str, message: Option<String>) -> Diagnostic {
    if let Some(message) = message {
        return Diagnostic::general(format!("cannot read the profile {wanted}: {message}"));
    }
    let names: Vec<&str> = shipped::list().map(|(name, _)| name).collect();
    let stem = Path::new(wanted).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let help = match nearest(stem.as_deref().unwrap_or(wanted), names.iter().copied()) {
        Some(name) => format!("did you mean the shipped profile `{name}`?"),
        None => format!("give a path, or a shipped profile: {}", either(&names)),
    };
    Diagnostic::general(format!("there is no profile `{wanted}`")).help(help)
}

/// Bytes as text, or what is wrong with them. A byte order mark, which some editors leave, is no mistake.
fn decode(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
        let byte = bytes.get(at).copied().unwrap_or_default();
        format!("is not UTF-8 text: byte {byte:#04x} in line {line}, at offset {at}")
    })?;
    match text.trim().is_empty() {
        true => Err("is empty: a profile needs at least one operation, like [op.find.find_one]".to_owned()),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn a_missing_profile_suggests_a_shipped_one() {
        assert_snapshot!(find("quikstart").unwrap_err(), @r"
        error: there is no profile `quikstart`
         |
         = help: did you mean the shipped profile `quickstart`?
        ");
        assert_snapshot!(find("no/such/mixd.toml").unwrap_err(), @r"
        error: there is no profile `no/such/mixd.toml`
         |
         = help: did you mean the shipped profile `mixed`?
        ");
        assert!(find("nothing-like-it-at-all").unwrap_err().to_string().contains("quickstart"));
    }

    #[test]
    fn a_connection_string_is_not_looked_for_among_files() {
        for wanted in ["mongodb://u:s3cret@h/", "mongodb:u:s3cret@h", "u:s3cret@h:27017"] {
            let error = find(wanted).unwrap_err().to_string();
            assert!(error.contains("--uri-file") && error.contains("***@h"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let told = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = find(&path.to_string_lossy()).unwrap_err().to_string();
            error.replace(&*dir.path().to_string_lossy(), "DIR")
        };
        assert_snapshot!(told("latin1.toml", b"a = 1\nb = \"caf\xe9\"\n"), @"error: DIR/latin1.toml is not UTF-8 text: byte 0xe9 in line 2, at offset 14");
        assert_snapshot!(told("empty.toml", b""), @"error: DIR/empty.toml is empty: a profile needs at least one operation, like [op.find.find_one]");
        assert_snapshot!(told("blank.toml", b" \n\n"), @"error: DIR/blank.toml is empty: a profile needs at least one operation, like [op.find.find_one]");
        assert!(told("huge.toml", &vec![b'#'; (1 << 20) + 1]).contains("longer than 1 MiB"));
        let directory = find(&dir.path().to_string_lossy()).unwrap_err().to_string();
        assert_snapshot!(directory.replace(&*dir.path().to_string_lossy(), "DIR"), @"error: cannot read the profile DIR: it is a directory; a profile is a TOML file");
    }
}
