//! How the screen looks: the terminal's own sixteen colours or none, Unicode or ASCII. Every meaning has a shape beside
//! its colour, and nothing is white, black or yellow, so that it can be read on light and on dark.

use ratatui::style::{Color, Modifier, Style};

/// The characters that pictures are made of.
#[derive(Debug)]
pub struct Glyphs {
    /// Bars that grow upwards, from an eighth to the whole.
    pub up: &'static [&'static str],
    /// Bars that grow to the right, likewise.
    pub right: &'static [&'static str],
    /// What is told apart from a full bar.
    pub other: &'static str,
    /// A period in which servers are pushed.
    pub shade: &'static str,
    /// Operations that were due.
    pub offered: &'static str,
    /// The line beside a title.
    pub rule: &'static str,
    /// Between words.
    pub dot: &'static str,
    /// Where something was cut.
    pub more: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    up: &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    right: &["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    other: "▒",
    shade: "░",
    offered: "─",
    rule: "─",
    dot: "·",
    more: "…",
};

const ASCII: Glyphs = Glyphs {
    up: &["#"],
    right: &["#"],
    other: "%",
    shade: ":",
    offered: "-",
    rule: "-",
    dot: "|",
    more: "~",
};

/// Attempts, where there are more of them than operations.
pub const ATTEMPTS: &str = "+";

/// Attempts that were rejected.
pub const REJECTED: &str = "x";

/// How the screen looks.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    colour: bool,
    ascii: bool,
}

impl Theme {
    /// With or without colours, with nothing but ASCII or with all of Unicode.
    pub const fn new(colour: bool, ascii: bool) -> Self {
        Self { colour, ascii }
    }

    /// Whether only ASCII may be shown.
    pub const fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// The characters of pictures.
    pub const fn glyphs(&self) -> &'static Glyphs {
        if self.ascii { &ASCII } else { &UNICODE }
    }

    /// What succeeds.
    pub const fn good(&self) -> Style {
        self.in_colour(Color::Green)
    }

    /// What fails.
    pub const fn bad(&self) -> Style {
        self.in_colour(Color::Red)
    }

    /// What is done once more.
    pub const fn again(&self) -> Style {
        self.in_colour(Color::Magenta)
    }

    /// Attempts.
    pub const fn attempts(&self) -> Style {
        self.in_colour(Color::Cyan)
    }

    /// What explains, and is not to be in the way.
    pub const fn quiet(&self) -> Style {
        // No grey: some themes paint it like the background.
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What must be seen.
    pub const fn alarm(&self) -> Style {
        self.in_colour(Color::Red).add_modifier(Modifier::BOLD.union(Modifier::REVERSED))
    }

    /// Titles and names.
    pub const fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What was picked.
    pub const fn picked(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    const fn in_colour(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}
