//! Requirements of faults on the runtime, independent of the state of the nodes.

use super::links::gripped_from;
use super::*;
use crate::cluster::{Need, NodeSpec};
use crate::model::LEADER;

/// Returns what a fault needs. The leader is not known yet, so it may be any service that has
/// links.
pub fn needs<'a>(fault: &Fault, services: &'a [NodeSpec], reach: &Reach) -> Vec<Need<'a>> {
    match fault {
        Fault::Node(fault) => form(fault.kind).need.into_iter().collect(),
        Fault::Links(links) => {
            let is_gripped = |node: &&NodeSpec| match fault.node().map(Name::as_str) {
                Some(LEADER) => reach.contains_key(&node.name),
                _ => gripped_from(&node.name, reach, links),
            };
            services.iter().filter(is_gripped).map(Need::Led).collect()
        }
    }
}

/// Returns what faults need of the machine itself, each need once.
pub fn of_the_machine<'a>(faults: impl Iterator<Item = &'a Fault>) -> Vec<&'static str> {
    let mut needs: Vec<&'static str> = faults
        .filter_map(|fault| form(fault.kind()).need?.of_the_machine())
        .collect();
    // Lists clocks before packets.
    needs.sort_by(|a, b| b.cmp(a));
    needs.dedup();
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::topology::Endpoint;
    use crate::model::{FaultKind, LinkEffect, LinkFault, LinkScope};
    use std::collections::BTreeMap;

    fn node(name: &str) -> NodeSpec {
        NodeSpec::new(name.into(), "", Vec::new())
    }

    fn reach() -> Reach {
        let server = |name: &str| Endpoint {
            node: name.into(),
            port: 1,
        };
        BTreeMap::from([
            ("a".into(), vec![server("e1"), server("e2")]),
            ("e1".into(), vec![server("e2")]),
            ("e2".into(), vec![server("e1")]),
        ])
    }

    fn led(scope: LinkScope) -> Vec<Name> {
        let fault = Fault::Links(LinkFault {
            kind: FaultKind::Refuse,
            scope,
            effect: LinkEffect::Refuse,
        });
        let services = [node("e1"), node("e2"), node("resource")];
        let needs = needs(&fault, &services, &reach());
        let led = needs.into_iter().filter_map(|need| match need {
            Need::Led(node) => Some(node.name.clone()),
            _ => None,
        });
        led.collect()
    }

    #[test]
    fn only_services_whose_own_links_are_cut_have_to_be_led() {
        let group = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let apart = LinkScope::Between(vec![group(&["a"]), group(&["e1", "e2"])]);
        assert_eq!(led(apart), [""; 0]);
        assert_eq!(led(LinkScope::Around("e1".into())), ["e1", "e2"]);
        assert_eq!(led(LinkScope::Around(LEADER.into())), ["e1", "e2"]);
        assert_eq!(led(LinkScope::Around("a".into())), [""; 0]);
    }
}
