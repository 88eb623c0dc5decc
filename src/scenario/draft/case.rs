use super::expect::{self, DraftExpectations};
use super::{DraftLoad, DraftSetup, FIELDS, setup};
use crate::model::Fence;
use crate::scenario::values::choice;
use crate::yaml::{At, Fields, Node, Report, overlay};

pub struct DraftCase {
    pub name: At<String>,
    pub fence: Option<At<Fence>>,
    pub expect: Option<DraftExpectations>,
    pub setup: DraftSetup,
}

/// A case is the scenario with the case's own fields laid over it.
pub fn read(
    name: &At<String>,
    node: &Node,
    scenario: &Node,
    settings: &Node,
    report: &mut Report,
) -> Option<DraftCase> {
    let what = format!("case `{}`", name.value);
    let mut own = Fields::of(node, &what, report)?;
    for field in FIELDS {
        own.optional(field);
    }
    own.finish(report);
    let merged = overlay(&overlay(scenario, node), settings);
    let mut fields = Fields::of(&merged, &what, report)?;
    let setup = setup::read(&merged, report)?;
    if matches!(setup.load, Some(DraftLoad::Keyspace(_))) {
        return Some(without_writes(name, node, fields, setup, report));
    }
    let fence = fields.required_at("fence", node.place, report);
    let expect = fields.required_at("expect", node.place, report);
    Some(DraftCase {
        name: name.clone(),
        fence: fence.and_then(|node| read_fence(node, report)),
        expect: expect.and_then(|node| expect::read(node, report)),
        setup,
    })
}

fn read_fence(node: &Node, report: &mut Report) -> Option<At<Fence>> {
    choice(node, "fence (on or off)", &Fence::ALL, report)
}

/// Where nobody writes there is nothing to fence, and nothing that has to be
/// expected: it is as expected when it was done to its end.
fn without_writes(
    name: &At<String>,
    node: &Node,
    mut fields: Fields<'_>,
    setup: DraftSetup,
    report: &mut Report,
) -> DraftCase {
    let fence = match fields.optional("fence") {
        Some(node) => read_fence(node, report),
        None => Some(At {
            place: node.place,
            value: Fence::On,
        }),
    };
    let expect = match fields.optional("expect") {
        Some(node) => expect::read(node, report),
        None => Some(DraftExpectations::nothing()),
    };
    DraftCase {
        name: name.clone(),
        fence,
        expect,
        setup,
    }
}
