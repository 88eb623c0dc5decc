//! Who is who: workers, servers, the leader among them, and their links.

use super::Check;
use crate::model::{LEADER, Link, Name};
use crate::scenario::draft::DraftWorker;
use crate::yaml::{At, Report};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Worker,
    Server,
    /// The server whose log is the evidence.
    Resource,
    Leader,
    /// Something of a topology that is not here to be asked.
    Unasked,
}

impl Check<'_> {
    pub fn worker(&self, name: &str) -> Option<&DraftWorker> {
        self.draft.workers.iter().find(|w| w.name.value == name)
    }

    /// How many rounds a worker plays at most.
    pub fn rounds(&self, worker: &DraftWorker) -> u32 {
        match (&worker.rounds, &self.draft.duration) {
            (Some(rounds), _) => rounds.value,
            (None, Some(_)) => u32::MAX,
            (None, None) => 1,
        }
    }

    pub fn who(&self, name: &str) -> Option<Who> {
        if self.worker(name).is_some() {
            return Some(Who::Worker);
        }
        let Some(facts) = self.facts else {
            // Whatever it was, it had a name.
            return Name::new(name).is_ok().then_some(Who::Unasked);
        };
        match name {
            LEADER if facts.has_leader() => Some(Who::Leader),
            name if name == facts.resource => Some(Who::Resource),
            name if facts.services.iter().any(|service| service == name) => Some(Who::Server),
            _ => None,
        }
    }

    /// Complains where nobody is called so.
    pub fn node(&self, name: &At<String>, report: &mut Report) -> Option<Who> {
        let who = self.who(&name.value);
        match who {
            Some(_) => {}
            None if name.value == LEADER => {
                let message =
                    "`leader` is the leader of an etcd cluster, and this topology has none";
                report.add(name.place, message);
            }
            None => self.unknown_node(name, report),
        }
        who
    }

    /// As [`Check::node`], where the leader cannot be meant.
    pub fn named_node(&self, name: &At<String>, report: &mut Report) -> Option<Who> {
        match self.who(&name.value) {
            Some(Who::Leader) => {
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

    /// Every link there is; None where the topology is not here to be asked.
    pub fn links(&self) -> Option<Vec<Link>> {
        let facts = self.facts?;
        let of_worker = |worker: &DraftWorker| {
            // One that is no name has been complained about, too.
            let from = Name::new(worker.name.value.as_str()).ok();
            let lock = worker.lock.as_ref().or(self.draft.lock.as_ref());
            let backend = lock.and_then(|lock| Some(lock.backend.as_ref()?.value));
            // One that could not be read has been complained about.
            let backend = backend.unwrap_or_default();
            let template = backend.choose(&facts.workers, |worker| worker.backend);
            let reaches = template.map(|worker| &worker.reaches);
            let reaches = reaches.into_iter().flatten();
            reaches.filter_map(move |to| {
                Some(Link {
                    from: from.clone()?,
                    to: to.clone(),
                })
            })
        };
        let of_workers = self.draft.workers.iter().flat_map(of_worker);
        Some(of_workers.chain(facts.links.iter().cloned()).collect())
    }
}
