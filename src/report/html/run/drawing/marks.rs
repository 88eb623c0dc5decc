//! Marks: what can be pointed at, tapped or moved to, each with its event.

use crate::model::{StepKind, StoryStep};
use crate::report::markup::{cut, element, empty, escaped, short};
use serde::Serialize;

/// Letters of a mark's words, and of its rows.
const LONGEST: usize = 2_000;

/// What a mark stands for.
pub struct Mark<'a> {
    /// A class of its own, beside `mark`.
    pub class: &'a str,
    pub at_ns: u64,
    /// What it is for a story.
    pub kind: StepKind,
    pub key: &'a str,
    /// The event in words, for eyes and for screen readers.
    pub words: String,
    /// The recorded row, or rows, one a line.
    pub row: String,
}

pub struct Marks {
    id: String,
    text: String,
    found: Vec<Found>,
    count: usize,
}

struct Found {
    kind: StepKind,
    at_ns: u64,
    key: String,
    id: String,
}

impl Marks {
    pub fn new(id: &str) -> Marks {
        Marks {
            id: id.to_owned(),
            text: String::new(),
            found: Vec::new(),
            count: 0,
        }
    }

    /// Adds a mark that looks so; what is behind it comes first.
    pub fn add(&mut self, mark: Mark<'_>, shapes: &str) {
        self.add_known_at(mark, &[], shapes);
    }

    /// As [`Marks::add`], for what a story may tell at other times, too.
    pub fn add_known_at(&mut self, mark: Mark<'_>, also_ns: &[u64], shapes: &str) {
        self.count += 1;
        let id = format!("{}-{}", self.id, self.count);
        for &at_ns in [mark.at_ns].iter().chain(also_ns) {
            self.found.push(Found {
                kind: mark.kind,
                at_ns,
                key: mark.key.to_owned(),
                id: id.clone(),
            });
        }
        let (words, row) = (cut(&mark.words, LONGEST), cut(&mark.row, LONGEST));
        let title = element("title", &[], &escaped(&words));
        self.text += &element(
            "g",
            &[
                ("class", &format!("mark {}", mark.class)),
                ("id", &id),
                ("tabindex", &"0"),
                ("role", &"img"),
                ("aria-label", &words),
                ("data-row", &row),
            ],
            &format!("{title}{shapes}"),
        );
        self.text.push('\n');
    }

    pub fn markup(&self) -> &str {
        &self.text
    }

    /// The mark that a step of a story is about. A lock is told to run out when the
    /// next holder has it, which may be a little before a bystander saw it.
    pub fn of_step(&self, step: &StoryStep, key: &str) -> Option<&str> {
        let mut of_kind = self.found.iter().filter(|mark| match step.kind {
            StepKind::Other => true,
            kind => kind == mark.kind,
        });
        let exact = of_kind.clone().find(|mark| mark.at_ns == step.at_ns);
        let found = exact.or_else(|| {
            let is_later = |mark: &&Found| mark.at_ns >= step.at_ns && mark.key == key;
            let is_let_go = step.kind == StepKind::LetGo;
            of_kind.find(is_later).filter(|_| is_let_go)
        });
        found.map(|mark| mark.id.as_str())
    }
}

/// A row as the file has it.
pub fn row(row: &impl Serialize) -> String {
    serde_json::to_string(row).unwrap_or_default()
}

pub fn rect(class: &str, left: f64, top: f64, width: f64, height: f64) -> String {
    empty(
        "rect",
        &[
            ("class", &class),
            ("x", &short(left)),
            ("y", &short(top)),
            ("width", &short(width.max(1.0))),
            ("height", &short(height)),
            (
                "rx",
                &if class == "hold" || class == "granted" {
                    "3"
                } else {
                    ""
                },
            ),
        ],
    )
}

pub fn circle(class: &str, x: f64, y: f64, radius: f64) -> String {
    let (x, y, r) = (short(x), short(y), short(radius));
    empty(
        "circle",
        &[("class", &class), ("cx", &x), ("cy", &y), ("r", &r)],
    )
}

pub fn path(class: &str, way: &str) -> String {
    empty("path", &[("class", &class), ("d", &way)])
}

/// Something larger to hit than what is seen.
pub fn hit(x: f64, y: f64) -> String {
    rect("hit", x - 8.0, y - 10.0, 16.0, 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: StepKind, at_ns: u64) -> StoryStep {
        StoryStep {
            at_ns,
            kind,
            symbolic: String::new(),
            concrete: String::new(),
        }
    }

    #[test]
    fn a_step_finds_the_mark_of_its_kind() {
        let mut marks = Marks::new("m");
        let mark = |kind, at_ns, key| Mark {
            class: "",
            at_ns,
            kind,
            key,
            words: "</title><script>".to_owned(),
            row: String::new(),
        };
        marks.add(mark(StepKind::Grant, 5, "k"), "");
        marks.add(mark(StepKind::LetGo, 6, "other"), "");
        marks.add(mark(StepKind::LetGo, 7, "k"), "");
        marks.add_known_at(mark(StepKind::Fault, 1, ""), &[3], "");
        let of = |kind, at_ns| marks.of_step(&step(kind, at_ns), "k");
        assert_eq!(of(StepKind::Grant, 5), Some("m-1"));
        assert_eq!(of(StepKind::Grant, 6), None);
        assert_eq!(of(StepKind::LetGo, 5), Some("m-3"), "seen a little later");
        assert_eq!(of(StepKind::Fault, 3), Some("m-4"));
        assert_eq!(of(StepKind::Write, 5), None);
        assert!(!marks.markup().contains("<script>"));
    }
}
