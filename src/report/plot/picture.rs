//! Panels beside and below each other, under one title and one legend.

use super::svg::Svg;
use super::*;

pub struct Picture {
    pub title: &'static str,
    /// What a reader has to know to read it.
    pub note: &'static str,
    pub panels: Vec<Panel>,
    pub columns: usize,
    pub panel_height: f64,
}

const WIDTH: f64 = 960.0;
const MARGIN: f64 = 16.0;
const LEGEND_LINE: f64 = 22.0;
const SAMPLE: f64 = 28.0;

impl Picture {
    pub fn svg(&self) -> String {
        let entries = self.legend();
        let (legend, legend_height) = lay_out(&entries);
        let rows = self.panels.len().div_ceil(self.columns.max(1));
        let panels_top = MARGIN + 46.0 + legend_height;
        let height = panels_top + rows as f64 * self.panel_height + MARGIN;
        let mut svg = Svg::new(WIDTH, height, self.title);
        svg.text("ink title", "start", (MARGIN, MARGIN + 14.0), self.title);
        svg.text("soft", "start", (MARGIN, MARGIN + 34.0), self.note);
        for (entry, (left, top)) in entries.iter().zip(legend) {
            draw_entry(&mut svg, entry, (left, MARGIN + 42.0 + top));
        }
        let width = (WIDTH - 2.0 * MARGIN) / self.columns.max(1) as f64;
        for (index, panel) in self.panels.iter().enumerate() {
            let (row, column) = (index / self.columns.max(1), index % self.columns.max(1));
            let place = Place {
                left: MARGIN + column as f64 * width,
                top: panels_top + row as f64 * self.panel_height,
                width,
                height: self.panel_height,
            };
            panel.draw(&mut svg, place);
        }
        svg.finish()
    }

    /// Returns each name once, with its style.
    fn legend(&self) -> Vec<Series> {
        let mut entries: Vec<Series> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            let known = entries.iter().any(|entry| entry.name == series.name);
            if !known && !series.name.is_empty() {
                entries.push(Series {
                    points: Vec::new(),
                    ..series.clone()
                });
            }
        }
        entries
    }
}

/// Returns where each entry starts, in lines, and the height of all lines.
fn lay_out(entries: &[Series]) -> (Vec<(f64, f64)>, f64) {
    let (mut left, mut top) = (MARGIN, 0.0);
    let mut places = Vec::new();
    for entry in entries {
        let width = SAMPLE + 26.0 + entry.name.chars().count() as f64 * LETTER;
        if left + width > WIDTH - MARGIN && left > MARGIN {
            (left, top) = (MARGIN, top + LEGEND_LINE);
        }
        places.push((left, top));
        left += width;
    }
    let height = match entries.is_empty() {
        true => 0.0,
        false => top + LEGEND_LINE,
    };
    (places, height)
}

fn draw_entry(svg: &mut Svg, entry: &Series, (left, top): (f64, f64)) {
    let y = top + 12.0;
    let end = left + SAMPLE;
    draw_stroke(svg, entry, &[(left, y), (end, y)]);
    svg.text("ink", "start", (end + 8.0, y + 4.0), &entry.name);
}
