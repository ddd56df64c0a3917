//! Keeps a connection string's secrets out of texts that others wrote, like the driver's errors.

use super::{Uri, Userinfo, encoding};

impl Uri {
    /// `text` with `***` for the password (as written, decoded, encoded anew, and as Debug prints it), for
    /// user name and password together, and for every secret option.
    pub fn redact(&self, text: &str) -> String {
        let mut forms: Vec<String> = self.secrets().iter().flat_map(|s| forms(s)).collect();
        forms.retain(|form| !form.is_empty());
        // The longest first: a part must not be taken out of a whole that would then no longer be found.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        let mut redacted = text.to_owned();
        for form in forms {
            redacted = redacted.replace(&form, "***");
        }
        redacted
    }

    /// Every secret, as it came and decoded.
    fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        if let Some(Userinfo { user, password: Some(password) }) = &self.userinfo {
            for text in [password.clone(), format!("{user}:{password}")] {
                // It was decoded once already, by the check.
                secrets.push(encoding::decode(&text).unwrap_or_default());
                secrets.push(text);
            }
        }
        for option in &self.options {
            let parts = option.spec.secrets(&option.value);
            secrets.extend(parts.into_iter().map(str::to_owned));
        }
        secrets
    }
}

/// The ways in which a program may print a text.
fn forms(secret: &str) -> [String; 4] {
    let debug = format!("{secret:?}");
    [
        secret.to_owned(),
        encoding::encode_value(secret),
        encoding::encode_all(secret),
        // Without the quotes around it: the secret may be in the midst of a longer text.
        debug[1..debug.len() - 1].to_owned(),
    ]
}
