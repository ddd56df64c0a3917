//! Items of bulks that no server takes, kept for people.

use serde::{Deserialize, Serialize};

/// Those of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeadLetters {
    /// The items, in the order they were given up.
    pub letters: Vec<DeadLetter>,
    /// How many more there were: only so many are kept of a second.
    pub left_out: u64,
}

/// An item that no server takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// When it was given up, in nanoseconds since Go.
    pub at_ns: u64,
    /// Its operation's position in the plan.
    pub operation: usize,
    /// Its operation's number in the load.
    pub n: u64,
    /// Its position among the operation's items.
    pub item: u64,
    /// Calls that were made with it.
    pub calls: u32,
    /// The server's code; `None` when it was not tried because one before it, in order, is hopeless.
    pub code: Option<i32>,
    /// The server's name for the code; may be empty.
    pub code_name: String,
    /// What the server said of it; may be empty.
    pub message: String,
    /// Whether a call before had no answer: it may have written the item, and what was found now is the item itself.
    pub unanswered_before: bool,
    /// What it would write, as `bulkWrite` takes it, in Extended JSON.
    pub write: serde_json::Value,
}

impl DeadLetters {
    /// Whether there were none.
    pub const fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.left_out == 0
    }

    /// Adds others.
    pub fn merge(&mut self, others: Self) {
        self.letters.extend(others.letters);
        self.left_out += others.left_out;
    }
}
