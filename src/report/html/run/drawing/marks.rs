//! Marks: the parts of a drawing that can be pointed at, tapped or focused, each with its event.

use super::*;
use std::fmt::Display;

const LONGEST: usize = 2_000;

pub struct Mark<'a> {
    /// The CSS class of this mark, beside `mark`.
    pub class: &'a str,
    pub at_ns: u64,
    /// The kind of story step that it shows.
    pub kind: StepKind,
    pub key: &'a str,
    /// The event in words, for eyes and for screen readers.
    pub words: String,
    /// The recorded row or rows, one per line.
    pub row: String,
}

impl<'a> Mark<'a> {
    /// Makes a mark that no kind of story step refers to.
    pub fn new(class: &'a str, at_ns: u64, words: String, row: String) -> Mark<'a> {
        Mark {
            class,
            at_ns,
            kind: StepKind::Other,
            key: "",
            words,
            row,
        }
    }

    pub fn about(mut self, kind: StepKind, key: &'a str) -> Mark<'a> {
        (self.kind, self.key) = (kind, key);
        self
    }
}

#[derive(Default)]
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
        let id = id.to_owned();
        Marks {
            id,
            ..Marks::default()
        }
    }

    /// Adds a mark with these shapes. Marks in the background must be added first.
    pub fn add(&mut self, mark: Mark<'_>, shapes: &Markup) {
        self.add_known_at(mark, &[], shapes);
    }

    /// Does the same as [`Marks::add`], for an event that a story may also mention at other times.
    pub fn add_known_at(&mut self, mark: Mark<'_>, also_ns: &[u64], shapes: &Markup) {
        self.count += 1;
        let id = format!("{}-{}", self.id, self.count);
        for &at_ns in [mark.at_ns].iter().chain(also_ns) {
            let (kind, key, id) = (mark.kind, mark.key.to_owned(), id.clone());
            self.found.push(Found {
                kind,
                at_ns,
                key,
                id,
            });
        }
        let (words, row) = (cut(&mark.words, LONGEST), cut(&mark.row, LONGEST));
        let row = (!row.is_empty()).then_some(row);
        let class = format!("mark {}", mark.class);
        let mark = html! {
            g class=(class) id=(id) tabindex="0" role="img" aria-label=(words) data-row=[row] {
                title { (words) }
                (shapes)
            }
            "\n"
        };
        self.text += &mark.0;
    }

    pub fn markup(&self) -> &str {
        &self.text
    }

    /// Returns the mark that a step of a story is about. A story says that a lock expired when
    /// the next holder has it, which may be a little before a bystander saw it.
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

pub fn with_token(token: Option<impl Display>) -> String {
    token.map_or("without a token".to_owned(), |token| {
        format!("with token {token}")
    })
}

pub fn row(row: &impl Serialize) -> String {
    serde_json::to_string(row).unwrap_or_default()
}

pub fn rect(class: &str, left: f64, top: f64, width: f64, height: f64) -> Markup {
    let round = (class == "hold" || class == "granted").then_some("3");
    let (width, height) = (short(width.max(1.0)), short(height));
    html! {
        rect class=(class) x=(short(left)) y=(short(top)) width=(width) height=(height)
            rx=[round] {}
    }
}

pub fn circle(class: &str, x: f64, y: f64, radius: f64) -> Markup {
    html! { circle class=(class) cx=(short(x)) cy=(short(y)) r=(short(radius)) {} }
}

pub fn path(class: &str, way: &str) -> Markup {
    html! { path class=(class) d=(way) {} }
}

/// Draws a path from a given point.
pub fn path_at(class: &str, x: f64, y: f64, way: &str) -> Markup {
    path(class, &format!("M{} {}{way}", short(x), short(y)))
}

/// Draws an area that is larger than the visible shape, so that it is easier to hit.
pub fn hit(x: f64, y: f64) -> Markup {
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
        let mark = |kind, at_ns, key| {
            let mark = Mark::new("", at_ns, "</title><script>".to_owned(), String::new());
            mark.about(kind, key)
        };
        marks.add(mark(StepKind::Grant, 5, "k"), &html! {});
        marks.add(mark(StepKind::LetGo, 6, "other"), &html! {});
        marks.add(mark(StepKind::LetGo, 7, "k"), &html! {});
        marks.add_known_at(mark(StepKind::Fault, 1, ""), &[3], &html! {});
        let of = |kind, at_ns| marks.of_step(&step(kind, at_ns), "k");
        assert_eq!(of(StepKind::Grant, 5), Some("m-1"));
        assert_eq!(of(StepKind::Grant, 6), None);
        assert_eq!(of(StepKind::LetGo, 5), Some("m-3"), "seen a little later");
        assert_eq!(of(StepKind::Fault, 3), Some("m-4"));
        assert_eq!(of(StepKind::Write, 5), None);
        assert!(!marks.markup().contains("<script>"));
    }
}
