//! The legend of a drawing.

use super::faults::pattern;
use super::*;

pub fn legend() -> Markup {
    let bar = |class| rect(class, 1.0, 3.0, 22.0, 10.0);
    let span = |class| rect(class, 1.0, 2.0, 22.0, 12.0);
    let two = |one: Markup, other: Markup| html! { (one) (other) };
    let cross = path("rejected", "M8 4l8 8m0 -8l-8 8");
    let rejected = two(circle("rejected", 12.0, 8.0, 6.0), cross);
    let pair = two(
        path("pair", "M4 14V4H20V9"),
        path("violating", "M20 14l-4 -6h8z"),
    );
    let broken = two(
        path("violating", "M12 9l4 -6h-8z"),
        path("violating", "M12 9V15"),
    );
    let entries = [
        ("hold, with its token", bar("hold")),
        ("what the lock server held", bar("granted")),
        ("its TTL is over", path("ran-out", "M7 4h10l-5 8z")),
        ("fault seen to bite", span("fault")),
        ("asked for, or being undone", span("asked")),
        ("accepted write", circle("accepted", 12.0, 8.0, 5.0)),
        ("rejected write", rejected),
        ("violating pair", pair),
        ("broken promise", broken),
    ];
    html! {
        ul.legend {
            @for (words, shape) in entries {
                li {
                    span.sign { svg width="24" height="16" aria-hidden="true" { (shape) } }
                    (words)
                }
            }
        }
    }
}

/// Returns the definitions that drawings refer to by name, once per page.
pub fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" { defs { (pattern()) } }
    }
}
