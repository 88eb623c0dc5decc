//! Containers that say what a test wants them to say.

use super::IMAGE;
use crate::support::{docker, docker_ok, named};
use fencepost::cluster::Owner;
use fencepost::model::Name;

/// The same process id with another start time: certainly dead.
pub fn dead_owner() -> String {
    let owner = Owner::current().to_label();
    let (process, _) = owner.rsplit_once('/').unwrap();
    format!("{process}/1")
}

/// A container called like a node of ours, with any labels; it is removed in the end.
pub struct Labelled {
    pub run: Name,
    pub name: String,
}

impl Labelled {
    /// `RUN` in a label stands for the run that its name says.
    pub fn new(node: &str, labels: &[(&str, &str)]) -> Labelled {
        let run = named(&format!("test-labelled-{}", std::process::id()));
        let name = format!("fencepost-{run}-{node}");
        let labels = labels.iter();
        let labels =
            labels.map(|(key, value)| format!("--label={key}={value}").replace("RUN", &run));
        let labels: Vec<String> = labels.collect();
        let mut start = vec!["run", "-d", "--name", &name];
        start.extend(labels.iter().map(String::as_str));
        start.extend([IMAGE, "sleep", "1000"]);
        docker_ok(&start);
        Labelled { run, name }
    }

    /// As a dead run would leave it.
    pub fn frozen(node: &str) -> Labelled {
        let owner = ("fencepost.owner", &*dead_owner());
        let labels = [owner, ("fencepost.run", "RUN"), ("fencepost.node", node)];
        let labelled = Labelled::new(node, &labels);
        docker_ok(&["pause", &labelled.name]);
        labelled
    }

    pub fn renamed(mut self) -> Labelled {
        let name = format!("somebodys-{}", self.name);
        docker_ok(&["rename", &self.name, &name]);
        self.name = name;
        self
    }

    pub fn state(&self) -> String {
        docker_ok(&["inspect", "-f", "{{.State.Status}}", &self.name])
    }

    pub fn is_there(&self) -> bool {
        docker(&["inspect", &self.name]).status.success()
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        docker(&["rm", "-f", &self.name]);
    }
}
