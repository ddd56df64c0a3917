//! SVG text, piece by piece. Whatever text goes in is escaped here.

use std::fmt::Write;

/// An SVG element that grows.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// Where a text stands beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// It has its middle there.
    Middle,
    /// It ends there.
    End,
}

impl Svg {
    /// An empty one with its ground; the label is what those hear who do not see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let mut svg = Self { width, height, label: label.to_owned(), body: String::new() };
        svg.rect("ground", (0.0, 0.0), (width, height));
        svg
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        ));
    }

    /// A rectangle between two corners.
    pub fn rect(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(from.0),
            px(from.1),
            px((to.0 - from.0).max(0.0)),
            px((to.1 - from.1).max(0.0))
        ));
    }

    /// Any text, in one line.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (px(at.0), px(at.1), escaped(text));
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A path; `dash` is empty for a line without gaps.
    pub fn path(&mut self, class: &str, dash: &str, path: &Path) {
        if path.0.is_empty() {
            return;
        }
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.add(format_args!("<path class=\"{class}\"{dash} d=\"{}\"/>", path.0));
    }

    /// The whole element.
    pub fn finish(self) -> String {
        let Self { width, height, label, body } = self;
        format!(
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" \
             role=\"img\" aria-label=\"{}\">{body}</svg>",
            px(width),
            px(height),
            px(width),
            px(height),
            escaped(&label)
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(element);
    }
}

/// What a pen draws.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// Takes the pen there without drawing.
    pub fn start(&mut self, (x, y): (f64, f64)) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "M{} {}", px(x), px(y));
    }

    /// Draws a straight line there.
    pub fn go(&mut self, (x, y): (f64, f64)) {
        let _ = write!(self.0, "L{} {}", px(x), px(y));
    }

    /// Draws back to where the pen was put down.
    pub fn close(&mut self) {
        self.0.push('Z');
    }

    /// A line through these places.
    pub fn through(places: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut path = Self::default();
        for place in places {
            if path.0.is_empty() { path.start(place) } else { path.go(place) }
        }
        path
    }
}

/// A small shape around a place; there are four, which go round.
pub fn marker(shape: usize, (x, y): (f64, f64)) -> Path {
    let r = 3.5;
    let mut path = Path::default();
    match shape % 4 {
        0 => {
            path = Path::through([(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]);
            path.close();
        }
        1 => {
            path = Path::through([(x, y - r - 1.0), (x + r + 1.0, y + r), (x - r - 1.0, y + r)]);
            path.close();
        }
        2 => {
            path.start((x - r, y));
            path.go((x + r, y));
            path.start((x, y - r));
            path.go((x, y + r));
        }
        _ => {
            path.start((x - r, y - r));
            path.go((x + r, y + r));
            path.start((x - r, y + r));
            path.go((x + r, y - r));
        }
    }
    path
}

/// Text that stands for itself and nothing else, in an element or in a quoted attribute. What neither SVG nor HTML may
/// hold, control characters and what is no character, becomes a sign that shows that something was there.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A length to a tenth of a pixel. What is no number is not drawn anywhere but at the edge.
fn px(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_nothing_but_text() {
        let hostile = "</text><script>alert('1')</script>\" onload=\"x&amp;\u{0}\u{1b}[31m\u{ffff}";
        assert_eq!(
            escaped(hostile),
            "&lt;/text&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x&amp;amp;\u{fffd}\u{fffd}[31m\u{fffd}"
        );
        let mut svg = Svg::new(10.0, 10.0, hostile);
        svg.text("small", (1.0, 2.0), Anchor::Middle, hostile);
        let text = svg.finish();
        assert!(!text.contains("<script"), "{text}");
        assert_eq!(text.matches("onload=&quot;").count(), 2, "{text}");
    }

    #[test]
    fn lengths_are_short_and_always_numbers() {
        assert_eq!([0.0, -0.01, 1.0, 12.34, 1e4].map(px), ["0", "0", "1", "12.3", "10000"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(px), ["0", "0"]);
    }

    #[test]
    fn pieces_stand_in_their_order() {
        let mut svg = Svg::new(20.0, 10.0, "a");
        svg.line("grid", (1.0, 2.0), (3.0, 4.5));
        svg.path("line c0", "2 3", &Path::through([(0.0, 0.0), (5.0, 5.0)]));
        svg.path("line c0", "", &Path::default());
        assert_eq!(
            svg.finish(),
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 10\" width=\"20\" height=\"10\" \
             role=\"img\" aria-label=\"a\"><rect class=\"ground\" x=\"0\" y=\"0\" width=\"20\" height=\"10\"/>\
             <line class=\"grid\" x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4.5\"/>\
             <path class=\"line c0\" stroke-dasharray=\"2 3\" d=\"M0 0L5 5\"/></svg>"
        );
    }
}
