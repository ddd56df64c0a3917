//! Mistakes in a text, shown where they are: the line, a caret, and what was probably meant.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::secrets::{Masked, masked};

/// Whether a diagnostic forbids the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The profile cannot be used.
    Error,
    /// The profile can be used, but it probably does something else than was meant.
    Warning,
}

/// One thing to say about a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it forbids the run.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Where, in bytes; `None` when it concerns no place in the text.
    pub span: Option<Range<usize>>,
    /// What stands beside the caret; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span: Some(span),
            label: String::new(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// An error about the whole input.
    pub fn general(message: impl Into<String>) -> Self {
        Self { span: None, ..Self::error(0..0, message) }
    }

    /// The same with words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same with advice below.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All that there is to say about one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// What the text is called: its path, or a shipped profile's name.
    pub source: String,
    /// The text itself; empty when it could not be read.
    pub text: String,
    /// In the order of the text.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// A report on an input that never became text.
    pub fn unreadable(source: impl Into<String>, diagnostic: Diagnostic) -> Self {
        Self { source: source.into(), text: String::new(), list: vec![diagnostic] }
    }

    /// On a text of which not everything may be shown; the places are those of the original.
    pub fn hiding(source: String, text: &Masked, mut list: Vec<Diagnostic>) -> Self {
        for diagnostic in &mut list {
            diagnostic.span = diagnostic.span.as_ref().map(|span| text.place(span));
            // Messages repeat names, and people put a connection string anywhere.
            diagnostic.message = masked(&diagnostic.message);
            diagnostic.label = masked(&diagnostic.label);
        }
        Self { source, text: text.text.clone(), list }
    }

    /// Whether one of them forbids the run.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Everything as a person reads it, ending in a newline; empty when there is nothing to say.
    pub fn render(&self, coloured: bool) -> String {
        let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
        let shown: Vec<String> = self
            .list
            .iter()
            .map(|d| renderer.render(&[self.group(d)]).trim_end().to_owned() + "\n")
            .collect();
        // The renderer shows ASCII's control characters as symbols but lets these pass, and one of them starts escape
        // sequences on some terminals.
        shown.join("\n").replace(|c| ('\u{80}'..='\u{9f}').contains(&c), "\u{fffd}")
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()));
        if let Some(span) = &diagnostic.span {
            let annotation = AnnotationKind::Primary.span(self.whole_characters(span));
            let annotation = match diagnostic.label.as_str() {
                "" => annotation,
                label => annotation.label(label),
            };
            group = group.element(
                Snippet::source(self.text.as_str()).path(self.source.as_str()).annotation(annotation),
            );
        }
        match &diagnostic.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    /// A span within the text that cuts no character in two: the renderer takes nothing else.
    fn whole_characters(&self, span: &Range<usize>) -> Range<usize> {
        let floor = |at: usize| (0..=at.min(self.text.len())).rev().find(|&i| self.text.is_char_boundary(i));
        let start = floor(span.start).unwrap_or(0);
        start..floor(span.end).unwrap_or(0).max(start)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

/// The known name that a mistyped one most resembles, if any is near enough to be meant.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name))
        .filter(|&(likeness, _)| likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Names as a sentence has them: `a, b or c`.
pub fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}
