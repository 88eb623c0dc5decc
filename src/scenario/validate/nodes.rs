//! The nodes of a scenario by name: workers, servers, the leader among them, and their links.

use super::*;
use crate::model::{Link, Name};

impl Check<'_> {
    pub fn worker(&self, name: &str) -> Option<&DraftWorker> {
        self.draft.workers.iter().find(|w| w.name.value == name)
    }

    pub fn rounds(&self, worker: &DraftWorker) -> u32 {
        match (&worker.rounds, &self.draft.duration) {
            (Some(rounds), _) => rounds.value,
            (None, Some(_)) => u32::MAX,
            (None, None) => 1,
        }
    }

    pub fn who(&self, name: &str) -> Option<Role> {
        if self.worker(name).is_some() {
            return Some(Role::Worker);
        }
        let Some(facts) = self.facts else {
            // Any valid name may have been a node of it.
            return Name::new(name).is_ok().then_some(Role::Unasked);
        };
        match name {
            LEADER if facts.has_leader() => Some(Role::Leader),
            name if name == facts.resource => Some(Role::Resource),
            name if facts.services.iter().any(|service| service == name) => Some(Role::Server),
            _ => None,
        }
    }

    /// Returns the role of a node; complains if there is no node of this name.
    pub fn node(&self, name: &At<String>, report: &mut Report) -> Option<Role> {
        let who = self.who(&name.value);
        match who {
            Some(_) => {}
            None if name.value == LEADER => {
                let message = "`leader` is the leader of an etcd cluster or a ZooKeeper ensemble, and this topology has none";
                report.add(name.place, message);
            }
            None => self.unknown_node(name, report),
        }
        who
    }

    /// Does the same as [`Check::node`], but refuses the leader.
    pub fn named_node(&self, name: &At<String>, report: &mut Report) -> Option<Role> {
        match self.who(&name.value) {
            Some(Role::Leader) => {
                let message = "who leads is found when a node fault or an `isolate` begins; write a name here";
                report.add(name.place, message);
                None
            }
            None => {
                self.unknown_node(name, report);
                None
            }
            who => who,
        }
    }

    fn unknown_node(&self, name: &At<String>, report: &mut Report) {
        let known = self.node_names();
        report.unknown(name.place, "worker or service", &name.value, known);
    }

    pub fn node_names(&self) -> Vec<&str> {
        let workers = self.draft.workers.iter().map(|w| w.name.value.as_str());
        let services = self.facts.map_or(&[][..], |facts| &facts.services);
        workers.chain(services.iter().map(String::as_str)).collect()
    }

    /// Returns every link; None if the topology is not known.
    pub fn links(&self) -> Option<Vec<Link>> {
        let facts = self.facts?;
        let of_worker = |worker: &DraftWorker| {
            // An invalid name has been complained about, too.
            let from = Name::new(worker.name.value.as_str()).ok();
            let lock = worker.lock.as_ref().or(self.draft.lock.as_ref());
            let backend = lock.and_then(|lock| Some(lock.backend.as_ref()?.value));
            // A backend that could not be read has been complained about.
            let backend = backend.unwrap_or_default();
            let template = backend.choose(&facts.workers, |worker| worker.backend);
            let reaches = template.map(|worker| &worker.reaches);
            let reaches = reaches.into_iter().flatten();
            reaches.filter_map(move |to| Some(Link::new(from.clone()?, to.clone())))
        };
        let of_workers = self.draft.workers.iter().flat_map(of_worker);
        Some(of_workers.chain(facts.links.iter().cloned()).collect())
    }
}
