//! Where workers leave items of bulks that no server takes, until the next snapshot takes them along.

use std::sync::{Mutex, PoisonError};

use crate::snapshot::{DeadLetter, DeadLetters, MOST_TOLD};

/// Bytes of what items would write that are kept between two snapshots: a load of nothing but bad items must not fill
/// memory, nor the disk at any rate.
const MOST_BYTES: usize = 1 << 20;

/// Those that no snapshot has taken yet.
#[derive(Debug, Default)]
pub struct LetterBox(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    kept: DeadLetters,
    bytes: usize,
}

impl LetterBox {
    /// Adds one, or counts it where there is no room.
    pub fn put(&self, letter: DeadLetter) {
        let bytes = letter.write.to_string().len() + letter.message.len();
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if contents.bytes + bytes > MOST_BYTES || contents.kept.letters.len() == MOST_TOLD {
            contents.kept.left_out += 1;
        } else {
            contents.bytes += bytes;
            contents.kept.letters.push(letter);
        }
    }

    /// All since the last time.
    pub fn take(&self) -> DeadLetters {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_a_mebibyte_or_a_thousand_they_are_counted() {
        let letter = |length: usize| DeadLetter {
            at_ns: 0,
            operation: 0,
            n: 0,
            item: 0,
            calls: 1,
            code: Some(11000),
            code_name: String::new(),
            message: String::new(),
            unclear_before: false,
            // With its quotes.
            write: serde_json::Value::String("x".repeat(length - 2)),
        };
        let kept = LetterBox::default();
        for length in [MOST_BYTES - 10, 11, 10, 3] {
            kept.put(letter(length));
        }
        let taken = kept.take();
        assert_eq!((taken.letters.len(), taken.left_out), (2, 2));
        assert!(kept.take().is_empty());
        (0..MOST_TOLD + 3).for_each(|_| kept.put(letter(11)));
        let taken = kept.take();
        assert_eq!((taken.letters.len(), taken.left_out), (MOST_TOLD, 3));
    }
}
