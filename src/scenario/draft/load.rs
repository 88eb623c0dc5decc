use super::*;
use crate::load::{Arrivals, ContendPlan, KeyspacePlan};
use crate::model::Span;
use crate::scenario::form::{choice, duration, many, number, span, whole_number, yes_or_no};
use crate::services::LockOptions;

/// The load of a case, in place of workers and a timeline.
pub enum DraftLoad {
    Contend(DraftContend),
    Keyspace(DraftKeyspace),
}

#[derive(Clone, Copy, Debug, PartialEq, strum::Display, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Model {
    Open,
    Closed,
}

fields! {
    /// Many contenders that want few locks.
    pub struct DraftContend {
        /// how many may want a lock at the same time; a step for each number
        contenders: Vec<u32> = contenders(), required;
        /// arrivals a second, all contenders together: `200/s`
        rate: At<f64> = rate(), without("one for each contender");
        /// `open`: arrivals at a fixed rate, whatever becomes of those before, and latency
        /// counts from the intended arrival; `closed`: everybody asks again as soon as they
        /// are done
        model: At<Model> = choice("model", Model::VARIANTS), default(Model::Open);
        /// so many arrivals may wait for a contender; more are turned away, and counted
        backlog: At<u32> = whole_number(0), default(10_000);
        /// how many clients the contenders are spread over, each with connections of its own
        clients: At<u32> = whole_number(1), default(12);
        /// how many keys are wanted; 1 is one hot key
        keys: At<u64> = many(), default(1);
        /// how long a holder works before it writes
        work: At<Span> = span(), default(Span::default());
        /// how long anybody waits, from the intended arrival on
        timeout: At<Duration> = duration(), default(Duration::from_secs(10));
        /// so long, before the steps, one client alone acquires and releases, in turns with the
        /// two cheapest writes of the service
        floor: At<Duration> = duration(), without("not measured");
    }
}

fields! {
    /// Many locks that nobody wants.
    pub struct DraftKeyspace {
        /// so many locks of a Redis, or leases of an etcd (`lock: { backend: … }`), each for
        /// `lock.ttl`: `20k`, `10M`
        keys: At<u64> = many(), required;
        /// a fence counter beside each lock, which lives for so long
        counters: At<Duration> = duration(), without("none");
        /// Redis: `active-expire-effort`, 1 to 10
        effort: At<u32> = number("effort", 1..=10), without("as the server has it");
        /// Redis: once every lock is dead, touch every key with a SCAN
        scan: At<bool> = yes_or_no(), default(false);
        /// so long after the last key was made
        watch: At<Duration> = duration(), without("until nothing dead is left");
    }
}

impl DraftContend {
    pub fn plan(&self, lock: LockOptions, ttl: Duration, duration: Duration) -> ContendPlan {
        ContendPlan {
            lock,
            ttl,
            contenders: self.contenders.clone().unwrap_or_default(),
            clients: self.clients(),
            keys: self.keys(),
            arrivals: match self.model() {
                Model::Closed => Arrivals::Closed,
                Model::Open => Arrivals::Open {
                    per_second: self.rate.as_ref().map(|rate| rate.value),
                    backlog: self.backlog(),
                },
            },
            work: self.work(),
            timeout: self.timeout(),
            duration,
            floor: self.floor.as_ref().map(|floor| floor.value),
        }
    }

    pub fn steps(&self) -> u32 {
        let steps = self.contenders.as_ref().map_or(0, Vec::len);
        u32::try_from(steps).unwrap_or(u32::MAX)
    }
}

impl DraftKeyspace {
    /// Returns None if the number of keys could not be read.
    pub fn plan(&self, ttl: Duration) -> Option<KeyspacePlan> {
        let length = |at: &Option<At<Duration>>| at.as_ref().map(|at| at.value);
        Some(KeyspacePlan {
            keys: self.keys.as_ref()?.value,
            ttl,
            counters: length(&self.counters),
            effort: self.effort.as_ref().map(|at| at.value),
            scan: self.scan(),
            watch: length(&self.watch),
        })
    }
}

pub fn read_contend(node: &Node, report: &mut Report) -> Option<DraftContend> {
    let contend = DraftContend::read(node, "contend", report)?;
    if contend.model() == Model::Closed {
        for field in ["rate", "backlog"] {
            let message = format!(
                "`{field}` belongs to `model: open`: in a closed one everybody asks again as soon as they are done"
            );
            let place = contend.places.get(field);
            place
                .into_iter()
                .for_each(|place| report.add(place, message.clone()));
        }
    }
    Some(contend)
}

/// Reads one number, or a step for each of several.
fn contenders() -> impl Form<Vec<u32>> {
    let read = |node: &Node, report: &mut Report| {
        let numbers = node.one_or_more().iter();
        let numbers: Vec<Option<At<u32>>> = numbers
            .map(|node| values::whole_number(node, report))
            .collect();
        numbers.into_iter().map(|at| Some(at?.value)).collect()
    };
    let schema = || {
        let number = json!({ "type": "integer", "minimum": 1 });
        json!({ "anyOf": [number, { "type": "array", "minItems": 1, "items": number }] })
    };
    (read, schema)
}

fn rate() -> impl Form<At<f64>> {
    let schema = || {
        json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": r"^\d+(\.\d+)?(/s)?$" }
        ] })
    };
    (values::per_second, schema)
}
