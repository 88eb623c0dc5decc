//! What a runtime cannot do at all is said before anything is started.

use super::nodes::CaseNodes;
use crate::cluster::topology::Service;
use crate::cluster::{Need, Runtime};
use crate::fault::{needs, proxy_of};
use crate::scenario::Setup;

/// Why this case cannot be played here; None where nothing speaks against it.
/// `proxy` is what its links go through.
pub fn lacking(
    runtime: &dyn Runtime,
    nodes: &CaseNodes,
    proxy: &Service,
    setup: &Setup,
) -> Option<String> {
    let led = nodes.reach().keys().next();
    let proxy = led.map(|source| proxy.node(&proxy_of(source)));
    let started = nodes.services.iter().chain(&nodes.workers).chain(&proxy);
    let mut unstartable = started.filter_map(|node| {
        let reason = runtime.lacks(Need::Node(node))?;
        Some(format!("{}: {reason}", node.name))
    });
    unstartable.next().or_else(|| {
        let faults = setup.faults();
        let mut impossible = faults.into_iter().filter_map(|fault| {
            let mut needs = needs(fault, &nodes.services, nodes.reach()).into_iter();
            let reason = needs.find_map(|need| runtime.lacks(need))?;
            Some(format!("{} of {}: {reason}", fault.kind(), fault.target()))
        });
        impossible.next()
    })
}
