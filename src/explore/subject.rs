//! What is varied: the cases of a scenario, or a small one of its own for a lock.

use super::*;
use crate::yaml::{Value, overlay};

/// The fields that a scenario has once.
const HEAD: [&str; 4] = ["name", "about", "cases", "services"];
const CASE: &str = "found";

pub struct Subject {
    /// The name of the folder of what is found.
    pub name: String,
    /// The cases, each with all its fields and without expectations.
    pub cases: Vec<Node>,
    /// The overrides of the command, which every variation keeps.
    settings: Node,
}

impl Subject {
    /// Takes two workers that want one key of a lock, with a fence and nothing else.
    pub fn of_a_lock(settings: &Settings) -> Result<Subject, String> {
        let settings = settings.tree();
        let lock = settings.get("lock");
        let backend = lock.and_then(|lock| lock.get("backend")?.as_scalar());
        let backend: Backend = backend.map_or(Ok(Backend::default()), str::parse)?;
        let topology = backend.servers().topology;
        let text = format!(
            "{{ topology: {topology}, lock: {{ backend: {backend}, ttl: 2s }}, fence: on,
               workers: {{ a: {{ key: k }}, b: {{ key: k }} }} }}"
        );
        let case = parse(Path::new("the lock"), &text).map_err(|error| error.to_string())?;
        Ok(Subject {
            name: backend.to_string(),
            cases: vec![overlay(&case, &settings)],
            settings,
        })
    }

    /// Takes the cases of a file of which `is_chosen` says so, by their names and services.
    pub fn of_file(
        name: &str,
        root: &Node,
        settings: &Settings,
        is_chosen: impl Fn(&str, Option<&str>) -> bool,
    ) -> Subject {
        let settings = settings.tree();
        let none = Node::mapping::<&str>([]);
        let services = root.get("services").map_or(&[][..], Node::entries);
        let services = services.iter();
        let mut services: Vec<(Option<&str>, &Node)> = services
            .map(|(name, node)| (Some(name.value.as_str()), node))
            .collect();
        if services.is_empty() {
            services.push((None, &none));
        }
        let of_cases = root.get("cases").map_or(&[][..], Node::entries);
        let cases = services.iter().flat_map(|(service, fields)| {
            let chosen = of_cases.iter().filter_map(|(case, own)| {
                let called = match service {
                    None => case.value.clone(),
                    Some(service) => format!("{service}-{}", case.value),
                };
                is_chosen(&called, *service).then(|| {
                    let laid = overlay(&overlay(root, fields), own);
                    without_head(overlay(&laid, &settings))
                })
            });
            chosen.collect::<Vec<Node>>()
        });
        Subject {
            name: name.to_owned(),
            cases: cases.collect(),
            settings,
        }
    }

    /// Lays the overrides over a case again.
    pub fn settle(&self, case: &Node) -> Node {
        overlay(case, &self.settings)
    }
}

fn without_head(mut case: Node) -> Node {
    for field in HEAD.iter().chain(&["expect"]) {
        case.remove(field);
    }
    case
}

/// Makes a file of one case.
pub fn file_of(name: &str, about: &str, case: &Node, kinds: &[ViolationKind]) -> Node {
    let mut fields = case.clone();
    let fence = fields.remove("fence").unwrap_or_else(|| Node::scalar("on"));
    let kinds = kinds.iter();
    let expected = match kinds.len() {
        0 => Node::scalar("0"),
        _ => Node::mapping(kinds.map(|kind| (kind.name(), Node::scalar("1..")))),
    };
    let expect = Node::mapping([("violations", expected)]);
    let found = Node::mapping([("fence", fence), ("expect", expect)]);
    let head = [("name", Node::scalar(name)), ("about", Node::scalar(about))];
    let mut file = Node::mapping(head);
    if let Value::Map(entries) = fields.value {
        for (key, node) in entries {
            file.set(&key.value, node);
        }
    }
    file.set("cases", Node::mapping([(CASE, found)]));
    file.place_in_lines();
    file
}

/// Returns how many entries the timeline of a case has.
pub fn entries_of(case: &Node) -> usize {
    case.get("timeline").map_or(0, |it| it.items().len())
}
