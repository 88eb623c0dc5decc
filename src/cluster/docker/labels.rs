//! The labels and names of everything that we create. Labels alone can be inherited
//! (`docker commit` copies them into an image), so an object with another name is not ours.

use super::*;
use crate::cluster::Owner;

pub const OWNER: &str = "fencepost.owner";
pub const RUN: &str = "fencepost.run";
pub const NODE: &str = "fencepost.node";
/// Kept on purpose (`--keep`): only `fencepost clean` removes it.
pub const KEEP: &str = "fencepost.keep";
/// On images: which of our images it is.
pub const IMAGE: &str = "fencepost.image";

#[derive(Clone, Debug)]
pub struct RunLabels {
    pub run: Name,
    pub keep: bool,
}

impl RunLabels {
    pub fn container(&self, node: &Name) -> String {
        format!("fencepost-{}-{node}", self.run)
    }

    pub fn network(&self) -> String {
        format!("fencepost-{}", self.run)
    }

    pub fn for_network(&self) -> HashMap<String, String> {
        let mut labels = HashMap::from([
            (OWNER.to_owned(), Owner::current().to_label()),
            (RUN.to_owned(), self.run.to_string()),
        ]);
        if self.keep {
            labels.insert(KEEP.to_owned(), "true".to_owned());
        }
        labels
    }

    pub fn for_node(&self, node: &Name) -> HashMap<String, String> {
        let mut labels = self.for_network();
        labels.insert(NODE.to_owned(), node.to_string());
        labels
    }
}

pub struct ObjectLabels<'a>(pub &'a HashMap<String, String>);

impl ObjectLabels<'_> {
    pub fn run(&self) -> Option<&str> {
        self.0.get(RUN).map(String::as_str)
    }

    pub fn node(&self) -> Option<&str> {
        self.0.get(NODE).map(String::as_str)
    }

    pub fn is_kept(&self) -> bool {
        self.0.contains_key(KEEP)
    }

    pub fn owner_is_certainly_dead(&self) -> bool {
        let owner = self.0.get(OWNER).and_then(|label| Owner::from_label(label));
        owner.is_some_and(|owner| owner.is_certainly_dead())
    }

    /// Returns the name that we gave to an object with these labels.
    pub fn name(&self) -> Option<String> {
        let labels = RunLabels {
            run: Name::new(self.run()?).ok()?,
            keep: false,
        };
        Some(match self.node() {
            Some(node) => labels.container(&Name::new(node).ok()?),
            None => labels.network(),
        })
    }
}
