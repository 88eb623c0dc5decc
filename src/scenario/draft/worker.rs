use super::*;
use crate::model::{Gate, WriteStyle};
use crate::scenario::Trigger;
use crate::scenario::form::{choice, duration, number, trigger, whole_number, yes_or_no};
use crate::services::OnLost;
use crate::yaml::overlay;
use std::ops::Deref;

fields! {
    /// The fields of a worker.
    pub struct WorkerFields {
        /// what it locks and writes
        key: At<String> = key(), required;
        /// spreads the copies over so many keys: `KEY-1`, `KEY-2` …
        keys: At<u32> = number("keys", 1..=u32::from(u16::MAX)), without("all on one");
        /// so many of it, called `a-1`, `a-2` …; to a fault of a node, its name is one of
        /// them, drawn by the seed, and in a group all of them
        copies: At<u32> = number("copies", 1..=64), without("–");
        /// laid over the scenario's
        lock: DraftLock = DraftLock::form(), without("the scenario's");
        /// where it stops until the last step of everything that is triggered by its `at_gate` has
        /// begun: `after_acquire`, `before_write`, `before_leave` (with `nested`),
        /// `before_release`, `between_get_and_del`; one or a list
        gate: Vec<At<Gate>> = gates(), without("none");
        /// the event it starts at
        start: At<Trigger> = trigger(), without("as soon as every worker is ready");
        /// how often it acquires, writes and releases
        rounds: At<u32> = whole_number(1), without("1, or for the `duration`");
        /// how long it works before it writes
        work: At<Duration> = duration(), default(Duration::ZERO);
        /// a stop-the-world pause inside of it, between work and write
        pause: At<Duration> = duration(), default(Duration::ZERO);
        /// once it knows that its lease is lost: `stop` (write nothing) or `ignore`
        on_lost: At<OnLost> = choice("reaction to a lost lease", OnLost::VARIANTS), default(OnLost::default());
        /// renew the lease at a third of its TTL
        renew: At<bool> = yes_or_no(), default(false);
        /// how many holds of its lock it has inside of each other (1 to 8)
        nested: At<u32> = number("nested", 1..=8), default(1);
        /// read before the work what the write replaces
        reads: At<bool> = yes_or_no(), default(true);
        /// how it writes with `resource: postgres`: `compare`, `lock-row` (`SELECT … FOR UPDATE`, and the
        /// write in the same transaction), `retry`, or a mistake: `check-then-write`, `fence-elsewhere`,
        /// `retry-blindly`; with `resource: s3`: `compare`, `check-then-write`, `fence-elsewhere`
        writes: At<WriteStyle> = choice("way to write", WriteStyle::VARIANTS), default(WriteStyle::default());
    }
}

#[derive(Clone)]
pub struct DraftWorker {
    pub name: At<String>,
    /// The worker of the file that this is a copy of.
    pub copy_of: Option<String>,
    pub fields: WorkerFields,
}

impl Deref for DraftWorker {
    type Target = WorkerFields;

    fn deref(&self) -> &WorkerFields {
        &self.fields
    }
}

pub fn read(
    name: &At<String>,
    node: &Node,
    scenario_lock: Option<&Node>,
    report: &mut Report,
) -> Option<Vec<DraftWorker>> {
    let what = format!("worker `{}`", name.value);
    let fields = WorkerFields::read(&with_lock(node, scenario_lock), &what, report)?;
    if let (Some(keys), None) = (&fields.keys, &fields.copies) {
        let message = "`keys` spreads copies; give the worker `copies`";
        report.add(keys.place, message);
    }
    let one = DraftWorker {
        name: name.clone(),
        copy_of: None,
        fields,
    };
    Some(match &one.copies {
        None => vec![one],
        Some(copies) => (1..=copies.value).map(|number| one.copy(number)).collect(),
    })
}

/// Lays the worker's own lock over the scenario's.
fn with_lock(worker: &Node, scenario_lock: Option<&Node>) -> Node {
    let mut worker = worker.clone();
    if let (Value::Map(fields), Some(base)) = (&mut worker.value, scenario_lock) {
        for (_, own) in fields.iter_mut().filter(|(key, _)| key.value == "lock") {
            *own = overlay(base, own);
        }
    }
    worker
}

impl DraftWorker {
    /// Returns a copy: `w-3`, on the key `account-3` if there are as many keys or more.
    fn copy(&self, number: u32) -> DraftWorker {
        let named =
            |at: &At<String>, number: u32| At::new(at.place, format!("{}-{number}", at.value));
        let mut copy = self.clone();
        copy.name = named(&self.name, number);
        copy.copy_of = Some(self.name.value.clone());
        if let (Some(key), Some(keys)) = (&self.key, &self.keys) {
            copy.fields.key = Some(named(key, (number - 1) % keys.value + 1));
        }
        copy
    }
}

fn key() -> impl Form<At<String>> {
    (
        |node: &Node, report: &mut Report| node.text("a key", report),
        || json!({ "type": "string", "minLength": 1, "maxLength": 256 }),
    )
}

fn gates() -> impl Form<Vec<At<Gate>>> {
    let schema = || json!({ "anyOf": [to("gate"), { "type": "array", "items": to("gate") }] });
    (read_gates, schema)
}

/// Reads one gate or a list of them. `start` is not a gate to ask for: the field `start` is for
/// that.
fn read_gates(node: &Node, report: &mut Report) -> Option<Vec<At<Gate>>> {
    let nodes = node.one_or_more();
    let gates = each_once(nodes, report, |node, report| {
        values::choice(node, "gate", Gate::IN_A_ROUND, report)
    });
    // A case removes its scenario's gates with an empty list.
    (!nodes.is_empty()).then_some(gates)
}
