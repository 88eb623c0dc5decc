//! A small writer of SVG. The same calls write the same bytes.

use super::*;

pub struct Svg {
    width: String,
    height: String,
    inner: Markup,
}

/// Colours are set by class and not by attribute, so that a dark theme can change them.
/// Everything is below `.fencepost`, because a page may contain the picture inline.
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

/// The number of colours; the first follows the last.
pub const COLOURS: usize = 6;

impl Svg {
    /// Starts a picture. Screen readers also read the title.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let (width, height) = (short(width), short(height));
        let inner = html! {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.paper width="100%" height="100%" {}
        };
        Svg {
            width,
            height,
            inner,
        }
    }

    fn add(&mut self, shape: Markup) {
        self.inner.0 += &shape.0;
        self.inner.0.push('\n');
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        self.add(html! { line class=(class) x1=(x1) y1=(y1) x2=(x2) y2=(y2) {} });
    }

    pub fn path(&mut self, class: &str, dashes: Option<&str>, points: &[(f64, f64)]) {
        let mut way = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let step = if index == 0 { 'M' } else { 'L' };
            let _ = write!(way, "{step}{} {}", short(*x), short(*y));
        }
        self.add(html! { path class=(class) stroke-dasharray=[dashes] d=(way) {} });
    }

    /// Draws many small dots as one path of strokes without length, which takes a fifth of the
    /// bytes.
    pub fn cloud(&mut self, class: &str, places: &[(f64, f64)]) {
        let mut way = String::new();
        for (x, y) in places {
            let _ = write!(way, "M{} {}h0", short(*x), short(*y));
        }
        self.add(html! { path class=(class) d=(way) {} });
    }

    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let [x, y, radius] = [at.0, at.1, radius].map(short);
        self.add(html! { circle class=(class) cx=(x) cy=(y) r=(radius) {} });
    }

    /// Writes text. `anchor` is start, middle or end.
    pub fn text(&mut self, class: &str, anchor: &str, at: (f64, f64), words: &str) {
        let [x, y] = [at.0, at.1].map(short);
        self.add(html! { text class=(class) text-anchor=(anchor) x=(x) y=(y) { (words) } });
    }

    /// Writes text that is read from bottom to top.
    pub fn upright_text(&mut self, class: &str, at: (f64, f64), words: &str) {
        let turn = format!("translate({} {}) rotate(-90)", short(at.0), short(at.1));
        self.add(html! { text class=(class) text-anchor="middle" transform=(turn) { (words) } });
    }

    pub fn finish(self) -> String {
        let (width, height) = (self.width, self.height);
        let size = format!("0 0 {width} {height}");
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="fencepost" viewBox=(size)
                width=(width) height=(height) role="img" { (self.inner) }
        };
        shown::lines(&svg.0).into_owned()
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
