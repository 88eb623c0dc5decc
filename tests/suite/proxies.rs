//! toxiproxy/*.json say what a run derives from the topologies.

use crate::support::project;
use fencepost::cluster::topology::Endpoint;
use fencepost::cluster::{ProxyRoute, Topology};
use fencepost::faults::proxies;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use toxiproxy_server::NewProxy;

#[test]
fn the_proxies_are_those_of_the_topologies() {
    let bless = std::env::var_os("FENCEPOST_BLESS").is_some();
    for (name, topology) in Topology::load_all([project().join("compose")]).unwrap() {
        let workers = topology.workers.iter().map(|worker| {
            let reached = topology.reached_by(worker);
            (worker.name.as_str(), proxies(&ways(&reached)))
        });
        let services = topology.links();
        let services = services.map(|(name, reached)| (name.as_str(), proxies(&ways(reached))));
        let all: BTreeMap<&str, Vec<NewProxy>> = workers.chain(services).collect();
        let derived = serde_json::to_string_pretty(&all).unwrap() + "\n";
        let file = project().join(format!("toxiproxy/{name}.json"));
        if bless {
            fs::write(&file, &derived).unwrap();
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(written, derived, "{}", file.display());
    }
}

/// As containers see them.
fn ways(reached: &[Endpoint]) -> Vec<(Endpoint, ProxyRoute)> {
    let proxy = Ipv4Addr::UNSPECIFIED.into();
    let ways = reached.iter();
    ways.map(|server| (server.clone(), ProxyRoute::by_name(server, proxy)))
        .collect()
}
