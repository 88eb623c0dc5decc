//! Invented runs for the tests of the reports.

use super::look::Look;
use crate::model::*;
use std::collections::BTreeMap;

/// A terminal of the usual width, without colours.
pub const PLAIN: Look = Look {
    color: false,
    width: 80,
    all: false,
};

pub fn run(cases: Vec<CaseResult>) -> RunRecord {
    RunRecord {
        scenario: "contention".into(),
        scenario_hash: "cafe".to_owned(),
        seed: Some(1),
        settings: Vec::new(),
        mutant: None,
        cases,
        unfinished: Vec::new(),
        environment: BTreeMap::new(),
        folder: "results/contention/1".into(),
    }
}

pub fn case(name: &str, load: Option<LoadRecord>) -> CaseResult {
    CaseResult {
        name: name.into(),
        service: None,
        fence: Fence::On,
        determined: false,
        judgement: Judgement::default(),
        verdict: CaseVerdict {
            outcome: Outcome::AsExpected,
            findings: Vec::new(),
            doubts: Vec::new(),
        },
        faults: Vec::new(),
        notes: CaseNotes {
            load,
            ..CaseNotes::default()
        },
        started_ns: 0,
    }
}

/// Returns a count that differs from the expected one.
pub fn missed(what: &str, expected: &str, found: u64) -> Finding {
    Finding {
        what: what.to_owned(),
        expected: expected.to_owned(),
        held: false,
        found: Found::Count(found),
        outcome: Outcome::NotAsExpected,
    }
}

/// Returns a case of two workers with this outcome of exclusion, at servers that were seen.
pub fn lock_case(name: &str, exclusion: Kept) -> CaseResult {
    let mut case = case(name, None);
    case.notes.workers = vec!["a".to_owned(), "b".to_owned()];
    case.judgement.lock_servers_seen = true;
    case.judgement.promises = BTreeMap::from([(Promise::Exclusion, exclusion)]);
    case
}

/// Returns a violation that is not about a write.
pub fn violation(kind: ViolationKind) -> Violation {
    Violation {
        kind,
        key: "account-42".to_owned(),
        row: 0,
        against: None,
        at_ns: 2_000_000_000,
        workers: vec!["b".to_owned(), "a".to_owned()],
        detail: "b was granted it while a held it".to_owned(),
        excuse: None,
    }
}

pub fn excused(kind: ViolationKind, text: &str) -> Violation {
    let excuse = Excuse {
        fault: Some(1),
        text: text.to_owned(),
    };
    Violation {
        excuse: Some(excuse),
        ..violation(kind)
    }
}

pub fn fault(stage: FaultStage, target: &str) -> FaultRow {
    FaultRow {
        detail: target.to_owned(),
        ..FaultRow::new(1, 1, FaultKind::Pause, target, stage)
    }
}

/// Returns a case with a step for each number of contenders. The waits grow with that number
/// and with the pace of the lock.
pub fn contended(name: &str, contenders: &[u32], pace: f64) -> CaseResult {
    let steps = contenders.iter().map(|contenders| step(*contenders, pace));
    let load = LoadRecord {
        steps: steps.collect(),
        ..LoadRecord::default()
    };
    case(name, Some(load))
}

pub fn step(contenders: u32, pace: f64) -> ContendStep {
    let wait = f64::from(contenders) * 1_000.0 * pace;
    let seconds = 60;
    let queue = (0..=seconds).map(|second| Queued {
        at_ms: second * 1_000,
        waiting: u64::from(contenders).min(second * 20),
        backlog: (second * 20).saturating_sub(u64::from(contenders)),
    });
    ContendStep {
        contenders,
        model: "open".to_owned(),
        offered_per_s: Some(200.0),
        lasted_ms: seconds * 1_000,
        arrivals: 12_000,
        asked: 12_000,
        acquisitions: 11_000,
        timeouts: 1_000,
        attempts: 24_000,
        commands: 36_000,
        acquire: latency(11_000, wait),
        ask: latency(11_000, wait),
        held: latency(11_000, 2_000.0),
        write: latency(11_000, 800.0),
        release: latency(11_000, 400.0),
        hand_off: latency(10_900, 900.0),
        hand_offs_per_s: 181.0,
        throughput_per_s: 1_000.0 / (4.0 + pace),
        ceiling_per_s: Some(1_000.0 / (3.0 + pace)),
        bound_by: "the write to the resource".to_owned(),
        queue: queue.collect(),
        fairness: Fairness {
            out_of_order: 0.25,
            mean_overtakes: 3.5,
            max_overtakes: 40,
            jain: 0.98765,
            worst_wait_us: 9_000_000,
            starved: 7,
        },
        ..ContendStep::default()
    }
}

pub fn latency(count: u64, middle_us: f64) -> Latency {
    let times = |factor: f64| (middle_us * factor) as u64;
    Latency {
        count,
        mean_us: middle_us,
        p50_us: times(1.0),
        p90_us: times(2.0),
        p99_us: times(4.0),
        p999_us: times(7.0),
        max_us: times(9.0),
    }
}

/// Returns arrivals of one step, granted out of order by at most this many places.
pub fn arrivals(step: u32, count: u64, disorder: u64) -> Vec<ArrivalRow> {
    let row = |place: u64| {
        let shuffled = place * 7_919 % (disorder + 1);
        let granted_ns = (place + shuffled) * 1_000_000 + 500_000;
        ArrivalRow {
            step,
            intended_ns: place * 1_000_000,
            asked_ns: Some(place * 1_000_000),
            granted_ns: Some(granted_ns),
            ended_ns: granted_ns + 100_000,
            contender: Some(format!("c{}", place % 50)),
            key: "hot".to_owned(),
            token: Some(place + 1),
            end: ArrivalEnd::Granted,
        }
    };
    (0..count).map(row).collect()
}

/// Returns the record of a Redis that is filled, and whose keys live and then expire.
pub fn keyspace() -> LoadRecord {
    let (keys, ttl_s, filling_s) = (10_000_000_u64, 120_u64, 60_u64);
    let sample = |second: u64| {
        let made = keys * second.min(filling_s) / filling_s;
        let dead = keys * second.saturating_sub(ttl_s).min(filling_s) / filling_s;
        let gone = keys * second.saturating_sub(ttl_s + 5).min(filling_s * 2) / (filling_s * 2);
        let phase = match second {
            second if second < filling_s => "filling",
            second if second < ttl_s => "alive",
            _ => "expiring",
        };
        KeyspaceSample {
            at_ms: second * 1_000,
            phase: phase.to_owned(),
            used_memory: 1_000_000 + (made - gone) * 110,
            used_memory_rss: 8_000_000 + made * 118,
            present: made - gone,
            alive: made - dead,
            expired: gone,
            expired_active: gone / 10 * 9,
            expired_stale_share: 0.25,
        }
    };
    let figures = [
        ("peak_used_memory_bytes", 1.1e9),
        ("keys_made_per_s", 166_667.0),
        ("dead_still_there_for_ms", 65_000.0),
    ];
    let redis = RedisKeyspace {
        keys,
        ttl_ms: ttl_s * 1_000,
        made_in_ms: filling_s * 1_000,
        samples: (0..=260).map(sample).collect(),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    LoadRecord {
        keyspace: Some(KeyspaceRecord {
            redis: Some(redis),
            etcd: None,
        }),
        ..LoadRecord::default()
    }
}

/// Returns the record of an etcd that grows, is compacted, and is defragmented.
pub fn growth() -> LoadRecord {
    let sample = |second: u64| {
        let leases = second.min(40) * 1_000;
        let bytes = leases as i64 * 700;
        let (phase, size, used) = match second {
            second if second < 40 => ("granting", bytes, bytes * 9 / 10),
            second if second < 50 => ("compacted", bytes, bytes / 3),
            _ => ("defragmented", bytes / 3, bytes / 3),
        };
        EtcdSample {
            at_ms: second * 1_000,
            phase: phase.to_owned(),
            leases,
            granted_per_s: 1_000.0,
            revision: leases as i64 * 2,
            db_size: size,
            db_size_in_use: used,
            resident_memory: 50_000_000 + leases * 900,
        }
    };
    let etcd = EtcdGrowth {
        leases: 40_000,
        ttl_ms: 600_000,
        samples: (0..60).map(sample).collect(),
        figures: BTreeMap::from([("granted_per_s".to_owned(), 1_000.0)]),
        extrapolation: "700 bytes a lease: ten million would take 6.5 GiB".to_owned(),
    };
    LoadRecord {
        keyspace: Some(KeyspaceRecord {
            redis: None,
            etcd: Some(etcd),
        }),
        ..LoadRecord::default()
    }
}

#[track_caller]
pub fn says(text: impl AsRef<str>, parts: &[&str]) {
    let text = text.as_ref();
    for part in parts {
        assert!(text.contains(part), "no {part}\nin\n{text}");
    }
}
