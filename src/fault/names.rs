//! What stands beside the nodes, and how it is called.

use crate::model::Name;

/// The Toxiproxy of a source.
pub fn proxy_of(source: &Name) -> Name {
    source.behind("toxiproxy")
}

pub fn witness_of(source: &Name) -> Name {
    source.behind("witness")
}

pub fn filter_of(node: &Name) -> Name {
    node.behind("packets")
}

pub fn clockmaker_of(node: &Name) -> Name {
    node.behind("clock")
}
