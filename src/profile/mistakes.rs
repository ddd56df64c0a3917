//! Where mistakes are gathered while a profile is read, so that all of them can be shown at once.

use std::cell::RefCell;
use std::ops::Range;

use super::diagnostic::{Diagnostic, Diagnostics, nearest};
use super::secrets::mask;

/// Where all mistakes go.
#[derive(Debug, Default)]
pub struct Mistakes {
    list: RefCell<Vec<Diagnostic>>,
    secrets: RefCell<Vec<Range<usize>>>,
}

impl Mistakes {
    /// One more.
    pub fn add(&self, diagnostic: Diagnostic) {
        self.list.borrow_mut().push(diagnostic);
    }

    /// What stands at a place may be a secret, and is not to be shown with the line it is in.
    pub fn hide(&self, secret: Range<usize>) {
        self.secrets.borrow_mut().push(secret);
    }

    /// All of them in the order of the text, which is the order people mend them in.
    pub fn into_diagnostics(self, source: String, text: String) -> Diagnostics {
        let mut list = self.list.into_inner();
        list.sort_by_key(|d| d.span.as_ref().map(|s| s.start));
        Diagnostics::hiding(source, &mask(&text, &self.secrets.into_inner()), list)
    }
}

/// A diagnostic about a name that is not known, with the nearest one, or all of them.
pub fn unknown(span: Range<usize>, message: String, wrong: &str, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::error(span, message);
    match nearest(wrong, known.iter().copied()) {
        Some(name) => diagnostic.label(format!("did you mean `{name}`?")),
        None if known.is_empty() => diagnostic,
        None => diagnostic.help(format!("known here: {}", known.join(", "))),
    }
}
