//! Connection-string options that a profile, the command line or a variant sets.

use serde::{Deserialize, Serialize};

/// One connection-string option to set or take away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionSetting {
    /// The option's name as the driver spells it, like `maxAdaptiveRetries`.
    pub name: String,
    /// The value, not percent-encoded; `None` removes the option from the URI (`unset`).
    pub value: Option<String>,
    /// Who asked for it.
    pub from: OptionSource,
}

/// An option's value in a run, and who decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResolvedOption {
    /// In the driver's spelling.
    pub name: &'static str,
    /// As it may be shown: `***` for a secret.
    pub value: String,
    /// Who decided it.
    pub from: OptionSource,
}

/// Where an option's value came from, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionSource {
    /// `--vary`
    Vary,
    /// `--set`
    Set,
    /// `[client]` in the profile
    Profile,
    /// The connection string.
    Uri,
    /// overdrive's own, like `appName`.
    Overdrive,
    /// Nobody: the driver's default.
    Default,
}
