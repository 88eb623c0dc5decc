//! What everything of ours is marked with at birth.

use crate::cluster::Owner;
use crate::model::Name;
use std::collections::HashMap;

pub const OWNER: &str = "fencepost.owner";
pub const RUN: &str = "fencepost.run";
pub const NODE: &str = "fencepost.node";
/// Kept on purpose (`--keep`): only `fencepost clean` removes it.
pub const KEEP: &str = "fencepost.keep";
/// On images: which of ours it is.
pub const IMAGE: &str = "fencepost.image";

/// The labels of one case's containers and network.
#[derive(Clone, Debug)]
pub struct RunLabels {
    pub run: Name,
    pub keep: bool,
}

impl RunLabels {
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
