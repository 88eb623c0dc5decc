//! The timeline of a case: a lane for each worker, each lock node and the resource.

mod axis;
mod faults;
mod lanes;
mod legend;
mod marks;
mod nodes;
mod resource;
mod workers;

pub use legend::{definitions, legend};

use super::*;
use axis::{Axis, Moment};
use lanes::{Lane, Of, bands, height, names, names_width, svg, text};
use marks::{Mark, Marks, circle, hit, path, path_at, rect, row, with_token};

const LEFT: f64 = 14.0;
const RIGHT: f64 = 30.0;
/// The room for important moments, and for minor ones.
const ROOM: f64 = 20.0;
const LITTLE_ROOM: f64 = 5.0;

pub struct Drawing {
    pub markup: Markup,
    marks: Marks,
}

impl Drawing {
    pub fn mark_of(&self, step: &StoryStep, key: &str) -> Option<&str> {
        self.marks.of_step(step, key)
    }
}

/// The state that all parts of a drawing share.
struct Sheet<'a> {
    window: &'a Window<'a>,
    case: &'a CaseResult,
    axis: Axis,
    lanes: Vec<Lane>,
}

impl Sheet<'_> {
    fn lane(&self, of: Of, name: &str) -> Option<&Lane> {
        let mut lanes = self.lanes.iter();
        lanes.find(|lane| lane.of == of && lane.name == name)
    }

    fn x(&self, at_ns: u64) -> f64 {
        self.axis.x(at_ns)
    }

    /// Returns the time since the first event of the case, to the tenth of a millisecond.
    fn at(&self, at_ns: u64) -> String {
        format!("{:.4} s", self.case.millis_since_start(at_ns) / 1_000.0)
    }

    fn worker_of(&self, owner: Option<&str>) -> Option<&str> {
        let owner = owner?;
        let mut held = self.window.held.iter();
        let held = held.find(|held| held.owner == owner)?;
        Some(&held.worker)
    }
}

/// Draws a window. The ids of its marks begin with `id`.
pub fn draw(window: &Window<'_>, case: &CaseResult, id: &str) -> Drawing {
    let axis = Axis::new(window.from_ns, window.to_ns, moments(window), LEFT);
    let pairs = resource::pairs(window, &axis);
    let lanes = lanes::lanes(window, resource::room_above(&pairs));
    let sheet = Sheet {
        window,
        case,
        axis,
        lanes,
    };
    let mut marks = Marks::new(id);
    faults::draw(&sheet, &mut marks);
    workers::draw(&sheet, &mut marks);
    nodes::draw(&sheet, &mut marks);
    resource::draw(&sheet, &pairs, &mut marks);
    let (width, names_width) = (sheet.axis.end() + RIGHT, names_width(&sheet.lanes));
    let inner = html! {
        (bands(&sheet.lanes, width)) (clock(&sheet)) "\n" (PreEscaped(marks.markup()))
    };
    let title = format!("What happened in {}", case.name);
    // Nothing scrolls on paper, so names and lanes shrink together.
    let natural = names_width + width;
    let sizes = format!(
        "--names:{:.4};--natural:{natural:.0}px",
        names_width / natural
    );
    let markup = html! {
        div.drawing style=(sizes) {
            (names(&sheet.lanes))
            div.lanes { (svg("lanes-drawn", width, height(&sheet.lanes), &title, &inner)) }
        }
    };
    Drawing { markup, marks }
}

fn clock(sheet: &Sheet<'_>) -> Markup {
    let bottom = short(height(&sheet.lanes));
    html! {
        @for (x, words) in sheet.axis.ticks(sheet.case.started_ns) {
            line.rule x1=(short(x)) x2=(short(x)) y1="18" y2=(bottom) {}
            (text("soft", x + 3.0, 14.0, &words))
        }
    }
}

/// Returns the moments that need room on the axis, and how much.
fn moments(window: &Window<'_>) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    moments.extend(window.events.iter().map(|event| (event.at_ns, LITTLE_ROOM)));
    let held = window.held.iter();
    moments.extend(held.flat_map(|held| [(held.from_ns, ROOM), (held.to_ns, ROOM)]));
    moments.extend(window.locks.iter().map(|row| {
        let is_held = nodes::is_of_a_hold(window, row);
        (row.at_ns, if is_held { LITTLE_ROOM } else { 0.0 })
    }));
    moments.extend(window.breaks.iter().map(|one| (one.at_ns, ROOM)));
    for span in &window.faults {
        moments.extend(span.rows.iter().map(|row| (row.at_ns, ROOM)));
    }
    moments.extend(window.log.iter().map(|row| (row.at_ns, resource::ROOM)));
    moments
}
