//! Checks what services say about each other, once all of them are read.

use super::read::{Draft, Drafts};
use super::{ENDPOINTS, Endpoint, RESOURCE, Service, Topology, WORKER, WorkerTemplate};
use crate::builtin::Location;
use crate::model::{Name, ResourceKind};
use crate::yaml::{At, Node, Place, Report};
use std::collections::BTreeMap;

pub fn topology(drafts: Drafts, folder: &Location, report: &mut Report) -> Option<Topology> {
    let place = drafts.place;
    check_order(&drafts.by_name, report);
    let is_worker = |name: &str| {
        let more = name.strip_prefix(WORKER);
        more.is_some_and(|more| more.is_empty() || more.starts_with('-'))
    };
    // In this order the template that is just called `worker` comes first.
    let templates = drafts.by_name.iter();
    let templates: Vec<(&Name, &Draft)> = templates
        .filter(|(name, draft)| is_worker(name) && draft.service.template)
        .collect();
    if templates.first().is_none_or(|(name, _)| *name != WORKER) {
        let message = format!("a topology needs a service `{WORKER}` with `profiles`");
        report.add(place, message);
        return None;
    }
    let mut resources = Vec::new();
    let mut workers = Vec::new();
    for (name, draft) in templates {
        let lock_servers = reached(name, draft, ENDPOINTS, place, &drafts, report);
        let resource = reached(name, draft, RESOURCE, place, &drafts, report);
        let (Some(lock_servers), Some(mut resource)) = (lock_servers, resource) else {
            continue;
        };
        // One is enough, and the first counts.
        resource.value.truncate(1);
        check_ports(name, &[&lock_servers, &resource], report);
        resources.extend(resource.value);
        let backend = draft.service.environment.get("FENCEPOST_BACKEND");
        workers.push(WorkerTemplate {
            name: name.clone(),
            service: draft.service.clone(),
            backend: backend.and_then(|word| word.parse().ok()),
            lock_servers: lock_servers.value,
        });
    }
    if resources.iter().any(|resource| *resource != resources[0]) {
        let message = "all workers write to one resource, and these to several";
        report.add(place, message);
    }
    let services = resolved(drafts, report);
    let url = workers.first().and_then(|worker| {
        let settings = &worker.service.environment;
        settings.get(RESOURCE)
    });
    Some(Topology {
        folder: folder.clone(),
        resource_kind: url.map_or(ResourceKind::Http, |url| ResourceKind::of_url(url)),
        services,
        resource: resources.into_iter().next()?,
        workers,
    })
}

/// Returns the one service of this name; the others of the file are checked as well.
pub fn service(drafts: Drafts, name: &str, root: &Node, report: &mut Report) -> Option<Service> {
    let service = resolved(drafts, report).remove(name);
    if service.is_none() {
        report.add(root.place, format!("there has to be a service `{name}`"));
    }
    service
}

/// Returns the services with their links to each other.
fn resolved(drafts: Drafts, report: &mut Report) -> BTreeMap<Name, Service> {
    let started = drafts.by_name.iter();
    let started = started.filter(|(_, draft)| !draft.service.template);
    let started: Vec<Name> = started.map(|(name, _)| name.clone()).collect();
    let published = |endpoint: &Endpoint, drafts: &BTreeMap<Name, Draft>| {
        let draft = drafts.get(&endpoint.node);
        let ports = draft.map_or(&[][..], |draft| &draft.service.ports);
        ports.iter().any(|port| port.container == endpoint.port)
    };
    let mut pooled: BTreeMap<Name, Endpoint> = BTreeMap::new();
    for (name, draft) in &drafts.by_name {
        let Some(text) = &draft.pools else { continue };
        match endpoint(&text.value).filter(|it| published(it, &drafts.by_name)) {
            Some(server) if server.node != *name => drop(pooled.insert(name.clone(), server)),
            _ => report.add(
                text.place,
                format!(
                    "`{}`: write SERVICE:PORT of another service here that publishes this port",
                    text.value
                ),
            ),
        }
    }
    let mut services = BTreeMap::new();
    for (name, draft) in drafts.by_name {
        let mut service = draft.service;
        service.pools = pooled.remove(&name);
        let others = Others {
            of: &name,
            started: &started,
        };
        if let Some(text) = draft.links {
            let links = others.links(&text, report);
            check_ports(&name, &[&links], report);
            service.links = links.value;
        }
        let primary = draft.replica_of;
        service.replica_of =
            primary.and_then(|primary| others.known(primary.place, &primary.value, report));
        services.insert(name, service);
    }
    services
}

/// The services that one service may name in its labels.
struct Others<'a> {
    of: &'a Name,
    started: &'a [Name],
}

impl Others<'_> {
    /// Reads `etcd-2:2382,etcd-3:2383`. Only the service itself has to reach them, so they need not
    /// be published.
    fn links(&self, text: &At<String>, report: &mut Report) -> At<Vec<Endpoint>> {
        let mut links = Vec::new();
        for part in text.value.split(',') {
            match endpoint(part) {
                Some(link) => {
                    let known = self.known(text.place, &link.node, report);
                    links.extend(known.map(|_| link));
                }
                None => report.add(
                    text.place,
                    format!("`{}` is not a link; write SERVICE:PORT", part.trim()),
                ),
            }
        }
        At::new(text.place, links)
    }

    fn known(&self, place: Place, name: &str, report: &mut Report) -> Option<Name> {
        if *self.of == *name {
            let message = format!("`{name}` names itself; name another service");
            report.add(place, message);
            return None;
        }
        let mut others = self.started.iter().filter(|other| *other != self.of);
        let known = others.clone().find(|other| **other == *name);
        if known.is_none() {
            report.unknown(place, "service", name, others.by_ref().map(Name::as_str));
        }
        known.cloned()
    }
}

/// Returns the servers that a setting of the worker leads to. The harness has to reach them too.
fn reached(
    name: &str,
    worker: &Draft,
    setting: &str,
    services: Place,
    drafts: &Drafts,
    report: &mut Report,
) -> Option<At<Vec<Endpoint>>> {
    let text = worker.environment.get(setting);
    let is_published = |endpoint: &Endpoint| {
        let ports = drafts
            .by_name
            .get(&endpoint.node)
            .map(|draft| &draft.service.ports);
        ports.is_some_and(|ports| ports.iter().any(|port| port.container == endpoint.port))
    };
    let endpoints = text.and_then(|text| {
        let parts = text.value.split(',');
        let endpoints = parts.map(|part| endpoint(part).filter(is_published));
        endpoints.collect::<Option<Vec<_>>>()
    });
    let place = text.map_or(services, |text| text.place);
    if endpoints.is_none() {
        let message = format!(
            "the environment of `{name}` needs {setting}: SERVICE:PORT of a service here that publishes this port"
        );
        report.add(place, message);
    }
    endpoints.map(|value| At { place, value })
}

/// Parses `redis:6379`, or the same as a URL.
fn endpoint(text: &str) -> Option<Endpoint> {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, server)| server);
    let text = text.trim_end_matches('/');
    let (node, port) = text.split_once(':')?;
    Some(Endpoint {
        node: Name::new(node).ok()?,
        port: port.parse().ok().filter(|port| *port > 0)?,
    })
}

/// Checks that a node reaches no two servers at the same port: it reaches all of them through one
/// proxy with one address, at the servers' own names and ports.
fn check_ports(source: &str, reached: &[&At<Vec<Endpoint>>], report: &mut Report) {
    let mut seen: BTreeMap<u16, &str> = BTreeMap::new();
    for endpoints in reached {
        for Endpoint { node, port } in &endpoints.value {
            if let Some(first) = seen.insert(*port, node) {
                let message = format!(
                    "`{source}` reaches `{first}` and `{node}` at the same port {port}; one proxy stands between `{source}` and both, so give each a port of its own"
                );
                report.add(endpoints.place, message);
            }
        }
    }
}

/// Checks the order: services are started in at most two waves, and workers with both.
fn check_order(drafts: &BTreeMap<Name, Draft>, report: &mut Report) {
    let services = || drafts.iter().map(|(name, draft)| (name, &draft.service));
    let first = services().filter(|(_, service)| service.after.is_empty() && !service.template);
    let first: Vec<&str> = first.map(|(name, _)| name.as_str()).collect();
    for before in services().flat_map(|(_, service)| &service.after) {
        let name = before.value.as_str();
        if !drafts.contains_key(name) {
            report.unknown(before.place, "service", name, first.iter().copied());
        } else if !first.contains(&name) {
            let message = format!(
                "`{name}` is a template or depends on others itself; name a service that does not"
            );
            report.add(before.place, message);
        }
    }
}
