//! Checks that the links of a fault exist.

use super::*;
use crate::faults::Effect;
use crate::model::{Link, LinkEffect, LinkPattern, Streams};
use crate::scenario::draft::DraftTarget;
use std::collections::BTreeSet;

pub fn check(check: &Check<'_>, fault: &DraftFault, report: &mut Report) {
    match &fault.target {
        DraftTarget::Node(choices) if fault.kind.class() == FaultClass::Links => {
            for node in choices {
                has_links(check, node, report);
            }
        }
        DraftTarget::Node(_) => {}
        DraftTarget::Groups(groups) => cuts_something(check, groups, report),
        DraftTarget::Links(patterns) => {
            for pattern in patterns {
                matches_something(check, pattern, fault.effect.as_ref(), report);
            }
        }
    }
}

fn has_links(check: &Check<'_>, node: &At<String>, report: &mut Report) {
    let is_named = check.node_names().contains(&node.value.as_str());
    let Some(links) = check.links().filter(|_| is_named) else {
        return;
    };
    let touches = |link: &Link| link.from == node.value || link.to == node.value;
    if !links.iter().any(touches) {
        let message = format!(
            "nobody talks to `{}`, and it to nobody: there is nothing to cut",
            node.value
        );
        report.add(node.place, message);
    }
}

fn cuts_something(check: &Check<'_>, groups: &[Vec<At<String>>], report: &mut Report) {
    let before = report.complaints();
    let mut seen: Vec<&At<String>> = Vec::new();
    for node in groups.iter().flatten() {
        check.named_node(node, report);
        if let Some(first) = seen.iter().find(|known| known.value == node.value) {
            let message = format!(
                "`{}` stands here twice (first in line {}, column {}); a node is on one side",
                node.value, first.place.line, first.place.column
            );
            report.add(node.place, message);
        }
        seen.push(node);
    }
    let side = |name: &str| {
        let mut sides = groups.iter();
        sides.position(|group| group.iter().any(|node| node.value == name))
    };
    let is_cut = |link: &Link| match (side(&link.from), side(&link.to)) {
        (Some(from), Some(to)) => from != to,
        _ => false,
    };
    // A partition without two sides has been complained about already.
    let has_sides = groups.len() > 1 && groups.iter().all(|group| !group.is_empty());
    if report.complaints() == before
        && has_sides
        && let (Some(links), Some(first)) = (check.links(), seen.first())
        && !links.iter().any(is_cut)
    {
        let message = "no node of one group talks to one of another: there is nothing to cut";
        report.add(first.place, message);
    }
}

fn matches_something(
    check: &Check<'_>,
    at: &At<LinkPattern>,
    effect: Option<&Effect>,
    report: &mut Report,
) {
    let pattern = &at.value;
    let before = report.complaints();
    for name in [&pattern.from, &pattern.to].into_iter().flatten() {
        let name = At::new(at.place, name.clone());
        check.named_node(&name, report);
    }
    let Some(links) = check.links() else { return };
    if report.complaints() > before {
        return;
    }
    // If the effect could not be read, either direction may be meant.
    let one_way_only = match effect {
        Some(Effect::Links(LinkEffect::Refuse)) => true,
        Some(Effect::Links(LinkEffect::Toxic { streams, .. })) => *streams == Streams::Both,
        Some(Effect::Node(_)) | None => false,
    };
    let back = pattern.turned();
    let fits = |link: &Link| pattern.matches(link) || (!one_way_only && back.matches(link));
    if !links.iter().any(fits) {
        no_such_link(at.place, pattern, &links, report);
    }
}

fn no_such_link(place: Place, pattern: &LinkPattern, links: &[Link], report: &mut Report) {
    let (who, there) = match (&pattern.from, &pattern.to) {
        (Some(from), _) => {
            let reached = links.iter().filter(|link| link.from == *from);
            let reached: BTreeSet<&str> = reached.map(|link| link.to.as_str()).collect();
            (format!("`{from}` connects to"), reached)
        }
        (None, to) => {
            let to = to.as_deref().unwrap_or(LinkPattern::ANY);
            let from = links.iter().filter(|link| link.to == to);
            let from: BTreeSet<&str> = from.map(|link| link.from.as_str()).collect();
            (format!("to `{to}` connect"), from)
        }
    };
    let there = match there.is_empty() {
        true => "nobody".to_owned(),
        false => there.into_iter().collect::<Vec<_>>().join(", "),
    };
    let message = format!("there is no link `{pattern}`; {who} {there}");
    report.add(place, message);
}
