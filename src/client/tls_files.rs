//! The files that TLS options name, looked at before the driver does: it says neither which option nor which file it
//! was that it could not read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::uri::Uri;

/// No certificate or key is anywhere near as long.
const LONGEST: u64 = 1 << 20;

/// How every part of such a file begins.
const PEM: &str = "-----BEGIN ";

/// The options and what their files hold.
const FILES: [(&str, &str); 2] = [
    ("tlsCAFile", "the certificates of authorities"),
    ("tlsCertificateKeyFile", "a certificate and its private key"),
];

/// What is wrong with the files that a connection string names; one sentence each.
pub fn mistakes(uri: &Uri) -> Vec<String> {
    let wrong = |(name, holds): (&str, &str)| {
        let file = uri.option(name)?;
        let why = match read(Path::new(&file)) {
            Ok(text) if text.contains(PEM) => return None,
            Ok(_) => "it is no PEM file".to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("`{name}`: cannot use '{file}': {why}; name a PEM file with {holds}"))
    };
    FILES.into_iter().filter_map(wrong).collect()
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named_with_their_option() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("good"), "words\n-----BEGIN CERTIFICATE-----\n").unwrap();
        std::fs::write(path("bad"), "words\n").unwrap();
        let told = |authorities: &str, key: &str| {
            let text =
                format!("mongodb://h/?tlsCAFile={}&tlsCertificateKeyFile={}", path(authorities), path(key));
            mistakes(&Uri::parse(&text).unwrap()).join("\n").replace(&path(""), "DIR/")
        };
        assert_eq!(told("good", "good"), "");
        insta::assert_snapshot!(told("none", "bad"), @"
        `tlsCAFile`: cannot use 'DIR/none': No such file or directory (os error 2); name a PEM file with the certificates of authorities
        `tlsCertificateKeyFile`: cannot use 'DIR/bad': it is no PEM file; name a PEM file with a certificate and its private key
        ");
        assert_eq!(mistakes(&Uri::parse("mongodb://h/?tls=true").unwrap()), Vec::<String>::new());
    }
}
