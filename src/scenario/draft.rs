//! The mirror of the YAML file: every value with its place, nothing checked
//! yet that needs more than one value. What could not be read is missing here
//! and has been reported, so that the checks can go on with the rest.

use super::Trigger;
use super::values::{choice, duration, range, trigger, whole_number};
use crate::model::{
    Backend, Expectations, Fence, FenceFloor, Gate, LockOptions, OnLost, ReleaseStyle,
    ViolationKind, WaitPolicy,
};
use crate::yaml::{At, Fields, Node, Place, Report, Value};
use std::time::Duration;

pub struct Draft {
    pub name: Option<At<String>>,
    pub about: Option<At<String>>,
    pub topology: Option<At<String>>,
    pub lock: Option<DraftLock>,
    pub deadline: Option<At<Duration>>,
    pub workers: Vec<DraftWorker>,
    pub timeline: Vec<DraftEntry>,
    pub cases: Vec<DraftCase>,
}

impl Draft {
    pub fn ttl(&self) -> Option<&At<Duration>> {
        self.lock.as_ref()?.ttl.as_ref()
    }
}

pub struct DraftLock {
    pub backend: Option<At<Backend>>,
    pub ttl: Option<At<Duration>>,
    pub wait: Option<At<WaitPolicy>>,
    pub release: Option<At<ReleaseStyle>>,
    pub fence_floor: Option<At<FenceFloor>>,
}

impl DraftLock {
    /// None where there is no backend, and that has been reported.
    pub fn options(&self) -> Option<LockOptions> {
        Some(LockOptions {
            backend: self.backend.as_ref()?.value,
            wait: self
                .wait
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
            release: self
                .release
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
            fence_floor: self
                .fence_floor
                .as_ref()
                .map_or_else(Default::default, |at| at.value),
        })
    }

    /// Where the field of this name stands.
    pub fn place_of(&self, field: &str) -> Option<Place> {
        match field {
            "wait" => self.wait.as_ref().map(|at| at.place),
            "release" => self.release.as_ref().map(|at| at.place),
            "fence_floor" => self.fence_floor.as_ref().map(|at| at.place),
            _ => None,
        }
    }
}

pub struct DraftWorker {
    pub name: At<String>,
    pub key: Option<At<String>>,
    /// None where there is no such field at all.
    pub gates: Option<Vec<At<Gate>>>,
    pub start: Option<At<Trigger>>,
    pub rounds: Option<At<u32>>,
    pub work: Option<At<Duration>>,
    pub pause: Option<At<Duration>>,
    pub on_lost: Option<At<OnLost>>,
    pub renew: bool,
}

pub struct DraftEntry {
    pub place: Place,
    pub when: Option<At<Trigger>>,
    pub after: Option<At<Duration>>,
    pub action: Option<DraftAction>,
}

pub enum DraftAction {
    Pause {
        target: At<String>,
        lasting: Option<At<Duration>>,
        longer_than: Option<At<Bound>>,
    },
    Resume {
        target: At<String>,
    },
}

impl DraftAction {
    pub fn target(&self) -> &At<String> {
        match self {
            DraftAction::Pause { target, .. } | DraftAction::Resume { target } => target,
        }
    }
}

impl DraftEntry {
    pub fn pauses(&self, name: &str) -> bool {
        matches!(&self.action, Some(DraftAction::Pause { target, .. }) if target.value == name)
    }

    pub fn resumes(&self, name: &str) -> bool {
        matches!(&self.action, Some(DraftAction::Resume { target }) if target.value == name)
    }
}

/// What a pause has to outlast.
#[derive(Clone, Copy)]
pub enum Bound {
    Ttl,
    Fixed(Duration),
}

pub struct DraftCase {
    pub name: At<String>,
    pub fence: Option<At<Fence>>,
    pub expect: Option<Expectations>,
}

pub fn read(root: &Node, report: &mut Report) -> Option<Draft> {
    let mut fields = Fields::of(root, "the scenario", report)?;
    let name = fields.required("name", report);
    let about = fields.required("about", report);
    let topology = fields.required("topology", report);
    let lock = fields.required("lock", report);
    let workers = fields.required("workers", report);
    let deadline = fields.read("deadline", report, duration);
    let timeline = fields.optional("timeline");
    let cases = fields.required("cases", report);
    fields.finish(report);

    Some(Draft {
        name: name.and_then(|node| node.text("a name", report)),
        about: about.and_then(|node| node.text("a text", report)),
        topology: topology.and_then(|node| node.text("the name of a topology", report)),
        lock: lock.and_then(|node| read_lock(node, report)),
        deadline,
        workers: workers
            .map(|node| read_named(node, "the workers by name", read_worker, report))
            .unwrap_or_default(),
        timeline: timeline
            .map(|node| read_timeline(node, report))
            .unwrap_or_default(),
        cases: cases
            .map(|node| read_named(node, "the cases by name", read_case, report))
            .unwrap_or_default(),
    })
}

fn read_lock(node: &Node, report: &mut Report) -> Option<DraftLock> {
    let mut fields = Fields::of(node, "lock", report)?;
    let backend = fields.required("backend", report);
    let ttl = fields.required("ttl", report);
    let wait = fields.optional("wait");
    let release = fields.optional("release");
    let fence_floor = fields.optional("fence_floor");
    fields.finish(report);
    Some(DraftLock {
        backend: backend.and_then(|node| choice(node, "backend", &Backend::ALL, report)),
        ttl: ttl.and_then(|node| duration(node, report)),
        wait: wait.and_then(|node| choice(node, "way to wait", &WaitPolicy::ALL, report)),
        release: release.and_then(|node| choice(node, "release", &ReleaseStyle::ALL, report)),
        fence_floor: fence_floor
            .and_then(|node| choice(node, "fence floor", &FenceFloor::ALL, report)),
    })
}

fn read_named<T>(
    node: &Node,
    what: &str,
    read: impl Fn(&At<String>, &Node, &mut Report) -> Option<T>,
    report: &mut Report,
) -> Vec<T> {
    let entries = node.map(what, report).unwrap_or_default();
    if entries.is_empty() {
        report.add(node.place, format!("expected {what}, found none"));
    }
    entries
        .iter()
        .filter_map(|(name, node)| read(name, node, report))
        .collect()
}

fn read_worker(name: &At<String>, node: &Node, report: &mut Report) -> Option<DraftWorker> {
    let what = format!("worker `{}`", name.value);
    let mut fields = Fields::of(node, &what, report)?;
    let key = fields.required("key", report);
    let gates = fields.read("gate", report, read_gates);
    let start = fields.read("start", report, trigger);
    let rounds = fields.read("rounds", report, whole_number);
    let work = fields.read("work", report, duration);
    let pause = fields.read("pause", report, duration);
    let on_lost = fields.read("on_lost", report, |node, report| {
        choice(node, "reaction to a lost lease", &OnLost::ALL, report)
    });
    let renew = fields.read("renew", report, |node, report| {
        choice(node, "answer (true or false)", &[true, false], report)
    });
    fields.finish(report);
    Some(DraftWorker {
        name: name.clone(),
        key: key.and_then(|node| node.text("a key", report)),
        gates,
        start,
        rounds,
        work,
        pause,
        on_lost,
        renew: renew.is_some_and(|renew| renew.value),
    })
}

/// One gate or a list of them. `start` is no gate to ask for: that is what
/// the field `start` is for.
fn read_gates(node: &Node, report: &mut Report) -> Option<Vec<At<Gate>>> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        report.add(node.place, "an empty list of gates; leave `gate` out");
    }
    let mut gates: Vec<At<Gate>> = Vec::new();
    for node in nodes {
        let Some(gate) = choice(node, "gate", &Gate::IN_A_ROUND, report) else {
            continue;
        };
        if gates.iter().any(|known| known.value == gate.value) {
            report.add(gate.place, format!("`{}` stands here twice", gate.value));
        }
        gates.push(gate);
    }
    Some(gates)
}

fn read_timeline(node: &Node, report: &mut Report) -> Vec<DraftEntry> {
    let entries = node.list("timeline entries", report).unwrap_or_default();
    entries
        .iter()
        .filter_map(|node| read_entry(node, report))
        .collect()
}

fn read_entry(node: &Node, report: &mut Report) -> Option<DraftEntry> {
    let mut fields = Fields::of(node, "a timeline entry", report)?;
    let when = fields.required("when", report);
    let after = fields.read("after", report, duration);
    let action = fields.required("do", report);
    fields.finish(report);
    Some(DraftEntry {
        place: node.place,
        when: when.and_then(|node| trigger(node, report)),
        after,
        action: action.and_then(|node| read_action(node, report)),
    })
}

fn read_action(node: &Node, report: &mut Report) -> Option<DraftAction> {
    let mut fields = Fields::of(node, "an action", report)?;
    let pause = fields.optional("pause");
    let resume = fields.optional("resume");
    let lasting = fields.read("for", report, duration);
    let longer_than = fields.read("longer_than", report, read_bound);
    fields.finish(report);
    match (pause, resume) {
        (Some(target), None) => Some(DraftAction::Pause {
            target: target.text("a worker", report)?,
            lasting,
            longer_than,
        }),
        (None, Some(target)) => {
            for place in [lasting.map(|at| at.place), longer_than.map(|at| at.place)]
                .into_iter()
                .flatten()
            {
                report.add(place, "only a pause has a length; write this at the pause");
            }
            Some(DraftAction::Resume {
                target: target.text("a worker", report)?,
            })
        }
        _ => {
            report.add(
                node.place,
                "one action is one fault: write either `pause: WORKER` or `resume: WORKER`",
            );
            None
        }
    }
}

fn read_bound(node: &Node, report: &mut Report) -> Option<At<Bound>> {
    if matches!(&node.value, Value::Scalar(text) if text == "ttl") {
        return Some(At {
            place: node.place,
            value: Bound::Ttl,
        });
    }
    Some(duration(node, report)?.map(Bound::Fixed))
}

fn read_case(name: &At<String>, node: &Node, report: &mut Report) -> Option<DraftCase> {
    let what = format!("case `{}`", name.value);
    let mut fields = Fields::of(node, &what, report)?;
    let fence = fields.required("fence", report);
    let expect = fields.required("expect", report);
    fields.finish(report);
    Some(DraftCase {
        name: name.clone(),
        fence: fence.and_then(|node| choice(node, "fence (on or off)", &Fence::ALL, report)),
        expect: expect.and_then(|node| read_expectations(node, report)),
    })
}

fn read_expectations(node: &Node, report: &mut Report) -> Option<Expectations> {
    let mut fields = Fields::of(node, "expect", report)?;
    let mut expect = Expectations::default();
    if let Some(node) = fields.optional("violations") {
        read_violations(node, &mut expect, report);
    }
    expect.accepted_writers = fields.read("accepted_writers", report, range);
    expect.accepted_writes = fields.read("accepted_writes", report, range);
    expect.stale_rejections = fields.read("stale_rejections", report, range);
    expect.rightful_rejections = fields.read("rightful_rejections", report, range);
    expect.overlaps = fields.read("overlaps", report, range);
    fields.finish(report);
    if matches!(&node.value, Value::Map(fields) if fields.is_empty()) {
        report.add(node.place, "a case that expects nothing proves nothing");
    }
    Some(expect)
}

/// `violations: 1..` for all kinds together, or a mapping from kind to count.
fn read_violations(node: &Node, expect: &mut Expectations, report: &mut Report) {
    let Value::Map(kinds) = &node.value else {
        expect.violations = range(node, report);
        return;
    };
    if kinds.is_empty() {
        report.add(node.place, "name at least one kind, or write a count");
    }
    for (name, count) in kinds {
        match ViolationKind::parse(&name.value) {
            Some(kind) => {
                let count = range(count, report);
                expect
                    .violations_by_kind
                    .extend(count.map(|count| (kind, count)));
            }
            None => {
                let known = ViolationKind::ALL.map(ViolationKind::name);
                report.unknown(name.place, "violation", &name.value, known);
            }
        }
    }
}
