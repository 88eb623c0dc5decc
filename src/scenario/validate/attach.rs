//! Servers that are there already: what can be attached, and which faults may affect it.

use super::*;
use crate::model::Name;
use crate::scenario::draft::{DraftAttach, DraftPlace};
use crate::services::Backend;
use std::collections::BTreeMap;

/// The bytes that a run puts before each key: `fencepost-`, ten digits and a dash.
const PREFIX_BYTES: usize = 21;

/// An attached server, as far as faults are concerned.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachedFacts {
    pub is_container: bool,
    pub may_be_faulted: bool,
}

/// Returns the facts of a topology whose lock servers are attached.
pub fn facts(attach: &DraftAttach, backend: Backend, base: &TopologyFacts) -> TopologyFacts {
    let names = attach.servers.iter().map(|(name, _)| name.value.clone());
    let services: Vec<String> = names.chain([base.resource.clone()]).collect();
    let reaches = services
        .iter()
        .filter_map(|name| Name::new(name.as_str()).ok());
    let attached = attach.servers.iter().map(|(name, server)| {
        let allowed = |on: &At<String>| on.value == name.value;
        let facts = AttachedFacts {
            is_container: matches!(server.place, DraftPlace::Compose { .. }),
            may_be_faulted: attach.allow_faults_on.iter().any(allowed),
        };
        (name.value.clone(), facts)
    });
    TopologyFacts {
        workers: vec![WorkerFacts {
            backend: Some(backend),
            reaches: reaches.collect(),
        }],
        attached: attached.collect(),
        services,
        templates: base.templates.clone(),
        links: Vec::new(),
        replicas: BTreeMap::new(),
        resource: base.resource.clone(),
        resource_kind: base.resource_kind,
    }
}

/// Checks what can be seen without the servers; `base` are the facts of the topology itself.
pub fn check(draft: &DraftSetup, base: Option<&TopologyFacts>, report: &mut Report) {
    let Some(attach) = &draft.attach else { return };
    let named: Vec<&str> = attach
        .servers
        .iter()
        .map(|it| it.0.value.as_str())
        .collect();
    for name in attach
        .allow_faults_on
        .iter()
        .chain(&attach.allow_settings_on)
    {
        if !named.contains(&name.value.as_str()) {
            let known = named.iter().copied();
            report.unknown(name.place, "attached server", &name.value, known);
        }
    }
    let workers = draft
        .workers
        .iter()
        .map(|worker| worker.name.value.as_str());
    let others = base.into_iter().flat_map(|base| {
        let templates = base.templates.iter().map(String::as_str);
        templates.chain([base.resource.as_str()])
    });
    let taken: Vec<&str> = workers.chain(others).collect();
    for (name, _) in &attach.servers {
        if name.value == RESOURCE || !crate::scenario::values::is_plain_name(&name.value) {
            let message = format!(
                "`{}` cannot be the name of an attached server; use lower-case letters, digits and dashes, and not `{RESOURCE}`",
                name.value
            );
            report.add(name.place, message);
        } else if taken.contains(&name.value.as_str()) {
            let message = format!(
                "`{}` is the name of a worker or of the resource; give the attached server another one",
                name.value
            );
            report.add(name.place, message);
        }
    }
    if draft.load.is_some() {
        let message = "a load is not made at servers of yours by a scenario; `fencepost contend` and `fencepost keyspace` make one";
        report.add(attach.place, message);
    }
    for key in draft
        .workers
        .iter()
        .filter_map(|worker| worker.key.as_ref())
    {
        if key.value.len() + PREFIX_BYTES > 256 {
            let message = format!(
                "at an attached server a key has at most {} bytes, because a prefix comes before it",
                256 - PREFIX_BYTES
            );
            report.add(key.place, message);
        }
    }
    let lock = draft.lock.as_ref().and_then(|lock| lock.backend.as_ref());
    if let Some(backend) = lock {
        check_program(attach, backend.value, report);
    }
}

fn check_program(attach: &DraftAttach, backend: Backend, report: &mut Report) {
    let servers = backend.servers();
    let Some(guest) = servers.program.guest else {
        let known = Backend::ALL
            .iter()
            .filter(|it| it.servers().program.guest.is_some());
        let known: Vec<String> = known.map(ToString::to_string).collect();
        let message = format!(
            "`{backend}` cannot be attached to: what a run leaves at its servers is not known; the backends that can are {}",
            known.join(", ")
        );
        report.add(attach.place, message);
        return;
    };
    let count = attach.servers.len();
    let is_too_many = servers.at_most.is_some_and(|most| count > most);
    if count < servers.at_least || is_too_many {
        let message = format!("`{backend}` needs {servers}, and {count} are attached");
        report.add(attach.place, message);
    }
    for (_, server) in &attach.servers {
        if let Some(login) = server.login.as_ref().filter(|_| !guest.has_login) {
            let message = format!("fencepost cannot log in to {servers}; leave `login` out");
            report.add(login.place, message);
        }
        if let Some(database) = server.database.as_ref().filter(|_| !guest.has_database) {
            let message = format!("{servers} has no database to choose; leave `database` out");
            report.add(database.place, message);
        }
    }
}

impl Check<'_> {
    /// Returns why this fault must not affect this node, if the node is an attached server.
    pub fn protects(&self, fault: &DraftFault, node: &str, role: Role) -> Option<String> {
        let attached = &self.facts?.attached;
        let kind = fault.kind;
        let servers: Vec<(&String, &AttachedFacts)> = match role {
            Role::Leader => attached.iter().collect(),
            Role::Server => attached.iter().filter(|(name, _)| *name == node).collect(),
            Role::Worker | Role::Resource | Role::Unasked => return None,
        };
        if servers.is_empty() {
            return None;
        }
        let never = match kind.class() {
            // The links and their proxies are ours.
            FaultClass::Links => return None,
            FaultClass::Stop | FaultClass::Continue | FaultClass::Kill => None,
            FaultClass::Restart if kind == FaultKind::RestartEmpty => {
                Some("would wipe it, and no server of yours is ever wiped")
            }
            FaultClass::Restart => None,
            FaultClass::Promotion => Some("would change which server of yours is the primary"),
            FaultClass::Disconnection => {
                Some("would take it off your own network; cut links instead")
            }
            FaultClass::PacketLoss => {
                Some("would lose packets of all your clients; cut links instead")
            }
            FaultClass::Clock => Some("would change the clocks of a server of yours"),
        };
        if let Some(why) = never {
            return Some(format!("`{node}` is attached: `{kind}` {why}"));
        }
        let refused = servers.iter().find(|(_, it)| !it.may_be_faulted);
        if let Some((name, _)) = refused {
            return Some(format!(
                "`{name}` is attached, and `{kind}` affects everybody who uses it; if that is meant, write `allow_faults_on: [{name}]` beside `attach`"
            ));
        }
        let address = servers.iter().find(|(_, it)| !it.is_container);
        address.map(|(name, _)| {
            format!(
                "`{name}` is attached by its address, and `{kind}` needs its container; attach it by `compose: PROJECT/SERVICE`"
            )
        })
    }
}
