//! Faults on nodes that can have them.

use super::Check;
use super::nodes::Who;
use crate::model::FaultKind;
use crate::scenario::draft::DraftFault;
use crate::yaml::{At, Report};

pub fn check(check: &Check<'_>, fault: &DraftFault, report: &mut Report) {
    for node in fault.nodes() {
        let Some(who) = check.node(node, report) else {
            continue;
        };
        if fault.kind == FaultKind::Promote {
            promotes_a_replica(check, node, report);
        } else if let Some(why) = cannot_befall(fault, who, &node.value) {
            report.add(node.place, why);
        }
    }
}

fn cannot_befall(fault: &DraftFault, who: Who, name: &str) -> Option<String> {
    let returns = fault.lasting.is_some();
    match (fault.kind, who) {
        (FaultKind::Kill, Who::Worker) if returns => Some(format!(
            "a worker that died stays dead: leave `for` out, and start another one at `{name}.killed`"
        )),
        (FaultKind::Kill, Who::Resource) if !returns => Some(format!(
            "the judge needs `{name}` at the end; give the kill a `for`, after which it is started again"
        )),
        (FaultKind::Restart | FaultKind::RestartEmpty, Who::Worker) => Some(format!(
            "a worker that died stays dead: write `kill: {name}`, and start another one at `{name}.killed`"
        )),
        (FaultKind::RestartEmpty, Who::Resource) => Some(format!(
            "the log of `{name}` is the evidence; use `restart`, which keeps it"
        )),
        _ => None,
    }
}

fn promotes_a_replica(check: &Check<'_>, node: &At<String>, report: &mut Report) {
    let Some(facts) = check.facts else { return };
    if facts.replicas.contains_key(&node.value) {
        return;
    }
    let replicas: Vec<&str> = facts.replicas.keys().map(String::as_str).collect();
    let hint = match replicas.is_empty() {
        true => "this topology has none".to_owned(),
        false => format!("replicas here: {}", replicas.join(", ")),
    };
    let message = format!("`{}` is no replica; {hint}", node.value);
    report.add(node.place, message);
}
