//! Topologies are Compose files under `compose/`: the single source of what
//! is started, and plain `docker compose` can start them too. Only a subset is
//! read (compose/README.md lists it); anything else is refused by name.

use super::NodeSpec;
use crate::yaml::{self, At, Fields, InvalidFile, Node, Report, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Topology {
    /// The folder of the file: build contexts are relative to it.
    pub folder: PathBuf,
    pub services: BTreeMap<String, Service>,
    /// From the worker's FENCEPOST_RESOURCE.
    pub resource: Endpoint,
    /// From the worker's FENCEPOST_ENDPOINTS.
    pub lock_servers: Vec<Endpoint>,
}

/// A service and its port on the cluster's network: `redis:6379`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub node: String,
    pub port: u16,
}

#[derive(Clone, Debug)]
pub struct Service {
    pub image: String,
    /// The folder with the Dockerfile, where the image is built and not fetched.
    pub build: Option<PathBuf>,
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub ports: Vec<Port>,
    /// From the label `fencepost.ready`: the log line that says it is ready.
    pub ready: Option<String>,
    /// From the label `fencepost.started`: the log line at which those that
    /// depend on it are started.
    pub started: Option<String>,
    /// From `depends_on`: the services that are started first.
    pub after: Vec<At<String>>,
    /// In a profile: a template that is started only when asked for by name.
    pub template: bool,
}

impl Service {
    /// The node that this service, or a worker from this template, is started as.
    pub fn node(&self, name: &str) -> NodeSpec {
        NodeSpec {
            name: name.to_owned(),
            image: self.image.clone(),
            command: self.command.clone(),
            environment: self.environment.clone(),
            ports: self.ports.clone(),
            ready: self.ready.clone(),
            started: self.started.clone(),
            after_others: !self.after.is_empty(),
        }
    }
}

/// A port published on loopback. Host port 0 lets the system choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    pub host: u16,
    pub container: u16,
}

#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidFile),
}

const READY_LABEL: &str = "fencepost.ready";
const STARTED_LABEL: &str = "fencepost.started";
const WORKER: &str = "worker";

impl Topology {
    pub fn load(path: &Path) -> Result<Topology, TopologyError> {
        let text = std::fs::read_to_string(path).map_err(|source| TopologyError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Ok(Topology::parse(path, &text)?)
    }

    pub fn parse(path: &Path, text: &str) -> Result<Topology, InvalidFile> {
        let root = yaml::parse(path, text)?;
        let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
        let mut report = Report::new(path);
        let topology = read_topology(&root, folder, &mut report);
        report.finish(topology)
    }

    /// The template that every worker of a scenario is started from.
    pub fn worker(&self) -> &Service {
        &self.services[WORKER]
    }

    /// Every topology of a folder, by name.
    pub fn load_all(folder: &Path) -> Result<BTreeMap<String, Topology>, TopologyError> {
        let unreadable = |source| TopologyError::Unreadable {
            path: folder.to_owned(),
            source,
        };
        let mut all = BTreeMap::new();
        let mut complaints = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|ext| ext == "yml")
                && let Some(stem) = path.file_stem()
            {
                match Topology::load(&path) {
                    Ok(topology) => {
                        all.insert(stem.to_string_lossy().into_owned(), topology);
                    }
                    Err(TopologyError::Invalid(invalid)) => complaints.extend(invalid.lines),
                    Err(unreadable) => return Err(unreadable),
                }
            }
        }
        match complaints.is_empty() {
            true => Ok(all),
            false => Err(InvalidFile { lines: complaints }.into()),
        }
    }

    /// The names of its images, some of them more than once.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        self.services.values().map(|service| service.image.as_str())
    }

    /// The services that every scenario on this topology starts.
    pub fn started(&self) -> impl Iterator<Item = (&String, &Service)> {
        self.services.iter().filter(|(_, s)| !s.template)
    }
}

fn read_topology(root: &Node, folder: PathBuf, report: &mut Report) -> Option<Topology> {
    let mut fields = Fields::of(root, "the topology (see compose/README.md)", report)?;
    let node = fields.required("services", report);
    fields.finish(report);
    let node = node?;
    let mut services = BTreeMap::new();
    for (name, node) in node.map("the services by name", report)? {
        if let Some(service) = read_service(name, node, &folder, report) {
            services.insert(name.value.clone(), service);
        }
    }
    check_order(&services, report);
    let Some(worker) = services.get(WORKER).filter(|worker| worker.template) else {
        let message = format!("a topology needs a service `{WORKER}` with `profiles`");
        report.add(node.place, message);
        return None;
    };
    let setting = |name: &str| {
        let endpoints = worker.environment.get(name)?.split(',');
        let endpoints = endpoints.map(|text| endpoint(text, &services));
        let endpoints = endpoints.collect::<Option<Vec<_>>>();
        endpoints.filter(|endpoints| !endpoints.is_empty())
    };
    let (resource, lock_servers) = (
        setting("FENCEPOST_RESOURCE"),
        setting("FENCEPOST_ENDPOINTS"),
    );
    for (name, found) in [
        ("FENCEPOST_RESOURCE", &resource),
        ("FENCEPOST_ENDPOINTS", &lock_servers),
    ] {
        if found.is_none() {
            let message = format!(
                "the environment of `{WORKER}` needs {name}: SERVICE:PORT of a service here that publishes this port"
            );
            report.add(node.place, message);
        }
    }
    Some(Topology {
        folder,
        resource: resource?.into_iter().next()?,
        lock_servers: lock_servers?,
        services,
    })
}

/// Services are started in two waves at most; workers come with both.
fn check_order(services: &BTreeMap<String, Service>, report: &mut Report) {
    let first = services
        .iter()
        .filter(|(_, service)| service.after.is_empty() && !service.template);
    let first: Vec<&str> = first.map(|(name, _)| name.as_str()).collect();
    for before in services.values().flat_map(|service| &service.after) {
        let name = before.value.as_str();
        if !services.contains_key(name) {
            report.unknown(before.place, "service", name, first.iter().copied());
        } else if !first.contains(&name) {
            let message = format!(
                "`{name}` is a template or depends on others itself; name a service that does not"
            );
            report.add(before.place, message);
        }
    }
}

/// `redis:6379`, or the same as a URL; the harness itself has to reach it too.
fn endpoint(text: &str, services: &BTreeMap<String, Service>) -> Option<Endpoint> {
    let text = text
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let (node, port) = text.split_once(':')?;
    let port = port.parse().ok()?;
    let published = services.get(node)?.ports.iter();
    let mut published = published.filter(|published| published.container == port);
    published.next().map(|_| Endpoint {
        node: node.to_owned(),
        port,
    })
}

fn read_service(
    name: &At<String>,
    node: &Node,
    folder: &Path,
    report: &mut Report,
) -> Option<Service> {
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
    let ports = fields.read("ports", report, read_ports);
    let labels = fields.read("labels", report, text_map);
    let mut labels = labels.unwrap_or_default();
    let template = fields.optional("profiles").is_some();
    let after = fields.read("depends_on", report, names);
    // For plain `docker compose`; our own workers always get a stdin.
    fields.optional("stdin_open");
    fields.finish(report);
    let image = image?.text("an image", report)?.value;
    let build = build.map(|context| (context.place, folder.join(context.value)));
    if let Some((place, context)) = &build
        && !context.join("Dockerfile").is_file()
    {
        report.add(
            *place,
            format!("there is no Dockerfile in {}", context.display()),
        );
    }
    Some(Service {
        image,
        build: build.map(|(_, context)| context),
        command: command.unwrap_or_default(),
        environment: environment.unwrap_or_default(),
        ports: ports.unwrap_or_default(),
        ready: labels.remove(READY_LABEL),
        started: labels.remove(STARTED_LABEL),
        after: after.unwrap_or_default(),
        template,
    })
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

fn text_map(node: &Node, report: &mut Report) -> Option<BTreeMap<String, String>> {
    if matches!(node.value, Value::List(_)) {
        report.add(node.place, "write this as a mapping (NAME: value)");
        return None;
    }
    let entries = node.map("names with their values", report)?;
    let mut all = BTreeMap::new();
    for (name, value) in entries {
        let value = value.text("a value", report);
        all.extend(value.map(|value| (name.value.clone(), value.value)));
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

#[cfg(test)]
mod tests {
    use super::*;

    const WORKERS: &str = "  worker:\n    image: w\n    profiles: [workers]\n    environment: { FENCEPOST_ENDPOINTS: 'redis:6379', FENCEPOST_RESOURCE: 'http://store:80' }\n  store: { image: s, ports: ['127.0.0.1:8000:80'] }\n";

    /// A topology whose redis is written as given.
    fn with_redis(redis: &str) -> String {
        format!("services:\n  redis:\n{redis}{WORKERS}")
    }

    fn complaints(text: &str) -> Vec<String> {
        Topology::parse(Path::new("t.yml"), text).unwrap_err().lines
    }

    #[test]
    fn a_service_is_read_with_what_the_harness_needs() {
        let redis = "    image: x\n    ports: ['127.0.0.1::6379']\n    labels: { fencepost.ready: Ready }\n";
        let topology = Topology::parse(Path::new("t.yml"), &with_redis(redis)).unwrap();
        assert_eq!(topology.resource.node, "store");
        assert_eq!(topology.lock_servers[0].port, 6379);
        let redis = &topology.services["redis"];
        assert_eq!(redis.ready.as_deref(), Some("Ready"));
        assert_eq!(
            redis.ports,
            [Port {
                host: 0,
                container: 6379
            }]
        );
        let started: Vec<_> = topology.started().map(|(name, _)| name.as_str()).collect();
        assert_eq!(started, ["redis", "store"]);
    }

    #[test]
    fn keys_outside_the_subset_are_refused_by_name() {
        let redis = "    image: x\n    privileged: true\n    ports: ['127.0.0.1::6379']\n";
        let lines = complaints(&with_redis(redis));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("t.yml:4:5: unknown key"), "{lines:?}");
        assert!(lines[0].contains("privileged"));
    }

    #[test]
    fn a_service_comes_after_those_that_come_after_nobody() {
        let redis = "    image: x\n    ports: ['127.0.0.1::6379']\n    depends_on: ";
        let with = |names: &str| with_redis(&format!("{redis}{names}\n"));
        let topology = Topology::parse(Path::new("t.yml"), &with("[store]")).unwrap();
        assert!(topology.services["redis"].node("redis").after_others);
        assert!(!topology.services["store"].node("store").after_others);
        for (names, complaint) in [
            (
                "[stor]",
                "t.yml:5:18: unknown service `stor`; did you mean `store`?",
            ),
            (
                "[redis]",
                "t.yml:5:18: `redis` is a template or depends on others",
            ),
            (
                "[worker]",
                "t.yml:5:18: `worker` is a template or depends on others",
            ),
        ] {
            let lines = complaints(&with(names));
            assert!(lines[0].starts_with(complaint), "{lines:?}");
        }
    }

    #[test]
    fn nothing_is_published_but_on_loopback() {
        for port in ["6379:6379", "0.0.0.0:1:2", "6379", "127.0.0.1:0:70000"] {
            let redis = format!("    image: x\n    ports: ['{port}']\n");
            let lines = complaints(&with_redis(&redis)).join("\n");
            assert!(lines.contains("loopback only"), "{port}: {lines}");
        }
    }

    #[test]
    fn workers_need_a_template_that_says_where_everything_is() {
        let lines = complaints("services:\n  redis: { image: x }\n");
        assert!(lines[0].contains("needs a service `worker`"), "{lines:?}");
        let lines = complaints(&with_redis("    image: x\n"));
        assert!(lines[0].contains("needs FENCEPOST_ENDPOINTS"), "{lines:?}");
    }
}
