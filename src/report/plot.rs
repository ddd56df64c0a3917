//! Plots as SVG text: pure functions of data, one file for each kind.
//!
//! Colours are told apart by people who see few of them (the palette is M. Okabe and K. Ito's, "Color Universal Design",
//! 2008), and every line has a dash or a marker of its own, so that it is told without any colour as well. Colours are in
//! [`STYLE`], which also has those for dark screens; in print everything is as on a light one.

pub mod over_time;
pub mod ratios;
pub mod retries;
pub mod scale;
pub mod spectrum;
pub mod svg;

use self::svg::escaped;

/// How everything in a plot looks. A page has it once; a plot that is a file of its own has it inside.
pub const STYLE: &str = "\
.plot{font:12px system-ui,sans-serif}
.plot text{fill:#222}
.plot .small{font-size:11px}
.plot .title{font-weight:600}
.plot .quiet{fill:#5c5c5c}
.plot .ground{fill:#fff}
.plot .grid{stroke:#e3e3e3;stroke-width:1}
.plot .axis{stroke:#767676;stroke-width:1}
.plot .phase{stroke:#767676;stroke-width:1;stroke-dasharray:2 3}
.plot .overload{fill:#f3e3b3;fill-opacity:.55}
.plot .edge{stroke:#8a6d00;stroke-width:1;stroke-dasharray:4 3}
.plot .line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.plot .mark{fill:none;stroke-width:1.5}
.plot .band{stroke:none;fill-opacity:.2}
.plot .hollow{fill-opacity:0;stroke-width:1.5}
.plot .c0{stroke:#0072b2}.plot .f0{fill:#0072b2}
.plot .c1{stroke:#444}.plot .f1{fill:#444}
.plot .c2{stroke:#d55e00}.plot .f2{fill:#d55e00}
.plot .c3{stroke:#a6457f}.plot .f3{fill:#a6457f}
.plot .c4{stroke:#00795a}.plot .f4{fill:#00795a}
.plot .c5{stroke:#2b8fc9}.plot .f5{fill:#2b8fc9}
.plot .c6{stroke:#a87900}.plot .f6{fill:#a87900}
@media screen and (prefers-color-scheme:dark){
.plot text{fill:#e8e8e8}
.plot .quiet{fill:#a8a8a8}
.plot .ground{fill:#16181c}
.plot .grid{stroke:#2c3036}
.plot .axis,.plot .phase{stroke:#8b9099}
.plot .overload{fill:#5c4a12}
.plot .edge{stroke:#d9b84a}
.plot .c0{stroke:#56b4e9}.plot .f0{fill:#56b4e9}
.plot .c1{stroke:#c8c8c8}.plot .f1{fill:#c8c8c8}
.plot .c2{stroke:#f0843c}.plot .f2{fill:#f0843c}
.plot .c3{stroke:#dd8fbb}.plot .f3{fill:#dd8fbb}
.plot .c4{stroke:#2cc49a}.plot .f4{fill:#2cc49a}
.plot .c5{stroke:#8fd0f5}.plot .f5{fill:#8fd0f5}
.plot .c6{stroke:#e6b422}.plot .f6{fill:#e6b422}
}
";

/// How many colours there are: `c0`, `c1` and so on for lines, `f0`, `f1` and so on for areas.
pub const COLOURS: usize = 7;

/// What lines of the same colour are told apart by, and what they are told by without any: after the colours have gone
/// round once, each has another.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2 1 2"];

/// The dash of a line, by its number.
pub const fn dash(number: usize) -> &'static str {
    DASHES[number % DASHES.len()]
}

/// A plot, and what is said under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// A name for its file, without the ending.
    pub stem: String,
    /// What it shows; not escaped.
    pub title: String,
    /// What has to be known to read it; not escaped.
    pub caption: String,
    /// The `svg` element, without a style.
    pub svg: String,
}

impl Plot {
    /// The plot as a file of its own.
    pub fn file(&self) -> String {
        let Self { title, caption, svg, .. } = self;
        let style = format!("<desc>{} {}</desc><style>{STYLE}</style>", escaped(title), escaped(caption));
        // Every plot begins with its ground; what is said of it belongs before that.
        let ground = svg.find('>').map_or(0, |end| end + 1);
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}{style}{}\n", &svg[..ground], &svg[ground..])
    }
}
