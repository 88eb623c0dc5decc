//! One pair of axes with the series drawn between them.

use super::svg::{COLOURS, Svg};
use super::*;

pub struct Panel {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Moments on the x axis at which something began.
    pub marks: Vec<(f64, String)>,
    /// Whether to draw the line where both coordinates are equal.
    pub diagonal: bool,
}

pub struct Axis {
    /// The label, with the unit.
    label: &'static str,
    scale: Scale,
}

impl Axis {
    pub fn new(label: &'static str, scale: Scale) -> Axis {
        Axis { label, scale }
    }
}

#[derive(Clone)]
pub struct Series {
    pub name: String,
    pub colour: usize,
    pub stroke: Stroke,
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Makes a series. Without a name it is not in the legend.
    pub fn new(
        name: impl Into<String>,
        colour: usize,
        stroke: Stroke,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        let (name, points) = (name.into(), points.into_iter().collect());
        Series {
            name,
            colour,
            stroke,
            points,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Stroke {
    /// A line with a dot at each value.
    Dotted,
    Plain,
    Dashed,
    /// Only dots.
    Cloud,
}

#[derive(Clone, Copy)]
pub struct Place {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// The room that titles, labels and ticks need around the axes.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
/// The room that the words of marks need above the axes.
const MARK_WORDS: f64 = 16.0;
/// The approximate width of a letter of the normal size.
pub const LETTER: f64 = 7.0;
/// The least distance between the words of marks, so that they do not overlap.
const WORDS_APART: f64 = 8.0;

impl Panel {
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
        Panel {
            title: title.into(),
            x,
            y,
            series,
            marks: Vec::new(),
            diagonal: false,
        }
    }

    /// Makes a panel of values over time, from zero on both axes.
    pub fn over_time(
        title: impl Into<String>,
        x: &'static str,
        y: &'static str,
        series: Vec<Series>,
    ) -> Panel {
        let points = || series.iter().flat_map(|series| &series.points);
        let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let y = Axis::new(y, Scale::linear(points().map(|(_, y)| *y)));
        Panel::new(title, Axis::new(x, Scale::up_to(last)), y, series)
    }

    pub fn draw(&self, svg: &mut Svg, place: Place) {
        let top = match self.marks.is_empty() {
            true => TOP,
            false => TOP + MARK_WORDS,
        };
        let inner = Place {
            left: place.left + LEFT,
            top: place.top + top,
            width: place.width - LEFT - RIGHT,
            height: place.height - top - BOTTOM,
        };
        let most = (place.width / LETTER) as usize;
        let title: String = self.title.chars().take(most).collect();
        svg.text("ink head", "start", (inner.left, place.top + 14.0), &title);
        self.draw_axes(svg, inner);
        self.draw_marks(svg, inner);
        if self.diagonal {
            let start = (inner.left, inner.top + inner.height);
            svg.line("guide", start, (inner.left + inner.width, inner.top));
        }
        for series in &self.series {
            self.draw_series(svg, inner, series);
        }
    }

    fn draw_axes(&self, svg: &mut Svg, inner: Place) {
        let (right, bottom) = (inner.left + inner.width, inner.top + inner.height);
        for tick in self.y.scale.ticks() {
            let Some(place) = self.y.scale.place(tick) else {
                continue;
            };
            let y = bottom - place * inner.height;
            svg.line("rule", (inner.left, y), (right, y));
            let at = (inner.left - 6.0, y + 4.0);
            svg.text("soft", "end", at, &tick_label(tick));
        }
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x.scale.ticks() {
            let Some(place) = self.x.scale.place(tick) else {
                continue;
            };
            let x = inner.left + place * inner.width;
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            let label = tick_label(tick);
            let half = label.chars().count() as f64 * LETTER / 2.0;
            if x - half > free_from {
                svg.text("soft", "middle", (x, bottom + 17.0), &label);
                free_from = x + half + 4.0;
            }
        }
        svg.line("axis", (inner.left, bottom), (right, bottom));
        svg.line("axis", (inner.left, inner.top), (inner.left, bottom));
        let middle = inner.left + inner.width / 2.0;
        svg.text("soft", "middle", (middle, bottom + 36.0), self.x.label);
        let middle = inner.top + inner.height / 2.0;
        svg.upright_text("soft", (inner.left - 46.0, middle), self.y.label);
    }

    fn draw_marks(&self, svg: &mut Svg, inner: Place) {
        let mut free_from = inner.left;
        for (at, words) in &self.marks {
            let Some(place) = self.x.scale.place(*at) else {
                continue;
            };
            let x = inner.left + place * inner.width;
            svg.line("guide", (x, inner.top), (x, inner.top + inner.height));
            let end = x + words.chars().count() as f64 * LETTER;
            if x >= free_from && end <= inner.left + inner.width + RIGHT {
                svg.text("soft", "start", (x, inner.top - 5.0), words);
                free_from = end + WORDS_APART;
            }
        }
    }

    fn draw_series(&self, svg: &mut Svg, inner: Place, series: &Series) {
        let places = series.points.iter().filter_map(|(x, y)| {
            let x = inner.left + self.x.scale.place(*x)? * inner.width;
            let y = inner.top + (1.0 - self.y.scale.place(*y)?) * inner.height;
            Some((x, y))
        });
        let places: Vec<(f64, f64)> = places.collect();
        draw_stroke(svg, series, &places);
    }
}

/// Draws a series through these points of the picture.
pub fn draw_stroke(svg: &mut Svg, series: &Series, places: &[(f64, f64)]) {
    let colour = series.colour % COLOURS;
    let line = format!("line s{colour}");
    match series.stroke {
        Stroke::Cloud => return svg.cloud(&format!("cloud s{colour}"), places),
        Stroke::Dashed => svg.path(&line, Some("6 4"), places),
        Stroke::Dotted | Stroke::Plain => svg.path(&line, None, places),
    }
    // A single value would not be visible as a line.
    if series.stroke == Stroke::Dotted || places.len() == 1 {
        for place in places {
            svg.dot(&format!("f{colour}"), *place, 3.0);
        }
    }
}
