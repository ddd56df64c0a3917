//! What must not be shown although a mistake is beside it.

use std::ops::Range;

/// How a connection string begins.
const SCHEMES: [&str; 2] = ["mongodb://", "mongodb+srv://"];

/// The text with asterisks for the places given and for every user and password of a connection string, byte for byte,
/// so that all places stay where they are.
pub fn masked(text: String, secrets: &[Range<usize>]) -> String {
    let all: Vec<Range<usize>> = secrets.iter().cloned().chain(userinfos(&text)).collect();
    if all.is_empty() {
        return text;
    }
    let mut bytes = text.into_bytes();
    for secret in all {
        for byte in bytes.get_mut(secret).into_iter().flatten().filter(|byte| **byte != b'\n') {
            *byte = b'*';
        }
    }
    // Values and userinfo cut no character in two, so nothing is lost here.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where connection strings name a user: from the scheme to the last `@` of the line, since a password may be written
/// with anything in it by mistake.
fn userinfos(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = SCHEMES.iter().flat_map(|scheme| text.match_indices(scheme).map(|(at, s)| at + s.len()));
    starts.filter_map(|start| {
        let rest = text.get(start..)?;
        let line = rest.split('\n').next()?;
        line.rfind('@').map(|end| start..start + end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_given_places_are_masked() {
        let text =
            "uri = \"mongodb://me:p@ss\u{e9}@host/\"\nx = \"mongodb+srv://h\"\ny = \"s3cret\"\n".to_owned();
        let start = text.find("s3cret").unwrap();
        let place = start..start + "s3cret".len();
        let shown = masked(text.clone(), std::slice::from_ref(&place));
        assert_eq!(shown, "uri = \"mongodb://*********@host/\"\nx = \"mongodb+srv://h\"\ny = \"******\"\n");
        assert_eq!(shown.len(), text.len());
    }
}
