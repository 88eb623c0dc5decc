use super::{At, InvalidFile, Node, Place, Report, Value};
use saphyr_parser::{Event, Marker, Parser, ScanError, Span};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

/// The depth to which mappings and lists may nest: far more than anybody writes by hand.
const MAX_DEPTH: usize = 32;

/// The limits of entries in one mapping or list, and of values in a file: checks compare the parts
/// of a file with each other, so they need a bound.
const MOST_ENTRIES: usize = 1_000;
const MOST_VALUES: usize = 20_000;

/// Reads one document. Anchors, aliases and tags are refused, because a scenario is meant to be
/// read from top to bottom.
pub fn parse(file: &Path, text: &str) -> Result<Node, InvalidFile> {
    let mut report = Report::new(file);
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        report: &mut report,
        values: 0,
    };
    let node = match reader.document() {
        Ok(node) => node,
        Err(error) => {
            report.add(place_of(error.marker()), error.info().to_owned());
            None
        }
    };
    report.finish(node)
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    report: &'a mut Report,
    values: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ScanError> {
        self.events
            .next_event()
            .unwrap_or(Ok((Event::StreamEnd, Span::default())))
    }

    fn document(&mut self) -> Result<Option<Node>, ScanError> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => {
                    let start = Place { line: 1, column: 1 };
                    self.report.add(start, "the file is empty");
                    return Ok(None);
                }
                (Event::DocumentStart(_), _) => break,
                _ => {}
            }
        }
        let first = self.next()?;
        let node = self.node(first, 0)?;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(node),
                (Event::DocumentStart(_), span) => {
                    let place = place_of(&span.start);
                    self.report.add(
                        place,
                        "a second document starts here; one file is one document",
                    );
                    return Ok(None);
                }
                _ => {}
            }
        }
    }

    fn node(
        &mut self,
        (event, span): (Event<'a>, Span),
        depth: usize,
    ) -> Result<Option<Node>, ScanError> {
        let place = place_of(&span.start);
        if depth > MAX_DEPTH {
            return Err(ScanError::new(
                span.start,
                format!("nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        self.values += 1;
        if self.values > MOST_VALUES {
            let why = format!("the file has more than {MOST_VALUES} values");
            return Err(ScanError::new(span.start, why));
        }
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        if anchor != 0 || tag {
            self.report.add(
                place,
                "anchors (&) and tags (!) are not read here; write the value out",
            );
        }
        let value = match event {
            Event::Scalar(text, ..) => Value::Scalar(text.into_owned()),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(_) => {
                self.report
                    .add(place, "aliases (*) are not read here; write the value out");
                return Ok(None);
            }
            _ => return Err(ScanError::new(span.start, "a value is missing here".into())),
        };
        Ok(Some(Node { place, value }))
    }

    fn list(&mut self, depth: usize) -> Result<Value, ScanError> {
        let mut items = Vec::new();
        loop {
            let next = self.next()?;
            if matches!(next.0, Event::SequenceEnd) {
                return Ok(Value::List(items));
            }
            check_count(items.len(), "list", &next.1)?;
            items.extend(self.node(next, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, ScanError> {
        let mut entries: Vec<(At<String>, Node)> = Vec::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        loop {
            let next = self.next()?;
            if matches!(next.0, Event::MappingEnd) {
                return Ok(Value::Map(entries));
            }
            check_count(entries.len(), "mapping", &next.1)?;
            let key = self
                .node(next, depth + 1)?
                .and_then(|key| key.text("a name", self.report));
            let value_event = self.next()?;
            let value = self.node(value_event, depth + 1)?;
            let (Some(key), Some(value)) = (key, value) else {
                continue;
            };
            match lines.entry(key.value.clone()) {
                Entry::Occupied(first) => self.report.add(
                    key.place,
                    format!(
                        "`{}` stands here a second time (first in line {})",
                        key.value,
                        first.get()
                    ),
                ),
                Entry::Vacant(place) => {
                    place.insert(key.place.line);
                    entries.push((key, value));
                }
            }
        }
    }
}

fn check_count(count: usize, what: &str, span: &Span) -> Result<(), ScanError> {
    if count < MOST_ENTRIES {
        Ok(())
    } else {
        let why = format!("this {what} has more than {MOST_ENTRIES} entries");
        Err(ScanError::new(span.start, why))
    }
}

fn place_of(marker: &Marker) -> Place {
    Place {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        parse(Path::new("x.yml"), text).unwrap_err().lines()
    }

    #[test]
    fn every_node_knows_its_place() {
        let node = parse(Path::new("x.yml"), "a:\n  - { b: c }\n").unwrap();
        let Value::Map(entries) = &node.value else {
            panic!("a mapping")
        };
        assert_eq!(entries[0].0.place, Place { line: 1, column: 1 });
        let Value::List(items) = &entries[0].1.value else {
            panic!("a list")
        };
        let Value::Map(inner) = &items[0].value else {
            panic!("a mapping")
        };
        assert_eq!(
            inner[0].1.place,
            Place {
                line: 2,
                column: 10
            }
        );
    }

    #[test]
    fn syntax_errors_and_doubled_keys_name_their_place() {
        assert!(complaints("a: [1, 2\nb: 3\n")[0].starts_with("x.yml:2:"));
        assert_eq!(
            complaints("a: 1\na: 2\n"),
            ["x.yml:2:1: `a` stands here a second time (first in line 1)"]
        );
        assert_eq!(complaints(""), ["x.yml:1:1: the file is empty"]);
        assert!(complaints("a: &x 1\nb: *x\n")[0].contains("anchors"));
        assert!(complaints("a: 1\n---\nb: 2\n")[0].contains("second document"));
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(complaints(&deep)[0].contains("nested deeper"));
    }

    #[test]
    fn so_is_how_much_a_file_says() {
        let keys: String = (0..100_000).map(|key| format!("k{key}: 1\n")).collect();
        assert_eq!(
            complaints(&keys),
            ["x.yml:1001:1: this mapping has more than 1000 entries"]
        );
        let items = "- 1\n".repeat(100_000);
        assert!(complaints(&items)[0].contains("this list has more than 1000 entries"));
        let lists: String = (0..100)
            .map(|key| format!("k{key}: [{}]\n", "1,".repeat(999)))
            .collect();
        assert!(complaints(&lists)[0].contains("the file has more than 20000 values"));
        let twice = "k: 1\n".repeat(100_000);
        let told = complaints(&twice);
        assert!(told[0].starts_with("x.yml:2:1:") && told.len() < MOST_VALUES);
    }
}
