//! What must not be shown although a mistake is beside it.

use std::ops::Range;

/// How a connection string begins.
const SCHEMES: [&str; 2] = ["mongodb://", "mongodb+srv://"];

/// What stands for whatever is hidden: always the same, so that it does not tell how long that is.
const MASK: &str = "***";

/// A text with masks in it, which knows where the places of the original are.
pub struct Masked {
    /// What may be shown.
    pub text: String,
    /// Of the original, in order and apart from each other: what is hidden, and what stands for it.
    hidden: Vec<(Range<usize>, String)>,
}

/// Hides the places given, and every user and password of a connection string.
pub fn mask(text: &str, secrets: &[Range<usize>]) -> Masked {
    let within = |secret: &Range<usize>| text.get(secret.clone()).is_some_and(|part| !part.is_empty());
    let mut all: Vec<Range<usize>> = secrets.iter().cloned().chain(userinfos(text)).filter(within).collect();
    all.sort_by_key(|secret| secret.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for secret in all {
        match apart.last_mut() {
            Some(last) if secret.start <= last.end => last.end = last.end.max(secret.end),
            _ => apart.push(secret),
        }
    }
    let mut masked = Masked { text: String::new(), hidden: Vec::new() };
    let mut shown = 0;
    for secret in apart {
        // The lines below keep their numbers.
        let lines = text[secret.clone()].matches('\n').count();
        let mask = format!("{MASK}{}", "\n".repeat(lines));
        masked.text.push_str(&text[shown..secret.start]);
        masked.text.push_str(&mask);
        shown = secret.end;
        masked.hidden.push((secret, mask));
    }
    masked.text.push_str(&text[shown..]);
    masked
}

/// A text with asterisks for every user and password of a connection string.
pub fn masked(text: &str) -> String {
    mask(text, &[]).text
}

/// An argument that was meant for another place, as it may be repeated: whatever comes before its last `@` may be a
/// password, with or without a scheme before it.
pub fn masked_argument(text: &str) -> String {
    match text.rfind('@') {
        None => text.to_owned(),
        Some(at) => {
            let scheme = text[..at].find("://").map_or(0, |scheme| scheme + "://".len());
            format!("{}{MASK}{}", &text[..scheme], &text[at..])
        }
    }
}

/// Whether a text is a connection string, or one that lacks its beginning, rather than a name or a path.
pub fn looks_like_uri(text: &str) -> bool {
    let user_and_password = |text: &str| text.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    text.contains("://") || text.starts_with("mongodb:") || user_and_password(text)
}

impl Masked {
    /// Where a stretch of the original stands. One that begins or ends within what is hidden takes in the whole mask.
    pub fn place(&self, original: &Range<usize>) -> Range<usize> {
        self.moved(original.start, false)..self.moved(original.end, true)
    }

    fn moved(&self, at: usize, to_end: bool) -> usize {
        let (mut before, mut masks) = (0, 0);
        for (hidden, mask) in &self.hidden {
            if at >= hidden.end {
                before += hidden.len();
                masks += mask.len();
            } else if at > hidden.start {
                let start = hidden.start - before + masks;
                return if to_end { start + mask.len() } else { start };
            }
        }
        at - before + masks
    }
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
            "uri = \"mongodb://me:p@ss\u{e9}@host/\"\nx = \"mongodb+srv://h\"\ny = \"s3cret\"\nz = 1\n";
        let start = text.find("s3cret").unwrap();
        let secret = start..start + "s3cret".len();
        let shown = mask(text, &[secret.clone(), secret.clone(), 5..5, 900..901]);
        assert_eq!(
            shown.text,
            "uri = \"mongodb://***@host/\"\nx = \"mongodb+srv://h\"\ny = \"***\"\nz = 1\n"
        );
        let moved = |part: Range<usize>| &shown.text[shown.place(&part)];
        assert_eq!(moved(secret.clone()), "***");
        assert_eq!(moved(start + 2..secret.end + 1), "***\"", "half a secret is the whole mask");
        for part in ["uri", "host", "srv", "y =", "z = 1"] {
            let at = text.find(part).unwrap();
            assert_eq!(moved(at..at + part.len()), part);
        }
    }

    #[test]
    fn a_mask_tells_no_length_and_keeps_lines() {
        let (short, long) = ("mongodb://a:b@h\n", "mongodb://user:a-much-longer-password@h\n");
        assert_eq!(masked(short), masked(long));
        let secret = 4..13;
        let hidden = mask("k = '''a\nb'''\nz = 1", std::slice::from_ref(&secret));
        assert_eq!(hidden.text, "k = ***\n\nz = 1");
        assert_eq!(&hidden.text[hidden.place(&(14..15))], "z");
    }

    #[test]
    fn arguments_lose_whatever_may_be_a_password() {
        for (argument, shown) in [
            ("mongodb://u:p@h:1/", "mongodb://***@h:1/"),
            ("mongodb:u:p@ss@h", "***@h"),
            ("u:p@h:27017", "***@h:27017"),
            ("profile.toml", "profile.toml"),
        ] {
            assert_eq!(masked_argument(argument), shown);
            assert_eq!(looks_like_uri(argument), shown != "profile.toml", "{argument}");
        }
        assert!(looks_like_uri("mongodb://h") && !looks_like_uri("runs/me@home.toml"));
    }
}
