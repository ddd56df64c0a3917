//! Items of bulks that no server takes, kept for people.

use serde::{Deserialize, Serialize};

/// The most of an interval's that one client tells.
pub const MOST_TOLD: usize = 1000;

/// The most that wait for a disk that does not keep up.
const MOST_WAITING: usize = 16 * MOST_TOLD;

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
    /// Whether it is not known what a call before has done: it may have written the item, and what was found now is the item
    /// itself.
    pub unclear_before: bool,
    /// What it would write, as `bulkWrite` takes it, in Extended JSON.
    pub write: serde_json::Value,
}

impl DeadLetters {
    /// Whether there were none.
    pub const fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.left_out == 0
    }

    /// Adds others, as many as there is room for.
    pub fn merge(&mut self, others: Self) {
        let room = MOST_WAITING.saturating_sub(self.letters.len());
        self.left_out += others.left_out + others.letters.len().saturating_sub(room) as u64;
        self.letters.extend(others.letters.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let letters = |count: usize| {
            let letter: DeadLetter = serde_json::from_value(serde_json::json!({
                "at_ns": 0, "operation": 0, "n": 0, "item": 0, "calls": 1, "code": null, "code_name": "", "message": "",
                "unclear_before": false, "write": {},
            }))
            .unwrap();
            DeadLetters { letters: vec![letter; count], left_out: 1 }
        };
        let mut merged = letters(MOST_WAITING - 5);
        merged.merge(letters(8));
        assert_eq!((merged.letters.len(), merged.left_out), (MOST_WAITING, 5));
        merged.merge(letters(1));
        assert_eq!((merged.letters.len(), merged.left_out), (MOST_WAITING, 7));
    }
}
