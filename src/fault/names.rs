//! What stands beside the nodes, and how it is called.

/// The Toxiproxy of a source.
pub fn proxy_of(source: &str) -> String {
    format!("toxiproxy-{source}")
}

pub fn witness_of(source: &str) -> String {
    format!("witness-{source}")
}

pub fn filter_of(node: &str) -> String {
    format!("packets-{node}")
}

pub fn clockmaker_of(node: &str) -> String {
    format!("clock-{node}")
}
