//! Documents with holes.

use serde::{Deserialize, Serialize};

/// Placeholder, replaced by the template module's author.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template(pub serde_json::Value);
