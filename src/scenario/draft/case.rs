use super::*;
use crate::model::{Fence, ResourceKind};
use crate::scenario::form::{choice, duration};

fields! {
    /// The fields that a scenario has for all its cases, and a case for itself.
    pub struct CaseFields {
        /// `fault`: workers and what affects them; `load`: a load instead
        kind: Node = later(|| json!({ "enum": words(Kind::VARIANTS) })), without("fault");
        /// a file under compose/, without `.yml`; or `{ attach: … }`, servers that are there already
        topology: DraftTopology = DraftTopology::form(), required;
        /// what workers are started from instead of this program. `image`: an image with its tag, or
        /// a folder with a Dockerfile: `./…` and `../…` from the folder of this file, `/…`, or a name
        /// such as `examples/redis-py-worker` from the home; `command`: in place of the image's own,
        /// or without an image a command of this machine, for `--runtime local`; `env`: variables of
        /// your own
        worker: Node = later(own_worker::schema), without("this program");
        /// the lock that workers use
        lock: DraftLock = DraftLock::form(), required;
        /// how long workers without `rounds` go on, and what repeats `throughout`
        duration: At<Duration> = duration(), without("–");
        /// a case that is not over by then is given up, naming what did not come
        deadline: At<Duration> = duration(), without("60s, and the duration; of a load, long enough for all of it");
        /// the workers by name
        workers: Node = later(|| json!({ "type": "object", "minProperties": 1, "additionalProperties": to("worker") })), without("–");
        /// the nodes that a step means by `servers`; if there are none (`[]`), a case with such a
        /// step is left out
        servers: Vec<At<String>> = nodes(), without("–");
        /// what happens to them
        timeline: Node = later(|| json!({ "type": "array", "items": to("entry") })), without("nothing happens");
        /// a load instead of workers and a timeline: many that want few locks
        contend: Node = later(|| to("contend")), without("–");
        /// a load instead of workers and a timeline: many locks that nobody wants
        keyspace: Node = later(|| to("keyspace")), without("–");
        /// what is written to: `http`, the resource of this program, `postgres`, tables of a database, or
        /// `s3`, objects
        resource: At<ResourceKind> = choice("resource (http, postgres or s3)", ResourceKind::VARIANTS), without("http");
        /// whether the resource compares tokens: `on` or `off`
        fence: Node = later(|| json!({ "enum": words(Fence::VARIANTS) })), without("–");
        /// what has to come of it
        expect: Node = later(|| to("expect")), without("–");
    }
}

fn nodes() -> impl Form<Vec<At<String>>> {
    let read = |node: &Node, report: &mut Report| {
        let names = node.list("nodes", report)?;
        let name = |node: &Node, report: &mut Report| node.text("a node", report);
        Some(each_once(names, report, name))
    };
    (read, || json!({ "type": "array", "items": to("name") }))
}

pub struct DraftCase {
    pub name: At<String>,
    pub service: Option<At<String>>,
    pub fence: Option<At<Fence>>,
    pub expect: Option<DraftExpectations>,
    pub setup: DraftSetup,
}

/// Returns the overrides without those that only cases of the other kind have: a service has cases
/// of both.
fn fitting(settings: &Node, case: &Node) -> Node {
    let fits = |name: &str| !kind::is_of_one_kind(name) || has(case, name);
    let fitting = entries_of(settings).iter();
    let fitting = fitting.filter(|(name, _)| fits(&name.value));
    Node {
        place: settings.place,
        value: Value::Map(fitting.cloned().collect()),
    }
}

/// Reads a case, which is the scenario with the case's own fields laid over it. On a service, the
/// scenario has the fields of the service already, and the case its name.
pub fn read(
    name: &At<String>,
    node: &Node,
    scenario: &Node,
    service: Option<&At<String>>,
    settings: &Node,
    report: &mut Report,
) -> Option<DraftCase> {
    let what = format!("case `{}`", name.value);
    let mut own = Fields::of(node, &what, report)?;
    own.know(&CaseFields::NAMES);
    own.finish(report);
    let merged = overlay(scenario, node);
    let settings = match service {
        Some(_) => &fitting(settings, &merged),
        None => settings,
    };
    let merged = overlay(&merged, settings);
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
        name: match service {
            None => name.clone(),
            Some(service) => At::new(name.place, format!("{}-{}", service.value, name.value)),
        },
        service: service.cloned(),
        fence,
        expect,
        setup,
    })
}
