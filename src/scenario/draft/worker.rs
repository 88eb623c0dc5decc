use super::{DraftLock, lock};
use crate::model::{Gate, OnLost};
use crate::scenario::Trigger;
use crate::scenario::values::{choice, duration, number, trigger, whole_number};
use crate::yaml::{At, Fields, Node, Report, Value, overlay};
use std::time::Duration;

pub const MOST_COPIES: i64 = 64;
pub const MOST_NESTED: i64 = 8;

#[derive(Clone)]
pub struct DraftWorker {
    pub name: At<String>,
    /// The worker of the file that this is one copy of.
    pub copy_of: Option<String>,
    pub key: Option<At<String>>,
    /// Its own fields laid over the scenario's lock, where it has any.
    pub lock: Option<DraftLock>,
    /// None where there is no such field at all.
    pub gates: Option<Vec<At<Gate>>>,
    pub start: Option<At<Trigger>>,
    pub rounds: Option<At<u32>>,
    pub work: Option<At<Duration>>,
    pub pause: Option<At<Duration>>,
    pub on_lost: Option<At<OnLost>>,
    pub renew: bool,
    pub nested: u32,
    pub reads: bool,
}

/// One worker, or its copies.
pub fn read(
    name: &At<String>,
    node: &Node,
    scenario_lock: Option<&Node>,
    report: &mut Report,
) -> Option<Vec<DraftWorker>> {
    let what = format!("worker `{}`", name.value);
    let mut fields = Fields::of(node, &what, report)?;
    let key = fields.required("key", report);
    let keys = fields.read("keys", report, |node, report| {
        number(node, "keys", 1..=i64::from(u16::MAX), report)
    });
    let copies = fields.read("copies", report, |node, report| {
        number(node, "copies", 1..=MOST_COPIES, report)
    });
    let own_lock = fields.optional("lock");
    let gates = fields.read("gate", report, read_gates);
    let start = fields.read("start", report, trigger);
    let rounds = fields.read("rounds", report, whole_number);
    let work = fields.read("work", report, duration);
    let pause = fields.read("pause", report, duration);
    let on_lost = fields.read("on_lost", report, |node, report| {
        choice(node, "reaction to a lost lease", &OnLost::ALL, report)
    });
    let renew = fields.read("renew", report, yes_or_no);
    let nested = fields.read("nested", report, |node, report| {
        number(node, "nested", 1..=MOST_NESTED, report)
    });
    let reads = fields.read("reads", report, yes_or_no);
    fields.finish(report);
    if let (Some(keys), None) = (&keys, &copies) {
        report.add(
            keys.place,
            "`keys` spreads copies; give the worker `copies`",
        );
    }
    let one = DraftWorker {
        name: name.clone(),
        copy_of: None,
        key: key.and_then(|node| node.text("a key", report)),
        lock: own_lock.and_then(|own| match scenario_lock {
            Some(base) => lock::read(&overlay(base, own), report),
            None => lock::read(own, report),
        }),
        gates,
        start,
        rounds,
        work,
        pause,
        on_lost,
        renew: renew.is_some_and(|renew| renew.value),
        nested: nested.map_or(1, |nested| nested.value as u32),
        reads: reads.is_none_or(|reads| reads.value),
    };
    Some(match copies {
        None => vec![one],
        Some(copies) => (1..=copies.value)
            .map(|number| one.copy(number, keys.as_ref().map(|keys| keys.value)))
            .collect(),
    })
}

impl DraftWorker {
    /// `w-3`, on the key `account-3` where there are as many keys or more.
    fn copy(&self, number: i64, keys: Option<i64>) -> DraftWorker {
        let named = |at: &At<String>, number: i64| At {
            place: at.place,
            value: format!("{}-{number}", at.value),
        };
        DraftWorker {
            name: named(&self.name, number),
            copy_of: Some(self.name.value.clone()),
            key: self.key.as_ref().map(|key| match keys {
                Some(keys) => named(key, (number - 1) % keys + 1),
                None => key.clone(),
            }),
            ..self.clone()
        }
    }
}

pub fn yes_or_no(node: &Node, report: &mut Report) -> Option<At<bool>> {
    choice(node, "answer (true or false)", &[true, false], report)
}

/// One gate or a list of them. `start` is no gate to ask for: that is what
/// the field `start` is for.
fn read_gates(node: &Node, report: &mut Report) -> Option<Vec<At<Gate>>> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
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
    // A case takes its scenario's gates away with an empty list.
    (!nodes.is_empty()).then_some(gates)
}
