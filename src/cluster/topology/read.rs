//! From the tree of a Compose file to drafts of its services: each by itself, with the places that
//! checks between them need.

use super::{Port, Service, recipe};
use crate::builtin::Location;
use crate::cluster::{Image, Rights};
use crate::model::Name;
use crate::yaml::{At, Fields, Node, Place, Report, Value};
use std::collections::BTreeMap;

const READY: &str = "fencepost.ready";
const STARTED: &str = "fencepost.started";
const LINKS: &str = "fencepost.links";
const REPLICA_OF: &str = "fencepost.replica_of";
const POOLS: &str = "fencepost.pools";

pub struct Drafts {
    pub place: Place,
    pub by_name: BTreeMap<Name, Draft>,
}

/// A service, and the texts that name other services.
pub struct Draft {
    pub service: Service,
    pub environment: BTreeMap<String, At<String>>,
    pub links: Option<At<String>>,
    pub replica_of: Option<At<String>>,
    pub pools: Option<At<String>>,
}

pub fn services(root: &Node, folder: &Location, report: &mut Report) -> Option<Drafts> {
    let mut fields = Fields::of(root, "the topology (see compose/README.md)", report)?;
    let node = fields.required("services", report);
    fields.finish(report);
    let node = node?;
    let mut by_name = BTreeMap::new();
    let mut all_named = true;
    for (key, node) in node.map("the services by name", report)? {
        let name = Name::new(key.value.as_str());
        let name = name.map_err(|error| report.add(key.place, error.to_string()));
        let draft = service(key, node, folder, report);
        all_named &= name.is_ok();
        if let (Ok(name), Some(draft)) = (name, draft) {
            by_name.insert(name, draft);
        }
    }
    // A service with an invalid name is missing, and services that name it would be called wrong.
    all_named.then_some(Drafts {
        place: node.place,
        by_name,
    })
}

fn service(
    name: &At<String>,
    node: &Node,
    folder: &Location,
    report: &mut Report,
) -> Option<Draft> {
    let what = format!("service `{}` (see compose/README.md)", name.value);
    let mut fields = Fields::of(node, &what, report)?;
    let image = fields.required("image", report);
    let build = fields.read("build", report, |node, report| {
        let mut fields = Fields::of(node, "build", report)?;
        let context = fields.required("context", report);
        fields.finish(report);
        context?.text("a folder", report)
    });
    let command = fields.read("command", report, texts);
    let environment = fields.read("environment", report, text_map);
    let environment = environment.unwrap_or_default();
    let ports = fields.read("ports", report, read_ports);
    let labels = fields.read("labels", report, labels);
    let mut labels = labels.unwrap_or_default();
    let template = fields.optional("profiles").is_some();
    let after = fields.read("depends_on", report, names);
    let rights = rights(&mut fields, report);
    // For plain `docker compose`; our own workers always get a stdin.
    fields.optional("stdin_open");
    fields.finish(report);
    let image = image?.text("an image", report)?.value;
    let build = build.and_then(|context| {
        let found = recipe(folder, &context.value);
        if found.is_none() {
            let wanted = folder.join(&context.value);
            report.add(context.place, format!("there is no Dockerfile in {wanted}"));
        }
        found
    });
    let service = Service {
        image: Image { name: image, build },
        command: command.unwrap_or_default(),
        environment: environment
            .iter()
            .map(|(name, value)| (name.clone(), value.value.clone()))
            .collect(),
        ports: ports.unwrap_or_default(),
        ready: labels.remove(READY).map(|label| label.value),
        started: labels.remove(STARTED).map(|label| label.value),
        links: Vec::new(),
        replica_of: None,
        pools: None,
        after: after.unwrap_or_default(),
        rights,
        template,
        attached: None,
    };
    Some(Draft {
        service,
        environment,
        links: labels.remove(LINKS),
        replica_of: labels.remove(REPLICA_OF),
        pools: labels.remove(POOLS),
    })
}

fn rights(fields: &mut Fields<'_>, report: &mut Report) -> Rights {
    let user = fields.read("user", report, |node, report| {
        let user = node.text("a user, such as `1000:1000` or `root`", report)?;
        Some(user.value)
    });
    let read_only = fields.read("read_only", report, |node, report| {
        let text = node.text("true or false", report)?;
        match text.value.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                report.add(text.place, "write true or false");
                None
            }
        }
    });
    let volumes = fields.read("volumes", report, |node, report| {
        let mut folders = names(node, report)?;
        folders.retain(|folder| is_folder_of_its_own(folder, report));
        Some(folders.into_iter().map(|folder| folder.value).collect())
    });
    Rights {
        user,
        writes_anywhere: read_only == Some(false),
        volumes: volumes.unwrap_or_default(),
    }
}

/// Checks that a volume is a folder of the container, and not one of this machine.
fn is_folder_of_its_own(folder: &At<String>, report: &mut Report) -> bool {
    let path = &folder.value;
    let is_fine = path.starts_with('/') && !path.contains(':') && !path.contains("..");
    if !is_fine {
        let message = format!(
            "`{path}`: volumes are folders of the container's own; write its path alone, such as /data"
        );
        report.add(folder.place, message);
    }
    is_fine
}

fn texts(node: &Node, report: &mut Report) -> Option<Vec<String>> {
    let words = names(node, report)?;
    Some(words.into_iter().map(|word| word.value).collect())
}

fn names(node: &Node, report: &mut Report) -> Option<Vec<At<String>>> {
    let items = node.list("words", report)?;
    let words = items.iter().filter_map(|item| item.text("a word", report));
    Some(words.collect())
}

/// Reads labels. Labels of other programs pass; an unknown label of ours is a typo.
fn labels(node: &Node, report: &mut Report) -> Option<BTreeMap<String, At<String>>> {
    let all = text_map(node, report)?;
    let known = [READY, STARTED, LINKS, REPLICA_OF, POOLS];
    for (key, _) in node.map("labels", report)? {
        let name = key.value.as_str();
        if name.starts_with("fencepost.") && !known.contains(&name) {
            report.unknown(key.place, "label", name, known);
        }
    }
    Some(all)
}

fn text_map(node: &Node, report: &mut Report) -> Option<BTreeMap<String, At<String>>> {
    if matches!(node.value, Value::List(_)) {
        report.add(node.place, "write this as a mapping (NAME: value)");
        return None;
    }
    let entries = node.map("names with their values", report)?;
    let mut all = BTreeMap::new();
    for (name, value) in entries {
        let value = value.text("a value", report);
        all.extend(value.map(|value| (name.value.clone(), value)));
    }
    Some(all)
}

fn read_ports(node: &Node, report: &mut Report) -> Option<Vec<Port>> {
    let mut ports = Vec::new();
    for item in node.list("ports", report)? {
        let Some(text) = item.text("a port", report) else {
            continue;
        };
        match parse_port(&text.value) {
            Some(port) => ports.push(port),
            None => report.add(
                text.place,
                format!(
                    "`{}`: ports are published on loopback only; write 127.0.0.1::PORT or 127.0.0.1:HOST:PORT",
                    text.value
                ),
            ),
        }
    }
    Some(ports)
}

fn parse_port(text: &str) -> Option<Port> {
    let (host, container) = text.strip_prefix("127.0.0.1:")?.split_once(':')?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    Some(Port {
        host: if host.is_empty() { 0 } else { number(host)? },
        container: number(container)?,
    })
}
