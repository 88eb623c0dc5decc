//! The target of a fault, as a scenario names it.

use super::*;
use crate::model::{Affected, LinkPattern};

#[derive(Clone, Debug)]
pub enum DraftTarget {
    /// One of these nodes.
    Node(Vec<At<String>>),
    Groups(Vec<Vec<At<String>>>),
    Links(Vec<At<LinkPattern>>),
}

pub fn read(affects: Affected, node: &Node, report: &mut Report) -> Option<DraftTarget> {
    match affects {
        Affected::Node => read_choices(node, report).map(DraftTarget::Node),
        Affected::Groups => read_groups(node, report).map(DraftTarget::Groups),
        Affected::Links => read_links(node, report).map(DraftTarget::Links),
    }
}

/// Reads a node, or `{ one_of: [x, y] }`, of which the seed draws one.
fn read_choices(node: &Node, report: &mut Report) -> Option<Vec<At<String>>> {
    let Value::Map(_) = &node.value else {
        return Some(vec![node.text("a node, or { one_of: [x, y] }", report)?]);
    };
    let mut fields = Fields::of(node, "a choice of nodes", report)?;
    let list = fields.required("one_of", report);
    fields.finish(report);
    let list = list?;
    let names = list.list("nodes", report)?;
    if names.len() < 2 {
        report.add(list.place, "`one_of` takes at least two nodes");
    }
    let choices = each_once(names, report, |node, report| node.text("a node", report));
    (!choices.is_empty()).then_some(choices)
}

/// Reads `a -> redis-1`, or a list of links.
fn read_links(node: &Node, report: &mut Report) -> Option<Vec<At<LinkPattern>>> {
    let nodes = node.one_or_more();
    if nodes.is_empty() {
        report.add(node.place, "name at least one link, such as `a -> redis`");
    }
    let patterns = each_once(nodes, report, |node, report| {
        let text = node.text("a link, such as `a -> redis`", report)?;
        let Some(pattern) = LinkPattern::parse(&text.value) else {
            let message = format!(
                "`{}` is not a link; write who connects to whom, such as `a -> redis` or `a -> any`",
                text.value
            );
            report.add(text.place, message);
            return None;
        };
        Some(text.map(|_| pattern))
    });
    (!patterns.is_empty()).then_some(patterns)
}

/// Reads the sides of a partition: `[[a, redis-1], [b, redis-2]]`.
fn read_groups(node: &Node, report: &mut Report) -> Option<Vec<Vec<At<String>>>> {
    let sides = node.list("groups, such as [[a], [redis]]", report)?;
    if sides.len() < 2 {
        report.add(node.place, "a partition has at least two groups");
    }
    let mut groups: Vec<Vec<At<String>>> = Vec::new();
    for side in sides {
        let Some(names) = side.list("nodes", report) else {
            continue;
        };
        if names.is_empty() {
            report.add(side.place, "a group has at least one node");
        }
        let names = names.iter();
        groups.push(names.filter_map(|n| n.text("a node", report)).collect());
    }
    Some(groups)
}
