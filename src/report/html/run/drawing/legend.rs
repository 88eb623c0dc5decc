//! What the signs of a drawing mean.

use super::faults::pattern;
use super::marks::{circle, path, rect};
use crate::report::markup::element;

pub fn legend() -> String {
    let entries: [(&str, String); 9] = [
        ("hold, with its token", rect("hold", 1.0, 3.0, 22.0, 10.0)),
        (
            "what the lock server held",
            rect("granted", 1.0, 3.0, 22.0, 10.0),
        ),
        ("its TTL is over", path("ran-out", "M7 4h10l-5 8z")),
        ("fault seen to bite", rect("fault", 1.0, 2.0, 22.0, 12.0)),
        (
            "asked for, or being undone",
            rect("asked", 1.0, 2.0, 22.0, 12.0),
        ),
        ("accepted write", circle("accepted", 12.0, 8.0, 5.0)),
        (
            "rejected write",
            circle("rejected", 12.0, 8.0, 6.0) + &path("rejected", "M8 4l8 8m0 -8l-8 8"),
        ),
        (
            "violating pair",
            path("pair", "M4 14V4H20V9") + &path("violating", "M20 14l-4 -6h8z"),
        ),
        (
            "broken promise",
            path("violating", "M12 9l4 -6h-8z") + &path("violating", "M12 9V15"),
        ),
    ];
    let entries = entries.map(|(words, shape)| {
        let size = [
            ("width", &"24" as _),
            ("height", &"16" as _),
            ("aria-hidden", &"true" as _),
        ];
        let sign = element("svg", &size, &shape);
        format!("<li><span class=\"sign\">{sign}</span>{words}</li>\n")
    });
    format!("<ul class=\"legend\">\n{}</ul>\n", entries.concat())
}

/// What drawings refer to by name, once for a page.
pub fn definitions() -> String {
    let attributes = [
        ("width", &"0" as _),
        ("height", &"0" as _),
        ("aria-hidden", &"true" as _),
        ("class", &"definitions" as _),
    ];
    element("svg", &attributes, &element("defs", &[], &pattern())) + "\n"
}
