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

use super::window::Window;
use crate::model::{CaseResult, StoryStep};
use crate::report::markup::{element, empty, short};
use axis::{Axis, Moment};
use lanes::{Lane, Of, bands, height, names, names_width, svg, text};
use marks::Marks;

const LEFT: f64 = 14.0;
const RIGHT: f64 = 30.0;
/// Room for what matters, and for what only goes by.
const ROOM: f64 = 20.0;
const LITTLE_ROOM: f64 = 5.0;

pub struct Drawing {
    pub markup: String,
    marks: Marks,
}

impl Drawing {
    pub fn mark_of(&self, step: &StoryStep, key: &str) -> Option<&str> {
        self.marks.of_step(step, key)
    }
}

/// What everybody who draws has to know.
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

    /// Since the first event of the case, to the tenth of a millisecond.
    fn at(&self, at_ns: u64) -> String {
        format!("{:.4} s", self.case.millis_since_start(at_ns) / 1_000.0)
    }

    /// Whose hold an owner is.
    fn worker_of(&self, owner: Option<&str>) -> Option<&str> {
        let owner = owner?;
        let mut held = self.window.held.iter();
        let held = held.find(|held| held.owner == owner)?;
        Some(&held.worker)
    }
}

/// Ids of its marks begin with `id`.
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
    let width = sheet.axis.end() + RIGHT;
    let inner = format!(
        "{}{}\n{}",
        bands(&sheet.lanes, width),
        clock(&sheet),
        marks.markup()
    );
    let title = format!("What happened in {}", case.name);
    let lanes = svg("lanes-drawn", width, height(&sheet.lanes), &title, &inner);
    let lanes = element("div", &[("class", &"lanes")], &lanes);
    // On paper nothing scrolls: names and lanes shrink together.
    let names_part = names_width(&sheet.lanes) / (names_width(&sheet.lanes) + width);
    let natural = names_width(&sheet.lanes) + width;
    let sizes = format!("--names:{names_part:.4};--natural:{natural:.0}px");
    let markup = element(
        "div",
        &[("class", &"drawing"), ("style", &sizes)],
        &(names(&sheet.lanes) + &lanes),
    );
    Drawing {
        markup: markup + "\n",
        marks,
    }
}

fn clock(sheet: &Sheet<'_>) -> String {
    let bottom = height(&sheet.lanes);
    let ticks = sheet.axis.ticks(sheet.case.started_ns).into_iter();
    let ticks = ticks.map(|(x, words)| {
        let line = [
            ("class", &"rule" as _),
            ("x1", &short(x) as _),
            ("x2", &short(x) as _),
            ("y1", &"18" as _),
            ("y2", &short(bottom) as _),
        ];
        empty("line", &line) + &text("soft", x + 3.0, 14.0, &words)
    });
    ticks.collect()
}

/// What needs room on the axis, and how much.
fn moments(window: &Window<'_>) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    moments.extend(window.events.iter().map(|event| (event.at_ns, LITTLE_ROOM)));
    moments.extend(
        window
            .held
            .iter()
            .flat_map(|held| [(held.from_ns, ROOM), (held.to_ns, ROOM)]),
    );
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
