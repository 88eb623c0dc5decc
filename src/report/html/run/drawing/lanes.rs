//! Which lanes a drawing has, from top to bottom.

use super::super::window::Window;
use crate::report::markup::{element, empty, escaped, short};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    Worker,
    Node,
    Links,
    /// All that has no lane of its own.
    MoreLinks,
    Resource,
}

pub struct Lane {
    pub of: Of,
    pub name: String,
    pub top: f64,
    pub height: f64,
}

pub const AXIS_HEIGHT: f64 = 24.0;
const HEIGHT: f64 = 46.0;
const LINKS_HEIGHT: f64 = 28.0;
/// The resource's lane without the lines that join pairs.
const RESOURCE_HEIGHT: f64 = 58.0;
/// Of all that is no node, only so many have a lane of their own.
const MOST_LINKS: usize = 6;
const LETTER: f64 = 7.4;
const LONGEST_NAME: usize = 16;

/// `above_writes`: the room for what joins pairs of writes.
pub fn lanes(window: &Window<'_>, above_writes: f64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut top = AXIS_HEIGHT;
    let mut lane = |of: Of, name: &str, height: f64| {
        lanes.push(Lane {
            of,
            name: name.to_owned(),
            top,
            height,
        });
        top += height;
    };
    for worker in &window.workers {
        lane(Of::Worker, worker, HEIGHT);
    }
    for node in &window.nodes {
        lane(Of::Node, node, HEIGHT);
    }
    let links = links(window);
    let own = links.len().min(MOST_LINKS);
    for target in &links[..own] {
        lane(Of::Links, target, LINKS_HEIGHT);
    }
    match links.len() - own {
        0 => {}
        1 => lane(Of::MoreLinks, "1 further link", LINKS_HEIGHT),
        more => lane(
            Of::MoreLinks,
            &format!("{more} further links"),
            LINKS_HEIGHT,
        ),
    }
    lane(
        Of::Resource,
        window.resource,
        RESOURCE_HEIGHT + above_writes,
    );
    lanes
}

/// The targets of faults that are no node: partitions and links.
fn links<'a>(window: &Window<'a>) -> Vec<&'a str> {
    let mut targets: Vec<&str> = Vec::new();
    for span in &window.faults {
        let is_node = window.workers.contains(&span.target)
            || window.nodes.contains(&span.target)
            || span.target == window.resource;
        if !is_node && !targets.contains(&span.target) {
            targets.push(span.target);
        }
    }
    targets
}

/// How wide the names are.
pub fn names_width(lanes: &[Lane]) -> f64 {
    let longest = lanes.iter().map(|lane| shown(&lane.name).chars().count());
    longest.max().unwrap_or(0).max(8) as f64 * LETTER + 20.0
}

/// The names stand apart from what scrolls.
pub fn names(lanes: &[Lane]) -> String {
    let width = names_width(lanes);
    let height = height(lanes);
    let mut inner = bands(lanes, width);
    for lane in lanes {
        let middle = match lane.of {
            Of::Resource => lane.top + lane.height - 34.0,
            _ => lane.top + lane.height / 2.0,
        };
        let title = element("title", &[], &escaped(&lane.name));
        let name = text("name", 10.0, middle, &shown(&lane.name));
        let what = match lane.of {
            Of::Worker => "worker",
            Of::Node => "lock node",
            Of::Links | Of::MoreLinks => "",
            Of::Resource => "writes",
        };
        let what = text("soft", 10.0, middle + 13.0, what);
        inner += &element("g", &[], &format!("{title}{name}{what}"));
    }
    svg("names", width, height, "The lanes of the drawing", &inner)
}

/// Every second lane has a ground, so that the eye stays in its lane.
pub fn bands(lanes: &[Lane], width: f64) -> String {
    let odd = lanes.iter().skip(1).step_by(2);
    let band = odd.map(|lane| {
        empty(
            "rect",
            &[
                ("class", &"band"),
                ("y", &short(lane.top)),
                ("width", &short(width)),
                ("height", &short(lane.height)),
            ],
        )
    });
    band.collect()
}

pub fn height(lanes: &[Lane]) -> f64 {
    lanes.last().map_or(0.0, |lane| lane.top + lane.height)
}

pub fn svg(class: &str, width: f64, height: f64, title: &str, inner: &str) -> String {
    element(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &class),
            (
                "viewBox",
                &format!("0 0 {} {}", short(width), short(height)),
            ),
            ("width", &short(width)),
            ("height", &short(height)),
            ("role", &"group"),
            ("aria-label", &title),
        ],
        inner,
    )
}

pub fn text(class: &str, x: f64, y: f64, words: &str) -> String {
    let attributes: [(&str, &dyn std::fmt::Display); 3] =
        [("class", &class), ("x", &short(x)), ("y", &short(y))];
    element("text", &attributes, &escaped(words))
}

/// A partition's groups are long; the title has them whole.
fn shown(name: &str) -> String {
    match name.chars().count() > LONGEST_NAME {
        true => name.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
