//! A part of `[flow]` that may be there or not, while the command line changes it.

use std::collections::BTreeSet;

use super::is_none;

/// What changes one key of a part that is there. The key `kind` stands for the part as a whole, too. Also given is what the
/// profile has for the part, on or off.
type Change<T> = fn(&mut T, Option<T>, &str, &str) -> Result<(), String>;

/// The part, and where its numbers come from when it is put there.
pub struct Part<'a, T> {
    name: &'static str,
    now: &'a mut Option<T>,
    written: Option<T>,
    default: T,
    /// The parts that the command line has taken away.
    gone: &'a mut BTreeSet<&'static str>,
}

impl<'a, T: Copy> Part<'a, T> {
    /// All of it.
    pub const fn new(
        name: &'static str,
        now: &'a mut Option<T>,
        written: Option<T>,
        default: T,
        gone: &'a mut BTreeSet<&'static str>,
    ) -> Self {
        Self { name, now, written, default, gone }
    }

    /// Sets a key, or the part as a whole where none is given.
    pub fn set(self, key: &[&str], value: &str, change: Change<T>) -> Result<(), String> {
        let key = key.first().copied().unwrap_or("kind");
        if key == "kind" && is_none(value) {
            *self.now = None;
            self.gone.insert(self.name);
            return Ok(());
        }
        // A variant without the part would get it back, under the name of one that has none.
        if key != "kind" && self.gone.contains(self.name) {
            return Err(format!(
                "{} was taken away before it: vary one of them in a run of its own",
                self.name
            ));
        }
        let mut part = self.now.or(self.written).unwrap_or(self.default);
        change(&mut part, self.written, key, value)?;
        *self.now = Some(part);
        self.gone.remove(self.name);
        Ok(())
    }
}
