//! A small writer of SVG: elements, attributes, escaped text. The same calls
//! write the same bytes.

use crate::report::markup::{Attributes, escaped, opened, short};
use std::fmt::{Display, Write};

pub struct Svg {
    text: String,
    open: Vec<&'static str>,
}

/// Colours by class and not by attribute, so that dark surroundings can have others.
/// Everything is below `.fencepost`, because a page may hold the picture in line.
const STYLE: &str = "\
.fencepost{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:12px}
.fencepost .paper{fill:#ffffff}.fencepost .ink{fill:#1f2328}.fencepost .soft{fill:#59636e}
.fencepost .title{font-size:16px;font-weight:600}.fencepost .head{font-weight:600}
.fencepost .axis{stroke:#59636e}.fencepost .rule{stroke:#e1e4e8}.fencepost .guide{stroke:#8c959f}
.fencepost .line{fill:none;stroke-width:2;stroke-linejoin:round}
.fencepost .cloud{fill:none;stroke-width:3;stroke-linecap:round}
.fencepost .s0{stroke:#0072b2}.fencepost .s1{stroke:#d55e00}.fencepost .s2{stroke:#009e73}
.fencepost .s3{stroke:#b0509a}.fencepost .s4{stroke:#b07d00}.fencepost .s5{stroke:#6e40c9}
.fencepost .f0{fill:#0072b2}.fencepost .f1{fill:#d55e00}.fencepost .f2{fill:#009e73}
.fencepost .f3{fill:#b0509a}.fencepost .f4{fill:#b07d00}.fencepost .f5{fill:#6e40c9}
@media (prefers-color-scheme:dark){
.fencepost .paper{fill:#0d1117}.fencepost .ink{fill:#e6edf3}.fencepost .soft{fill:#9198a1}
.fencepost .axis{stroke:#9198a1}.fencepost .rule{stroke:#262c36}.fencepost .guide{stroke:#656c76}
.fencepost .s0{stroke:#58a6ff}.fencepost .s1{stroke:#ff8f4d}.fencepost .s2{stroke:#3fc99a}
.fencepost .s3{stroke:#e08bcb}.fencepost .s4{stroke:#e3b341}.fencepost .s5{stroke:#b392f0}
.fencepost .f0{fill:#58a6ff}.fencepost .f1{fill:#ff8f4d}.fencepost .f2{fill:#3fc99a}
.fencepost .f3{fill:#e08bcb}.fencepost .f4{fill:#e3b341}.fencepost .f5{fill:#b392f0}
}";

/// How many colours there are; after the last comes the first again.
pub const COLOURS: usize = 6;

impl Svg {
    /// The title is also what a screen reader says.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let mut svg = Svg {
            text: String::new(),
            open: Vec::new(),
        };
        let size = format!("0 0 {} {}", short(width), short(height));
        let attributes: [(&str, &dyn Display); 6] = [
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &"fencepost"),
            ("viewBox", &size),
            ("width", &short(width)),
            ("height", &short(height)),
            ("role", &"img"),
        ];
        svg.begin("svg", &attributes);
        svg.element("title", &[], title);
        svg.element("style", &[], STYLE);
        let all: &dyn Display = &"100%";
        let paper: [(&str, &dyn Display); 3] =
            [("class", &"paper"), ("width", all), ("height", all)];
        svg.empty("rect", &paper);
        svg
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.empty(
            "line",
            &[
                ("class", &class),
                ("x1", &short(from.0)),
                ("y1", &short(from.1)),
                ("x2", &short(to.0)),
                ("y2", &short(to.1)),
            ],
        );
    }

    pub fn path(&mut self, class: &str, dashes: &str, points: &[(f64, f64)]) {
        let mut way = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let step = if index == 0 { 'M' } else { 'L' };
            let _ = write!(way, "{step}{} {}", short(*x), short(*y));
        }
        self.empty(
            "path",
            &[
                ("class", &class),
                ("stroke-dasharray", &dashes),
                ("d", &way),
            ],
        );
    }

    /// Many small dots, as one path of strokes without length: a fifth of the bytes.
    pub fn cloud(&mut self, class: &str, places: &[(f64, f64)]) {
        let mut way = String::new();
        for (x, y) in places {
            let _ = write!(way, "M{} {}h0", short(*x), short(*y));
        }
        self.empty("path", &[("class", &class), ("d", &way)]);
    }

    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64) {
        self.empty(
            "circle",
            &[
                ("class", &class),
                ("cx", &short(at.0)),
                ("cy", &short(at.1)),
                ("r", &short(radius)),
            ],
        );
    }

    /// `anchor`: start, middle or end.
    pub fn text(&mut self, class: &str, anchor: &str, at: (f64, f64), words: &str) {
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &class),
            ("text-anchor", &anchor),
            ("x", &short(at.0)),
            ("y", &short(at.1)),
        ];
        self.element("text", &attributes, words);
    }

    /// Text that is read from below.
    pub fn upright_text(&mut self, class: &str, at: (f64, f64), words: &str) {
        let turn = format!("translate({} {}) rotate(-90)", short(at.0), short(at.1));
        let attributes: [(&str, &dyn Display); 3] = [
            ("class", &class),
            ("text-anchor", &"middle"),
            ("transform", &turn),
        ];
        self.element("text", &attributes, words);
    }

    pub fn finish(mut self) -> String {
        while let Some(name) = self.open.pop() {
            let _ = writeln!(self.text, "</{name}>");
        }
        self.text
    }

    fn begin(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.text += &opened(name, attributes);
        self.text += ">\n";
        self.open.push(name);
    }

    fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.text += &opened(name, attributes);
        self.text += "/>\n";
    }

    fn element(&mut self, name: &str, attributes: Attributes<'_>, words: &str) {
        self.text += &opened(name, attributes);
        let _ = writeln!(self.text, ">{}</{name}>", escaped(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_out_of_their_element() {
        let mut svg = Svg::new(10.0, 10.0, "a < b & \"c\"");
        svg.text("ink", "start", (0.0, 0.0), "</text>\u{7}");
        let text = svg.finish();
        assert!(text.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(text.contains(">&lt;/text&gt;\\x07</text>"), "{text}");
    }
}
