use super::worker::yes_or_no;
use crate::model::{Arrivals, ContendPlan, KeyspacePlan, LockOptions, Span};
use crate::scenario::values::{
    choice, count_of_many, duration, number, per_second, span, whole_number,
};
use crate::yaml::{At, Fields, Node, Place, Report, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

const DEFAULT_CLIENTS: u32 = 12;
const DEFAULT_BACKLOG: u32 = 10_000;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a load does instead of workers and a timeline.
pub enum DraftLoad {
    Contend(DraftContend),
    Keyspace(DraftKeyspace),
}

pub struct DraftContend {
    pub contenders: Vec<u32>,
    /// Whether every number of contenders could be read.
    pub is_whole: bool,
    arrivals: Arrivals,
    clients: Option<At<u32>>,
    keys: Option<At<u64>>,
    work: Option<At<Span>>,
    timeout: Option<At<Duration>>,
    pub places: Places,
}

pub struct DraftKeyspace {
    keys: Option<At<u64>>,
    counters: Option<At<Duration>>,
    effort: Option<At<i64>>,
    scan: bool,
    pub watch: Option<At<Duration>>,
    pub places: Places,
}

/// Where the fields of a load stand.
pub struct Places {
    whole: Place,
    fields: BTreeMap<String, Place>,
}

impl Places {
    fn of(node: &Node) -> Places {
        let Value::Map(entries) = &node.value else {
            return Places {
                whole: node.place,
                fields: BTreeMap::new(),
            };
        };
        let fields = entries.iter();
        Places {
            whole: node.place,
            fields: fields
                .map(|(key, node)| (key.value.clone(), node.place))
                .collect(),
        }
    }

    /// The place of a field, or of the whole where it is not written.
    pub fn of_field(&self, field: &str) -> Place {
        self.fields.get(field).copied().unwrap_or(self.whole)
    }
}

impl DraftContend {
    pub fn plan(&self, lock: LockOptions, ttl: Duration, duration: Duration) -> ContendPlan {
        ContendPlan {
            lock,
            ttl,
            contenders: self.contenders.clone(),
            clients: self.clients.as_ref().map_or(DEFAULT_CLIENTS, |at| at.value),
            keys: self.keys.as_ref().map_or(1, |at| at.value),
            arrivals: self.arrivals,
            work: self.work(),
            timeout: self.timeout(),
            duration,
        }
    }

    pub fn work(&self) -> Span {
        let written = self.work.as_ref().map(|at| at.value);
        written.unwrap_or_default()
    }

    pub fn steps(&self) -> u32 {
        u32::try_from(self.contenders.len()).unwrap_or(u32::MAX)
    }

    pub fn timeout(&self) -> Duration {
        let written = self.timeout.as_ref().map(|at| at.value);
        written.unwrap_or(DEFAULT_TIMEOUT)
    }
}

impl DraftKeyspace {
    /// None where the number of keys could not be read.
    pub fn plan(&self, ttl: Duration) -> Option<KeyspacePlan> {
        let length = |at: &Option<At<Duration>>| at.as_ref().map(|at| at.value);
        Some(KeyspacePlan {
            keys: self.keys.as_ref()?.value,
            ttl,
            counters: length(&self.counters),
            effort: self.effort.as_ref().map(|at| at.value as u32),
            scan: self.scan,
            watch: length(&self.watch),
        })
    }
}

/// What makes contenders ask.
#[derive(Clone, Copy, PartialEq)]
pub enum Model {
    Open,
    Closed,
}

impl Model {
    pub const ALL: [Model; 2] = [Model::Open, Model::Closed];
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Open => "open",
            Model::Closed => "closed",
        })
    }
}

pub fn read_contend(node: &Node, report: &mut Report) -> Option<DraftContend> {
    let mut fields = Fields::of(node, "contend", report)?;
    let contenders = fields.required("contenders", report);
    let rate = fields.read("rate", report, per_second);
    let model = fields.read("model", report, |node, report| {
        choice(node, "model", &Model::ALL, report)
    });
    let backlog = fields.read("backlog", report, whole_number);
    let clients = fields.read("clients", report, whole_number);
    let keys = fields.read("keys", report, count_of_many);
    let work = fields.read("work", report, span);
    let timeout = fields.read("timeout", report, duration);
    fields.finish(report);
    let before = report.complaints();
    let steps = contenders.map_or_else(Vec::new, |node| read_contenders(node, report));
    let is_whole = contenders.is_some() && report.complaints() == before;
    let closed = model.is_some_and(|model| model.value == Model::Closed);
    if closed {
        let of_open = [
            rate.as_ref().map(|rate| (rate.place, "rate")),
            backlog.as_ref().map(|backlog| (backlog.place, "backlog")),
        ];
        for (place, field) in of_open.into_iter().flatten() {
            let message = format!(
                "`{field}` belongs to `model: open`: in a closed one everybody asks again as soon as they are done"
            );
            report.add(place, message);
        }
    }
    let arrivals = match closed {
        true => Arrivals::Closed,
        false => Arrivals::Open {
            per_second: rate.map(|rate| rate.value),
            backlog: backlog.map_or(DEFAULT_BACKLOG, |backlog| backlog.value),
        },
    };
    Some(DraftContend {
        contenders: steps,
        is_whole,
        arrivals,
        clients,
        keys,
        work,
        timeout,
        places: Places::of(node),
    })
}

/// One number, or a step for each of several.
fn read_contenders(node: &Node, report: &mut Report) -> Vec<u32> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let numbers = nodes.iter();
    let numbers = numbers.filter_map(|node| whole_number(node, report));
    numbers.map(|number| number.value).collect()
}

pub fn read_keyspace(node: &Node, report: &mut Report) -> Option<DraftKeyspace> {
    let mut fields = Fields::of(node, "keyspace", report)?;
    let keys = fields.required("keys", report);
    let counters = fields.read("counters", report, duration);
    let effort = fields.read("effort", report, |node, report| {
        number(node, "effort", 1..=10, report)
    });
    let scan = fields.read("scan", report, yes_or_no);
    let watch = fields.read("watch", report, duration);
    fields.finish(report);
    Some(DraftKeyspace {
        keys: keys.and_then(|node| count_of_many(node, report)),
        counters,
        effort,
        scan: scan.is_some_and(|scan| scan.value),
        watch,
        places: Places::of(node),
    })
}
