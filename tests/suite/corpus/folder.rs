//! A folder of the corpus: what was recorded, and the verdict that it must get.

use fencepost::model::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a log's `expected.json` says. What is left out is not looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    #[serde(rename = "about")]
    _about: String,
    /// By default everybody who says something.
    pub workers: Option<Vec<String>>,
    /// What the scenario says of it; nothing where it is left out.
    #[serde(default)]
    plan: Planned,
    #[serde(default)]
    pub gaps: Vec<Gap>,
    /// What the resource held in the end, where that was looked at.
    #[serde(default)]
    pub values: BTreeMap<String, RowValue>,
    /// The resource's node, where faults befall it.
    pub resource: Option<String>,
    pub refusals_counted: Option<u64>,
    /// Whether nothing was under way any more when the log was read.
    #[serde(default)]
    pub settled: bool,
    /// Whether the positions of the log grow with gaps.
    #[serde(default)]
    pub log_has_gaps: bool,
    /// How many rows the log had when it was collected.
    pub log_rows: Option<u64>,
    /// When the timeline was over.
    pub ended_ns: Option<u64>,
    /// The case's outcome where a scenario asks for no violation.
    pub if_no_violation_is_expected: Outcome,
    pub violations: BTreeMap<ViolationKind, u64>,
    /// What a proven fault explains.
    #[serde(default)]
    pub excused: BTreeMap<ViolationKind, u64>,
    /// What became of promises, in one word each.
    #[serde(default)]
    pub promises: BTreeMap<String, String>,
    pub counts: BTreeMap<String, u64>,
    /// In milliseconds.
    #[serde(default)]
    pub measures: BTreeMap<String, u64>,
    /// Orders of events, and what the finding says of each.
    #[serde(default)]
    pub orders: Vec<(Vec<String>, String)>,
    /// One part of each doubt, in the judge's order.
    pub doubts: Vec<String>,
    pub stories: Option<Vec<ExpectedStory>>,
    pub last_writers: Option<BTreeMap<String, (String, Option<FencingToken>)>>,
}

/// The parts of a scenario that a judge looks at. All workers are alike, except
/// for those with a service of their own.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    ttl_ms: Option<u64>,
    #[serde(default)]
    service: Option<String>,
    /// Workers that use another one.
    #[serde(default)]
    services: BTreeMap<String, String>,
    fence: Option<Fence>,
    #[serde(default)]
    in_order: bool,
    #[serde(default)]
    in_session: bool,
    /// By default they are this program's own.
    #[serde(default)]
    foreign: bool,
    /// Kind, targets and how often.
    #[serde(default)]
    faults: Vec<(FaultKind, Vec<String>, usize)>,
}

impl Planned {
    fn service_plan(&self, service: &str) -> ServicePlan {
        let is_etcd = service.starts_with("etcd");
        ServicePlan {
            in_session: self.in_session,
            renews_silently: is_etcd,
            keeps_grants: is_etcd,
            by_majority: service == "redlock",
            leases_by: match is_etcd {
                true => ClockName::Monotonic,
                false => ClockName::Realtime,
            },
            ..ServicePlan::ONE_SERVER
        }
    }

    fn plan(self, workers: &[String]) -> CasePlan {
        let worker = |service: String, ttl_ms: u64| WorkerPlan {
            service_plan: self.service_plan(&service),
            service,
            ttl_ns: ttl_ms * 1_000_000,
            in_order: self.in_order,
            is_ours: !self.foreign,
        };
        let service = |name: &String| {
            let own = self.services.get(name).or(self.service.as_ref());
            own.cloned().unwrap_or_else(|| "redis".to_owned())
        };
        let planned = workers.iter().filter_map(|name| {
            let plan = worker(service(name), self.ttl_ms?);
            Some((name.clone(), plan))
        });
        let faults = self.faults.iter();
        CasePlan {
            fence: self.fence,
            workers: planned.collect(),
            others: None,
            faults: faults
                .map(|(kind, targets, times)| PlannedFault {
                    kind: *kind,
                    targets: targets.clone(),
                    times: *times,
                })
                .collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedStory {
    pub row: u64,
    pub kinds: Vec<ViolationKind>,
    pub symbolic: Vec<String>,
    pub concrete: Option<Vec<String>>,
}

pub struct Log {
    pub name: String,
    pub record: CaseRecord,
    pub expected: Expected,
}

pub fn corpus() -> Vec<Log> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = fs::read_dir(&root).expect("tests/corpus exists");
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    folders.sort();
    assert!(
        folders.len() > 30,
        "the corpus has shrunk to {}",
        folders.len()
    );
    folders.iter().map(|folder| load(folder)).collect()
}

fn load(folder: &Path) -> Log {
    let text = fs::read_to_string(folder.join("expected.json")).expect("every log has a verdict");
    let expected: Expected =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let history: Vec<Event> = jsonl(&folder.join("history.jsonl"));
    let talkers: BTreeSet<&String> = history.iter().map(|event| &event.worker).collect();
    let talkers = talkers.into_iter().cloned().collect();
    let workers: Vec<String> = expected.workers.clone().unwrap_or(talkers);
    let locks: Vec<LockEvent> = jsonl(&folder.join("locks.jsonl"));
    let watched: BTreeSet<&String> = locks.iter().map(|row| &row.node).collect();
    let record = CaseRecord {
        plan: expected.plan.clone().plan(&workers),
        lock_servers: watched.into_iter().cloned().collect(),
        log_rows: expected.log_rows,
        log_has_gaps: expected.log_has_gaps,
        ended_ns: expected.ended_ns,
        without_writes: false,
        workers,
        history,
        log: fencepost::model::Log::from_rows(jsonl::<LogRow>(&folder.join("accepted.jsonl"))),
        faults: jsonl(&folder.join("faults.jsonl")),
        locks,
        values: expected.values.clone(),
        resource: expected.resource.clone(),
        refusals_counted: expected.refusals_counted,
        settled: expected.settled,
        gaps: expected.gaps.clone(),
    };
    let name = folder.file_name().expect("a folder has a name");
    Log {
        name: name.to_string_lossy().into_owned(),
        record,
        expected,
    }
}

/// A file that is not there is an empty one.
fn jsonl<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().zip(1..).map(|(line, number)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{}:{number}: {error}", path.display()))
    });
    rows.collect()
}
