//! What came of looking at a rule.

use serde::{Deserialize, Serialize};

/// What is said of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The driver did as the rule says.
    Holds,
    /// It did not.
    Broken,
    /// Nothing can be said here.
    Untestable,
}

impl Verdict {
    /// As tables and files have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::Untestable => "untestable",
        }
    }
}

/// A rule, its verdict and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's name, which no other has.
    pub rule: String,
    /// Where it is written: specification and section, or file of tests.
    pub source: String,
    /// What is said of it.
    pub verdict: Verdict,
    /// What was seen, or why nothing can be said.
    pub seen: String,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The verdict.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
}

impl Seen {
    /// The rule holds if this does.
    pub fn judge(holds: bool, seen: impl Into<String>) -> Self {
        let verdict = if holds { Verdict::Holds } else { Verdict::Broken };
        Self { verdict, seen: seen.into() }
    }

    /// Nothing can be said, for this reason.
    pub fn untestable(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Untestable, seen: reason.into() }
    }

    /// Of several looks at one rule: broken if any is, else untestable if any is.
    pub fn all(looks: impl IntoIterator<Item = Self>) -> Self {
        let looks: Vec<Self> = looks.into_iter().collect();
        let verdict = [Verdict::Broken, Verdict::Untestable]
            .into_iter()
            .find(|verdict| looks.iter().any(|look| look.verdict == *verdict))
            .unwrap_or(Verdict::Holds);
        let seen: Vec<String> = looks.into_iter().map(|look| look.seen).collect();
        Self { verdict, seen: seen.join("; ") }
    }
}

/// The driver does not take a connection string that the specification allows: that is a finding, where other failures
/// to look are none.
#[derive(Debug, thiserror::Error)]
#[error("the driver refuses the connection string: {0}")]
pub struct Refused(String);

impl Refused {
    /// With the driver's reason, free of credentials.
    pub fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// What is said when looking failed.
pub fn from_failure(error: &anyhow::Error) -> Seen {
    let seen = format!("{error:#}");
    if error.is::<Refused>() { Seen::judge(false, seen) } else { Seen::untestable(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_look_breaks_a_rule() {
        let (holds, broken) = (Seen::judge(true, "a"), Seen::judge(false, "b"));
        let untestable = Seen::untestable("c");
        assert_eq!(Seen::all([holds.clone()]).verdict, Verdict::Holds);
        assert_eq!(Seen::all([holds.clone(), untestable.clone()]).verdict, Verdict::Untestable);
        let all = Seen::all([holds, untestable, broken]);
        assert_eq!((all.verdict, &*all.seen), (Verdict::Broken, "a; c; b"));
    }

    #[test]
    fn only_a_refusal_is_the_drivers_fault() {
        assert_eq!(from_failure(&Refused::new("no such option").into()).verdict, Verdict::Broken);
        assert_eq!(from_failure(&anyhow::anyhow!("gone")).verdict, Verdict::Untestable);
    }
}
