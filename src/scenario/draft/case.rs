use super::*;
use crate::model::Fence;
use crate::scenario::form::duration;
use crate::yaml::overlay;

fields! {
    /// The fields that a scenario has for all its cases, and a case for itself.
    pub struct CaseFields {
        /// a file under compose/, without `.yml`
        topology: At<String> = text("the name of a topology"), required;
        /// `{ image: … }`: what workers are started from instead of this program: a folder with a
        /// Dockerfile, such as `examples/redis-py-worker`, or an image with its tag
        worker: Node = later(image_schema), without("this program");
        /// the lock that workers use
        lock: DraftLock = DraftLock::form(), required;
        /// how long workers without `rounds` go on, and what repeats `throughout`
        duration: At<Duration> = duration(), without("–");
        /// a case that is not over by then is given up, naming what did not come
        deadline: At<Duration> = duration(), without("60s, and the duration; of a load, long enough for all of it");
        /// the workers by name
        workers: Node = later(|| json!({ "type": "object", "minProperties": 1, "additionalProperties": to("worker") })), without("–");
        /// what happens to them
        timeline: Node = later(|| json!({ "type": "array", "items": to("entry") })), without("nothing happens");
        /// a load instead of workers and a timeline: many that want few locks
        contend: Node = later(|| to("contend")), without("–");
        /// a load instead of workers and a timeline: many locks that nobody wants
        keyspace: Node = later(|| to("keyspace")), without("–");
        /// whether the resource compares tokens: `on` or `off`
        fence: Node = later(|| json!({ "enum": words(Fence::VARIANTS) })), without("–");
        /// what has to come of it
        expect: Node = later(|| to("expect")), without("–");
    }
}

fn image_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "required": ["image"],
        "additionalProperties": false,
        "properties": { "image": { "type": "string" } }
    })
}

pub struct DraftCase {
    pub name: At<String>,
    pub fence: Option<At<Fence>>,
    pub expect: Option<DraftExpectations>,
    pub setup: DraftSetup,
}

/// Reads a case, which is the scenario with the case's own fields laid over it.
pub fn read(
    name: &At<String>,
    node: &Node,
    scenario: &Node,
    settings: &Node,
    report: &mut Report,
) -> Option<DraftCase> {
    let what = format!("case `{}`", name.value);
    let mut own = Fields::of(node, &what, report)?;
    own.know(&CaseFields::NAMES);
    own.finish(report);
    let merged = overlay(&overlay(scenario, node), settings);
    let mut fields = Fields::of(&merged, &what, report)?;
    let setup = setup::read(&merged, report)?;
    // A case without writes has nothing to fence and need not expect anything: it is as expected
    // when it was played to its end.
    let writes = !matches!(setup.load, Some(DraftLoad::Keyspace(_)));
    let mut take = |field, report: &mut Report| {
        if writes {
            fields.required_at(field, node.place, report)
        } else {
            fields.optional(field)
        }
    };
    let fence = match take("fence", report) {
        Some(node) => values::choice(node, "fence (on or off)", Fence::VARIANTS, report),
        None => (!writes).then_some(At::new(node.place, Fence::On)),
    };
    let expect = match take("expect", report) {
        Some(node) => expect::read(node, report),
        None => (!writes).then(DraftExpectations::nothing),
    };
    Some(DraftCase {
        name: name.clone(),
        fence,
        expect,
        setup,
    })
}
