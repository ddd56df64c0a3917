//! The keys of the screen: one table, from which both what they do and the help are made.
//!
//! Bytes are read as the terminal sends them. A reader that knows every sequence there is would be more code than these
//! few keys are worth, and the common one never returns when the terminal is gone.

use crate::knobs::Turn;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The display stands still, or goes on.
    Freeze,
    /// The next operation's numbers.
    NextOperation,
    /// The help, or no help.
    Help,
    /// A knob is turned: a live trial takes over.
    Knob(Turn),
    /// An end: what is under way may finish.
    Stop,
    /// An end at once.
    Leave,
    /// What the signal of the same key does: the first asks for an end, the second for an immediate one.
    Interrupt,
    /// Back to the shell, until it brings the program to the front again.
    Suspend,
}

/// A key and what it does.
pub struct Binding {
    /// The byte it sends in raw mode.
    pub byte: u8,
    /// Its name.
    pub name: &'static str,
    /// What it asks for.
    pub action: Action,
    /// The same in a word, for where there is little room; empty for knobs, which are told together, and for keys that do
    /// everywhere what they do here.
    pub short: &'static str,
    /// The same in words.
    pub help: &'static str,
}

/// Every key that does something.
pub const BINDINGS: [Binding; 13] = [
    binding(b' ', "space", Action::Freeze, "freeze", "freeze the display; the run goes on"),
    binding(b'\t', "tab", Action::NextOperation, "operation", "pick an operation, or all"),
    binding(b'?', "?", Action::Help, "help", "show or hide this help"),
    binding(b'q', "q", Action::Stop, "stop", "stop: start nothing more, let the rest end, keep results"),
    binding(b'Q', "Q", Action::Leave, "leave", "leave at once: results are not whole"),
    binding(b'+', "+", Action::Knob(Turn::MoreRetries), "", "maxAdaptiveRetries: one more"),
    binding(b'-', "-", Action::Knob(Turn::FewerRetries), "", "maxAdaptiveRetries: one less"),
    binding(b't', "t", Action::Knob(Turn::Retargeting), "", "enableOverloadRetargeting: on or off"),
    binding(b']', "]", Action::Knob(Turn::MoreLoad), "", "rate or workers: a quarter more"),
    binding(b'[', "[", Action::Knob(Turn::LessLoad), "", "rate or workers: a fifth less"),
    binding(b'o', "o", Action::Knob(Turn::Overload), "", "the profile's overload: on or off"),
    binding(3, "Ctrl-C", Action::Interrupt, "", "like q, the second time like Q"),
    binding(26, "Ctrl-Z", Action::Suspend, "", "suspend overdrive, its load included; fg resumes"),
];

const fn binding(
    byte: u8,
    name: &'static str,
    action: Action,
    short: &'static str,
    help: &'static str,
) -> Binding {
    Binding { byte, name, action, short, help }
}

/// Where in a sequence of bytes that begins with Escape the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    Outside,
    /// Right behind Escape.
    Begun,
    /// Behind `Escape [`: parameters, then one last byte from `@` on.
    Control,
    /// Behind `Escape O`: one byte.
    Single,
}

/// Makes actions of bytes.
#[derive(Debug, Default)]
pub struct Decoder(Escape);

impl Decoder {
    /// What a piece of input asks for. Arrows, function keys and whatever else has a sequence ask for nothing.
    pub fn actions(&mut self, bytes: &[u8]) -> Vec<Action> {
        let actions = bytes.iter().filter_map(|&byte| self.action(byte)).collect();
        if self.0 == Escape::Begun {
            // The Escape key itself: what is typed next is a key of its own.
            self.0 = Escape::Outside;
        }
        actions
    }

    fn action(&mut self, byte: u8) -> Option<Action> {
        let (next, key) = match (self.0, byte) {
            (_, 0x1b) => (Escape::Begun, None),
            (Escape::Begun, b'[') => (Escape::Control, None),
            (Escape::Begun, b'O') => (Escape::Single, None),
            (Escape::Control, ..=0x3f) => (Escape::Control, None),
            (Escape::Outside, byte) => (Escape::Outside, Some(byte)),
            _ => (Escape::Outside, None),
        };
        self.0 = next;
        BINDINGS.iter().find(|binding| Some(binding.byte) == key).map(|binding| binding.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(pieces: &[&[u8]]) -> Vec<Action> {
        let mut decoder = Decoder::default();
        pieces.iter().flat_map(|piece| decoder.actions(piece)).collect()
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(actions(&[b" \t?"]), [Action::Freeze, Action::NextOperation, Action::Help]);
        assert_eq!(actions(&[b"q", b"Q", b"\x03", b"\x1a"]).len(), 4);
        let knobs = [Turn::MoreRetries, Turn::FewerRetries, Turn::MoreLoad, Turn::LessLoad];
        assert_eq!(actions(&[b"+-]["]), knobs.map(Action::Knob));
        assert_eq!(actions(&[b"xyz~\r\xc3\xa4"]), []);
    }

    #[test]
    fn sequences_ask_for_nothing() {
        // An arrow, F2 in both ways of writing it, Alt-q, a modified key; the last one comes in two pieces.
        assert_eq!(actions(&[b"\x1b[A", b"\x1bOQ", b"\x1b[1;2Q", b"\x1bq", b"\x1b[1;", b"5Q"]), []);
        assert_eq!(actions(&[b"\x1b[Aq"]), [Action::Stop]);
    }

    #[test]
    fn the_escape_key_does_not_swallow_what_follows() {
        assert_eq!(actions(&[b"\x1b", b"q"]), [Action::Stop]);
    }
}
