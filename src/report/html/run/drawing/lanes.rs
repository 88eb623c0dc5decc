//! The lanes of a drawing, from top to bottom.

use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    Worker,
    Node,
    Links,
    /// The targets that have no lane of their own.
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
/// The height of the resource's lane without the lines that join pairs.
const RESOURCE_HEIGHT: f64 = 58.0;
/// The most fault targets other than nodes that have a lane of their own.
const MOST_LINKS: usize = 6;
const LETTER: f64 = 7.4;
const LONGEST_NAME: usize = 16;

/// Returns the lanes. `above_writes` is the room for the lines that join pairs of writes.
pub fn lanes(window: &Window<'_>, above_writes: f64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut top = AXIS_HEIGHT;
    let mut lane = |of: Of, name: &str, height: f64| {
        let name = name.to_owned();
        lanes.push(Lane {
            of,
            name,
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
    let more = links.len() - own;
    if more > 0 {
        let links = if more == 1 { "link" } else { "links" };
        lane(
            Of::MoreLinks,
            &format!("{more} further {links}"),
            LINKS_HEIGHT,
        );
    }
    let height = RESOURCE_HEIGHT + above_writes;
    lane(Of::Resource, window.resource, height);
    lanes
}

/// Returns the targets of faults that are not nodes: partitions and links.
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

pub fn names_width(lanes: &[Lane]) -> f64 {
    let longest = lanes.iter().map(|lane| shown(&lane.name).chars().count());
    longest.max().unwrap_or(0).max(8) as f64 * LETTER + 20.0
}

/// Draws the names, separate from the part that scrolls.
pub fn names(lanes: &[Lane]) -> Markup {
    let width = names_width(lanes);
    let inner = html! {
        (bands(lanes, width))
        @for lane in lanes {
            @let middle = lane.top + match lane.of {
                Of::Resource => lane.height - 34.0,
                Of::Worker | Of::Node | Of::Links | Of::MoreLinks => lane.height / 2.0,
            };
            g {
                title { (lane.name) }
                (text("name", 10.0, middle, &shown(&lane.name)))
                (text("soft", 10.0, middle + 13.0, match lane.of {
                    Of::Worker => "worker",
                    Of::Node => "lock node",
                    Of::Links | Of::MoreLinks => "",
                    Of::Resource => "writes",
                }))
            }
        }
    };
    let title = "The lanes of the drawing";
    svg("names", width, height(lanes), title, &inner)
}

/// Draws a background in every second lane, so that the eye stays in its lane.
pub fn bands(lanes: &[Lane], width: f64) -> Markup {
    html! {
        @for lane in lanes.iter().skip(1).step_by(2) {
            rect.band y=(short(lane.top)) width=(short(width)) height=(short(lane.height)) {}
        }
    }
}

pub fn height(lanes: &[Lane]) -> f64 {
    lanes.last().map_or(0.0, |lane| lane.top + lane.height)
}

pub fn svg(class: &str, width: f64, height: f64, title: &str, inner: &Markup) -> Markup {
    let (width, height) = (short(width), short(height));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(class)
            viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
            role="group" aria-label=(title) { (inner) }
    }
}

pub fn text(class: &str, x: f64, y: f64, words: &str) -> Markup {
    html! { text class=(class) x=(short(x)) y=(short(y)) { (words) } }
}

/// Shortens a name, because the groups of a partition are long; the title has the whole name.
fn shown(name: &str) -> Cow<'_, str> {
    cut(name, LONGEST_NAME)
}
